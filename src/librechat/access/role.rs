//! Whether a role may use agents at all, which the chat route asks before anything else.

use mongodb::bson::RawDocument;

/// The roles that LibreChat makes itself, with leave to use agents, where they do not exist yet
/// (`getRoleByName` in `packages/data-schemas/src/methods/role.ts`, `roleDefaults` in
/// `packages/data-provider/src/roles.ts`, v0.8.8-rc1).
const MADE_ON_DEMAND: [&str; 2] = ["ADMIN", "USER"];

/// Whether the role `name` may use agents; `role` is its document, where there is one.
///
/// LibreChat asks for `permissions.AGENTS.USE` (`checkAgentAccess` in
/// `api/server/routes/agents/chat.js`, v0.7.6 on), and takes a missing field as no. Until v0.7.7
/// the permissions stood at the document's root (`api/models/schema/roleSchema.js`).
pub(super) fn may_use_agents(name: &str, role: Option<&RawDocument>) -> bool {
    let Some(role) = role else {
        return MADE_ON_DEMAND.contains(&name);
    };
    let permissions = match role.get("permissions") {
        Ok(None) => role,
        Ok(Some(permissions)) => match permissions.as_document() {
            Some(permissions) => permissions,
            None => return false,
        },
        Err(_) => return false,
    };
    permissions
        .get_document("AGENTS")
        .and_then(|agents| agents.get_bool("USE"))
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use mongodb::bson::rawdoc;

    use super::*;

    #[test]
    fn a_role_needs_leave_to_use_agents() {
        let allowed = rawdoc! { "permissions": { "AGENTS": { "USE": true } } };
        let denied = rawdoc! { "permissions": { "AGENTS": { "USE": false } } };
        assert!(may_use_agents("SALES", Some(&allowed)));
        assert!(!may_use_agents("ADMIN", Some(&denied)));
    }

    #[test]
    fn a_missing_or_misshapen_permission_is_a_no() {
        for role in [
            rawdoc! {},
            rawdoc! { "permissions": {} },
            rawdoc! { "permissions": null },
            rawdoc! { "permissions": "AGENTS" },
            rawdoc! { "permissions": { "AGENTS": true } },
            rawdoc! { "permissions": { "AGENTS": { "USE": 1 } } },
        ] {
            assert!(!may_use_agents("USER", Some(&role)), "{role:?}");
        }
    }

    #[test]
    fn only_the_roles_that_librechat_makes_itself_may_be_missing() {
        assert!(may_use_agents("USER", None));
        assert!(may_use_agents("ADMIN", None));
        assert!(!may_use_agents("SALES", None));
    }

    #[test]
    fn permissions_at_the_root_are_read_as_old_versions_wrote_them() {
        assert!(may_use_agents(
            "USER",
            Some(&rawdoc! { "AGENTS": { "USE": true } })
        ));
    }
}
