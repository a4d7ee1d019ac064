//! The replay itself, without Baton: a scene ends in today's database as it ended then.

use std::collections::BTreeSet;
use std::time::Duration;

use mongodb::bson::{Document, doc};

use crate::harness::events::{SCENES, events};
use crate::harness::recording::agent;
use crate::harness::{Mongod, Pace, Recording, Replay};

const FAST: Pace = Pace::AtMost(Duration::from_millis(20));

#[test]
fn every_scene_is_read_and_tells_of_every_new_message() {
    for scene in SCENES {
        let recording = Recording::of("v0.8.8-rc1", scene);
        assert!(
            recording.writes.is_sorted_by_key(|write| write.at),
            "{scene}"
        );
        let inserted = events("v0.8.8-rc1", scene)
            .iter()
            .filter(|event| is(event, "insert", "messages"))
            .count();
        assert!(inserted > 0, "{scene}");
    }
}

#[tokio::test]
async fn scenes_end_as_they_did_without_baton() {
    let overwritten = [
        ("a", 'A'),
        ("b", 'A'),
        ("c", 'A'),
        ("d", 'A'),
        ("d2", 'A'),
        ("e", 'H'),
        ("f", 'H'),
        ("h2", 'A'),
        ("i", 'A'),
        ("j", 'C'),
        ("k", 'A'),
        ("m", 'A'),
        ("n", 'C'),
        ("q", 'A'),
        ("s", 'A'),
        ("u", 'A'),
        ("y", 'A'),
        ("z", 'A'),
        ("g", 'B'),
    ];
    for (scene, stands) in overwritten {
        let db = Mongod::shared().await.db().await;
        let mut replay = Replay::of(&db, "v0.8.8-rc1", scene, FAST).await;
        replay.run().await;
        let stands = agent("v0.8.8-rc1", stands);
        assert_eq!(replay.agent_now().await.as_deref(), Some(stands), "{scene}");
        let conversation = replay.conversation().await.unwrap();
        let messages = conversation.get_array("messages").unwrap();
        assert_eq!(Some(messages.len()), last_count(scene), "{scene}");
    }
}

#[tokio::test]
async fn conversations_name_the_messages_of_today() {
    let db = Mongod::shared().await.db().await;
    let mut replay = Replay::of(&db, "v0.8.0", "c", Pace::Elapsed).await;
    replay.run().await;
    let conversation = replay.conversation().await.unwrap();
    let named: BTreeSet<_> = ids(conversation.get_array("messages").unwrap());
    let stored = db.messages().distinct("_id", doc! {}).await.unwrap();
    assert_eq!(named, ids(&stored));
    assert_eq!(named.len(), 4);
}

#[tokio::test]
async fn a_replayed_turn_has_its_dates_in_order_and_in_the_present() {
    for pace in [FAST, Pace::Elapsed] {
        let db = Mongod::shared().await.db().await;
        let before = mongodb::bson::DateTime::now().timestamp_millis();
        let mut replay = Replay::of(&db, "v0.8.8-rc1", "c", pace).await;
        replay.run().await;
        let newest = async |by_user: bool| {
            let filter = doc! { "isCreatedByUser": by_user };
            db.messages()
                .find_one(filter)
                .sort(doc! { "_id": -1 })
                .await
                .unwrap()
                .unwrap()
        };
        let u = newest(true).await;
        let r = newest(false).await;
        assert!(millis(&u, "updatedAt") > millis(&r, "createdAt"));
        assert!(millis(&u, "updatedAt") < millis(&r, "updatedAt"));
        assert!((millis(&u, "createdAt") - before).abs() < 1000);
    }
}

fn is(event: &Document, operation: &str, collection: &str) -> bool {
    event.get_str("operationType").ok() == Some(operation)
        && event.get_document("ns").unwrap().get_str("coll").ok() == Some(collection)
}

fn last_count(scene: &str) -> Option<usize> {
    events("v0.8.8-rc1", scene)
        .iter()
        .rev()
        .find_map(|event| {
            event
                .get_document("fullDocument")
                .ok()?
                .get_array("messages")
                .ok()
        })
        .map(Vec::len)
}

fn ids(list: &[mongodb::bson::Bson]) -> BTreeSet<String> {
    list.iter()
        .map(|id| id.as_object_id().unwrap().to_hex())
        .collect()
}

fn millis(document: &Document, key: &str) -> i64 {
    document.get_datetime(key).unwrap().timestamp_millis()
}
