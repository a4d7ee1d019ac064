//! What is wrong with a call is told to the model, or through it to the administrator.

use mongodb::bson::doc;
use serde_json::json;

use super::{Called, Scene, Wiring, called, headers, send, to};
use crate::harness::{Turn, uuid};

const NAMES: [&str; 4] = [
    "X-User-Id",
    "X-Conversation-Id",
    "X-Message-Id",
    "X-Parent-Message-Id",
];

async fn with(s: &Scene, headers: &[(&'static str, String)]) -> Called {
    called(&send(&s.baton, headers, "switch_agent", to(&s.b)).await)
}

#[tokio::test]
async fn a_header_that_is_wrong_is_named_with_the_line_that_mends_it() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    for (index, name) in NAMES.iter().enumerate() {
        let all = headers(Wiring::Request, &turn);
        let mut without = all.clone();
        without.remove(index);
        let answer = with(&s, &without).await;
        assert!(
            answer
                .message()
                .contains(&format!("the header {name} is missing")),
            "{answer:?}"
        );
        assert!(
            answer
                .message()
                .contains("mcpServers.baton.headers needs the line")
        );
        for value in [
            "{{LIBRECHAT_BODY_MESSAGEID}}",
            "new",
            "a;b",
            &"a".repeat(200),
        ] {
            let mut wrong = all.clone();
            value.clone_into(&mut wrong[index].1);
            let answer = with(&s, &wrong).await;
            assert!(
                answer.message().contains(&format!("the header {name} is ")),
                "{answer:?}"
            );
        }
    }
    s.names(&turn, &s.a).await;
    assert!(s.records(&turn).await.is_empty());
}

#[tokio::test]
async fn a_user_that_does_not_exist_is_an_error() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let mut headers = headers(Wiring::User, &turn);
    headers[0].1 = mongodb::bson::oid::ObjectId::new().to_hex();
    assert!(with(&s, &headers).await.message().contains("names no user"));
}

#[tokio::test]
async fn a_conversation_of_another_users_is_an_error() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let stranger = s.librechat.user().await;
    let theirs = Turn::first(&s.librechat, &stranger, &s.a);
    theirs.run_plain().await;
    let mut headers = headers(Wiring::Request, &turn);
    headers[1].1.clone_from(&theirs.conversation);
    assert!(
        with(&s, &headers)
            .await
            .message()
            .contains("another user's")
    );
    s.names(&theirs, &s.a).await;
}

#[tokio::test]
async fn a_conversation_that_is_left_alone_is_an_error() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let key = doc! { "conversationId": &turn.conversation };
    let thread = doc! { "$set": { "subagentThread": { "agentId": "x" } } };
    s.db.conversations().update_one(key, thread).await.unwrap();
    let answer = s.call(Wiring::Request, &turn, to(&s.b)).await;
    assert!(answer.message().contains("cannot be switched"));
    s.names(&turn, &s.a).await;
}

#[tokio::test]
async fn the_conversation_where_it_is_given_must_be_this_one() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let wish = |id: &str| json!({ "agent": s.b.id, "conversation_id": id });
    let answer = s.call(Wiring::Request, &turn, wish(&uuid())).await;
    assert!(answer.message().contains("not this conversation"));
    s.names(&turn, &s.a).await;
    s.call(Wiring::Request, &turn, wish(&turn.conversation))
        .await
        .succeeded();
}

#[tokio::test]
async fn arguments_that_mean_nothing_are_errors_of_the_tool() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    for (arguments, words) in [
        (json!({}), "agent: missing"),
        (json!({ "agent": 5 }), "agent: give a text"),
        (json!({ "agent": s.b.id, "agent_id": s.c.id }), "differ"),
        (
            json!({ "agent": s.b.id, "reason": {} }),
            "reason: give a text",
        ),
    ] {
        let answer = s.call(Wiring::Request, &turn, arguments).await;
        assert!(answer.message().contains(words), "{answer:?}");
    }
    s.names(&turn, &s.a).await;
}
