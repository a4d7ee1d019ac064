//! A body that is sent in chunks (RFC 9112, 7.1), taken out of its frames as it comes.

use std::io;

/// Where in the frames the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In a size; whether a digit of it has come.
    Size {
        begun: bool,
    },
    /// After it: extensions, which say nothing here.
    Extension,
    /// Before the line feed that ends the size's line.
    SizeEnd,
    /// In the chunk's data.
    Data,
    /// Before the line end that follows the data.
    DataReturn,
    DataEnd,
    /// At the beginning of a line after the last chunk: a trailer, or the blank line.
    Line,
    Trailer,
    /// Before the line feed of the blank line.
    End,
    Over,
}

/// A body in chunks.
#[derive(Clone, Debug)]
pub(super) struct Chunked {
    state: State,
    /// How many bytes of the chunk are still to come.
    left: u64,
}

impl Default for Chunked {
    fn default() -> Self {
        Self {
            state: State::Size { begun: false },
            left: 0,
        }
    }
}

impl Chunked {
    /// Whether all of it has come.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Takes what came next, and gives the data in it.
    pub(super) fn take(&mut self, mut said: &[u8]) -> io::Result<Vec<u8>> {
        let mut data = Vec::new();
        while let [first, rest @ ..] = said {
            if self.state == State::Data {
                let length = usize::try_from(self.left)
                    .unwrap_or(usize::MAX)
                    .min(said.len());
                data.extend_from_slice(&said[..length]);
                self.left -= length as u64;
                said = &said[length..];
                if self.left == 0 {
                    self.state = State::DataReturn;
                }
                continue;
            }
            self.state = self.after(*first)?;
            said = rest;
        }
        Ok(data)
    }

    /// What follows a byte that is no data.
    fn after(&mut self, byte: u8) -> io::Result<State> {
        Ok(match (self.state, byte) {
            (State::Size { .. }, digit) if digit.is_ascii_hexdigit() => {
                let digit = char::from(digit).to_digit(16).unwrap_or_default();
                let left = self.left.checked_mul(16).ok_or_else(odd)?;
                self.left = left | u64::from(digit);
                State::Size { begun: true }
            }
            (State::Size { begun: true } | State::Extension, b'\r') => State::SizeEnd,
            (State::Size { begun: true }, b';' | b' ' | b'\t') => State::Extension,
            (State::Extension, byte) if byte != b'\n' => State::Extension,
            (State::SizeEnd, b'\n') if self.left == 0 => State::Line,
            (State::SizeEnd, b'\n') => State::Data,
            (State::DataReturn, b'\r') => State::DataEnd,
            (State::DataEnd, b'\n') => State::Size { begun: false },
            (State::Line, b'\r') => State::End,
            (State::Trailer, b'\n') => State::Line,
            (State::Line | State::Trailer, _) => State::Trailer,
            (State::End, b'\n') => State::Over,
            _ => return Err(odd()),
        })
    }
}

fn odd() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the chunks are out of order")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(said: &[u8]) -> io::Result<(Vec<u8>, bool)> {
        let mut chunked = Chunked::default();
        let data = chunked.take(said)?;
        Ok((data, chunked.is_over()))
    }

    #[test]
    fn chunks_may_have_extensions_and_trailers() {
        let said = b"5;a=b\r\nhello\r\n00B \r\n, all of it\r\n0\r\nX-A: b\r\n\r\n";
        assert_eq!(taken(said).unwrap(), (b"hello, all of it".to_vec(), true));
    }

    #[test]
    fn what_is_cut_off_is_not_over() {
        for said in ["", "5\r\nhel", "5\r\nhello", "5\r\nhello\r\n", "0\r\n"] {
            assert!(!taken(said.as_bytes()).unwrap().1, "{said:?}");
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for said in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "5\nhello\r\n",
            "5\r\nhellooo",
            "5\r\nhello\n0\r\n\r\n",
            "1;a\nx",
            "10000000000000000\r\n",
            "0\r\n\r\nmore",
        ] {
            assert!(taken(said.as_bytes()).is_err(), "{said:?}");
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_they_arrive(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
            cuts in prop::collection::vec(1..9_usize, 1..9),
        ) {
            let mut wire = Vec::new();
            for chunk in &chunks {
                wire.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
            let mut chunked = Chunked::default();
            let mut data = Vec::new();
            let mut rest = &wire[..];
            for length in cuts.iter().cycle() {
                let (now, later) = rest.split_at((*length).min(rest.len()));
                data.extend(chunked.take(now).unwrap());
                rest = later;
                prop_assert_eq!(chunked.is_over(), rest.is_empty());
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(data, chunks.concat());
        }
    }
}
