//! The lines of `baton check`.

use std::io::Write;

/// Writes each line as soon as it is known: a check that waits for a time-out is seen to wait.
pub struct Report {
    out: Box<dyn Write + Send>,
    fails: usize,
    warnings: usize,
}

impl Report {
    /// A report to `out`. A reader that has gone away is no failure.
    #[must_use]
    pub fn new(out: impl Write + Send + 'static) -> Self {
        Self {
            out: Box::new(out),
            fails: 0,
            warnings: 0,
        }
    }

    /// Whether anything has to be mended.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.fails > 0
    }

    pub(super) fn ok(&mut self, what: &str, text: impl AsRef<str>) {
        self.line("ok", what, text.as_ref(), "");
    }

    /// Something that works, but may not be as it is meant.
    pub(super) fn warn(&mut self, what: &str, text: impl AsRef<str>, mend: impl AsRef<str>) {
        self.warnings += 1;
        self.line("warn", what, text.as_ref(), mend.as_ref());
    }

    /// Something that keeps Baton from its work.
    pub(super) fn fail(&mut self, what: &str, text: impl AsRef<str>, mend: impl AsRef<str>) {
        self.fails += 1;
        self.line("FAIL", what, text.as_ref(), mend.as_ref());
    }

    /// The last line: how much there is to do.
    pub(super) fn close(&mut self) {
        let count = |number: usize, one: &str| match number {
            1 => format!("1 {one}"),
            _ => format!("{number} {one}s"),
        };
        let warnings = count(self.warnings, "warning");
        let last = match (self.fails, self.warnings) {
            (0, 0) => "All is in order.".to_owned(),
            (0, _) => format!("Nothing to mend, {warnings}."),
            (fails, 0) => format!("{} to mend.", count(fails, "thing")),
            (fails, _) => format!("{} to mend, {warnings}.", count(fails, "thing")),
        };
        self.write(&format!("{last}\n"));
    }

    fn line(&mut self, level: &str, what: &str, text: &str, mend: &str) {
        let mut lines = format!("{level:<4}  {what}: {text}\n");
        for line in mend.lines() {
            lines.push_str("      ");
            lines.push_str(line);
            lines.push('\n');
        }
        self.write(&lines);
    }

    fn write(&mut self, lines: &str) {
        let _ = self.out.write_all(lines.as_bytes());
        let _ = self.out.flush();
    }
}
