//! LibreChat before capabilities (v0.8.0 to v0.8.4) and before access entries (v0.7).

use super::*;

#[tokio::test]
async fn before_capabilities_an_admin_may_use_every_agent() {
    let scene = Scene::empty().await;
    scene.share(doc! { "id": scene.author.id }).await;
    let admin = scene.librechat.user_with(doc! { "role": "ADMIN" }).await;
    let user = scene.librechat.user().await;
    assert!(matches!(scene.verdict(&admin).await, Verdict::Allowed(_)));
    let author = scene.verdict(&scene.author).await;
    assert!(matches!(author, Verdict::Allowed(_)));
    assert_eq!(scene.verdict(&user).await, Refusal::NotShared.into());
}

#[tokio::test]
async fn before_access_entries_authors_may_use_theirs_and_admins_too_only_theirs() {
    let scene = Scene::empty().await;
    let admin = scene.librechat.user_with(doc! { "role": "ADMIN" }).await;
    let author = scene.verdict(&scene.author).await;
    assert!(matches!(author, Verdict::Allowed(_)));
    let verdict = scene.verdict(&admin).await;
    assert_eq!(verdict, Refusal::NotShared.into());
}

#[tokio::test]
async fn before_access_entries_everybody_may_use_what_is_in_the_instance_project() {
    let scene = Scene::empty().await;
    let user = scene.librechat.user().await;
    let [instance, other] = [ObjectId::new(), ObjectId::new()];
    let projects = scene.db.collection("projects");
    // Where the project lists the agent but the agent not the project, the agent is listed but
    // cannot be used.
    let listed = doc! { "_id": instance, "name": "instance", "agentIds": [&scene.agent.id] };
    projects.insert_one(listed).await.unwrap();
    let agents = scene.db.collection("agents");
    let not_shared = Verdict::from(Refusal::NotShared);
    assert_eq!(scene.verdict(&user).await, not_shared);

    for (project, shared) in [(other, false), (instance, true)] {
        let push = doc! { "$push": { "projectIds": project } };
        agents.update_one(doc! {}, push).await.unwrap();
        let allowed = matches!(scene.verdict(&user).await, Verdict::Allowed(_));
        assert_eq!(allowed, shared);
        let viewable = scene.access.viewable(&user.hex().into()).await.unwrap();
        assert_eq!(!viewable.is_empty(), shared);
    }
}

#[tokio::test]
async fn before_access_entries_a_role_may_be_kept_from_agents_as_well() {
    let scene = Scene::empty().await;
    let roles = scene.db.collection("roles");
    let off = doc! { "name": "USER", "AGENTS": { "USE": false } };
    roles.insert_one(off).await.unwrap();
    let verdict = scene.verdict(&scene.author).await;
    assert_eq!(verdict, Refusal::NoAgentsForRole.into());
}
