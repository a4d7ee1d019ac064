//! What is told there, as it happens.

use baton::switch::record::Status;
use mongodb::bson::{DateTime, doc};
use serde_json::Value;

use super::Scene;
use crate::harness::{Mongod, Request, Topology};

fn ids(page: &Value) -> Vec<&str> {
    let switches = page["switches"].as_array().unwrap();
    switches
        .iter()
        .map(|switch| switch["conversation"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_switch_shows_as_it_happens() {
    let s = Scene::new().await;
    let mut events = s.events(&s.cookie().await, "").await;
    let pulse = events.until("pulse", |_| true).await;
    assert_eq!(pulse["ready"], true, "{pulse}");
    assert!(pulse["lag"].as_f64().unwrap() < 5.0, "{pulse}");
    let none = events.until("switches", |_| true).await;
    assert_eq!(none, serde_json::json!({ "switches": [], "more": false }));

    let turn = s.switched(&s.b).await;
    let open = |page: &Value| page["switches"][0]["status"] == "open";
    events.until("switches", open).await;
    turn.touch_user_message().await;
    let settled = |page: &Value| page["switches"][0]["status"] == "settled";
    let page = events.until("switches", settled).await;
    let switch = &page["switches"][0];
    assert_eq!(switch["from"]["name"], "A");
    assert_eq!(switch["to"]["name"], "B");
    assert_eq!(switch["repairs"], 1);
    let time = |value: &Value| value.as_i64().unwrap_or_else(|| panic!("{page}"));
    let overwrite = &switch["overwrites"][0];
    assert!(time(&overwrite["at"]) > 0);
    assert!(time(&switch["learned"]) <= time(&switch["applied"]));
    assert!(time(&switch["applied"]) <= time(&overwrite["put_back"]));
    assert!(time(&overwrite["put_back"]) <= time(&switch["closed"]));

    let counted = |overview: &Value| {
        let parts = overview["parts"].as_array().unwrap();
        assert_eq!(parts.len(), 24);
        parts[22..].iter().any(|part| part["settled"] == 1)
    };
    let overview = events.until("overview", counted).await;
    let repairs = |part: &Value| part["repairs"].as_i64().unwrap();
    let parts = overview["parts"].as_array().unwrap();
    assert_eq!(parts.iter().map(repairs).sum::<i64>(), 1, "{overview}");
    assert_eq!(overview["flows"][0]["from"]["id"], s.a.id);
    assert_eq!(overview["flows"][0]["switches"], 1);
    assert_eq!(overview["open"], 0);
}

#[tokio::test]
async fn it_says_who_answered_the_message_in_which_the_switch_was_made() {
    let s = Scene::new().await;
    let turn = s.settled(&s.b).await;
    let answer = doc! {
        "way": "splice", "stage": "begun", "by": &s.b.id, "message_id": "x",
        "claimed_at": DateTime::now(),
    };
    let record = doc! { "message_id": &turn.response };
    let set = doc! { "$set": { "answer": answer } };
    s.db.switches().update_one(record, set).await.unwrap();
    let mut events = s.events(&s.cookie().await, "").await;
    let page = events.until("switches", |_| true).await;
    let answer = &page["switches"][0]["answer"];
    assert_eq!(answer["way"], "splice");
    assert_eq!(answer["stage"], "begun");
    assert_eq!(answer["response"], turn.response.as_str());
    assert_eq!(answer["message"], "x");
    assert!(answer["began"].is_i64(), "{page}");
}

#[tokio::test]
async fn only_what_is_asked_for_is_shown() {
    let s = Scene::new().await;
    let cookie = s.cookie().await;
    let settled = s.settled(&s.b).await;
    let open = s.switched(&s.b).await;
    s.is(&open, Status::Open).await;
    let refused = s.refused("no reason").await;
    let all = [&refused, &open, &settled].map(|turn| turn.conversation.as_str());
    for (query, wanted) in [
        (String::new(), &all[..]),
        ("outcome=open".to_owned(), &all[1..2]),
        ("outcome=rejected".to_owned(), &all[..1]),
        (format!("conversation={}", settled.conversation), &all[2..]),
        (format!("user={}", s.user.hex()), &all[..]),
        (format!("user={}&outcome=settled", s.user.hex()), &all[2..]),
        ("user=nobody".to_owned(), &[]),
        (format!("agent={}", s.b.id), &all[1..]),
        ("agent=b".to_owned(), &all[1..]),
        ("agent=agent_nobody".to_owned(), &all[..1]),
        ("agent=Nobody".to_owned(), &[]),
        ("user%5B%24ne%5D=x&outcome=%24ne".to_owned(), &all[..]),
    ] {
        let mut events = s.events(&cookie, &query).await;
        let page = events.until("switches", |_| true).await;
        assert_eq!(ids(&page), wanted, "{query}: {page}");
        let path = format!("/ops/switches?{query}");
        let request = Request::new("GET", &path).header("Cookie", &cookie);
        assert_eq!(s.send(request).await.json(), page, "{query}");
    }
}

#[tokio::test]
async fn while_mongodb_is_away_the_page_says_so_and_goes_on_after() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::with(&mongod, ["A", "B"]).await;
    s.settled(&s.b).await;
    let mut events = s.events(&s.cookie().await, "").await;
    events.until("switches", |_| true).await;
    mongod.kill();
    events.until("trouble", |_| true).await;
    let pulse = events.until("pulse", |pulse| pulse["ready"] == false).await;
    let wrong = |check: &Value| check["ok"] == false && check["detail"].is_string();
    assert!(
        pulse["checks"].as_array().unwrap().iter().any(wrong),
        "{pulse}"
    );
    mongod.restart().await;
    let page = events.until("switches", |_| true).await;
    assert_eq!(ids(&page).len(), 1);
    events.until("pulse", |pulse| pulse["ready"] == true).await;
}

#[tokio::test]
async fn pages_that_are_open_do_not_hold_up_the_end() {
    let mut s = Scene::new().await;
    let mut events = s.events(&s.cookie().await, "").await;
    events.until("switches", |_| true).await;
    assert_eq!(s.baton.stop().await.code(), Some(0));
    while events.next().await.is_some() {}
}
