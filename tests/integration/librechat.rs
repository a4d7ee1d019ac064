//! LibreChat's own writes, without Baton: what the tests of Baton take for granted.

use mongodb::bson::doc;

use crate::harness::{Agent, LibreChat, Mongod, TestDb, Turn, User, parts};

struct Scene {
    db: TestDb,
    librechat: LibreChat,
    user: User,
    a: Agent,
    b: Agent,
}

async fn scene() -> Scene {
    let db = Mongod::shared().await.db().await;
    let librechat = LibreChat::on(&db);
    let user = librechat.user().await;
    let a = librechat.agent(&user, "A").await;
    let b = librechat.agent(&user, "B").await;
    Scene {
        db,
        librechat,
        user,
        a,
        b,
    }
}

#[tokio::test]
async fn end_overwrites_the_switch_of_a_plain_tool() {
    let Scene {
        db,
        librechat,
        user,
        a,
        b,
    } = scene().await;
    let first = Turn::first(&librechat, &user, &a);
    first.run_plain().await;

    let turn = first.next(&a);
    turn.save_user_message().await;
    turn.start().await;
    assert!(turn.tool_writes(&b).await);
    let content = [parts::switch(&b.id, &turn.conversation)];
    turn.save_response(&content).await;
    assert_eq!(turn.agent_now(&db).await, Some(b.id));
    turn.end().await;
    assert_eq!(turn.agent_now(&db).await, Some(a.id));
}

#[tokio::test]
async fn the_tool_of_a_first_turn_may_find_no_conversation() {
    let Scene {
        librechat,
        user,
        a,
        b,
        ..
    } = scene().await;
    let turn = Turn::first(&librechat, &user, &a);
    turn.save_user_message().await;
    assert!(!turn.tool_writes(&b).await);
}

#[tokio::test]
async fn appending_and_reading_all_ids_end_in_the_same_document() {
    let Scene {
        db,
        librechat,
        user,
        a,
        ..
    } = scene().await;
    for first in [
        Turn::first(&librechat, &user, &a),
        Turn::first(&librechat, &user, &a).appending(),
    ] {
        first.run_plain().await;
        first.next(&a).run_plain().await;
        let document = first.document(&db).await.unwrap();
        assert_eq!(document.get_array("messages").unwrap().len(), 4);
    }
}

#[tokio::test]
async fn the_user_message_is_touched_after_the_response_was_made() {
    let Scene {
        db,
        librechat,
        user,
        a,
        ..
    } = scene().await;
    let turn = Turn::first(&librechat, &user, &a);
    turn.run_plain().await;
    let message = async |id: &str| {
        let found = db.messages().find_one(doc! { "messageId": id }).await;
        found.unwrap().unwrap()
    };
    let u = message(&turn.user_message).await;
    let r = message(&turn.response).await;
    assert!(u.get_datetime("updatedAt").unwrap() > r.get_datetime("createdAt").unwrap());
    assert!(!r.get_bool("unfinished").unwrap());
}

#[tokio::test]
async fn an_agent_may_be_seen_by_those_it_was_granted_to() {
    let Scene {
        db,
        librechat,
        user,
        a,
        ..
    } = scene().await;
    let other = librechat.user().await;
    let hidden = librechat.agent_with(&other, "Hidden", doc! {}).await;
    let entries = db.collection("aclentries");
    let of = |agent: &Agent| doc! { "resourceType": "agent", "resourceId": agent.object_id, "principalId": user.id };
    assert!(entries.find_one(of(&a)).await.unwrap().is_some());
    assert!(entries.find_one(of(&hidden)).await.unwrap().is_none());
}

#[tokio::test]
async fn the_users_of_a_tenant_have_its_name_on_their_documents() {
    let Scene {
        db,
        librechat,
        user,
        a,
        ..
    } = scene().await;
    let turn = Turn::first(&librechat.in_tenant("acme"), &user, &a);
    turn.run_plain().await;
    let document = turn.document(&db).await.unwrap();
    assert_eq!(document.get_str("tenantId").unwrap(), "acme");
}
