//! `baton run`: the wiring of the daemon.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use mongodb::error::ErrorKind;
use mongodb::{Client, Database};
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::aliases::Aliases;
use crate::backoff::Backoff;
use crate::check::lacking;
use crate::config::{SameTurn, Settings};
use crate::feed::{Checkpoints, Feed, FeedError, Source};
use crate::gateway::{Gateway, Ledger, Trusted, Upstream, UpstreamError};
use crate::health::Health;
use crate::http::auth::Authenticator;
use crate::http::{self, Backend, Slot, api, ops};
use crate::librechat::access::Access;
use crate::librechat::change;
use crate::librechat::users::Users;
use crate::librechat::{Conversations, Messages, ToolNames};
use crate::lifecycle::Lifecycle;
use crate::mcp;
use crate::metrics::Metrics;
use crate::mongo::{Failure, classify, connect, words};
use crate::page;
use crate::reconcile::{
    Bell, Context, Handle, Learned, Reconciler, Requests, Undone, end_answers, requests,
};
use crate::switch::calls::Calls;
use crate::switch::policy::AllowList;
use crate::switch::store::Store;

/// How many connections may wait to be accepted, as far as the system lets them. Beyond it some are
/// reset: a thousand at once must not be.
const BACKLOG: u32 = 4096;

/// How many events wait between the stream and the dispatcher.
const QUEUE: usize = 256;

/// After a signal, work that waits for MongoDB is given up this much later, to be taken up by the
/// next start; and a while after that nothing is waited for. Together less than
/// [`crate::lifecycle::DRAIN`].
const PATIENCE: Duration = Duration::from_secs(5);
const FAREWELL: Duration = Duration::from_secs(1);

/// The sockets, bound before anything else begins: an address that is taken is found at once.
#[derive(Debug)]
pub struct Listeners {
    /// `http.listen`.
    pub http: TcpListener,
    /// `ops.listen`, where it has an address of its own.
    pub ops: Option<TcpListener>,
}

/// An address that cannot be listened on.
#[derive(Debug, Error)]
#[error("{key}: cannot listen on {address} ({why}); {}", remedy(.why))]
pub struct BindError {
    key: &'static str,
    address: SocketAddr,
    why: io::Error,
}

fn remedy(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::AddrInUse => "give another address, or stop what has it",
        io::ErrorKind::AddrNotAvailable => {
            "this machine has no such address: give one of its own, or 0.0.0.0 for all of them"
        }
        io::ErrorKind::PermissionDenied => "give a port above 1023, or allow this user lower ones",
        _ => "give another address",
    }
}

impl Listeners {
    /// Binds the addresses of the settings.
    ///
    /// # Errors
    ///
    /// Where an address is taken or not this machine's.
    pub fn bind(settings: &Settings) -> Result<Self, BindError> {
        let http = bind("http.listen", settings.http.listen)?;
        let ops = match settings.ops.listen {
            Some(address) => Some(bind("ops.listen", address)?),
            None => None,
        };
        Ok(Self { http, ops })
    }
}

