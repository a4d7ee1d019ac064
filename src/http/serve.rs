//! Accepting connections, and ending them in good order.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::connect_info::ConnectInfo;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::add_extension::AddExtension;
use tracing::{debug, warn};

/// How long requests that are under way have to end once it is time to. Less than
/// [`crate::lifecycle::DRAIN`], so that a stream without an end makes no failure of a clean one.
const GRACE: Duration = Duration::from_secs(5);

/// How long the head of a request may take, from the end of the one before.
const HEAD: Duration = Duration::from_secs(30);

/// More than this much of a head is refused. Cookies that hold tokens of an identity
/// provider's take several KiB.
const HEAD_SIZE: usize = 64 * 1024;

/// More connections than this are not accepted until some end.
const CONNECTIONS: usize = 4096;

/// Where there are no more sockets, some will be free again after this.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(250);

/// Serves `router` until `shutdown` is cancelled and the requests under way have ended.
///
/// A handler finds the peer's address as [`ConnectInfo`] of [`SocketAddr`].
///
/// # Errors
///
/// None: whatever fails, fails for one connection. The type is that of a task.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let connections = TaskTracker::new();
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            () = shutdown.cancelled() => break,
        };
        let Some((stream, peer, slot)) = accepted else {
            continue;
        };
        // Not a layer: that would make every route anew.
        let router = AddExtension::new(router.clone(), ConnectInfo(peer));
        let shutdown = shutdown.clone();
        connections.spawn(async move {
            if let Err(error) = follow(stream, router, &shutdown).await {
                debug!(%error, %peer, "a connection ended badly");
            }
            drop(slot);
        });
    }
    drop(listener);
    connections.close();
    tokio::select! {
        () = connections.wait() => {}
        () = sleep(GRACE) => warn!("requests were still under way and are cut off"),
    }
    Ok(())
}

/// Serves one connection: until its client ends it, or until the request under way is answered.
async fn follow(
    stream: TcpStream,
    router: AddExtension<Router, ConnectInfo<SocketAddr>>,
    shutdown: &CancellationToken,
) -> hyper::Result<()> {
    // Answers are small and whole: waiting for more to send only delays them.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_SIZE)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, slot)),
        Err(error) => {
            if !is_of_the_client(&error) {
                warn!(%error, "cannot accept a connection; tried again");
                sleep(OUT_OF_SOCKETS).await;
            }
            None
        }
    }
}

fn is_of_the_client(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}
