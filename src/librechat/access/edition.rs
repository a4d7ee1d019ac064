//! Which of LibreChat's three access rules is in force, told by the collections that exist.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use mongodb::Database;
use mongodb::bson::doc;
use tokio::time::Instant;

use crate::librechat::schema::{ACCESS_ROLES, ACL_ENTRIES, SYSTEM_GRANTS};

/// For how long an answer holds; LibreChat is not upgraded more often than that.
const FRESH: Duration = Duration::from_secs(60);

/// A generation of LibreChat's access rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edition {
    /// Up to v0.7.9: the author, and everybody for an agent in the project "instance"
    /// (`api/models/Agent.js`, `loadAgent`). Admins have no way around it.
    Projects,
    /// v0.8.0 to v0.8.4: access entries, and the role `ADMIN` passes without any
    /// (`api/server/middleware/accessResources/canAccessResource.js`).
    AdminRole,
    /// v0.8.5 on: access entries, and whoever holds the capability `manage:agents` passes without
    /// any (the same file; `packages/data-schemas/src/methods/systemGrant.ts`).
    Grants,
}

impl Edition {
    fn of(collections: &[String]) -> Self {
        let has = |name: &str| collections.iter().any(|existing| existing == name);
        if has(SYSTEM_GRANTS) {
            Self::Grants
        } else if has(ACL_ENTRIES) || has(ACCESS_ROLES) {
            Self::AdminRole
        } else {
            Self::Projects
        }
    }
}

/// Looks the edition up, at most once a minute.
#[derive(Debug, Default)]
pub(super) struct EditionCache(Mutex<Option<(Instant, Edition)>>);

impl EditionCache {
    /// The edition in force. Needs the right to list collections: without it this is an error
    /// rather than a guess.
    pub(super) async fn get(&self, database: &Database) -> mongodb::error::Result<Edition> {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((learned, edition)) = known
            && learned.elapsed() < FRESH
        {
            return Ok(edition);
        }
        let telling = [SYSTEM_GRANTS, ACL_ENTRIES, ACCESS_ROLES];
        let collections = database
            .list_collection_names()
            .filter(doc! { "name": { "$in": telling.as_slice() } })
            .await?;
        let edition = Edition::of(&collections);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), edition));
        Ok(edition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edition_of(collections: &[&str]) -> Edition {
        let names: Vec<String> = collections.iter().map(ToString::to_string).collect();
        Edition::of(&names)
    }

    #[test]
    fn the_newest_rule_that_the_collections_show_is_in_force() {
        assert_eq!(edition_of(&[]), Edition::Projects);
        assert_eq!(edition_of(&["aclentries"]), Edition::AdminRole);
        assert_eq!(edition_of(&["accessroles"]), Edition::AdminRole);
        assert_eq!(edition_of(&["systemgrants", "aclentries"]), Edition::Grants);
    }
}