fn bind(key: &'static str, address: SocketAddr) -> Result<TcpListener, BindError> {
    let listener = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let listen = |socket: TcpSocket| {
        // A restart need not wait for the connections of the process before.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listener
        .and_then(listen)
        .map_err(|why| BindError { key, address, why })
}

/// Runs the daemon until a signal, a failure or the cancelled token of `lifecycle`.
pub async fn run(settings: Settings, listeners: Listeners, lifecycle: Lifecycle) -> ExitCode {
    let health = Health::new();
    let file = settings
        .file
        .as_deref()
        .map_or("none".into(), Path::to_string_lossy);
    info!(
        version = env!("CARGO_PKG_VERSION"),
        database = settings.mongodb.database,
        state = settings.state.database,
        tools = settings.switch.tools.join(","),
        servers = settings.switch.servers.join(","),
        own_tool = settings.mcp.token.is_some(),
        config = %file,
        "starting"
    );
    for doubt in &settings.doubts {
        warn!("{doubt}");
    }
    let (handle, requests) = requests();
    let daemon = Daemon {
        health: health.clone(),
        metrics: Metrics::new(),
        slot: Slot::default(),
        ledger: Ledger::default(),
        tools: mcp::Slot::default(),
        handle,
    };
    if let Err(error) = serve(listeners, &settings, &daemon, &lifecycle) {
        error!(%error, "the gateway cannot be set up");
        return ExitCode::FAILURE;
    }
    lifecycle.spawn(
        "switches",
        keep_switches(settings, daemon, requests, lifecycle.token()),
    );
    lifecycle.run(&health).await
}

/// What the parts of the daemon share.
struct Daemon {
    health: Health,
    metrics: Metrics,
    slot: Slot,
    ledger: Ledger,
    /// What the MCP tools work on; like `slot` it is filled once MongoDB's hosts are known.
    tools: mcp::Slot,
    handle: Handle,
}

fn serve(
    listeners: Listeners,
    settings: &Settings,
    daemon: &Daemon,
    lifecycle: &Lifecycle,
) -> Result<(), UpstreamError> {
    let token = settings.metrics.token.clone();
    let same_turn = settings.gateway.same_turn != SameTurn::Off;
    let ops = ops::router(daemon.health.clone(), daemon.metrics.clone(), token)
        .merge(mcp::router(&settings.mcp, daemon.tools.clone(), same_turn))
        .merge(page::router(
            settings,
            daemon.slot.clone(),
            daemon.health.clone(),
            daemon.metrics.clone(),
            lifecycle.token(),
        ));
    let auth = Arc::new(Authenticator::new(settings));
    let api = api::router(&settings.http, Arc::clone(&auth), daemon.slot.clone());
    let (public, private) = match listeners.ops {
        Some(listener) => (api, Some((listener, ops))),
        None => (api.merge(ops), None),
    };
    let observed = |router| http::observed(router, daemon.metrics.clone());
    let public = match gateway(settings, daemon, auth)? {
        Some(gateway) => http::in_front(public, gateway, daemon.metrics.clone()),
        None => observed(public),
    };
    spawn("http", listeners.http, public, lifecycle);
    if let Some((listener, router)) = private {
        spawn("ops", listener, observed(router), lifecycle);
    }
    Ok(())
}

/// The gateway, where it is on.
fn gateway(
    settings: &Settings,
    daemon: &Daemon,
    auth: Arc<Authenticator>,
) -> Result<Option<Arc<Gateway>>, UpstreamError> {
    let url = settings.librechat.url.as_ref();
    let Some(url) = url.filter(|_| settings.gateway.enabled) else {
        return Ok(None);
    };
    let upstream = Upstream::new(url, settings.gateway.timeout)?;
    let trusted = Trusted::new(&settings.http.trusted_proxies);
    let (ledger, metrics) = (daemon.ledger.clone(), daemon.metrics.clone());
    let same_turn = settings.gateway.same_turn;
    let gateway = Gateway::new(upstream, trusted, ledger, auth, metrics, same_turn);
    Ok(Some(Arc::new(gateway)))
}

fn spawn(name: &'static str, listener: TcpListener, router: Router, lifecycle: &Lifecycle) {
    if let Ok(address) = listener.local_addr() {
        info!(%address, "{name} listens");
    }
    lifecycle.spawn(name, http::serve(listener, router, lifecycle.token()));
}

/// Why the work on switches ended: an operator has to act.
#[derive(Debug, Error)]
enum Stuck {
    #[error("mongodb.uri: {}", words(.0))]
    Uri(mongodb::error::Error),
    #[error(transparent)]
    Feed(#[from] FeedError),
    #[error(transparent)]
    Work(#[from] Undone),
}

/// The daemon's work: the feed and the dispatcher, until `stop`.
async fn keep_switches(
    settings: Settings,
    daemon: Daemon,
    requests: Requests,
    stop: CancellationToken,
) -> Result<(), Stuck> {
    let Daemon {
        health,
        metrics,
        slot,
        ledger,
        tools: tools_slot,
        handle,
    } = daemon;
    let uri = settings.mongodb.uri.expose();
    let Some(client) = patient_connect(uri, "switches", &health, &stop).await? else {
        return Ok(());
    };
    let Some(stream_client) = patient_connect(uri, "stream", &health, &stop).await? else {
        return Ok(());
    };
    let librechat = client.database(&settings.mongodb.database);
    let state = client.database(&settings.state.database);
    let switch = settings.switch;
    let tools = ToolNames::new(&switch.tools, &switch.servers, &settings.mcp.server)
        .with_handoffs(switch.native_handoffs);
    let fingerprint = change::fingerprint(&change::pipeline(&tools));
    let checkpoints = Checkpoints::new(&state, &settings.mongodb.database, fingerprint);
    let abandon = CancellationToken::new();
    let access = Arc::new(Access::new(librechat.clone()));
    let store = Store::new(&state, switch.retention);
    slot.fill(Backend {
        users: Users::new(&librechat),
        conversations: Conversations::new(&librechat),
        access: Arc::clone(&access),
        store: store.clone(),
        handle: handle.clone(),
    });
    let context = Arc::new(Context {
        conversations: Conversations::new(&librechat),
        messages: Messages::new(&librechat),
        access,
        specs: Arc::new(settings.specs),
        allow: Arc::new(AllowList::new(switch.allow)),
        brake: switch.max_per_conversation,
        aliases: Arc::new(Aliases::new(settings.agents.aliases, settings.agents.file)),
        tools: Arc::new(tools.clone()),
        store,
        calls: Calls::new(&state, switch.retention),
        guard: switch.guard,
        bell: Bell::default(),
        learned: Learned::default(),
        health: health.clone(),
        metrics: metrics.clone(),
        abandon: abandon.clone(),
        deadline: None,
    });
    let source = Source {
        database: stream_client.database(&settings.mongodb.database),
        messages: Messages::new(&librechat),
        tools,
        checkpoints: checkpoints.clone(),
        guard: switch.guard,
        uri: settings.mongodb.uri.clone(),
    };
    let (deliver, deliveries) = mpsc::channel(QUEUE);
    let feed = Feed::new(source, deliver, health, metrics);
    ledger.open(Arc::clone(&context));
    tools_slot.fill(mcp::Board {
        users: Users::new(&librechat),
        context: Arc::clone(&context),
        handle,
    });
    // Where one of them fails, the other is to save what it holds.
    let stop = stop.child_token();
    let look = look_about(client, librechat, Arc::clone(&context), stop.clone());
    let reconciler = Reconciler::new(context, checkpoints, deliveries, requests);

    let run_feed = async {
        let outcome = feed.run(stop.clone()).await;
        stop.cancel();
        outcome
    };
    let run_reconciler = async {
        let outcome = reconciler.run(stop.clone()).await;
        stop.cancel();
        outcome
    };
    let lose_patience = async {
        stop.cancelled().await;
        tokio::time::sleep(PATIENCE).await;
        abandon.cancel();
        // The feed may be waiting for an answer that does not come.
        tokio::time::sleep(FAREWELL).await;
    };
    let (read, worked) = tokio::select! {
        (read, worked, ()) = async { tokio::join!(run_feed, run_reconciler, look) } => (read, worked),
        () = lose_patience => return Ok(()),
    };
    read?;
    match worked {
        Err(Undone::Abandoned) => {
            warn!("MongoDB does not answer; the next start takes up what is left");
            Ok(())
        }
        outcome => outcome.map_err(Stuck::from),
    }
}

/// What nothing else waits for.
async fn look_about(
    client: Client,
    librechat: Database,
    context: Arc<Context>,
    stop: CancellationToken,
) {
    let doubt = doubt_database(client, librechat.name().to_owned(), stop.clone());
    tokio::join!(doubt, end_answers(context, stop));
}

/// Warns where the database is not LibreChat's, once it is there to be looked at.
async fn doubt_database(client: Client, name: String, stop: CancellationToken) {
    let mut backoff = Backoff::for_mongodb();
    loop {
        let lacking = tokio::select! {
            lacking = lacking(&client, &name) => lacking,
            () = stop.cancelled() => return,
        };
        match lacking {
            Ok(None) => return,
            Ok(Some(lacking)) => return warn!("{lacking}"),
            // The feed says what is wrong; a right that is missing ends it.
            Err(error) if classify(&error) != Failure::Passing => return,
            Err(_) => {}
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.next_wait()) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Resolving the names of a `mongodb+srv` address may fail for a while. `None`: it is time to end.
async fn patient_connect(
    uri: &str,
    purpose: &str,
    health: &Health,
    stop: &CancellationToken,
) -> Result<Option<Client>, Stuck> {
    let mut backoff = Backoff::for_mongodb();
    loop {
        match connect(uri, purpose).await {
            Ok(client) => return Ok(Some(client)),
            Err(error) if matches!(*error.kind, ErrorKind::DnsResolve { .. }) => {
                let error = words(&error);
                warn!(
                    error,
                    "the hosts of mongodb.uri cannot be resolved; tried again"
                );
                health.stream_lost(error);
            }
            Err(error) => return Err(Stuck::Uri(error)),
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.next_wait()) => {}
            () = stop.cancelled() => return Ok(None),
        }
    }
}
