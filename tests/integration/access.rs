//! Who may be switched to which agent, held against LibreChat's own functions where it has one.

use baton::librechat::access::{Access, Refusal, Verdict};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, DateTime, Document, doc};

use crate::harness::{Agent, LibreChat, Mongod, TestDb, User};

mod hostile;
mod listing;
mod older;
mod tenants;

/// A database as v0.8.5 and later leave it, and an agent of somebody else's.
struct Scene {
    db: TestDb,
    librechat: LibreChat,
    access: Access,
    author: User,
    agent: Agent,
}

impl Scene {
    /// With roles and capabilities as the server makes them when it starts.
    async fn current() -> Self {
        let scene = Self::empty().await;
        scene.librechat.seed_roles().await;
        scene.librechat.call("seedSystemGrants", []).await;
        scene
    }

    /// With nothing but the agent, its author and the collections that it takes to have them.
    async fn empty() -> Self {
        let db = Mongod::shared().await.db().await;
        let librechat = LibreChat::on(&db);
        let author = librechat.user().await;
        let agent = librechat.agent_with(&author, "Sales", doc! {}).await;
        Self {
            access: Access::new(db.database()),
            db,
            librechat,
            author,
            agent,
        }
    }

    async fn verdict(&self, user: &User) -> Verdict {
        self.verdict_on(user, &self.agent.id).await
    }

    async fn verdict_on(&self, user: &User, agent: &str) -> Verdict {
        let verdict = self.access.check(&user.hex().into(), &agent.into()).await;
        verdict.unwrap()
    }

    /// The user may use the agent, and LibreChat says the same.
    async fn assert_allowed(&self, user: &User) {
        let verdict = self.verdict(user).await;
        let Verdict::Allowed(agent) = &verdict else {
            panic!("{verdict:?}");
        };
        assert_eq!(agent.id.as_str(), self.agent.id);
        assert_eq!(agent.object_id, self.agent.object_id);
        assert_eq!(agent.name.as_deref(), Some("Sales"));
        assert!(self.librechat_allows(&self.librechat, user).await);
    }

    /// The agent is not shared with the user, and LibreChat says the same.
    async fn assert_not_shared(&self, user: &User) {
        assert_eq!(self.verdict(user).await, Refusal::NotShared.into());
        assert!(!self.librechat_allows(&self.librechat, user).await);
    }

    /// What `canAccessResource` of LibreChat's server makes of it, out of the same functions.
    async fn librechat_allows(&self, librechat: &LibreChat, user: &User) -> bool {
        let who = doc! { "userId": user.id };
        let principals = librechat.call("getUserPrincipals", [who.into()]).await;
        let mut capability =
            doc! { "principals": principals.clone(), "capability": "manage:agents" };
        if let Ok(tenant) = user.document.get_str("tenantId") {
            capability.insert("tenantId", tenant);
        }
        let manages = librechat.call("hasCapabilityForPrincipals", [capability.into()]);
        let about = [
            principals,
            "agent".into(),
            self.agent.object_id.into(),
            1.into(),
        ];
        let views = librechat.call("hasPermission", about);
        manages.await == Bson::Boolean(true) || views.await == Bson::Boolean(true)
    }

    async fn group(&self, members: &[&str]) -> ObjectId {
        let members: Vec<Bson> = members.iter().map(|member| (*member).into()).collect();
        let group = doc! { "name": "Group", "source": "local", "memberIds": members };
        let made = self.librechat.call("createGroup", [group.into()]).await;
        let made = made.as_document().unwrap();
        made.get_object_id("_id").unwrap()
    }

    async fn share(&self, with: Document) {
        self.librechat.grant(&self.agent, with).await;
    }

    async fn grant_capability(&self, kind: &str, id: impl Into<Bson>) {
        let grant = doc! {
            "principalType": kind, "principalId": id.into(), "capability": "manage:agents",
        };
        self.librechat.call("grantCapability", [grant.into()]).await;
    }
}

