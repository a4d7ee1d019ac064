//! What operators look at: the newest switches of all users, and sums over a time.

use std::time::Duration;

use futures::{TryStreamExt, future::try_join};
use mongodb::{
    bson::{Bson, DateTime, Document, doc},
    error::Result,
};

use super::{
    record::{Status, Switch},
    store::Store,
};
use crate::librechat::AgentId;

/// More pairs of agents than this are not told apart.
const FLOWS: i64 = 60;

/// So long MongoDB may work on sums, which read every record of their time.
const PATIENCE: Duration = Duration::from_secs(4);

/// The outcomes there are. To name them all lets MongoDB read in the order of the index `by_status`.
const ALL: [Status; 4] = [
    Status::Open,
    Status::Settled,
    Status::Superseded,
    Status::Rejected,
];

/// Which switches are wanted; what is not given does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Of this conversation.
    pub conversation: Option<String>,
    /// Of this user.
    pub user: Option<String>,
    /// From or to one of these agents; `Some` of none finds nothing.
    pub agents: Option<Vec<AgentId>>,
    /// With this outcome.
    pub status: Option<Status>,
}

/// How often one agent handed over to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The agent that answered, where it is known.
    pub from: Option<AgentId>,
    /// The target.
    pub to: AgentId,
    /// All of them.
    pub switches: i64,
    /// Those of them that were refused.
    pub refused: i64,
}

/// What happened in a part of the time, by outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sum {
    /// Switches that were learned of, with what became of them.
    Switches(Status),
    /// Overwrites that were put back.
    Repairs,
}

/// A sum, and the part of the time that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// When the part begins, in milliseconds since 1970: a multiple of the parts' length.
    pub at: i64,
    /// Of what.
    pub of: Sum,
    /// How many.
    pub count: i64,
}

impl Store {
    /// The switches that are wanted, newest first; those learned at `until` or before.
    ///
    /// A record that cannot be understood is skipped: it may be that of a later version.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn newest(
        &self,
        wanted: &Wanted,
        until: Option<DateTime>,
        limit: i64,
    ) -> Result<Vec<Switch>> {
        self.raw()
            .find(wanted.filter(until))
            .sort(doc! { "created_at": -1 })
            .limit(limit)
            .max_time(PATIENCE)
            .await?
            .try_filter_map(async |raw| {
                Ok(mongodb::bson::deserialize_from_slice(raw.as_bytes()).ok())
            })
            .try_collect()
            .await
    }

    /// How many switches are open, whoever guards them.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn count_open(&self) -> Result<u64> {
        self.switches
            .count_documents(doc! { "status": Status::Open.to_string() })
            .max_time(PATIENCE)
            .await
    }

    /// Who handed over to whom since then, the most frequent first.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn flows(&self, since: DateTime) -> Result<Vec<Flow>> {
        let refused = doc! { "$eq": ["$status", Status::Rejected.to_string()] };
        let found = self
            .sums([
                doc! { "$match": recorded(since) },
                doc! { "$group": {
                    "_id": { "from": "$from_agent", "to": "$to_agent" },
                    "switches": { "$sum": 1 },
                    "refused": { "$sum": { "$cond": [refused, 1, 0] } },
                } },
                doc! { "$sort": { "switches": -1, "_id": 1 } },
                doc! { "$limit": FLOWS },
            ])
            .await?;
        let flow = |sum: &Document| {
            let pair = sum.get_document("_id").ok()?;
            Some(Flow {
                from: pair.get_str("from").ok().map(AgentId::from),
                to: pair.get_str("to").ok()?.into(),
                switches: number(sum, "switches"),
                refused: number(sum, "refused"),
            })
        };
        Ok(found.iter().filter_map(flow).collect())
    }

    /// What happened since then, in parts of this length.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn over_time(&self, since: DateTime, part: Duration) -> Result<Vec<Bar>> {
        let switches = self.sums([
            doc! { "$match": recorded(since) },
            doc! { "$group": {
                "_id": { "at": begin("$created_at", part), "status": "$status" },
                "count": { "$sum": 1 },
            } },
        ]);
        // A switch is put back while it is guarded: those recorded before are not looked at.
        let repairs = self.sums([
            doc! { "$match": recorded(since) },
            doc! { "$project": { "put_back": { "$objectToArray": "$put_back" } } },
            doc! { "$unwind": "$put_back" },
            doc! { "$group": {
                "_id": { "at": begin("$put_back.v", part) }, "count": { "$sum": 1 },
            } },
        ]);
        let (switches, repairs) = try_join(switches, repairs).await?;
        let bar = |sum: &Document, of: Sum| {
            Some(Bar {
                at: number(sum.get_document("_id").ok()?, "at"),
                of,
                count: number(sum, "count"),
            })
        };
        let of_switches = |sum: &Document| {
            let status = sum.get_document("_id").ok()?.get_str("status").ok()?;
            let status = ALL.into_iter().find(|known| known.to_string() == status)?;
            bar(sum, Sum::Switches(status))
        };
        let switches = switches.iter().filter_map(of_switches);
        let repairs = repairs.iter().filter_map(|sum| bar(sum, Sum::Repairs));
        Ok(switches.chain(repairs).collect())
    }

    async fn sums(&self, pipeline: impl IntoIterator<Item = Document>) -> Result<Vec<Document>> {
        self.switches
            .aggregate(pipeline)
            .max_time(PATIENCE)
            .await?
            .try_collect()
            .await
    }
}

impl Wanted {
    fn filter(&self, until: Option<DateTime>) -> Document {
        let status = self.status.map(|status| status.to_string().into());
        let mut filter = doc! { "status": status.unwrap_or_else(|| Bson::from(all())) };
        if let Some(conversation) = &self.conversation {
            filter.insert("conversation_id", conversation);
        }
        if let Some(user) = &self.user {
            filter.insert("user", user);
        }
        if let Some(agents) = &self.agents {
            let any = doc! { "$in": agents.iter().map(AgentId::as_str).collect::<Vec<_>>() };
            let either = [doc! { "from_agent": &any }, doc! { "to_agent": &any }];
            filter.insert("$or", either);
        }
        if let Some(until) = until {
            filter.insert("created_at", doc! { "$lte": until });
        }
        filter
    }
}

fn recorded(since: DateTime) -> Document {
    doc! { "status": all(), "created_at": { "$gte": since } }
}

fn all() -> Document {
    doc! { "$in": ALL.map(|status| status.to_string()).to_vec() }
}

/// The expression of the beginning of the part that a time is in, in milliseconds since 1970.
fn begin(time: &str, part: Duration) -> Document {
    let part = i64::try_from(part.as_millis()).unwrap_or(i64::MAX);
    let time = doc! { "$toLong": time };
    doc! { "$subtract": [&time, { "$mod": [&time, part] }] }
}

/// Sums are of whatever numeric type they fit in.
fn number(document: &Document, key: &str) -> i64 {
    match document.get(key) {
        Some(Bson::Int32(number)) => (*number).into(),
        Some(Bson::Int64(number)) => *number,
        _ => 0,
    }
}
