//! A choice at rest: applied and settled at once, by its owner alone.

use mongodb::bson::doc;
use serde_json::json;

use super::{Scene, text};
use crate::harness::{Request, Turn, uuid};

#[tokio::test]
async fn a_choice_at_rest_is_in_force_and_settled_at_once() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    let before = turn.document(&s.db).await.unwrap();
    s.chosen(&turn, &s.b).await;
    let mut after = turn.document(&s.db).await.unwrap();
    assert_eq!(text(&after, "agent_id"), s.b.id.as_str());
    after.insert("agent_id", s.a.id.as_str());
    assert_eq!(after, before, "nothing but the agent is changed");
    let records = s.records(&turn).await;
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!(text(record, "origin"), "api");
    assert_eq!(text(record, "status"), "settled");
    assert_eq!(text(record, "from_agent"), s.a.id.as_str());
    assert_eq!(text(record, "to_agent"), s.b.id.as_str());
    assert!(record.get_datetime("applied_at").is_ok(), "{record:#?}");
    assert!(record.get_datetime("closed_at").is_ok());
}

#[tokio::test]
async fn the_turn_after_a_choice_is_the_users_own() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    s.chosen(&turn, &s.b).await;
    let next = turn.next(&s.c);
    next.run_plain().await;
    s.names(&next, &s.c).await;
    assert_eq!(s.records(&turn).await.len(), 1);
}

#[tokio::test]
async fn choosing_what_is_chosen_changes_nothing() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    s.chosen(&turn, &s.a).await;
    assert!(s.records(&turn).await.is_empty());
    s.chosen(&turn, &s.b).await;
    s.chosen(&turn, &s.b).await;
    assert_eq!(s.records(&turn).await.len(), 1);
}

#[tokio::test]
async fn the_same_choice_many_times_at_once_is_one() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    let all = (0..50).map(|_| s.choose(&turn, &s.b));
    for answer in futures::future::join_all(all).await {
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    assert_eq!(s.records(&turn).await.len(), 1);
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn somebody_elses_conversation_is_as_one_that_does_not_exist() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    let nowhere = Turn::first(&s.librechat, &s.user, &s.a);
    let missing = s.choose(&nowhere, &s.b).await;
    assert_eq!(missing.status, 404);
    let admin = s.librechat.user_with(doc! { "role": "ADMIN" }).await;
    for stranger in [s.librechat.user().await, admin] {
        let token = s.librechat.token(&stranger).await;
        let path = format!("/api/convos/{}", turn.conversation);
        let choice = Request::new("PATCH", &path)
            .token(&token)
            .json(&json!({ "agent_id": s.b.id }));
        let answer = s.send(choice).await;
        assert_eq!((answer.status, &answer.text), (404, &missing.text));
        let history = Request::new("GET", &format!("{path}/switches")).token(&token);
        let answer = s.send(history).await;
        assert_eq!((answer.status, &answer.text), (404, &missing.text));
    }
    s.names(&turn, &s.a).await;
}

#[tokio::test]
async fn a_conversation_of_another_tenant_is_not_the_users() {
    let s = Scene::new().await;
    let acme = s.librechat.in_tenant("acme");
    let user = acme.user().await;
    let token = acme.token(&user).await;
    let agent = acme.agent(&user, "Acme").await;
    let turn = Turn::first(&acme, &user, &agent);
    turn.run_plain().await;
    let ask = async |agent: &str| {
        let path = format!("/api/convos/{}", turn.conversation);
        let body = json!({ "agent_id": agent });
        s.send(Request::new("PATCH", &path).token(&token).json(&body))
            .await
    };
    assert_eq!(ask(&agent.id).await.status, 200);
    assert_eq!(ask(&s.b.id).await.status, 422, "an agent of no tenant");
    let other = doc! { "$set": { "tenantId": "other" } };
    let key = doc! { "conversationId": &turn.conversation };
    s.db.conversations().update_one(key, other).await.unwrap();
    assert_eq!(ask(&agent.id).await.status, 404);
}

#[tokio::test]
async fn an_agent_that_the_user_may_not_view_is_as_one_that_does_not_exist() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    let other = s.librechat.user().await;
    let hidden = s.librechat.agent(&other, "Hidden").await;
    let mut missing = hidden.clone();
    missing.id = format!("agent_{}", uuid());
    let [hidden, missing] = [
        s.choose(&turn, &hidden).await,
        s.choose(&turn, &missing).await,
    ];
    assert_eq!(hidden.status, 422);
    assert_eq!((hidden.status, hidden.text), (missing.status, missing.text));
    assert!(s.records(&turn).await.is_empty());
}

#[tokio::test]
async fn the_operators_list_holds_for_the_user_too() {
    let s = Scene::new().await;
    let allow = format!("{}={}", s.a.id, s.b.id);
    let s = Scene {
        baton: limited(&s, &allow).await,
        ..s
    };
    let turn = s.conversation().await;
    let answer = s.choose(&turn, &s.c).await;
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(answer.error().contains("operator"));
    s.chosen(&turn, &s.b).await;
    s.chosen(&turn, &s.b).await;
    assert_eq!(
        s.choose(&turn, &s.a).await.status,
        403,
        "from B nothing is allowed"
    );
    s.names(&turn, &s.b).await;
}

async fn limited(s: &Scene, allow: &str) -> crate::harness::Baton {
    let mut settings = super::SETTINGS.to_vec();
    settings.push(("BATON__SWITCH__ALLOW", allow));
    crate::harness::Baton::start_with(&s.db, &settings).await
}

#[tokio::test]
async fn what_is_left_alone_is_left_alone() {
    let s = Scene::new().await;
    for fields in [
        doc! { "endpoint": "openAI" },
        doc! { "subagentThread": { "parent": "x" } },
    ] {
        let turn = s.conversation().await;
        let key = doc! { "conversationId": &turn.conversation };
        let set = doc! { "$set": fields };
        s.db.conversations().update_one(key, set).await.unwrap();
        let answer = s.choose(&turn, &s.b).await;
        assert_eq!(answer.status, 422);
        assert_eq!(answer.error(), "the conversation is not one with an agent");
        assert!(s.records(&turn).await.is_empty());
    }
}

#[tokio::test]
async fn a_conversation_begun_from_a_spec_loses_it() {
    let s = Scene::new().await;
    let mut turn = Turn::first(&s.librechat, &s.user, &s.a);
    turn.preset = doc! { "spec": "sales", "iconURL": "/sales.png" };
    turn.run_plain().await;
    s.chosen(&turn, &s.b).await;
    let document = turn.document(&s.db).await.unwrap();
    assert_eq!(document.get("spec"), None);
    assert_eq!(document.get("iconURL"), None);
}

#[tokio::test]
async fn the_same_routes_are_under_the_base_path() {
    let s = Scene::with(&[("BATON__HTTP__BASE_PATH", "/baton/v1/")]).await;
    let turn = s.conversation().await;
    let path = format!("/baton/v1/api/convos/{}", turn.conversation);
    let body = json!({ "agent_id": s.b.id });
    let choice = Request::new("PATCH", &path).token(&s.token).json(&body);
    assert_eq!(s.send(choice).await.status, 200);
    s.chosen(&turn, &s.c).await;
    let history = Request::new("GET", &format!("{path}/switches")).token(&s.token);
    let answer = s.send(history).await;
    assert_eq!(answer.json()["switches"].as_array().unwrap().len(), 2);
}
