//! What stands in for LibreChat: streams that say what the benchmark tells them to, and a file.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::Response;
use axum::routing::get;
use axum::{Router, serve};
use futures::stream;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// How long the file is, in bytes.
pub const FILE: u64 = 1 << 30;

/// As Node reads a file to send it.
const CHUNK: &[u8] = &[b'x'; 64 << 10];

/// The open streams, by their conversations.
type Streams = Arc<Mutex<HashMap<String, mpsc::UnboundedSender<Bytes>>>>;

/// The server; it ends with the benchmark.
pub struct LibreChat {
    address: SocketAddr,
    streams: Streams,
}

impl LibreChat {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let streams = Streams::default();
        let opened = Arc::clone(&streams);
        let router = Router::new()
            .route(
                "/api/agents/chat/stream/{id}",
                get(move |Path(id): Path<String>| async move { open(&opened, id) }),
            )
            .route("/file", get(async || file()));
        let listener = axum::serve::ListenerExt::tap_io(listener, |stream| {
            stream.set_nodelay(true).unwrap();
        });
        tokio::spawn(async move { serve(listener, router).await });
        Self { address, streams }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends an event to the client of a stream that is open.
    pub fn say(&self, stream: &str, event: Bytes) {
        let streams = self.streams.lock().unwrap();
        streams[stream].send(event).expect("a client");
    }
}

fn open(streams: &Streams, id: String) -> Response<Body> {
    let (say, mut said) = mpsc::unbounded_channel();
    say.send(Bytes::from_static(b": open\n\n")).unwrap();
    streams.lock().unwrap().insert(id, say);
    let events = stream::poll_fn(move |cx| said.poll_recv(cx));
    let events = futures::StreamExt::map(events, Ok::<_, Infallible>);
    Response::builder()
        .header("content-type", "text/event-stream")
        .header("cache-control", "no-cache, no-transform")
        .header("x-accel-buffering", "no")
        .body(Body::from_stream(events))
        .unwrap()
}

fn file() -> Response<Body> {
    let chunks = FILE / CHUNK.len() as u64;
    let chunks = stream::iter((0..chunks).map(|_| Ok::<_, Infallible>(Bytes::from_static(CHUNK))));
    Response::builder()
        .header("content-type", "application/octet-stream")
        .header("content-length", FILE)
        .body(Body::from_stream(chunks))
        .unwrap()
}
