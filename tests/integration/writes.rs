//! The one write that Baton makes to LibreChat, condition by condition.

use baton::librechat::{AgentId, ConversationKey, Conversations, Expected, SpecPatch};
use mongodb::bson::{Bson, DateTime, Document, doc};

use crate::harness::{Mongod, TestDb};

const SAVED: DateTime = DateTime::from_millis(1_700_000_000_000);

fn conversation() -> Document {
    doc! {
        "_id": 1, "conversationId": "c", "user": "u", "endpoint": "agents", "agent_id": "a",
        "updatedAt": SAVED, "title": "t", "spec": "s", "iconURL": "i",
    }
}

fn key(tenant: Option<&str>) -> ConversationKey {
    ConversationKey::new("c".into(), "u".into(), tenant.map(Into::into))
}

/// Sets the agent of a conversation that Baton takes for [`conversation`]; what became of it.
async fn written(db: &TestDb, really: &Document, tenant: Option<&str>) -> Option<Document> {
    let stored = db.conversations();
    stored.delete_many(doc! {}).await.unwrap();
    stored.insert_one(really).await.unwrap();
    let expected = Expected {
        agent: Some("a".into()),
        updated_at: Some(SAVED),
    };
    let to = AgentId::from("b");
    let set = Conversations::new(&db.database())
        .set_agent(&key(tenant), &expected, &to, SpecPatch::Keep)
        .await
        .unwrap();
    let now = stored.find_one(doc! {}).await.unwrap().unwrap();
    assert_eq!(stored.count_documents(doc! {}).await.unwrap(), 1);
    if !set {
        assert_eq!(now, *really, "written, and said not to have been");
    }
    set.then_some(now)
}

#[tokio::test]
async fn only_the_agent_of_the_conversation_that_was_decided_on_is_written() {
    let db = Mongod::shared().await.db().await;
    let mut after = conversation();
    after.insert("agent_id", "b");
    assert_eq!(written(&db, &conversation(), None).await, Some(after));

    let later = DateTime::from_millis(SAVED.timestamp_millis() + 1);
    let others: [(&str, Bson); 9] = [
        ("conversationId", "another".into()),
        ("user", "another".into()),
        ("tenantId", "t".into()),
        ("agent_id", "later-choice".into()),
        ("agent_id", Bson::Null),
        ("updatedAt", later.into()),
        ("updatedAt", Bson::Null),
        ("endpoint", "openAI".into()),
        ("subagentThread", doc! { "parent": "p" }.into()),
    ];
    for (field, value) in others {
        let mut other = conversation();
        other.insert(field, value);
        assert_eq!(written(&db, &other, None).await, None, "{field}");
    }
}

#[tokio::test]
async fn a_tenants_conversation_is_its_own() {
    let db = Mongod::shared().await.db().await;
    let mut of_t = conversation();
    of_t.insert("tenantId", "t");
    assert!(written(&db, &of_t, Some("t")).await.is_some());
    assert!(written(&db, &of_t, Some("another")).await.is_none());
    assert!(written(&db, &conversation(), Some("t")).await.is_none());
}
