//! What access is decided on, read from LibreChat's collections.

use std::collections::HashSet;

use futures::TryStreamExt;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::options::{CollectionOptions, ReadPreference, SelectionCriteria};
use mongodb::{Collection, Database};

use super::agent::AgentRow;
use super::member::Member;
use super::principals::possibly_for;
use crate::librechat::UserId;
use crate::librechat::schema::{
    ACL_ENTRIES, AGENTS, GROUPS, PROJECTS, ROLES, SYSTEM_GRANTS, USERS,
};

/// The capability that lets its holder use every agent (`ResourceCapabilityMap` in
/// `packages/data-schemas/src/admin/capabilities.ts`, v0.8.5 on). None implies it.
const MANAGE_AGENTS: &str = "manage:agents";
/// The project whose agents are everybody's, up to v0.7.9 (`Constants.GLOBAL_PROJECT_NAME`).
const INSTANCE_PROJECT: &str = "instance";

/// The reads of an access check, each of one collection and of the few fields that matter.
///
/// All go to the primary: an answer must not be older than the entry it rests on.
#[derive(Debug)]
pub(super) struct Reads {
    database: Database,
}

impl Reads {
    pub(super) fn new(database: Database) -> Self {
        Self { database }
    }

    pub(super) fn database(&self) -> &Database {
        &self.database
    }

    /// The user.
    pub(super) async fn member(&self, user: &UserId) -> mongodb::error::Result<Option<Member>> {
        let Ok(id) = ObjectId::parse_str(user.as_str()) else {
            return Ok(None);
        };
        let found = self
            .collection(USERS)
            .find_one(doc! { "_id": id })
            .projection(doc! { "role": 1, "idOnTheSource": 1, "tenantId": 1 })
            .await?;
        Ok(found.and_then(|user| Member::parse(&user)))
    }

    /// The agents that the filter finds, in every tenant.
    pub(super) async fn agents(&self, filter: Document) -> mongodb::error::Result<Vec<AgentRow>> {
        let found = self.find(AGENTS, filter, AgentRow::projection()).await?;
        Ok(found
            .iter()
            .filter_map(|row| AgentRow::parse(row))
            .collect())
    }

    /// The document of the user's role.
    pub(super) async fn role(
        &self,
        member: &Member,
    ) -> mongodb::error::Result<Option<RawDocumentBuf>> {
        self.collection(ROLES)
            .find_one(doc! { "name": &member.role, "tenantId": member.tenant_value() })
            .projection(doc! { "permissions.AGENTS": 1, "AGENTS": 1 })
            .await
    }

    /// The user's groups.
    pub(super) async fn groups(
        &self,
        member: &Member,
    ) -> mongodb::error::Result<HashSet<ObjectId>> {
        let filter = doc! {
            "memberIds": { "$elemMatch": { "$eq": &member.in_groups_as } },
            "tenantId": member.tenant_value(),
        };
        let found = self.find(GROUPS, filter, doc! { "_id": 1 }).await?;
        Ok(found
            .iter()
            .filter_map(|group| group.get_object_id("_id").ok())
            .collect())
    }

    /// The access entries to agents that could be for this user.
    pub(super) async fn entries(
        &self,
        member: &Member,
        about: Document,
    ) -> mongodb::error::Result<Vec<RawDocumentBuf>> {
        let mut filter = about;
        filter.insert("resourceType", "agent");
        filter.insert("tenantId", member.tenant_value());
        filter.insert("$or", possibly_for(member));
        let projection = doc! {
            "principalType": 1, "principalId": 1, "resourceId": 1, "permBits": 1, "expiredAt": 1,
        };
        self.find(ACL_ENTRIES, filter, projection).await
    }

    /// The grants of `manage:agents` that could be for this user: the platform's own and its
    /// tenant's (`tenantCondition` in `packages/data-schemas/src/methods/systemGrant.ts`).
    pub(super) async fn grants(
        &self,
        member: &Member,
    ) -> mongodb::error::Result<Vec<RawDocumentBuf>> {
        let mut tenants = vec![doc! { "tenantId": { "$exists": false } }];
        tenants.extend(
            member
                .tenant
                .iter()
                .map(|tenant| doc! { "tenantId": tenant.as_str() }),
        );
        let filter = doc! {
            "capability": MANAGE_AGENTS,
            "$and": [{ "$or": possibly_for(member) }, { "$or": tenants }],
        };
        let projection = doc! { "principalType": 1, "principalId": 1, "expiresAt": 1 };
        self.find(SYSTEM_GRANTS, filter, projection).await
    }

    /// The project whose agents are everybody's.
    pub(super) async fn instance_project(&self) -> mongodb::error::Result<Option<ObjectId>> {
        let filter = doc! { "name": INSTANCE_PROJECT };
        let found = self
            .collection(PROJECTS)
            .find_one(filter)
            .projection(doc! { "_id": 1 })
            .await?;
        Ok(found.and_then(|project| project.get_object_id("_id").ok()))
    }

    async fn find(
        &self,
        collection: &str,
        filter: Document,
        projection: Document,
    ) -> mongodb::error::Result<Vec<RawDocumentBuf>> {
        let found = self
            .collection(collection)
            .find(filter)
            .projection(projection)
            .await?;
        found.try_collect().await
    }

    fn collection(&self, name: &str) -> Collection<RawDocumentBuf> {
        let primary = SelectionCriteria::ReadPreference(ReadPreference::Primary);
        let options = CollectionOptions::builder()
            .selection_criteria(primary)
            .build();
        self.database.collection_with_options(name, options)
    }
}
