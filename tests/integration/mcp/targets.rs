//! Which agent is meant by what a model says.

use baton::switch::record::Status;
use serde_json::json;

use super::{Called, Scene, Wiring, call, to};
use crate::harness::{Turn, parts};
use mongodb::bson::doc;

async fn to_called(s: &Scene, turn: &Turn, name: &str) -> Called {
    s.call(Wiring::Request, turn, json!({ "agent": name }))
        .await
}

#[tokio::test]
async fn an_agent_goes_by_id_name_and_alias() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "{}").unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    let s = Scene::with(&[("BATON__AGENTS__FILE", &path)]).await;
    let turn = s.begun().await;
    for name in [s.b.id.as_str(), "Agent B", "agent b", " AGENT B "] {
        let called = to_called(&s, &turn, name).await.succeeded();
        assert_eq!(called.json["agent_id"], s.b.id.as_str(), "{name}");
    }
    let by_id = json!({ "agent_id": s.c.id });
    let called = s.call(Wiring::Request, &turn, by_id).await.succeeded();
    assert_eq!(called.json["agent_id"], s.c.id.as_str());

    assert_eq!(
        to_called(&s, &turn, "runner").await.message(),
        "agent not found"
    );
    std::fs::write(&file, json!({ "runner": s.b.id }).to_string()).unwrap();
    let called = to_called(&s, &turn, "runner").await.succeeded();
    assert_eq!(called.json["agent_id"], s.b.id.as_str());
}

#[tokio::test]
async fn an_alias_of_the_settings_counts() {
    let s = Scene::new().await;
    let aliases = format!("runner={}", s.b.id);
    let baton = Scene::start(&s.db, &[("BATON__AGENTS__ALIASES", &aliases)]).await;
    let turn = s.begun().await;
    let wish = json!({ "agent": "runner" });
    let called = call(&baton, Wiring::Request, &turn, "switch_agent", wish).await;
    assert_eq!(called.succeeded().json["agent_id"], s.b.id.as_str());
}

#[tokio::test]
async fn an_agent_that_is_not_there_and_one_that_may_not_be_seen_are_the_same() {
    let s = Scene::new().await;
    let stranger = s.librechat.user().await;
    let theirs = s.librechat.agent(&stranger, "Theirs").await;
    let turn = s.begun().await;
    let mut answers = Vec::new();
    for name in ["agent_does_not_exist", "Nobody", &theirs.id, "Theirs"] {
        let called = to_called(&s, &turn, name).await;
        assert_eq!(
            called.offers(),
            ["Agent B", "Agent C"],
            "not the one that is active"
        );
        answers.push(called.message().to_owned());
    }
    answers.dedup();
    assert_eq!(answers, ["agent not found"]);
    s.names(&turn, &s.a).await;
    let records = s.records(&turn).await;
    assert_eq!(records.len(), 2, "one for each id: {records:#?}");
    assert!(
        records
            .iter()
            .all(|record| record.status == Status::Rejected)
    );
}

#[tokio::test]
async fn an_ambiguous_name_is_an_error_that_lists_the_candidates() {
    let s = Scene::new().await;
    s.librechat.agent(&s.user, "agent b").await;
    let turn = s.begun().await;
    let called = to_called(&s, &turn, "Agent B").await;
    assert!(called.message().contains("several agents"), "{called:?}");
    assert_eq!(called.offers(), ["Agent B", "agent b"]);
}

#[tokio::test]
async fn no_more_than_twenty_agents_are_offered() {
    let s = Scene::new().await;
    for n in 0..20 {
        s.librechat.agent(&s.user, &format!("Z {n}")).await;
    }
    let turn = s.begun().await;
    let called = to_called(&s, &turn, "Nobody").await;
    assert_eq!(called.offers().len(), 20);
}

#[tokio::test]
async fn previous_hands_back() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let message = "there is no previous agent: no switch stands in this conversation";
    assert_eq!(to_called(&s, &turn, "previous").await.message(), message);
    let called = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
    turn.finish(&[called.part()]).await;
    s.ends(&turn, Status::Settled).await;

    let back = turn.next(&s.b);
    back.save_user_message().await;
    back.start().await;
    let called = to_called(&s, &back, "Previous").await.succeeded();
    assert_eq!(called.json["agent_id"], s.a.id.as_str());
    assert_eq!(called.json["from_agent_id"], s.b.id.as_str());
    back.finish(&[called.part()]).await;
    s.ends(&back, Status::Settled).await;
    s.names(&back, &s.a).await;

    // The user has chosen C: the last switch no longer stands.
    let chosen = back.next(&s.c);
    chosen.save_user_message().await;
    chosen.start().await;
    assert_eq!(to_called(&s, &chosen, "previous").await.message(), message);
}

#[tokio::test]
async fn what_may_be_switched_to_can_be_listed() {
    let s = Scene::new().await;
    let fields = doc! { "description": "Writes invoices, ".repeat(50) };
    let biller = s.librechat.agent_with(&s.user, "Biller", fields).await;
    s.librechat.grant(&biller, doc! { "id": s.user.id }).await;
    let stranger = s.librechat.user().await;
    s.librechat.agent(&stranger, "Theirs").await;
    let turn = s.begun().await;
    let list = async |wiring, query| call(&s.baton, wiring, &turn, "list_agents", query).await;

    let all = list(Wiring::Request, json!({})).await;
    assert_eq!(all.offers(), ["Agent B", "Agent C", "Biller"]);
    assert_eq!(all.json["agents"][0]["id"], s.b.id.as_str());
    assert!(
        all.json["agents"][2]["description"]
            .as_str()
            .unwrap()
            .ends_with('…')
    );
    // Who is active is not known here.
    let all = list(Wiring::User, json!({ "query": "" })).await;
    assert_eq!(all.offers(), ["Agent A", "Agent B", "Agent C", "Biller"]);
    for (query, found) in [
        ("INVOICE", &["Biller"][..]),
        ("agent c", &["Agent C"]),
        ("x", &[]),
    ] {
        let some = list(Wiring::Request, json!({ "query": query })).await;
        assert_eq!(some.offers(), found, "{query}");
        assert!(!some.is_error);
    }
    turn.finish(&[parts::text("Those")]).await;
}
