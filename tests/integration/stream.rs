//! What the change stream shows, and what it does not.

use baton::librechat::{Change, ToolNames, change};
use futures::{StreamExt, TryStreamExt};
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};

use crate::harness::events::{SCENES, events};
use crate::harness::{Baton, LibreChat, Mongod, TestDb, Turn, holds, parts};

const V088: &str = "v0.8.8-rc1";

fn tools() -> ToolNames {
    ToolNames::new(
        &["switch_agent".to_owned()],
        &["switcher".to_owned()],
        "baton",
    )
}

/// What the stream shows of recorded events: the real pipeline, run over them by a real server.
async fn shown(db: &TestDb, version: &str, scene: &str) -> Vec<Change> {
    let recorded: Vec<Bson> = events(version, scene)
        .into_iter()
        .map(|mut event| {
            // What a stream without `updateLookup` would not have.
            if event
                .get_str("operationType")
                .is_ok_and(|operation| operation == "update")
            {
                event.remove("fullDocument");
            }
            Bson::Document(event)
        })
        .collect();
    let mut pipeline = vec![doc! { "$documents": recorded }];
    pipeline.extend(change::pipeline(&tools()));
    let shown: Vec<RawDocumentBuf> = db
        .client
        .database(&db.librechat)
        .aggregate(pipeline)
        .with_type::<RawDocumentBuf>()
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    shown
        .iter()
        .map(|event| Change::parse(event).unwrap())
        .collect()
}

fn summary(changes: &[Change]) -> String {
    changes
        .iter()
        .map(|change| match change {
            Change::Response(response) => format!("R{} ", response.calls.len()),
            Change::Content(_) => "content ".to_owned(),
            Change::Conversation(written) if written.key.is_some() => "new ".to_owned(),
            Change::Conversation(written) => match (written.updated_at, written.newest_message) {
                (None, _) => "tool ".to_owned(),
                (Some(_), None) => "saved ".to_owned(),
                (Some(_), Some(_)) => "saved+ ".to_owned(),
            },
            Change::Structure(what) => format!("{what} "),
        })
        .collect::<String>()
        .trim_end()
        .to_owned()
}

#[tokio::test]
async fn the_stream_shows_no_more_of_the_recordings_than_it_must() {
    let db = Mongod::shared().await.db().await;
    for (scene, expected) in [
        ("a", "new"),
        ("b", ""),
        ("c", "tool R1 saved+"),
        ("d", "new R1"),
        ("d2", "new tool R1 saved+"),
        ("e", ""),
        ("f", "tool R1 saved+"),
        ("g", "tool R1"),
        ("q", "tool saved+ R1"),
        ("y", "tool R1 content saved"),
    ] {
        let changes = shown(&db, V088, scene).await;
        assert_eq!(summary(&changes), expected, "{scene}");
    }
    assert_eq!(summary(&shown(&db, "v0.8.0", "c").await), "tool R1 saved+");
    for scene in SCENES {
        // All of it can be understood.
        shown(&db, V088, scene).await;
    }
}

/// Everything that a stream with the real pipeline delivers for what `writes` does, in bytes.
async fn delivered(db: &TestDb, writes: impl AsyncFnOnce()) -> Vec<RawDocumentBuf> {
    let watched = db.client.database(&db.librechat);
    let mut stages = vec![doc! { "$changeStream": {} }];
    stages.extend(change::pipeline(&tools()));
    let mut cursor = watched.aggregate(stages).batch().await.unwrap();
    // The answer to the opening says from where the stream counts.
    cursor.next().await.unwrap().unwrap();
    writes().await;
    let marker = doc! { "conversationId": "marker", "user": "marker", "agent_id": "marker" };
    db.conversations().insert_one(marker).await.unwrap();
    let mut events = Vec::new();
    loop {
        let batch = cursor.next().await.unwrap().unwrap();
        for event in batch.doc_slices().unwrap() {
            let event = event.unwrap().as_document().unwrap().to_owned();
            let document = event.get_document("document").unwrap();
            if document
                .get_str("conversationId")
                .is_ok_and(|id| id == "marker")
            {
                return events;
            }
            events.push(event);
        }
    }
}

