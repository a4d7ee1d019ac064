//! Sums over a time, made once for all who look.

use std::sync::Arc;
use std::time::SystemTime;

use futures::future::try_join3;
use mongodb::bson::DateTime;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::asked::Range;
use super::shown::{Named, Names};
use crate::http::Backend;
use crate::switch::overview::{Bar, Flow, Sum};
use crate::switch::record::Status;

/// What happened in a time, in parts of it, and between which agents.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Overview {
    /// When the first part begins, and how long each is: in milliseconds, the first since 1970.
    begins: i64,
    part: i64,
    parts: Vec<Part>,
    flows: Vec<ShownFlow>,
    /// How many switches are open, however old.
    open: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct Part {
    open: i64,
    settled: i64,
    superseded: i64,
    rejected: i64,
    repairs: i64,
}

#[derive(Debug, PartialEq, Serialize)]
struct ShownFlow {
    from: Option<Named>,
    to: Named,
    switches: i64,
    refused: i64,
}

/// What was summed up last, for each range.
#[derive(Debug, Default)]
pub(super) struct Overviews {
    day: Mutex<Option<Made>>,
    week: Mutex<Option<Made>>,
    month: Mutex<Option<Made>>,
}

type Made = (Instant, Arc<Overview>);

impl Overviews {
    /// The sums, not older than the range's may be. Whoever asks at the same time waits for the
    /// same ones.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub(super) async fn of(
        &self,
        range: Range,
        backend: &Backend,
    ) -> mongodb::error::Result<Arc<Overview>> {
        let place = match range {
            Range::Day => &self.day,
            Range::Week => &self.week,
            Range::Month => &self.month,
        };
        let mut made = place.lock().await;
        match &*made {
            Some((at, overview)) if at.elapsed() < range.holds() => Ok(Arc::clone(overview)),
            _ => {
                let overview = Arc::new(Overview::make(range, backend).await?);
                *made = Some((Instant::now(), Arc::clone(&overview)));
                Ok(overview)
            }
        }
    }
}

impl Overview {
    async fn make(range: Range, backend: &Backend) -> mongodb::error::Result<Self> {
        let (part, count) = range.parts();
        let store = &backend.store;
        let now = DateTime::from_system_time(SystemTime::now()).timestamp_millis();
        let length = i64::try_from(part.as_millis()).unwrap_or(i64::MAX);
        let begins = begin(now, length, count);
        let since = DateTime::from_millis(begins);
        let (bars, flows, open) = try_join3(
            store.over_time(since, part),
            store.flows(since),
            store.count_open(),
        )
        .await?;
        let agents = flows
            .iter()
            .flat_map(|flow| flow.from.iter().chain([&flow.to]));
        let names = Names::of(agents.collect(), backend).await?;
        let shown = |flow: Flow| ShownFlow {
            from: flow.from.map(|id| names.give(id)),
            to: names.give(flow.to),
            switches: flow.switches,
            refused: flow.refused,
        };
        Ok(Self {
            begins,
            part: length,
            parts: parts(&bars, begins, length, count),
            flows: flows.into_iter().map(shown).collect(),
            open,
        })
    }
}

/// When the first of so many parts begins, of which the last one holds `now`.
fn begin(now: i64, length: i64, count: u32) -> i64 {
    (now.div_euclid(length) + 1 - i64::from(count)) * length
}

/// All parts in their order, also those in which nothing happened. MongoDB's clock may be ahead of
/// ours: what is after the last one counts as in it.
fn parts(bars: &[Bar], begins: i64, length: i64, count: u32) -> Vec<Part> {
    let mut parts = vec![Part::default(); usize::try_from(count).unwrap_or_default()];
    let last = parts.len().saturating_sub(1);
    for bar in bars {
        let index = usize::try_from((bar.at - begins) / length).unwrap_or_default();
        let Some(part) = parts.get_mut(index.min(last)) else {
            continue;
        };
        let sum = match bar.of {
            Sum::Switches(Status::Open) => &mut part.open,
            Sum::Switches(Status::Settled) => &mut part.settled,
            Sum::Switches(Status::Superseded) => &mut part.superseded,
            Sum::Switches(Status::Rejected) => &mut part.rejected,
            Sum::Repairs => &mut part.repairs,
        };
        *sum += bar.count;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_holds_the_present() {
        let begins = begin(1_000_050, 100, 24);
        assert_eq!(begins, 1_000_000 - 23 * 100);
        assert_eq!(begin(1_000_000, 100, 1), 1_000_000);
    }

    #[test]
    fn what_happened_is_in_its_part_and_what_is_ahead_in_the_last() {
        let bar = |at, of, count| Bar { at, of, count };
        let parts = parts(
            &[
                bar(1000, Sum::Switches(Status::Settled), 2),
                bar(1200, Sum::Switches(Status::Rejected), 1),
                bar(1200, Sum::Repairs, 4),
                bar(1500, Sum::Repairs, 1),
            ],
            1000,
            100,
            3,
        );
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[0].settled, 2);
        assert_eq!(parts[1], Part::default());
        assert_eq!((parts[2].rejected, parts[2].repairs), (1, 5));
    }
}
