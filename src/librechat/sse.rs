//! LibreChat's streams of server-sent events, taken apart without changing a byte.
//!
//! An event is lines up to a blank one; lines end with LF, CRLF or CR. LibreChat writes
//! `event: message`, `data: {…}` and a blank line (`api/server/routes/agents/index.js`), and the
//! last event of a turn says `"final":true`. Only an event that may be a final is held until it is
//! complete; whatever cannot be one passes as it comes, however it is chunked.

use axum::body::Bytes;

use super::json::Members;

/// The first keys of the events that are never a final: steps and deltas, the start of a turn, and
/// what a reconnect begins with, which may be many megabytes (v0.8.0 to v0.8.8-rc1).
const NEVER_FINAL: [&[u8]; 3] = [b"event\"", b"created\"", b"sync\""];

/// A line whose beginning is not known for what it is after so many bytes is held.
const PROBE_LIMIT: usize = 64;

/// An event longer than this passes whatever it is.
const HELD_LIMIT: usize = 64 << 20;

/// A part of a stream, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Passes as it is.
    Pass(Bytes),
    /// Complete from its first line of data on, and perhaps a final.
    Event(Event),
}

/// An event from its first line of data to its blank line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    raw: Bytes,
}

/// Takes a stream apart.
#[derive(Debug, Default)]
pub struct Framer {
    state: State,
    /// The bytes of earlier chunks that are held.
    held: Vec<u8>,
    /// The first bytes of a line that is not known yet.
    probe: Vec<u8>,
    after_cr: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Within the first bytes of a line.
    #[default]
    Probe,
    /// Within a line that passes.
    Line,
    /// Within an event that may be a final.
    Hold { line_is_empty: bool },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unknown,
    Other,
    MayBeFinal,
}

impl Framer {
    /// Takes the next chunk and gives out what is decided by it.
    pub fn push(&mut self, chunk: &Bytes, out: &mut Vec<Piece>) {
        let mut given = 0; // before it everything has been given out
        let mut mark = 0; // from here on it is held, unless a line passes
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            if self.after_cr {
                self.after_cr = false;
                if byte == b'\n' {
                    at += 1;
                    if self.state == State::Probe {
                        mark = at;
                    }
                    continue;
                }
            }
            match self.state {
                State::Probe => {
                    at += 1;
                    if self.probe(byte, out) {
                        mark = at;
                    }
                }
                State::Line => {
                    at = self.line_end(chunk, at);
                    mark = at;
                }
                State::Hold { line_is_empty } => {
                    let mut end = self.line_end(chunk, at);
                    let ended = is_line_end(chunk[end - 1]);
                    if !ended || end - at > 1 || !line_is_empty {
                        self.state = State::Hold {
                            line_is_empty: ended,
                        };
                    } else {
                        if self.after_cr && chunk.get(end) == Some(&b'\n') {
                            self.after_cr = false;
                            end += 1;
                        }
                        pass(chunk.slice(given..mark), out);
                        self.held.extend_from_slice(&chunk[mark..end]);
                        let raw = std::mem::take(&mut self.held).into();
                        out.push(Piece::Event(Event { raw }));
                        self.state = State::Probe;
                        given = end;
                        mark = end;
                    }
                    at = end;
                }
            }
        }
        if self.state == State::Line {
            pass(chunk.slice(given..), out);
            return;
        }
        pass(chunk.slice(given..mark), out);
        self.held.extend_from_slice(&chunk[mark..]);
        if self.held.len() > HELD_LIMIT {
            pass(std::mem::take(&mut self.held).into(), out);
            self.state = State::Line;
        }
    }

    /// The stream has ended: what is still held passes.
    pub fn finish(&mut self) -> Option<Bytes> {
        let held = std::mem::take(&mut self.held);
        *self = Self::default();
        (!held.is_empty()).then(|| held.into())
    }

    /// The position after the line's end, or the end of the chunk.
    fn line_end(&mut self, chunk: &[u8], at: usize) -> usize {
        let Some(length) = chunk[at..].iter().position(|&byte| is_line_end(byte)) else {
            return chunk.len();
        };
        let end = at + length;
        self.after_cr = chunk[end] == b'\r';
        if self.state == State::Line {
            self.state = State::Probe;
        }
        end + 1
    }

    /// Takes one more byte of a line's beginning. Whether the line is over, and passes.
    fn probe(&mut self, byte: u8, out: &mut Vec<Piece>) -> bool {
        let ends = is_line_end(byte);
        if ends {
            self.after_cr = byte == b'\r';
        } else {
            self.probe.push(byte);
        }
        let kind = match kind(&self.probe) {
            Kind::Unknown if ends && self.probe.contains(&b'{') => Kind::MayBeFinal,
            Kind::Unknown if ends => Kind::Other,
            kind => kind,
        };
        match kind {
            Kind::Unknown => return false,
            Kind::MayBeFinal => {
                self.state = State::Hold {
                    line_is_empty: ends,
                };
            }
            Kind::Other => {
                pass(std::mem::take(&mut self.held).into(), out);
                if !ends {
                    self.state = State::Line;
                }
            }
        }
        self.probe.clear();
        ends && kind == Kind::Other
    }
}