#[tokio::test]
async fn a_plain_turn_in_an_existing_conversation_sends_nothing() {
    for appending in [false, true] {
        let db = Mongod::shared().await.db().await;
        let librechat = LibreChat::on(&db);
        let user = librechat.user().await;
        let a = librechat.agent(&user, "A").await;
        let mut first = Turn::first(&librechat, &user, &a);
        if appending {
            first = first.appending();
        }
        first.run_plain().await;
        let events = delivered(&db, async || {
            let turn = first.next(&a);
            turn.run_plain().await;
            turn.rename("Renamed").await;
            turn.regenerated(&a).finish(&[parts::text("again")]).await;
        })
        .await;
        assert!(events.is_empty(), "{events:?}");
    }
}

#[tokio::test]
async fn a_new_conversation_sends_one_small_event() {
    let db = Mongod::shared().await.db().await;
    let librechat = LibreChat::on(&db);
    let user = librechat.user().await;
    let a = librechat.agent(&user, "A").await;
    let events = delivered(&db, async || {
        let turn = Turn::first(&librechat, &user, &a);
        turn.run_plain().await;
        turn.title("Title").await;
    })
    .await;
    assert_eq!(events.len(), 1, "{events:?}");
    let size = events[0].as_bytes().len();
    assert!(size < 600, "{size} bytes");
}

#[tokio::test]
async fn a_response_is_trimmed_to_its_calls() {
    let db = Mongod::shared().await.db().await;
    let librechat = LibreChat::on(&db);
    let user = librechat.user().await;
    let [a, b] = [
        librechat.agent(&user, "A").await,
        librechat.agent(&user, "B").await,
    ];
    let first = Turn::first(&librechat, &user, &a);
    first.run_plain().await;
    let turn = first.next(&a);
    let long = parts::text(&"word ".repeat(100_000));
    let content = [
        long.clone(),
        parts::switch(&b.id, &turn.conversation),
        Bson::Null,
        long,
    ];
    let events = delivered(&db, async || {
        turn.save_user_message().await;
        turn.save_response(&content).await;
    })
    .await;
    assert_eq!(events.len(), 1);
    assert!(events[0].as_bytes().len() < 2000);
    assert_eq!(summary(&[Change::parse(&events[0]).unwrap()]), "R1");
}

#[tokio::test]
async fn an_append_shows_the_newest_message_all_the_same() {
    let db = Mongod::shared().await.db().await;
    let librechat = LibreChat::on(&db);
    let user = librechat.user().await;
    let [a, b] = [
        librechat.agent(&user, "A").await,
        librechat.agent(&user, "B").await,
    ];
    let first = Turn::first(&librechat, &user, &a).appending();
    first.run_plain().await;
    let turn = first.next(&b);
    let events = delivered(&db, async || turn.run_plain().await).await;
    assert_eq!(events.len(), 1, "{events:?}");
    let Change::Conversation(written) = Change::parse(&events[0]).unwrap() else {
        panic!("{events:?}")
    };
    let u = db
        .messages()
        .find_one(doc! { "messageId": &turn.user_message })
        .await
        .unwrap();
    assert_eq!(written.newest_message, u.unwrap().get_object_id("_id").ok());
}

