//! What operators count and time, for Prometheus. Every name begins with `baton_`; the README
//! lists them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::switch::record::{Origin, Status};

/// The type that [`Metrics::text`] has.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// From the arrival of an overwrite's event to the write that undid it: 1 ms to 10 s.
const REPAIR_BUCKETS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// From the head of a request to that of its answer: 1 ms to 5 s.
const REQUEST_BUCKETS: [f64; 11] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

/// The numbers of this process. Clones are views of the same.
#[derive(Clone, Debug)]
pub struct Metrics {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    registry: Registry,
    switches: Family<Outcome, Counter>,
    repairs: Counter,
    repair: Histogram,
    open: Gauge,
    events: Family<Event, Counter>,
    reconnects: Counter,
    requests: Family<Request, Counter>,
    request: Histogram,
    passed: Family<Passed, Counter>,
    lag: Gauge<f64, AtomicU64>,
    saved_age: Gauge<f64, AtomicU64>,
    start: Instant,
    /// Milliseconds after `start` of the last answer on the stream, and of the last position saved.
    replied: AtomicU64,
    saved: AtomicU64,
    /// How far the last answer's events were behind the server, in seconds.
    behind: AtomicI64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    origin: String,
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Event {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Passed {
    what: &'static str,
}

/// The numbers that are of the present, and no sums.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Numbers {
    /// How far behind MongoDB what was read of the change stream is, in seconds.
    pub lag: f64,
    /// How long ago the position in the stream was saved, in seconds.
    pub saved_age: f64,
    /// Switches that this process guards.
    pub guarded: i64,
}

/// What the gateway did to what passed through it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// A final names the target, which is in force.
    FinalNamed,
    /// A final names the target, which was not yet in force when patience ended.
    FinalNamedEarly,
    /// A final passed as it was: what became of its call was not known when patience ended.
    FinalUnsettled,
    /// A lost final was made anew.
    FinalMadeAnew,
    /// A turn of a tab that cannot know of the switch was given to the target.
    TurnCorrected,
    /// A turn passed as it was, since nobody knows whose it is.
    TurnOfNobody,
    /// The client was made to send the message once more, to the target.
    AnswerResent,
    /// The target was set to work on the message in which it was switched to.
    AnswerBegun,
    /// The target cannot answer the message in which it was switched to, and answers the next one.
    AnswerRefused,
    /// The target was to answer, and failed.
    AnswerFailed,
    /// LibreChat gave no answer.
    Unanswered,
}

/// What became of an event of the change stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It led to work.
    Taken,
    /// It was about a conversation that nothing is guarded in.
    Skipped,
    /// It could not be understood.
    Malformed,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// The numbers of a process that has just begun.
    #[must_use]
    pub fn new() -> Self {
        let inner = Inner {
            registry: Registry::default(),
            switches: Family::default(),
            repairs: Counter::default(),
            repair: Histogram::new(REPAIR_BUCKETS),
            open: Gauge::default(),
            events: Family::default(),
            reconnects: Counter::default(),
            requests: Family::default(),
            request: Histogram::new(REQUEST_BUCKETS),
            passed: Family::default(),
            lag: Gauge::default(),
            saved_age: Gauge::default(),
            start: Instant::now(),
            replied: AtomicU64::new(0),
            saved: AtomicU64::new(0),
            behind: AtomicI64::new(0),
        };
        Self {
            inner: Arc::new(inner.registered()),
        }
    }

    /// A switch has come to its end.
    pub fn closed(&self, origin: Origin, status: Status) {
        let labels = Outcome {
            origin: origin.to_string(),
            outcome: status.to_string(),
        };
        self.inner.switches.get_or_create(&labels).inc();
    }

    /// An overwrite was put back; `since` its event came, where an event showed it.
    pub fn repaired(&self, since: Option<Instant>) {
        self.inner.repairs.inc();
        if let Some(since) = since {
            self.inner.repair.observe(since.elapsed().as_secs_f64());
        }
    }

    /// So many more switches are guarded by this process; fewer, where negative.
    pub fn guarded(&self, change: i64) {
        self.inner.open.inc_by(change);
    }

    /// An event of the change stream was dealt with.
    pub fn event(&self, seen: Seen) {
        let result = match seen {
            Seen::Taken => "taken",
            Seen::Skipped => "skipped",
            Seen::Malformed => "malformed",
        };
        self.inner.events.get_or_create(&Event { result }).inc();
    }

    /// The change stream broke and is opened again.
    pub fn reconnecting(&self) {
        self.inner.reconnects.inc();
    }

    /// MongoDB answered on the stream; its newest event is so many seconds behind the server.
    pub fn replied(&self, behind: u32) {
        let inner = &self.inner;
        inner.behind.store(behind.into(), Ordering::Relaxed);
        inner.replied.store(inner.now(), Ordering::Relaxed);
    }

    /// The position in the stream was saved.
    pub fn saved(&self) {
        self.inner.saved.store(self.inner.now(), Ordering::Relaxed);
    }

    /// A request was answered.
    pub fn request(&self, route: &str, method: &'static str, status: u16, took: Duration) {
        let labels = Request {
            route: route.to_owned(),
            method,
            status,
        };
        self.inner.requests.get_or_create(&labels).inc();
        self.inner.request.observe(took.as_secs_f64());
    }

    /// Something passed through the gateway that did not pass as it came.
    pub fn passed(&self, passage: Passage) {
        let what = match passage {
            Passage::FinalNamed => "final_named",
            Passage::FinalNamedEarly => "final_named_early",
            Passage::FinalUnsettled => "final_unsettled",
            Passage::FinalMadeAnew => "final_made_anew",
            Passage::TurnCorrected => "turn_corrected",
            Passage::TurnOfNobody => "turn_of_nobody",
            Passage::AnswerResent => "answer_resent",
            Passage::AnswerBegun => "answer_begun",
            Passage::AnswerRefused => "answer_refused",
            Passage::AnswerFailed => "answer_failed",
            Passage::Unanswered => "unanswered",
        };
        self.inner.passed.get_or_create(&Passed { what }).inc();
    }

    /// The numbers that are of the present.
    #[must_use]
    pub fn numbers(&self) -> Numbers {
        let inner = &self.inner;
        let seconds = |since: &AtomicU64| {
            let passed = inner.now().saturating_sub(since.load(Ordering::Relaxed));
            Duration::from_millis(passed).as_secs_f64()
        };
        let behind = u32::try_from(inner.behind.load(Ordering::Relaxed)).unwrap_or(0);
        Numbers {
            lag: f64::from(behind) + seconds(&inner.replied),
            saved_age: seconds(&inner.saved),
            guarded: inner.open.get(),
        }
    }

    /// All of it, in Prometheus' text format.
    #[must_use]
    pub fn text(&self) -> String {
        let inner = &self.inner;
        let numbers = self.numbers();
        inner.lag.set(numbers.lag);
        inner.saved_age.set(numbers.saved_age);
        let mut text = String::new();
        // A `String` takes whatever is written to it.
        let _ = prometheus_text::encode(&mut text, &inner.registry);
        text
    }
}

