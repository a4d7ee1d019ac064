//! Requests as any client makes them, byte by byte where a test asks for that.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    head: String,
    /// The body as text.
    pub text: String,
}

impl Request {
    /// A request without a body.
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// With one more header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a bearer token.
    pub fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    /// With a body of JSON.
    pub fn json(self, body: &Value) -> Self {
        self.header("Content-Type", "application/json")
            .body(body.to_string())
    }

    /// With a body of any kind.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// The head of the request, on a connection that is closed after the answer.
    pub fn head(&self, address: SocketAddr) -> String {
        let mut lines = vec![
            format!("{} {} HTTP/1.1", self.method, self.path),
            format!("Host: {address}"),
            "Connection: close".to_owned(),
        ];
        let own = self.headers.iter();
        lines.extend(own.map(|(name, value)| format!("{name}: {value}")));
        let is_framed = self
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding"));
        if !self.body.is_empty() && !is_framed {
            lines.push(format!("Content-Length: {}", self.body.len()));
        }
        lines.join("\r\n") + "\r\n\r\n"
    }

    /// Sends it and waits for the answer.
    pub async fn send(&self, address: SocketAddr) -> Answer {
        let answer = self.try_send(address).await;
        answer.unwrap_or_else(|error| panic!("{} {}: {error}", self.method, self.path))
    }

    /// Sends it where somebody may not be there to answer.
    pub async fn try_send(&self, address: SocketAddr) -> std::io::Result<Answer> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(self.head(address).as_bytes()).await?;
        // The server may have answered and closed before it has all of it.
        let _ = stream.write_all(&self.body).await;
        Answer::read(&mut stream).await
    }
}

impl Answer {
    /// Reads an answer to the end of the connection.
    pub async fn read(stream: &mut TcpStream) -> std::io::Result<Self> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await?;
        let all = String::from_utf8_lossy(&bytes).into_owned();
        let cut = |what: &str| std::io::Error::other(format!("{what} in {all:?}"));
        let (head, text) = all
            .split_once("\r\n\r\n")
            .ok_or_else(|| cut("no end of a head"))?;
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        Ok(Self {
            status: status.ok_or_else(|| cut("no status"))?,
            head: head.to_owned(),
            text: text.to_owned(),
        })
    }

    /// A header's value.
    pub fn header(&self, wanted: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut named = lines.filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        named.next().map(|(_, value)| value)
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// What went wrong, in the one form that all errors have.
    pub fn error(&self) -> String {
        let body = self.json();
        assert_eq!(body["success"], false, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"));
        body["error"].as_str().expect("a text").to_owned()
    }
}
