//! May this user be switched to this agent? Exactly where LibreChat's chat route would let the
//! user use it, in the version that the database shows.
//!
//! The route (`api/server/routes/agents/chat.js`, v0.8.8-rc1) asks first whether the user's role
//! may use agents at all, then whether the user may view the agent, and then loads it. Whatever in
//! the database has a wrong type counts as absent, so that a doubt is a no.

mod agent;
mod edition;
mod member;
mod principals;
mod reads;
mod role;
mod uploads;
mod verdict;

use std::collections::{BTreeSet, HashMap, HashSet};

use mongodb::Database;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};

use self::agent::AgentRow;
use self::edition::{Edition, EditionCache};
use self::member::Member;
use self::principals::Principals;
use self::reads::Reads;
use super::{AgentId, UserId};

pub use self::agent::Agent;
pub use self::verdict::{Refusal, Verdict};

/// The role that may use every agent in v0.8.0 to v0.8.4; later, a capability does so.
const ADMIN: &str = "ADMIN";

/// LibreChat's access rules over LibreChat's database.
#[derive(Debug)]
pub struct Access {
    reads: Reads,
    edition: EditionCache,
}

impl Access {
    /// The rules over this database, which is LibreChat's.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self {
            reads: Reads::new(database),
            edition: EditionCache::default(),
        }
    }

    /// Whether the user may be switched to the agent, in two rounds of parallel reads.
    ///
    /// The tenant is the user's own, as in LibreChat (`api/server/middleware/requireJwtAuth.js`).
    ///
    /// # Errors
    ///
    /// The database could not be asked; the answer is unknown, not no.
    pub async fn check(&self, user: &UserId, agent: &AgentId) -> mongodb::error::Result<Verdict> {
        if !agent::is_stored(agent) {
            return Ok(Refusal::NoSuchAgent.into());
        }
        let same_id = doc! { "id": agent.as_str() };
        let (edition, member, agents) = tokio::join!(
            self.edition.get(self.reads.database()),
            self.reads.member(user),
            self.reads.agents(same_id)
        );
        let (edition, member, agents) = (edition?, member?, agents?);
        let Some(member) = member else {
            return Ok(Refusal::NoSuchUser.into());
        };
        let mut agents = agents.into_iter();
        let Some(row) = agents.find(|row| row.is_in_the_tenant_of(&member)) else {
            return Ok(Refusal::NoSuchAgent.into());
        };
        let (may_use_agents, may_use_this) = tokio::join!(
            self.role_may_use_agents(&member),
            self.may_use(&member, &row, edition)
        );
        Ok(match (may_use_agents?, may_use_this?) {
            (false, _) => Refusal::NoAgentsForRole.into(),
            (true, false) => Refusal::NotShared.into(),
            (true, true) => Verdict::Allowed(row.agent),
        })
    }

    /// All agents that are shared with the user, by name: those that LibreChat's own list shows
    /// (`getListAgentsHandler` in `api/server/controllers/agents/v1.js`). Who may use every agent
    /// as an administrator does not see them all there either.
    ///
    /// # Errors
    ///
    /// The database could not be asked.
    pub async fn viewable(&self, user: &UserId) -> mongodb::error::Result<Vec<Agent>> {
        let (edition, member) = tokio::join!(
            self.edition.get(self.reads.database()),
            self.reads.member(user)
        );
        let (edition, Some(member)) = (edition?, member?) else {
            return Ok(Vec::new());
        };
        let (may_use_agents, shared) = tokio::join!(
            self.role_may_use_agents(&member),
            self.shared_with(&member, edition)
        );
        let (true, shared) = (may_use_agents?, shared?) else {
            return Ok(Vec::new());
        };
        let rows = self.reads.agents(shared).await?.into_iter();
        let mut agents: Vec<Agent> = rows
            .filter(|row| row.is_in_the_tenant_of(&member))
            .map(|row| row.agent)
            .collect();
        agents.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        Ok(agents)
    }

    /// The name of an agent, whosoever it is.
    ///
    /// # Errors
    ///
    /// The database could not be asked.
    pub async fn name(&self, agent: &AgentId) -> mongodb::error::Result<Option<String>> {
        let found = self.with_id(agent).await?;
        Ok(found.into_iter().find_map(|agent| agent.name))
    }

    /// The names of these agents, whosoever they are; those without one are left out.
    ///
    /// # Errors
    ///
    /// The database could not be asked.
    pub async fn names(
        &self,
        agents: BTreeSet<&AgentId>,
    ) -> mongodb::error::Result<HashMap<AgentId, String>> {
        let ids: Vec<_> = agents.into_iter().map(AgentId::as_str).collect();
        let found = self.all(doc! { "id": { "$in": ids } }).await?;
        Ok((found.into_iter())
            .filter_map(|agent| Some((agent.id, agent.name?)))
            .collect())
    }

    /// The agents with this id, in every tenant.
    ///
    /// # Errors
    ///
    /// The database could not be asked.
    pub async fn with_id(&self, agent: &AgentId) -> mongodb::error::Result<Vec<Agent>> {
        self.all(doc! { "id": agent.as_str() }).await
    }

    /// The agents with this name, in capitals or not, in every tenant. It reads them all.
    ///
    /// # Errors
    ///
    /// The database could not be asked.
    pub async fn with_name(&self, name: &str) -> mongodb::error::Result<Vec<Agent>> {
        let mut agents = self.all(doc! {}).await?;
        agents.retain(|agent| agent.is_called(name));
        Ok(agents)
    }

    async fn all(&self, filter: Document) -> mongodb::error::Result<Vec<Agent>> {
        let rows = self.reads.agents(filter).await?;
        Ok(rows.into_iter().map(|row| row.agent).collect())
    }

    /// Whether this one agent is the user's to use, its role apart.
    async fn may_use(
        &self,
        member: &Member,
        row: &AgentRow,
        edition: Edition,
    ) -> mongodb::error::Result<bool> {
        match edition {
            Edition::Projects if row.is_by(member) => Ok(true),
            Edition::Projects => {
                let project = self.reads.instance_project().await?;
                Ok(project.is_some_and(|project| row.is_in_project(project)))
            }
            Edition::AdminRole if member.role == ADMIN => Ok(true),
            Edition::AdminRole | Edition::Grants => {
                let about = doc! { "resourceId": row.agent.object_id };
                let grants = async {
                    match edition {
                        Edition::Grants => self.reads.grants(member).await,
                        _ => Ok(Vec::new()),
                    }
                };
                let (groups, entries, grants) = tokio::join!(
                    self.reads.groups(member),
                    self.reads.entries(member, about),
                    grants
                );
                let principals = Principals {
                    member,
                    groups: groups?,
                };
                Ok(grants?.iter().any(|grant| principals.hold(grant))
                    || entries?.iter().any(|entry| principals.may_view_by(entry)))
            }
        }
    }

    /// The filter on agents for those shared with the user.
    async fn shared_with(
        &self,
        member: &Member,
        edition: Edition,
    ) -> mongodb::error::Result<Document> {
        if edition == Edition::Projects {
            let mut ways = vec![doc! { "author": member.id }];
            let shared_with_all = self.reads.instance_project().await?;
            ways.extend(shared_with_all.map(|project| doc! { "projectIds": project }));
            return Ok(doc! { "$or": ways });
        }
        let (groups, entries) = tokio::join!(
            self.reads.groups(member),
            self.reads.entries(member, doc! {})
        );
        let principals = Principals {
            member,
            groups: groups?,
        };
        let entries = entries?;
        let viewable = entries.iter().filter(|entry| principals.may_view_by(entry));
        let ids: HashSet<ObjectId> = viewable
            .filter_map(|entry| entry.get_object_id("resourceId").ok())
            .collect();
        Ok(doc! { "_id": { "$in": Vec::from_iter(ids) } })
    }

    async fn role_may_use_agents(&self, member: &Member) -> mongodb::error::Result<bool> {
        let role = self.reads.role(member).await?;
        Ok(role::may_use_agents(&member.role, role.as_deref()))
    }
}