/// Shapes that LibreChat never writes, and that a pipeline or a parser may choke on.
fn hostile() -> Vec<Bson> {
    let call = parts::switch("agent_x", "c");
    vec![
        Bson::Null,
        Bson::Int32(7),
        "text".into(),
        doc! { "tool_call": { "name": "switch_agent" } }.into(),
        Bson::Array(vec![]),
        Bson::Array(vec![Bson::Null, 3.into(), "switch_agent".into(), Bson::Array(vec![call.clone()])]),
        Bson::Array(vec![doc! { "type": "tool_call", "tool_call": "switch_agent" }.into()]),
        Bson::Array(vec![doc! { "type": "tool_call", "tool_call": [{ "name": "switch_agent" }] }.into()]),
        Bson::Array(vec![doc! { "tool_call": { "name": 5 } }.into(), call.clone()]),
        Bson::Array(vec![doc! { "tool_call": { "name": ["switch_agent"] } }.into()]),
        Bson::Array(vec![doc! {
            "type": "tool_call",
            "tool_call": { "name": "switch_agent", "id": 1, "args": { "a": [] }, "output": Bson::Null },
        }.into()]),
        Bson::Array(vec![doc! {
            "type": "tool_call",
            "tool_call": { "name": "switch_agent", "output": ["a", { "text": 4 }, { "text": "{" }] },
        }.into()]),
        Bson::Array(vec![parts::call("switch_agent", "agent_x", &"[".repeat(100_000))]),
        Bson::Array(vec![parts::call("switch_agent", "agent_x", &"{\"a\":".repeat(20_000))]),
        Bson::Array(vec![parts::call("switch_agent", "agent_x", &"x".repeat(200_000))]),
        doc! { "$where": "1", "a.b": { "$gt": "" } }.into(),
    ]
}

#[tokio::test]
async fn no_shape_stops_the_stream() {
    let db = Mongod::shared().await.db().await;
    let librechat = LibreChat::on(&db);
    librechat.seed_roles().await;
    let user = librechat.user().await;
    let [a, b] = [
        librechat.agent(&user, "A").await,
        librechat.agent(&user, "B").await,
    ];
    let mut baton = Baton::start_with(&db, &[("BATON__SWITCH__SERVERS", "switcher")]).await;
    let messages = db.messages();
    let conversations = db.conversations();
    for (index, shape) in hostile().into_iter().enumerate() {
        for field in [
            "content",
            "user",
            "conversationId",
            "model",
            "parentMessageId",
            "createdAt",
        ] {
            let mut document = doc! {
                "messageId": format!("hostile-{index}-{field}"), "conversationId": "c",
                "user": user.hex(), "isCreatedByUser": false, "tenantId": shape.clone(),
                "content": [parts::switch(&b.id, "c")],
            };
            document.insert(field, shape.clone());
            let id = messages.insert_one(document).await.unwrap().inserted_id;
            messages
                .update_one(
                    doc! { "_id": &id },
                    doc! { "$set": { "content": shape.clone() } },
                )
                .await
                .unwrap();
            messages
                .update_one(
                    doc! { "_id": &id },
                    doc! { "$set": { "content": [parts::switch(&b.id, "c")] } },
                )
                .await
                .unwrap();
        }
        for field in [
            "agent_id",
            "messages",
            "user",
            "updatedAt",
            "conversationId",
        ] {
            let mut document = doc! {
                "conversationId": format!("hostile-{index}-{field}"), "user": user.hex(),
                "agent_id": "agent_x", "messages": [shape.clone()],
            };
            document.insert(field, shape.clone());
            let id = conversations
                .insert_one(document)
                .await
                .unwrap()
                .inserted_id;
            let set = doc! { "$set": { "agent_id": shape.clone(), "updatedAt": shape.clone() } };
            conversations
                .update_one(doc! { "_id": &id }, set)
                .await
                .unwrap();
        }
    }
    messages
        .insert_one(doc! { "_id": "no object id", "content": [parts::switch(&b.id, "c")] })
        .await
        .unwrap();
    let turn = Turn::first(&librechat, &user, &a);
    turn.run_switching(&b).await;
    holds("a switch among hostile documents lasts", async || {
        turn.agent_now(&db).await.as_deref() == Some(&b.id)
    })
    .await;
    // A rescan meets all of it once more.
    baton.kill();
    let state = db.client.database(&db.state);
    state
        .collection::<Document>("checkpoints")
        .drop()
        .await
        .unwrap();
    let later = turn.next(&b);
    later.run_switching(&a).await;
    turn.next(&a);
    baton.restart().await;
    holds("a switch among hostile documents is found", async || {
        later.agent_now(&db).await.as_deref() == Some(&a.id)
    })
    .await;
    assert_eq!(baton.stop().await.code(), Some(0));
}
