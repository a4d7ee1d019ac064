//! An answer that may be silent for long, as a turn's events, on a connection of its own.
//!
//! A pooled connection holds three buffers of 8 KiB for as long as its answer goes on. Of this one
//! nothing is held while nobody says anything, and it is read where its bytes are wanted, without a
//! task between.

mod chunked;
mod head;

use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, Response, Uri};
use hyper::body::{Frame, SizeHint};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tower_service::Service;

use self::head::Framing;

/// So much is read at once.
const READ: usize = 8 << 10;

type Connection = TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>;
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Asks for something, and waits for the head of the answer.
///
/// # Errors
///
/// LibreChat cannot be reached, breaks off, or answers with no HTTP/1.1.
pub(super) async fn get(
    mut connector: HttpsConnector<HttpConnector>,
    address: Uri,
    headers: &HeaderMap,
) -> Result<Response<Body>, BoxError> {
    let request = head::request(&address, headers);
    poll_fn(|cx| connector.poll_ready(cx)).await?;
    let mut connection = TokioIo::new(connector.call(address).await?);
    connection.write_all(&request).await?;
    connection.flush().await?;
    let mut read = Vec::with_capacity(1 << 10);
    let (head, framing) = loop {
        if connection.read_buf(&mut read).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if let Some(answer) = head::answer(&mut read)? {
            break answer;
        }
    };
    let answer = Answer {
        connection,
        framing,
        early: read,
    };
    Ok(Response::from_parts(head, Body::new(answer)))
}

/// The body of the answer.
struct Answer {
    connection: Connection,
    framing: Framing,
    /// What came with the head.
    early: Vec<u8>,
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        let mut space = [MaybeUninit::uninit(); READ];
        while !this.framing.is_over() {
            let mut read = ReadBuf::uninit(&mut space);
            let early = std::mem::take(&mut this.early);
            let said = if early.is_empty() {
                ready!(Pin::new(&mut this.connection).poll_read(cx, &mut read))?;
                read.filled()
            } else {
                &early
            };
            let data = this.framing.take(said)?;
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(data.into()))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.framing.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.framing.size_hint()
    }
}
