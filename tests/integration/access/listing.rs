//! The list of agents that a user may be switched to, and what it and a check cost.

use std::sync::{Arc, Mutex};

use mongodb::event::EventHandler;
use mongodb::event::command::CommandEvent;
use mongodb::options::ClientOptions;

use super::*;

async fn names(scene: &Scene, user: &User) -> Vec<String> {
    let viewable = scene.access.viewable(&user.hex().into()).await.unwrap();
    let names = viewable.into_iter().map(|agent| agent.name.unwrap());
    names.collect()
}

#[tokio::test]
async fn a_user_sees_what_is_shared_with_it_in_any_way_once_and_by_name() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    let group = scene.group(&[&user.hex()]).await;
    for (name, with) in [
        ("Twice", doc! { "id": user.id }),
        ("By role", doc! { "type": "role", "id": "USER" }),
        ("By group", doc! { "type": "group", "id": group }),
        ("Public", doc! { "type": "public" }),
        ("Others", doc! { "type": "group", "id": ObjectId::new() }),
        ("No view", doc! { "id": user.id, "bits": 2 }),
    ] {
        let agent = scene
            .librechat
            .agent_with(&scene.author, name, doc! {})
            .await;
        scene.librechat.grant(&agent, with).await;
        if name == "Twice" {
            let everybody = doc! { "type": "public" };
            scene.librechat.grant(&agent, everybody).await;
        }
    }
    assert_eq!(
        names(&scene, &user).await,
        ["By group", "By role", "Public", "Twice"]
    );
}

#[tokio::test]
async fn an_admin_sees_the_list_that_librechat_shows_it() {
    let scene = Scene::current().await;
    let admin = scene.librechat.user_with(doc! { "role": "ADMIN" }).await;
    scene.assert_allowed(&admin).await;
    assert!(names(&scene, &admin).await.is_empty());
}

#[tokio::test]
async fn who_may_not_use_agents_sees_none() {
    let scene = Scene::current().await;
    scene.share(doc! { "type": "public" }).await;
    let user = scene.librechat.user().await;
    assert_eq!(names(&scene, &user).await, ["Sales"]);
    let off = doc! { "AGENTS": { "USE": false } };
    scene
        .librechat
        .call("updateAccessPermissions", ["USER".into(), off.into()])
        .await;
    assert!(names(&scene, &user).await.is_empty());
    let nobody = scene.access.viewable(&"nobody".into()).await.unwrap();
    assert!(nobody.is_empty());
}

#[tokio::test]
async fn a_check_is_six_reads_of_the_primary_and_lists_collections_only_the_first_time() {
    let scene = Scene::current().await;
    let user = scene.librechat.user().await;
    scene.share(doc! { "id": user.id }).await;
    let commands = Commands::default();
    let access = watched(&scene.db, &commands).await;
    for _ in 0..3 {
        let agent = scene.agent.id.as_str().into();
        let verdict = access.check(&user.hex().into(), &agent).await.unwrap();
        assert!(matches!(verdict, Verdict::Allowed(_)));
    }
    let commands = std::mem::take(&mut *commands.lock().unwrap());
    let count = |name: &str| commands.iter().filter(|command| command.0 == name).count();
    assert_eq!(count("listCollections"), 1);
    assert_eq!(count("find"), 3 * 6);
    assert_eq!(commands.len(), 1 + 3 * 6);
    assert!(commands.iter().all(|(_, preference)| preference.is_none()));
}

/// The name and the read preference of each command.
type Commands = Arc<Mutex<Vec<(String, Option<Bson>)>>>;

/// The rules over a client that would rather read elsewhere, with its commands noted.
async fn watched(db: &TestDb, into: &Commands) -> Access {
    let uri = format!("{}&readPreference=secondaryPreferred", db.uri);
    let mut options = ClientOptions::parse(uri).await.unwrap();
    let into = Arc::clone(into);
    options.command_event_handler = Some(EventHandler::callback(move |event| {
        if let CommandEvent::Started(started) = event {
            let preference = started.command.get("$readPreference").cloned();
            into.lock()
                .unwrap()
                .push((started.command_name, preference));
        }
    }));
    let client = mongodb::Client::with_options(options).unwrap();
    Access::new(client.database(&db.librechat))
}
