//! The user whose access is in question, as LibreChat's checks see one.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, RawBsonRef, RawDocument};

use crate::librechat::TenantId;

/// The role of a user whose document names none (`api/strategies/jwtStrategy.js`, v0.8.8-rc1).
const DEFAULT_ROLE: &str = "USER";

/// The fields of a `users` document that decide about access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// `users._id`.
    pub(super) id: ObjectId,
    /// `users.role`.
    pub(super) role: String,
    /// What `groups.memberIds` holds for this user: the id at the identity provider
    /// (`users.idOnTheSource`) or, for a local user, the user's own id in hex
    /// (`getUserPrincipals` in `packages/data-schemas/src/methods/userGroup.ts`).
    pub(super) in_groups_as: String,
    /// `users.tenantId`, where LibreChat serves several tenants (v0.8.5 on).
    pub(super) tenant: Option<TenantId>,
}

impl Member {
    /// Reads a `users` document; `None` where it has no id or a role or tenant of a wrong type.
    pub(super) fn parse(user: &RawDocument) -> Option<Self> {
        let id = user.get_object_id("_id").ok()?;
        let role = optional_text(user, "role").ok()?.unwrap_or(DEFAULT_ROLE);
        let id_at_provider = optional_text(user, "idOnTheSource").ok().flatten();
        Some(Self {
            id,
            role: role.to_owned(),
            in_groups_as: id_at_provider.map_or_else(|| id.to_hex(), str::to_owned),
            tenant: tenant_of(user).ok()?,
        })
    }

    /// What a document of this user's tenant has as `tenantId`. Without a tenant: nothing, which
    /// is stricter than LibreChat, where a user without a tenant sees every tenant's documents
    /// unless `TENANT_ISOLATION_STRICT` is set (`models/plugins/tenantIsolation.ts`, v0.8.8-rc1).
    pub(super) fn tenant_value(&self) -> Bson {
        self.tenant.clone().map_or(Bson::Null, Bson::from)
    }
}

/// A field holds something that LibreChat never writes there.
#[derive(Debug)]
pub(super) struct WrongType;

/// The tenant of a document, where it has one.
pub(super) fn tenant_of(document: &RawDocument) -> Result<Option<TenantId>, WrongType> {
    Ok(optional_text(document, "tenantId")?.map(TenantId::from))
}

/// The string at `key`; missing, null and empty are the same to LibreChat.
fn optional_text<'a>(document: &'a RawDocument, key: &str) -> Result<Option<&'a str>, WrongType> {
    match document.get(key) {
        Ok(None | Some(RawBsonRef::Null)) => Ok(None),
        Ok(Some(RawBsonRef::String(text))) => Ok(Some(text).filter(|text| !text.is_empty())),
        _ => Err(WrongType),
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{doc, rawdoc};

    use super::*;

    fn parsed(fields: mongodb::bson::Document) -> Option<Member> {
        let mut user = doc! { "_id": ObjectId::from_bytes([7; 12]) };
        user.extend(fields);
        Member::parse(&mongodb::bson::RawDocumentBuf::try_from(&user).ok()?)
    }

    #[test]
    fn a_local_user_is_in_groups_by_its_own_id_and_has_the_default_role() {
        let member = parsed(doc! {}).unwrap();
        assert_eq!(member.in_groups_as, "070707070707070707070707");
        assert_eq!(member.role, "USER");
        assert_eq!(member.tenant, None);
        assert_eq!(parsed(doc! { "role": "", "tenantId": null }), Some(member));
    }

    #[test]
    fn a_user_of_an_identity_provider_is_in_groups_by_the_id_there() {
        let member = parsed(doc! { "idOnTheSource": "entra-1", "tenantId": "t" }).unwrap();
        assert_eq!(member.in_groups_as, "entra-1");
        assert_eq!(member.tenant, Some("t".into()));
    }

    #[test]
    fn a_role_or_a_tenant_of_a_wrong_type_makes_no_user() {
        assert_eq!(parsed(doc! { "role": ["ADMIN"] }), None);
        assert_eq!(parsed(doc! { "tenantId": 5 }), None);
        assert_eq!(Member::parse(&rawdoc! { "_id": "text" }), None);
    }
}
