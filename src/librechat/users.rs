//! Who a user is, as far as it decides which conversations are the user's.

use mongodb::bson::oid::ObjectId;
use mongodb::bson::{RawBsonRef, RawDocumentBuf, doc};
use mongodb::{Collection, Database};

use super::schema::USERS;
use super::{ConversationId, ConversationKey, TenantId, UserId};

/// The tenant of LibreChat's own work, which no request may be of (`SYSTEM_TENANT_ID` in
/// `packages/data-schemas/src/config/tenantContext.ts`, v0.8.8-rc1).
const SYSTEM_TENANT: &str = "__SYSTEM__";

/// A user that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// `users._id` in hex.
    pub user: UserId,
    /// `users.tenantId`, where LibreChat serves several tenants (v0.8.5 on).
    pub tenant: Option<TenantId>,
}

impl Account {
    /// The key of a conversation of this user's.
    #[must_use]
    pub fn conversation(&self, id: ConversationId) -> ConversationKey {
        ConversationKey::new(id, self.user.clone(), self.tenant.clone())
    }

    /// Whether the tenant is one that LibreChat takes no requests of: it answers 403
    /// (`tenantContextMiddleware` in `packages/api/src/middleware/tenant.ts`, v0.8.5 on).
    #[must_use]
    pub fn is_of_the_system(&self) -> bool {
        self.tenant
            .as_ref()
            .is_some_and(|tenant| tenant.as_str() == SYSTEM_TENANT)
    }
}

/// The `users` collection.
#[derive(Clone, Debug)]
pub struct Users {
    collection: Collection<RawDocumentBuf>,
}

impl Users {
    /// The users of LibreChat's database.
    #[must_use]
    pub fn new(database: &Database) -> Self {
        Self {
            collection: database.collection(USERS),
        }
    }

    /// The user with this id; `None` where there is none, or one whose tenant cannot be understood.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn find(&self, id: ObjectId) -> mongodb::error::Result<Option<Account>> {
        let found = self
            .collection
            .find_one(doc! { "_id": id })
            .projection(doc! { "tenantId": 1 })
            .await?;
        Ok(found.and_then(|user| {
            let tenant = match user.get("tenantId") {
                Ok(None | Some(RawBsonRef::Null)) => None,
                // LibreChat takes a blank one for none.
                Ok(Some(RawBsonRef::String(tenant))) => {
                    Some(tenant.trim()).filter(|tenant| !tenant.is_empty())
                }
                _ => return None,
            };
            Some(Account {
                user: id.to_hex().into(),
                tenant: tenant.map(TenantId::from),
            })
        }))
    }
}
