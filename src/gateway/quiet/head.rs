//! The head of a request and of its answer, as they are on the wire, and where the answer's body
//! ends (RFC 9112, 6.3).

use std::io;

use axum::http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use axum::http::response::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri};
use hyper::body::SizeHint;

use super::chunked::Chunked;

/// A longer head, or one with more lines, is no answer.
const LIMIT: usize = 64 << 10;
const LINES: usize = 128;

/// A GET, on a connection that ends with the answer.
pub(super) fn request(address: &Uri, headers: &HeaderMap) -> Vec<u8> {
    let path = address.path_and_query().map_or("/", |path| path.as_str());
    let mut head = format!("GET {path} HTTP/1.1\r\n").into_bytes();
    let mut line = |name: &HeaderName, value: &[u8]| {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    };
    if !headers.contains_key(HOST)
        && let Some(authority) = address.authority()
    {
        line(&HOST, authority.as_str().as_bytes());
    }
    for (name, value) in headers {
        line(name, value.as_bytes());
    }
    line(&CONNECTION, b"close");
    head.extend_from_slice(b"\r\n");
    head
}

/// How the answer's body is delimited, and how far it has come.
#[derive(Clone, Debug)]
pub(super) enum Framing {
    /// In chunks.
    Chunked(Chunked),
    /// So many bytes are still to come.
    Sized(u64),
    /// Until the connection ends.
    Open,
}

impl Framing {
    /// Whether all of it has come.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Chunked(chunked) => chunked.is_over(),
            Self::Sized(left) => *left == 0,
            Self::Open => false,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self {
            Self::Sized(left) => SizeHint::with_exact(*left),
            Self::Chunked(_) | Self::Open => SizeHint::default(),
        }
    }

    /// Takes what came next, and gives the data in it. Nothing came: the connection has ended.
    pub(super) fn take(&mut self, said: &[u8]) -> io::Result<Vec<u8>> {
        match self {
            Self::Open if said.is_empty() => {
                *self = Self::Sized(0);
                Ok(Vec::new())
            }
            _ if said.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            Self::Open => Ok(said.to_vec()),
            Self::Chunked(chunked) => chunked.take(said),
            Self::Sized(left) => {
                *left = left
                    .checked_sub(said.len() as u64)
                    .ok_or_else(|| odd("it is longer than it says"))?;
                Ok(said.to_vec())
            }
        }
    }
}

/// The head of the answer, where all of it has been read; it is taken out of what was read.
pub(super) fn answer(read: &mut Vec<u8>) -> io::Result<Option<(Parts, Framing)>> {
    loop {
        let mut lines = [httparse::EMPTY_HEADER; LINES];
        let mut head = httparse::Response::new(&mut lines);
        let length = match head.parse(read).map_err(odd)? {
            httparse::Status::Complete(length) => length,
            httparse::Status::Partial if read.len() > LIMIT => return Err(odd("it has no end")),
            httparse::Status::Partial => return Ok(None),
        };
        let status = StatusCode::from_u16(head.code.unwrap_or_default()).map_err(odd)?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(odd("it changes the protocol, which nobody had asked for"));
        }
        if status.is_informational() {
            read.drain(..length);
            continue;
        }
        let (mut parts, ()) = Response::new(()).into_parts();
        parts.status = status;
        for line in head.headers.iter() {
            let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(odd)?;
            let value = HeaderValue::from_bytes(line.value).map_err(odd)?;
            parts.headers.append(name, value);
        }
        read.drain(..length);
        read.shrink_to_fit();
        let framing = framing(status, &mut parts.headers)?;
        return Ok(Some((parts, framing)));
    }
}

fn framing(status: StatusCode, headers: &mut HeaderMap) -> io::Result<Framing> {
    if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        return Ok(Framing::Sized(0));
    }
    let last = headers.get_all(TRANSFER_ENCODING).iter().next_back();
    if let Some(encoding) = last {
        let encoding = encoding.to_str().unwrap_or_default();
        let is_chunked = encoding
            .rsplit(',')
            .next()
            .is_some_and(|last| last.trim().eq_ignore_ascii_case("chunked"));
        // What else is said of its length does not count, and must not go on to the client.
        headers.remove(CONTENT_LENGTH);
        return Ok(if is_chunked {
            Framing::Chunked(Chunked::default())
        } else {
            Framing::Open
        });
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let Some(length) = lengths.next() else {
        return Ok(Framing::Open);
    };
    if lengths.any(|other| other != length) {
        return Err(odd("it has two lengths"));
    }
    let digits = length.to_str().map_err(odd)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let length = digits.parse().ok().filter(|_| is_number);
    length
        .map(Framing::Sized)
        .ok_or_else(|| odd("its length is no number"))
}

