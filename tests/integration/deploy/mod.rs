//! What `deploy/` offers to operators, as far as it runs without their platforms.

mod compose;