fn pass(bytes: Bytes, out: &mut Vec<Piece>) {
    if !bytes.is_empty() {
        out.push(Piece::Pass(bytes));
    }
}

fn is_line_end(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

/// What a line is, by its beginning.
fn kind(line: &[u8]) -> Kind {
    const FIELD: &[u8] = b"data:";
    if line.len() > PROBE_LIMIT {
        return Kind::MayBeFinal;
    }
    let Some(value) = line.strip_prefix(FIELD) else {
        return if FIELD.starts_with(line) {
            Kind::Unknown
        } else {
            Kind::Other
        };
    };
    let members = match value.trim_ascii_start() {
        [] => return Kind::Unknown,
        [b'{', members @ ..] => members.trim_ascii_start(),
        _ => return Kind::Other,
    };
    let key = match members {
        [] => return Kind::Unknown,
        [b'"', key @ ..] => key,
        _ => return Kind::MayBeFinal,
    };
    if NEVER_FINAL.iter().any(|known| key.starts_with(known)) {
        Kind::Other
    } else if NEVER_FINAL.iter().any(|known| known.starts_with(key)) {
        Kind::Unknown
    } else {
        Kind::MayBeFinal
    }
}

/// Takes a stream of LibreChat's apart into whole events; its lines end with LF.
#[derive(Debug, Default)]
pub struct Frames {
    held: Vec<u8>,
}

impl Frames {
    /// Takes the next chunk and gives out the events that it completes. One that never ends is
    /// given out in pieces.
    pub fn push(&mut self, chunk: &Bytes) -> Vec<Event> {
        let mut events = Vec::new();
        let mut from = self.held.len().saturating_sub(1);
        self.held.extend_from_slice(chunk);
        while let Some(at) = self.held[from..].windows(2).position(|two| two == b"\n\n") {
            let rest = self.held.split_off(from + at + 2);
            let raw = std::mem::replace(&mut self.held, rest).into();
            events.push(Event { raw });
            from = 0;
        }
        if self.held.len() > HELD_LIMIT {
            let raw = std::mem::take(&mut self.held).into();
            events.push(Event { raw });
        }
        events
    }
}

impl Event {
    /// Its name, where it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        lines(&self.raw)
            .find_map(|(line, _)| line.strip_prefix(b"event:"))
            .and_then(|name| std::str::from_utf8(name).ok())
            .map(str::trim)
    }

    /// Whether it is the last one of a turn.
    #[must_use]
    pub fn is_final(&self) -> bool {
        Members::read(&self.data()).is_some_and(|said| said.flag("final"))
    }

    /// What LibreChat says went wrong: `event: error`, with `{error}` (v0.8.7, v0.8.8).
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        if self.name() != Some("error") {
            return None;
        }
        let data = self.data();
        let said = Members::read(&data);
        let error = said.as_ref().and_then(|said| said.raw("error"));
        Some(match error {
            Some(error) => serde_json::from_str(error).unwrap_or_else(|_| error.to_owned()),
            None => String::from_utf8_lossy(&data).into_owned(),
        })
    }

    /// An event with this data alone.
    #[must_use]
    pub fn new(data: &[u8]) -> Self {
        Self {
            raw: [b"data: ", data, b"\n\n"].concat().into(),
        }
    }

    /// Its bytes as they came.
    #[must_use]
    pub fn raw(&self) -> Bytes {
        self.raw.clone()
    }

    /// Its data: the lines' values, joined.
    #[must_use]
    pub fn data(&self) -> Vec<u8> {
        let mut data = Vec::with_capacity(self.raw.len());
        for (line, _) in lines(&self.raw) {
            if let Some(value) = value(line) {
                if !data.is_empty() {
                    data.push(b'\n');
                }
                data.extend_from_slice(value);
            }
        }
        data
    }

    /// The same event with other data; every line that is not data stays.
    #[must_use]
    pub fn with_data(&self, data: &[u8]) -> Bytes {
        let mut raw = Vec::with_capacity(self.raw.len() + 256);
        let mut written = false;
        for (line, end) in lines(&self.raw) {
            if value(line).is_none() {
                raw.extend_from_slice(line);
                raw.extend_from_slice(end);
            } else if !written {
                written = true;
                raw.extend_from_slice(b"data: ");
                raw.extend_from_slice(data);
                raw.extend_from_slice(end);
            }
        }
        raw.into()
    }
}

fn value(line: &[u8]) -> Option<&[u8]> {
    let value = line.strip_prefix(b"data:")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

/// The lines with what ends them.
fn lines(mut rest: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let length = rest.iter().position(|&byte| is_line_end(byte));
        let (line, after) = rest.split_at(length.unwrap_or(rest.len()));
        let end = match after {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        let (end, after) = after.split_at(end);
        rest = after;
        Some((line, end))
    })
}

#[cfg(test)]
mod tests;
