//! An agent as a possible target of a switch.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, RawDocument, doc};

use super::member::{Member, tenant_of};
use crate::librechat::{AgentId, TenantId};

/// An agent that a user may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// `agents.id`.
    pub id: AgentId,
    /// `agents._id`, which access entries refer to.
    pub object_id: ObjectId,
    /// `agents.name`.
    pub name: Option<String>,
    /// `agents.description`.
    pub description: Option<String>,
}

impl Agent {
    /// Whether this is its name, in capitals or not.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let own = self.name.as_deref().unwrap_or_default();
        own.trim().to_lowercase() == name.trim().to_lowercase()
    }
}

/// An `agents` document: the agent and what decides who may use it.
#[derive(Debug)]
pub(super) struct AgentRow {
    pub(super) agent: Agent,
    tenant: Option<TenantId>,
    author: Option<ObjectId>,
    projects: Vec<ObjectId>,
}

impl AgentRow {
    /// The fields that [`AgentRow::parse`] reads.
    pub(super) fn projection() -> Document {
        doc! { "id": 1, "name": 1, "description": 1, "tenantId": 1, "author": 1, "projectIds": 1 }
    }

    /// Reads an `agents` document; `None` where it could never be a target.
    pub(super) fn parse(row: &RawDocument) -> Option<Self> {
        let id = AgentId::from(row.get_str("id").ok()?);
        let projects = row.get_array("projectIds").into_iter().flatten();
        is_stored(&id).then_some(())?;
        Some(Self {
            agent: Agent {
                id,
                object_id: row.get_object_id("_id").ok()?,
                name: row.get_str("name").ok().map(str::to_owned),
                description: row.get_str("description").ok().map(str::to_owned),
            },
            tenant: tenant_of(row).ok()?,
            author: row.get_object_id("author").ok(),
            projects: projects.filter_map(|id| id.ok()?.as_object_id()).collect(),
        })
    }

    /// Whether the agent is of the user's tenant.
    pub(super) fn is_in_the_tenant_of(&self, member: &Member) -> bool {
        self.tenant == member.tenant
    }

    /// Whether the user made this agent.
    pub(super) fn is_by(&self, member: &Member) -> bool {
        self.author == Some(member.id)
    }

    /// Whether the agent is shared with this project (up to v0.7.9).
    pub(super) fn is_in_project(&self, project: ObjectId) -> bool {
        self.projects.contains(&project)
    }
}

/// Whether this is the id of an agent in the database. Every other one stands for an agent that is
/// made up for one request and cannot be switched to (`isEphemeralAgentId` in
/// `packages/data-provider/src/parsers.ts`, v0.8.8-rc1).
pub(super) fn is_stored(id: &AgentId) -> bool {
    id.as_str().starts_with("agent_")
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{RawDocumentBuf, oid::ObjectId, rawdoc};

    use super::*;

    fn row(fields: &RawDocumentBuf) -> Option<AgentRow> {
        AgentRow::parse(fields)
    }

    #[test]
    fn an_agent_made_up_for_one_request_is_no_target() {
        assert!(is_stored(&"agent_TEiCFUrdcmZmLR89Tdclm".into()));
        for id in ["ephemeral", "", "openAI__gpt-4o___Sales", "Agent_x"] {
            assert!(!is_stored(&id.into()), "{id}");
        }
    }

    #[test]
    fn names_and_projects_of_a_wrong_type_are_absent() {
        let parsed = row(&rawdoc! {
            "_id": ObjectId::new(), "id": "agent_a", "name": 5, "author": "me", "projectIds": ["p", null],
        })
        .unwrap();
        assert_eq!(parsed.agent.name, None);
        assert_eq!(parsed.author, None);
        assert!(parsed.projects.is_empty());
    }

    #[test]
    fn a_document_without_a_proper_id_or_tenant_is_no_agent() {
        assert!(row(&rawdoc! { "_id": ObjectId::new(), "id": ["agent_a"] }).is_none());
        assert!(row(&rawdoc! { "_id": "agent_a", "id": "agent_a" }).is_none());
        assert!(
            row(&rawdoc! { "_id": ObjectId::new(), "id": "agent_a", "tenantId": {} }).is_none()
        );
    }
}
