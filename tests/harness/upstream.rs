//! A stand-in for LibreChat behind the gateway: it answers as a test says, and notes what came.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Response, Uri};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::wait::holds;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its method.
    pub method: Method,
    /// What was asked for.
    pub uri: Uri,
    /// Its headers.
    pub headers: HeaderMap,
    /// All of its body.
    pub body: Bytes,
}

/// The server; it ends when this value goes.
pub struct Upstream {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    server: JoinHandle<()>,
}

impl Upstream {
    /// Answers each request when all of it is there.
    pub async fn start(
        answer: impl Fn(&Seen) -> Response<Body> + Clone + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let mut upstream = Self::serve(move |request: Request| {
            let (noted, answer) = (Arc::clone(&noted), answer.clone());
            async move {
                let (parts, body) = request.into_parts();
                let seen = Seen {
                    method: parts.method,
                    uri: parts.uri,
                    headers: parts.headers,
                    body: to_bytes(body, usize::MAX).await.unwrap_or_default(),
                };
                noted.lock().expect("no panic").push(seen.clone());
                answer(&seen)
            }
        })
        .await;
        upstream.seen = seen;
        upstream
    }

    /// Answers each request as soon as its head is there.
    pub async fn serve<F, Fut>(answer: F) -> Self
    where
        F: Fn(Request) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Response<Body>> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().fallback(answer);
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("a server");
        });
        Self {
            address,
            seen: Arc::default(),
            server,
        }
    }

    /// Its URL, as `librechat.url`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What came so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    /// Waits until something was asked for.
    pub async fn asked(&self, path: &str) {
        holds("LibreChat was asked", async || {
            self.seen().iter().any(|seen| seen.uri.path() == path)
        })
        .await;
    }

    /// The last request.
    pub fn last(&self) -> Seen {
        self.seen().pop().expect("a request")
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.server.abort();
    }
}