#[tokio::test]
async fn an_agent_that_is_shared_with_nobody_is_nobodys() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    scene.assert_not_shared(&user).await;
    scene.assert_not_shared(&scene.author).await;
}

#[tokio::test]
async fn a_user_may_use_what_was_shared_with_it_until_that_is_revoked() {
    let scene = Scene::current().await;
    let [user, other] = [scene.librechat.user().await, scene.librechat.user().await];
    scene.share(doc! { "id": user.id }).await;
    scene.assert_allowed(&user).await;
    scene.assert_not_shared(&other).await;

    let entry: [Bson; 4] = [
        "user".into(),
        user.id.into(),
        "agent".into(),
        scene.agent.object_id.into(),
    ];
    scene.librechat.call("revokePermission", entry).await;
    scene.assert_not_shared(&user).await;
}

#[tokio::test]
async fn the_members_of_a_group_may_use_what_was_shared_with_it() {
    let scene = Scene::current().await;
    let [user, other] = [scene.librechat.user().await, scene.librechat.user().await];
    let group = scene.group(&["somebody-else", &user.hex()]).await;
    scene.group(&[&other.hex()]).await;
    scene.share(doc! { "type": "group", "id": group }).await;
    scene.assert_allowed(&user).await;
    scene.assert_not_shared(&other).await;
}

#[tokio::test]
async fn a_user_of_an_identity_provider_is_in_groups_by_its_id_there_alone() {
    let scene = Scene::current().await;
    let from_there = doc! { "idOnTheSource": "entra-1", "openidId": "o" };
    let user = scene.librechat.user_with(from_there).await;
    let by_own_id = scene.group(&[&user.hex()]).await;
    scene.share(doc! { "type": "group", "id": by_own_id }).await;
    scene.assert_not_shared(&user).await;
    let by_id_there = scene.group(&["entra-1"]).await;
    scene
        .share(doc! { "type": "group", "id": by_id_there })
        .await;
    scene.assert_allowed(&user).await;
}

#[tokio::test]
async fn a_role_and_everybody_may_be_shared_with() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    scene.share(doc! { "type": "role", "id": "EDITORS" }).await;
    scene.assert_not_shared(&user).await;
    scene.share(doc! { "type": "role", "id": "USER" }).await;
    scene.assert_allowed(&user).await;

    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    scene.share(doc! { "type": "public" }).await;
    scene.assert_allowed(&user).await;
}

#[tokio::test]
async fn an_entry_without_the_right_to_view_is_not_enough() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    let everything_else = 2 + 4 + 8;
    let entry = doc! { "id": user.id, "bits": everything_else };
    scene.share(entry).await;
    scene.assert_not_shared(&user).await;
    scene.share(doc! { "type": "public", "bits": 15 }).await;
    scene.assert_allowed(&user).await;
}

#[tokio::test]
async fn an_expired_entry_counts_no_more_though_it_is_still_there() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    scene.share(doc! { "id": user.id }).await;
    let entries = scene.db.collection("aclentries");
    for (expires, verdict_is_allowed) in [
        (DateTime::from_millis(0), false),
        (DateTime::from_millis(32_503_680_000_000), true),
    ] {
        let set = doc! { "$set": { "expiredAt": expires } };
        entries.update_one(doc! {}, set).await.unwrap();
        let verdict = scene.verdict(&user).await;
        let allowed = matches!(verdict, Verdict::Allowed(_));
        assert_eq!(allowed, verdict_is_allowed, "{expires}");
    }
}

#[tokio::test]
async fn an_entry_about_something_else_with_the_same_id_is_not_about_the_agent() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    let entry = doc! {
        "principalType": "user", "principalId": user.id, "permBits": 15,
        "resourceType": "promptGroup", "resourceId": scene.agent.object_id,
    };
    let entries = scene.db.collection("aclentries");
    entries.insert_one(entry).await.unwrap();
    scene.assert_not_shared(&user).await;
}

