//! The lines of `baton check`.

use std::io::Write;

/// Writes each line as soon as it is known: a check that waits for a time-out is seen to wait.
pub struct Report {
    out: Box<dyn Write + Send>,
    failed: bool,
}

impl Report {
    /// A report to `out`. A reader that has gone away is no failure.
    #[must_use]
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self {
            out: Box::new(out),
            failed: false,
        }
    }

    /// Whether anything has to be mended.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.failed
    }

    pub(super) fn ok(&mut self, what: &str, text: impl AsRef<str>) {
        self.line("ok", what, text.as_ref(), "");
    }

    /// Something that works, but may not be as it is meant.
    pub(super) fn warn(&mut self, what: &str, text: impl AsRef<str>, mend: impl AsRef<str>) {
        self.line("warn", what, text.as_ref(), mend.as_ref());
    }

    /// Something that keeps Baton from its work.
    pub(super) fn fail(&mut self, what: &str, text: impl AsRef<str>, mend: impl AsRef<str>) {
        self.failed = true;
        self.line("FAIL", what, text.as_ref(), mend.as_ref());
    }

    fn line(&mut self, level: &str, what: &str, text: &str, mend: &str) {
        let mut lines = format!("{level:<4}  {what}: {text}\n");
        for line in mend.lines() {
            lines.push_str("      ");
            lines.push_str(line);
            lines.push('\n');
        }
        let _ = self.out.write_all(lines.as_bytes());
        let _ = self.out.flush();
    }
}
