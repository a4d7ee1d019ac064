//! The connections to LibreChat.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::http::uri::{Authority, InvalidUriParts, Parts, PathAndQuery, Scheme};
use axum::http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use thiserror::Error;
use tokio::time::{Instant, sleep_until, timeout};

use super::progress::{Progress, Watched};
use super::quiet;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// Node closes a connection that has been idle for 5 s (`server.keepAliveTimeout`); a request must
/// not be sent into one that is being closed.
const IDLE: Duration = Duration::from_secs(4);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// LibreChat, as it is reached.
#[derive(Clone, Debug)]
pub struct Upstream {
    connector: HttpsConnector<HttpConnector>,
    client: Client<HttpsConnector<HttpConnector>, Body>,
    scheme: Scheme,
    authority: Authority,
    /// The path of `librechat.url`, without a slash at its end.
    prefix: String,
    patience: Duration,
}

/// Why LibreChat gave no answer.
#[derive(Debug, Error)]
pub enum UpstreamError {
    /// `librechat.url` has no scheme or no host.
    #[error("librechat.url is no address")]
    NoAddress,
    /// What the client asked for makes no address.
    #[error("the path cannot be asked for ({0})")]
    Path(#[from] InvalidUriParts),
    /// It cannot be reached, or broke off.
    #[error("LibreChat cannot be reached")]
    Down(#[source] BoxError),
    /// It was reached, and says nothing.
    #[error("LibreChat does not answer")]
    Slow,
}

impl Upstream {
    /// LibreChat at `url`, which has `patience` to begin each answer.
    ///
    /// # Errors
    ///
    /// The URL is not absolute.
    pub fn new(url: &Uri, patience: Duration) -> Result<Self, UpstreamError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT));
        let connector = HttpsConnectorBuilder::new()
            .with_webpki_roots()
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(connector.clone());
        Ok(Self {
            connector,
            client,
            scheme: url.scheme().cloned().ok_or(UpstreamError::NoAddress)?,
            authority: url.authority().cloned().ok_or(UpstreamError::NoAddress)?,
            prefix: url.path().trim_end_matches('/').to_owned(),
            patience,
        })
    }

    /// Where a request goes: the client chooses path and query, and nothing else.
    pub(super) fn address(&self, asked: &Uri) -> Result<Uri, UpstreamError> {
        let path = asked.path_and_query().map_or("/", |asked| asked.as_str());
        self.at(path)
    }

    /// LibreChat's address of a path.
    pub(super) fn at(&self, path: &str) -> Result<Uri, UpstreamError> {
        let path = if self.prefix.is_empty() {
            PathAndQuery::try_from(path)
        } else {
            PathAndQuery::try_from(format!("{}{path}", self.prefix))
        };
        let mut parts = Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = path.ok();
        Ok(Uri::from_parts(parts)?)
    }

    /// Sends a request and waits for the beginning of the answer, for as long as the request's
    /// body is on its way, and then for as long as there is patience.
    pub(super) async fn send(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let progress = Progress::default();
        let request = request.map(|body| Body::new(Watched::new(body, progress.clone())));
        let answer = self.client.request(request);
        tokio::pin!(answer);
        loop {
            let due = progress.last() + self.patience;
            tokio::select! {
                answer = &mut answer => return answer.map_err(|error| sort(error.into())),
                () = sleep_until(due) => if progress.last() + self.patience <= Instant::now() {
                    return Err(UpstreamError::Slow);
                },
            }
        }
    }

    /// Sends a GET without a body, whose answer may be silent for long.
    pub(super) async fn follow(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Body>, UpstreamError> {
        let (asked, _) = request.into_parts();
        let answer = quiet::get(self.connector.clone(), asked.uri, &asked.headers);
        match timeout(self.patience, answer).await {
            Ok(answer) => answer.map_err(sort),
            Err(_) => Err(UpstreamError::Slow),
        }
    }
}

fn sort(error: BoxError) -> UpstreamError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&*error);
    while let Some(inner) = cause {
        let io = inner.downcast_ref::<io::Error>();
        if io.is_some_and(|io| io.kind() == io::ErrorKind::TimedOut) {
            return UpstreamError::Slow;
        }
        cause = inner.source();
    }
    UpstreamError::Down(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(url: &'static str) -> Upstream {
        Upstream::new(&Uri::from_static(url), Duration::from_secs(1)).unwrap()
    }

    #[test]
    fn the_client_chooses_path_and_query_alone() {
        let plain = upstream("http://127.0.0.1:3080");
        let below = upstream("http://127.0.0.1:3080/chat/");
        for (asked, path) in [
            ("/", "/"),
            ("/a/../b?c=%2F", "/a/../b?c=%2F"),
            ("http://other.example:9/x?y", "/x?y"),
            ("//other.example/x", "//other.example/x"),
        ] {
            let asked: Uri = asked.parse().unwrap();
            let to = plain.address(&asked).unwrap();
            assert_eq!(to.authority().unwrap(), "127.0.0.1:3080", "{asked}");
            assert_eq!(to.path_and_query().unwrap().as_str(), path);
            let to = below.address(&asked).unwrap();
            assert_eq!(to.authority().unwrap(), "127.0.0.1:3080", "{asked}");
            assert_eq!(
                to.path_and_query().unwrap().as_str(),
                format!("/chat{path}")
            );
        }
    }
}
