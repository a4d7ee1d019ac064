//! Reading a body whole, up to a limit.

use axum::body::{Body, Bytes};
use futures::{StreamExt, stream};
use http_body_util::BodyExt;

/// A body that was read.
pub(super) enum Taken {
    /// All of it.
    Whole(Bytes),
    /// It is longer, or broke off: what was read and the rest.
    Rest(Body),
}

/// Reads a body, up to `limit` bytes.
pub(super) async fn take(mut body: Body, limit: usize) -> Taken {
    let mut read: Vec<Bytes> = Vec::new();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(data)) => {
                length += data.len();
                read.push(data);
            }
            Ok(Err(_trailers)) => {}
            Err(error) => return Taken::Rest(chain(read, Body::from_stream(broken(error)))),
        }
        if length > limit {
            return Taken::Rest(chain(read, body));
        }
    }
    Taken::Whole(match <[Bytes; 1]>::try_from(read) {
        Ok([whole]) => whole,
        Err(parts) => parts.concat().into(),
    })
}

fn broken(error: axum::Error) -> impl futures::Stream<Item = Result<Bytes, axum::Error>> {
    stream::once(async move { Err(error) })
}

fn chain(read: Vec<Bytes>, rest: Body) -> Body {
    let read = stream::iter(read.into_iter().map(Ok));
    Body::from_stream(read.chain(rest.into_data_stream()))
}
