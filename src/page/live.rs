//! What the page is told as it happens: server-sent events.
//!
//! Another instance may have done the work, so the records themselves are looked at, once for a
//! moment. Only what is news is sent.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures::{Stream, stream};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, sleep_until, timeout};

use super::Page;
use super::asked::Asked;
use super::door::Operator;
use super::overview::Overview;
use super::shown::{PAGE, PATIENCE, Switches};
use crate::health::Check;
use crate::http::{ApiError, Backend};
use crate::mongo::words;
use crate::switch::overview::Wanted;
use crate::switch::record::Switch;

/// How often the page is told of the process.
const PULSE: Duration = Duration::from_secs(1);

/// Every so many pulses the records are looked at.
const LOOK: u32 = 2;

/// How many events wait for a slow browser.
const QUEUE: usize = 4;

/// What is known without asking MongoDB.
#[derive(Serialize)]
struct Pulse {
    version: &'static str,
    /// By this process's clock, in milliseconds since 1970.
    now: u128,
    ready: bool,
    checks: Vec<Check>,
    /// Seconds.
    lag: f64,
    saved_age: f64,
    guarded: i64,
}

/// What was sent last.
#[derive(Default)]
struct Sent {
    wanted: Option<Wanted>,
    switches: Option<Vec<Switch>>,
    overview: Option<Arc<Overview>>,
    trouble: Option<String>,
}

/// The browser has gone.
struct Gone;

/// `GET /ops/events`.
pub(super) async fn events(
    operator: Operator,
    State(page): State<Arc<Page>>,
    Query(asked): Query<Asked>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let place = Arc::clone(&page.viewers).try_acquire_owned();
    let place = place.map_err(|_| ApiError::unavailable("too many pages are open"))?;
    let (send, events) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let stop = page.stop.clone();
        let viewer = Viewer { page, asked, send };
        tokio::select! {
            Gone = viewer.follow() => {}
            // The session ends, and with it what it may see.
            () = sleep_until(operator.until) => {}
            () = stop.cancelled() => {}
        }
        drop(place);
    });
    let events = stream::unfold(events, async |mut events| {
        let event = events.recv().await?;
        Some((Ok(event), events))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

struct Viewer {
    page: Arc<Page>,
    asked: Asked,
    send: mpsc::Sender<Event>,
}

impl Viewer {
    async fn follow(&self) -> Gone {
        let mut ticks = interval(PULSE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut sent = Sent::default();
        for count in (0..LOOK).cycle() {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.send.closed() => return Gone,
            }
            let outcome = async {
                self.tell("pulse", &self.pulse()).await?;
                if count == 0 {
                    self.look(&mut sent).await?;
                }
                Ok(())
            };
            if let Err(gone) = outcome.await {
                return gone;
            }
        }
        Gone
    }

    /// Looks at the records and tells what is news.
    async fn look(&self, sent: &mut Sent) -> Result<(), Gone> {
        let Ok(backend) = self.page.slot.get() else {
            return self.trouble(sent, "MongoDB has not been found yet").await;
        };
        match timeout(PATIENCE, self.read(sent, backend)).await {
            Ok(Ok(news)) => {
                sent.trouble = None;
                self.pass_on(sent, news).await
            }
            Ok(Err(error)) => self.trouble(sent, &words(&error)).await,
            Err(_) => self.trouble(sent, "MongoDB does not answer").await,
        }
    }

    async fn read(&self, sent: &mut Sent, backend: &Backend) -> mongodb::error::Result<News> {
        let wanted = match sent.wanted.clone() {
            Some(wanted) => wanted,
            None => self.asked.wanted(backend).await?,
        };
        let found = backend.store.newest(&wanted, None, PAGE + 1).await?;
        sent.wanted = Some(wanted);
        let switches = if sent.switches.as_ref() == Some(&found) {
            None
        } else {
            let shown = Switches::of(found.clone(), backend).await?;
            Some((found, shown))
        };
        let overviews = &self.page.overviews;
        let overview = overviews.of(self.asked.range(), backend).await?;
        Ok(News { switches, overview })
    }

    async fn pass_on(&self, sent: &mut Sent, news: News) -> Result<(), Gone> {
        if let Some((found, shown)) = news.switches {
            self.tell("switches", &shown).await?;
            sent.switches = Some(found);
        }
        if sent.overview.as_ref() != Some(&news.overview) {
            self.tell("overview", &*news.overview).await?;
            sent.overview = Some(news.overview);
        }
        Ok(())
    }

    /// What the page shows is no longer up to date, and why. Once it is, all of it is sent.
    async fn trouble(&self, sent: &mut Sent, why: &str) -> Result<(), Gone> {
        if sent.trouble.as_deref() == Some(why) {
            return Ok(());
        }
        *sent = Sent {
            trouble: Some(why.to_owned()),
            ..Sent::default()
        };
        self.tell("trouble", &json!({ "message": why })).await
    }

    async fn tell(&self, name: &str, what: &impl Serialize) -> Result<(), Gone> {
        let event = Event::default().event(name).json_data(what);
        let event = event.map_err(|_| Gone)?;
        self.send.send(event).await.map_err(|_| Gone)
    }

    fn pulse(&self) -> Pulse {
        let report = self.page.health.report();
        let numbers = self.page.metrics.numbers();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Pulse {
            version: env!("CARGO_PKG_VERSION"),
            now: now.unwrap_or_default().as_millis(),
            ready: report.ready,
            checks: report.checks,
            lag: numbers.lag,
            saved_age: numbers.saved_age,
            guarded: numbers.guarded,
        }
    }
}

struct News {
    switches: Option<(Vec<Switch>, Switches)>,
    overview: Arc<Overview>,
}