fn odd(why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> io::Result<(Parts, Framing, String)> {
        let mut read = text.as_bytes().to_vec();
        let (parts, framing) = answer(&mut read)?.expect("a whole head");
        Ok((parts, framing, String::from_utf8(read).unwrap()))
    }

    #[test]
    fn a_request_says_what_it_was_given_and_nothing_else() {
        let address = Uri::from_static("http://librechat:3080/below/api/x?y=%20");
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Bearer t"));
        headers.append("cookie", HeaderValue::from_static("a=b"));
        headers.append("cookie", HeaderValue::from_static("c=d"));
        let without_host = "GET /below/api/x?y=%20 HTTP/1.1\r\nhost: librechat:3080\r\n\
            authorization: Bearer t\r\ncookie: a=b\r\ncookie: c=d\r\nconnection: close\r\n\r\n";
        let said = String::from_utf8(request(&address, &headers)).unwrap();
        assert_eq!(said, without_host);
        headers.insert(HOST, HeaderValue::from_static("chat.example"));
        let said = String::from_utf8(request(&address, &headers)).unwrap();
        assert_eq!(said.matches("host: ").count(), 1);
        assert!(said.contains("\r\nhost: chat.example\r\n"), "{said}");
    }

    #[test]
    fn an_answer_may_come_in_pieces_and_after_others() {
        let all = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
            HTTP/1.1 200 OK\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 3\r\n\r\nabc";
        let head = all.len() - 3;
        let mut got = Vec::new();
        for (at, byte) in all[..head].iter().enumerate() {
            assert!(at == 0 || answer(&mut got).unwrap().is_none(), "{at}");
            got.push(*byte);
        }
        got.extend_from_slice(b"abc");
        let (parts, framing) = answer(&mut got).unwrap().unwrap();
        assert_eq!(parts.status, StatusCode::OK);
        assert_eq!(parts.headers.get_all("x-a").iter().count(), 2);
        assert!(!parts.headers.contains_key("link"));
        assert!(matches!(framing, Framing::Sized(3)));
        assert_eq!(got, b"abc");
    }

    #[test]
    fn the_end_is_where_the_answer_says() {
        let framing = |lines: &str| {
            let head = format!("HTTP/1.1 200 OK\r\n{lines}\r\n");
            read(&head).map(|(parts, framing, _)| (format!("{framing:?}"), parts))
        };
        for (lines, wanted) in [
            ("", "Open"),
            ("content-length: 10\r\ncontent-length: 10\r\n", "Sized(10)"),
            ("transfer-encoding: gzip\r\n", "Open"),
        ] {
            assert_eq!(framing(lines).unwrap().0, wanted, "{lines}");
        }
        let (both, parts) =
            framing("transfer-encoding: Chunked\r\ncontent-length: 10\r\n").unwrap();
        assert!(both.starts_with("Chunked"), "{both}");
        assert!(!parts.headers.contains_key(CONTENT_LENGTH));
        let (parts, empty, _) =
            read("HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
        assert_eq!(parts.status, 204);
        assert!(empty.is_over());
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for head in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: +1\r\n\r\n",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        ] {
            assert!(read(head).is_err(), "{head:?}");
        }
        let mut endless = b"HTTP/1.1 200 OK\r\nx: ".to_vec();
        endless.resize(LIMIT + 1, b'y');
        assert!(answer(&mut endless).is_err());
    }

    #[test]
    fn what_breaks_off_is_an_error() {
        assert!(Framing::Sized(3).take(b"abcd").is_err());
        assert!(Framing::Sized(3).take(b"").is_err());
        assert!(Framing::Chunked(Chunked::default()).take(b"").is_err());
        let mut open = Framing::Open;
        assert_eq!(open.take(b"abcd").unwrap(), b"abcd");
        assert!(open.take(b"").unwrap().is_empty());
        assert!(open.is_over());
    }
}
