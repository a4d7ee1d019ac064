//! Tenants do not see each other's agents, entries and capabilities.

use super::*;

/// A user and an agent of the same tenant, in a database with others'.
struct Tenant {
    librechat: LibreChat,
    user: User,
    agent: Agent,
}

impl Tenant {
    async fn new(scene: &Scene, name: &str) -> Self {
        let librechat = scene.librechat.in_tenant(name);
        let author = librechat.user().await;
        let fields = doc! { "id": "agent_shared_id" };
        Self {
            user: librechat.user().await,
            agent: librechat.agent_with(&author, name, fields).await,
            librechat,
        }
    }
}

async fn name_of(scene: &Scene, user: &User, agent: &str) -> Option<String> {
    match scene.verdict_on(user, agent).await {
        Verdict::Allowed(agent) => agent.name,
        Verdict::Refused(_) => None,
    }
}

#[tokio::test]
async fn each_tenant_has_its_own_agent_under_the_same_id() {
    let scene = Scene::current().await;
    let [one, two] = [
        Tenant::new(&scene, "one").await,
        Tenant::new(&scene, "two").await,
    ];
    for tenant in [&one, &two] {
        let everybody = doc! { "type": "public" };
        tenant.librechat.grant(&tenant.agent, everybody).await;
    }
    for tenant in [&one, &two] {
        let name = name_of(&scene, &tenant.user, "agent_shared_id").await;
        assert_eq!(name.as_deref(), Some(tenant.agent.name.as_str()));
    }
}

#[tokio::test]
async fn an_agent_of_another_tenant_does_not_exist() {
    let scene = Scene::current().await;
    let one = Tenant::new(&scene, "one").await;
    let admin = one.librechat.user_with(doc! { "role": "ADMIN" }).await;
    scene.share(doc! { "type": "public" }).await;
    let no_such_agent = Verdict::from(Refusal::NoSuchAgent);
    assert_eq!(scene.verdict(&one.user).await, no_such_agent);
    assert_eq!(scene.verdict(&admin).await, no_such_agent);

    let everybody = doc! { "type": "public" };
    one.librechat.grant(&one.agent, everybody).await;
    let without_tenant = scene.librechat.user().await;
    let verdict = scene.verdict_on(&without_tenant, &one.agent.id).await;
    assert_eq!(verdict, no_such_agent);
}

#[tokio::test]
async fn an_entry_or_a_group_of_another_tenant_does_not_count() {
    let scene = Scene::current().await;
    let one = Tenant::new(&scene, "one").await;
    let entries = scene.db.collection("aclentries");
    let public = doc! {
        "principalType": "public", "permBits": 1, "tenantId": "two",
        "resourceType": "agent", "resourceId": one.agent.object_id,
    };
    entries.insert_one(public).await.unwrap();
    let group = ObjectId::new();
    let groups = scene.db.collection("groups");
    let theirs = doc! { "_id": group, "memberIds": [one.user.hex()], "tenantId": "two" };
    groups.insert_one(theirs).await.unwrap();
    let by_group = doc! { "type": "group", "id": group };
    one.librechat.grant(&one.agent, by_group).await;

    let verdict = scene.verdict_on(&one.user, &one.agent.id).await;
    assert_eq!(verdict, Refusal::NotShared.into());
}

#[tokio::test]
async fn a_capability_counts_in_its_tenant_or_where_the_platform_gave_it() {
    let scene = Scene::current().await;
    let one = Tenant::new(&scene, "one").await;
    let check = async |user: &User| name_of(&scene, user, &one.agent.id).await.is_some();

    let admin = one.librechat.user_with(doc! { "role": "ADMIN" }).await;
    assert!(check(&admin).await, "seeded for the whole platform");

    for (tenant, counts) in [("two", false), ("one", true)] {
        let grant = doc! {
            "principalType": "user", "principalId": one.user.hex(),
            "capability": "manage:agents", "tenantId": tenant,
        };
        scene
            .librechat
            .call("grantCapability", [grant.into()])
            .await;
        assert_eq!(check(&one.user).await, counts, "granted in {tenant}");
    }
}

#[tokio::test]
async fn a_role_is_the_one_of_the_users_tenant() {
    let scene = Scene::current().await;
    let one = Tenant::new(&scene, "one").await;
    let everybody = doc! { "type": "public" };
    one.librechat.grant(&one.agent, everybody).await;
    let roles = scene.db.collection("roles");
    let theirs = doc! {
        "name": "USER", "tenantId": "two", "permissions": { "AGENTS": { "USE": false } },
    };
    roles.insert_one(theirs).await.unwrap();
    assert!(name_of(&scene, &one.user, &one.agent.id).await.is_some());

    let own = doc! {
        "name": "USER", "tenantId": "one", "permissions": { "AGENTS": { "USE": false } },
    };
    roles.insert_one(own).await.unwrap();
    let verdict = scene.verdict_on(&one.user, &one.agent.id).await;
    assert_eq!(verdict, Refusal::NoAgentsForRole.into());
}