impl Inner {
    fn registered(mut self) -> Self {
        let build = Info::new(Build {
            version: env!("CARGO_PKG_VERSION"),
        });
        let r = &mut self.registry;
        r.register("baton_build", "What runs", build);
        r.register(
            "baton_switches",
            "Switches that came to an end, by origin and outcome",
            self.switches.clone(),
        );
        r.register(
            "baton_repairs",
            "Overwrites by the switch's own turn that were put back",
            self.repairs.clone(),
        );
        r.register(
            "baton_repair_seconds",
            "From the event of an overwrite to the write that put it back",
            self.repair.clone(),
        );
        r.register(
            "baton_open_switches",
            "Switches that this process guards",
            self.open.clone(),
        );
        r.register(
            "baton_events",
            "Events of the change stream",
            self.events.clone(),
        );
        r.register(
            "baton_stream_reconnects",
            "How often the change stream was opened again",
            self.reconnects.clone(),
        );
        r.register(
            "baton_stream_lag_seconds",
            "How far behind MongoDB what was read of the change stream is",
            self.lag.clone(),
        );
        r.register(
            "baton_saved_position_age_seconds",
            "How long ago the position in the stream was saved",
            self.saved_age.clone(),
        );
        r.register(
            "baton_http_requests",
            "Requests by route, method and status",
            self.requests.clone(),
        );
        r.register(
            "baton_http_request_seconds",
            "From the head of a request to that of its answer",
            self.request.clone(),
        );
        r.register(
            "baton_gateway",
            "What the gateway did to what passed through it",
            self.passed.clone(),
        );
        self
    }

    /// Milliseconds after the start.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_name_of_ours() {
        let metrics = Metrics::new();
        metrics.closed(Origin::Api, Status::Settled);
        metrics.repaired(Some(Instant::now()));
        metrics.guarded(2);
        metrics.guarded(-1);
        metrics.event(Seen::Malformed);
        metrics.request("/livez", "GET", 200, Duration::from_millis(3));
        let text = metrics.text();
        for line in [
            "baton_build_info{version=\"",
            "baton_switches_total{origin=\"api\",outcome=\"settled\"} 1\n",
            "baton_repairs_total 1\n",
            "baton_repair_seconds_count 1\n",
            "baton_open_switches 1\n",
            "baton_events_total{result=\"malformed\"} 1\n",
            "baton_stream_reconnects_total 0\n",
            "baton_stream_lag_seconds ",
            "baton_saved_position_age_seconds ",
            "baton_http_requests_total{route=\"/livez\",method=\"GET\",status=\"200\"} 1\n",
            "baton_http_request_seconds_count 1\n",
        ] {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
        let ours = |line: &str| line.starts_with('#') || line.starts_with("baton_");
        assert!(text.lines().all(ours), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_lag_grows_while_mongodb_is_silent() {
        let metrics = Metrics::new();
        metrics.replied(2);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert!(metrics.text().contains("baton_stream_lag_seconds 5.0\n"));
    }
}
