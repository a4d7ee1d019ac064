//! The history of a conversation's agent.

use serde_json::{Value, json};

use super::Scene;
use crate::harness::parts;

fn ids(page: &Value) -> Vec<String> {
    let switches = page["switches"].as_array().unwrap();
    let id = |switch: &Value| switch["id"].as_str().unwrap().to_owned();
    switches.iter().map(id).collect()
}

#[tokio::test]
async fn it_tells_what_happened_newest_first() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    assert_eq!(
        s.history(&turn, "").await.json(),
        json!({ "success": true, "switches": [] })
    );
    s.chosen(&turn, &s.b).await;
    let next = turn.next(&s.b);
    next.save_user_message().await;
    next.start().await;
    let call = parts::switch(&s.c.id, &turn.conversation);
    next.finish(&[call]).await;
    s.closed(&next, "tool").await;
    let page = s.history(&turn, "").await.json();
    let [newer, older] = &page["switches"].as_array().unwrap()[..] else {
        panic!("{page:#}");
    };
    assert_eq!(newer["origin"], "tool");
    assert_eq!(newer["status"], "settled");
    assert_eq!(newer["from"], json!({ "id": s.b.id, "name": "B" }));
    assert_eq!(newer["to"], json!({ "id": s.c.id, "name": "C" }));
    assert_eq!(older["origin"], "api");
    assert_eq!(older["from"], json!({ "id": s.a.id, "name": "A" }));
    assert_eq!(older["to"]["name"], "B");
    for time in ["created_at", "applied_at", "closed_at"] {
        assert!(older[time].as_str().unwrap().ends_with('Z'), "{older:#}");
    }
    assert!(page.get("next_cursor").is_none());
}

#[tokio::test]
async fn it_is_read_page_by_page() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    for agent in [&s.b, &s.c, &s.a, &s.b, &s.c] {
        s.chosen(&turn, agent).await;
    }
    let all = ids(&s.history(&turn, "?limit=100").await.json());
    assert_eq!(all.len(), 5);
    let mut read = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = s.history(&turn, &query).await.json();
        read.extend(ids(&page));
        let Some(cursor) = page.get("next_cursor") else {
            break;
        };
        query = format!("?limit=2&cursor={}", cursor.as_str().unwrap());
    }
    assert_eq!(read, all);
    let exact = s.history(&turn, "?limit=5").await.json();
    assert!(exact.get("next_cursor").is_none());
}

#[tokio::test]
async fn a_query_that_cannot_be_meant_is_400_and_names_the_field() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    for (query, field) in [
        ("?limit=0", "limit"),
        ("?limit=101", "limit"),
        ("?limit=ten", "limit"),
        ("?limit=%31", "limit"),
        ("?cursor=1", "cursor"),
        ("?cursor[$gt]=&cursor=x", "cursor"),
    ] {
        let answer = s.history(&turn, query).await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.error().starts_with(&format!("{field}: ")), "{query}");
    }
}

#[tokio::test]
async fn the_name_of_a_refused_target_stays_hidden() {
    let s = Scene::new().await;
    let other = s.librechat.user().await;
    let hidden = s.librechat.agent(&other, "Secret project").await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    turn.start().await;
    turn.finish(&[parts::switch(&hidden.id, &turn.conversation)])
        .await;
    s.closed(&turn, "tool").await;
    let answer = s.history(&turn, "").await;
    let switch = &answer.json()["switches"][0];
    assert_eq!(switch["status"], "rejected");
    assert_eq!(switch["to"], json!({ "id": hidden.id, "name": null }));
    assert!(!answer.text.contains("Secret project"));
}