#[tokio::test]
async fn who_manages_agents_may_use_every_one() {
    let scene = Scene::current().await;
    let admin = scene.librechat.user_with(doc! { "role": "ADMIN" }).await;
    scene.assert_allowed(&admin).await;

    let user = scene.librechat.user().await;
    scene.grant_capability("user", user.id.to_hex()).await;
    scene.assert_allowed(&user).await;

    let member = scene.librechat.user().await;
    let group = scene.group(&[&member.hex()]).await;
    scene.grant_capability("group", group.to_hex()).await;
    scene.assert_allowed(&member).await;
}

#[tokio::test]
async fn an_admin_without_the_capability_is_a_user_like_others() {
    let scene = Scene::current().await;
    let admin = scene.librechat.user_with(doc! { "role": "ADMIN" }).await;
    let grant = doc! {
        "principalType": "role", "principalId": "ADMIN", "capability": "manage:agents",
    };
    scene
        .librechat
        .call("revokeCapability", [grant.into()])
        .await;
    scene.assert_not_shared(&admin).await;
}

#[tokio::test]
async fn another_capability_is_not_enough() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    for capability in ["read:agents", "manage:prompts", "access:admin"] {
        let grant = doc! {
            "principalType": "user", "principalId": user.hex(), "capability": capability,
        };
        scene
            .librechat
            .call("grantCapability", [grant.into()])
            .await;
    }
    // Everybody holds no capability, even where a document says so.
    let everybody = doc! { "principalType": "public", "capability": "manage:agents" };
    let grants = scene.db.collection("systemgrants");
    grants.insert_one(everybody).await.unwrap();
    scene.assert_not_shared(&user).await;
}

#[tokio::test]
async fn a_role_that_may_not_use_agents_stops_even_an_admin() {
    let scene = Scene::current().await;
    let admin = scene.librechat.user_with(doc! { "role": "ADMIN" }).await;
    let off = doc! { "AGENTS": { "USE": false } };
    scene
        .librechat
        .call("updateAccessPermissions", ["ADMIN".into(), off.into()])
        .await;
    let verdict = scene.verdict(&admin).await;
    assert_eq!(verdict, Refusal::NoAgentsForRole.into());
}

#[tokio::test]
async fn a_role_that_does_not_exist_may_not_use_agents_but_for_librechats_own() {
    let scene = Scene::empty().await;
    scene.share(doc! { "type": "public" }).await;
    let sales = scene.librechat.user_with(doc! { "role": "SALES" }).await;
    let verdict = scene.verdict(&sales).await;
    assert_eq!(verdict, Refusal::NoAgentsForRole.into());
    let user = scene.librechat.user().await;
    scene.assert_allowed(&user).await;
}

#[tokio::test]
async fn an_agent_that_does_not_exist_is_no_target() {
    let scene = Scene::current().await;
    let admin = scene.librechat.user_with(doc! { "role": "ADMIN" }).await;
    for id in ["agent_none", "ephemeral", "", "openAI__gpt-4o"] {
        let verdict = scene.verdict_on(&admin, id).await;
        assert_eq!(verdict, Refusal::NoSuchAgent.into(), "{id}");
    }
    let stored_under_such_an_id = doc! { "id": "ephemeral", "_id": ObjectId::new() };
    let agents = scene.db.collection("agents");
    agents.insert_one(stored_under_such_an_id).await.unwrap();
    let verdict = scene.verdict_on(&admin, "ephemeral").await;
    assert_eq!(verdict, Refusal::NoSuchAgent.into());
}

#[tokio::test]
async fn a_user_that_does_not_exist_may_use_nothing() {
    let scene = Scene::current().await;
    scene.share(doc! { "type": "public" }).await;
    for user in [ObjectId::new().to_hex().as_str(), "somebody", ""] {
        let agent = scene.agent.id.as_str().into();
        let verdict = scene.access.check(&user.into(), &agent).await.unwrap();
        assert_eq!(verdict, Refusal::NoSuchUser.into(), "{user}");
    }
}
