//! Shapes that LibreChat never writes: they deny, and nothing panics.

use super::*;

/// Values of every type, to stand where something else is expected.
fn misshapen() -> Vec<Bson> {
    vec![
        Bson::Null,
        Bson::Boolean(true),
        Bson::Int32(1),
        Bson::Int64(i64::MIN),
        Bson::Double(f64::NAN),
        Bson::String("\u{0}".into()),
        Bson::Array(vec![Bson::Null]),
        Bson::Document(doc! { "$ne": null }),
        Bson::ObjectId(ObjectId::from_bytes([0; 12])),
        Bson::DateTime(DateTime::MAX),
        Bson::MinKey,
        Bson::MaxKey,
    ]
}

/// Replaces a field of the only matching document by each misshapen value and asks again.
async fn never_allowed(scene: &Scene, user: &User, collection: &str, which: Document, field: &str) {
    let collection = scene.db.collection(collection);
    let original = collection.find_one(which.clone()).await.unwrap().unwrap();
    for value in misshapen() {
        let set = doc! { "$set": { field: value.clone() } };
        collection.update_one(which.clone(), set).await.unwrap();
        let verdict = scene.verdict(user).await;
        assert!(
            matches!(verdict, Verdict::Refused(_)),
            "{field}: {value:?} allowed it"
        );
        scene.access.viewable(&user.hex().into()).await.unwrap();
        let by_id = doc! { "_id": original.get("_id").unwrap() };
        collection.replace_one(by_id, &original).await.unwrap();
    }
}

#[tokio::test]
async fn misshapen_entries_give_nothing() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    scene.share(doc! { "id": user.id }).await;
    for field in ["principalType", "principalId", "resourceType", "resourceId"] {
        never_allowed(&scene, &user, "aclentries", doc! {}, field).await;
    }
    let entries = scene.db.collection("aclentries");
    for bits in misshapen() {
        // 1 is the right to view.
        let allows = bits == Bson::Int32(1);
        let set = doc! { "$set": { "permBits": bits } };
        entries.update_one(doc! {}, set).await.unwrap();
        let allowed = matches!(scene.verdict(&user).await, Verdict::Allowed(_));
        assert_eq!(allowed, allows);
    }
}

#[tokio::test]
async fn misshapen_roles_and_users_may_use_nothing() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    scene.share(doc! { "id": user.id }).await;
    let role = doc! { "name": "USER" };
    for field in ["permissions", "permissions.AGENTS"] {
        never_allowed(&scene, &user, "roles", role.clone(), field).await;
    }
    let users = scene.db.collection("users");
    let this = doc! { "_id": user.id };
    for value in misshapen() {
        if value == Bson::Null {
            continue; // as good as none: the role USER, no tenant
        }
        for field in ["role", "tenantId"] {
            let set = doc! { "$set": { field: value.clone() } };
            users.update_one(this.clone(), set).await.unwrap();
            let verdict = scene.verdict(&user).await;
            assert!(
                matches!(verdict, Verdict::Refused(_)),
                "{field}: {value:?} allowed it"
            );
            let back = doc! { "$unset": { field: "" } };
            users.update_one(this.clone(), back).await.unwrap();
        }
    }
    assert!(matches!(scene.verdict(&user).await, Verdict::Allowed(_)));
}

#[tokio::test]
async fn misshapen_agents_are_none() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    scene.share(doc! { "id": user.id }).await;
    never_allowed(&scene, &user, "agents", doc! {}, "id").await;

    let agents = scene.db.collection("agents");
    for value in misshapen() {
        let set = doc! { "$set": { "name": value.clone(), "description": value, "projectIds": 5 } };
        agents.update_one(doc! {}, set).await.unwrap();
        assert!(matches!(scene.verdict(&user).await, Verdict::Allowed(_)));
    }
}

#[tokio::test]
async fn misshapen_groups_and_capabilities_give_nothing() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    let group = scene.group(&[&user.hex()]).await;
    scene.share(doc! { "type": "group", "id": group }).await;
    never_allowed(&scene, &user, "groups", doc! {}, "memberIds").await;
    let groups = scene.db.collection("groups");
    let text = doc! { "$set": { "memberIds": user.hex() } };
    groups.update_one(doc! {}, text).await.unwrap();
    assert_eq!(scene.verdict(&user).await, Refusal::NotShared.into());

    let manager = scene.librechat.user().await;
    scene.grant_capability("user", manager.hex()).await;
    let grant = doc! { "principalId": manager.id };
    for field in ["principalType", "principalId", "capability"] {
        never_allowed(&scene, &manager, "systemgrants", grant.clone(), field).await;
    }
}

#[tokio::test]
async fn ids_that_look_like_operators_are_only_text() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    scene.share(doc! { "type": "public" }).await;
    for id in [
        "agent_{\"$ne\":null}",
        "agent_.*",
        "agent_\u{0}",
        "agent_$where",
    ] {
        let verdict = scene.verdict_on(&user, id).await;
        assert_eq!(verdict, Refusal::NoSuchAgent.into(), "{id}");
    }
}
