//! What operators and their machines ask.

use super::Scene;
use crate::harness::{Baton, Request, eventually, parts};

async fn numbers(s: &Scene) -> String {
    let request = Request::new("GET", "/metrics").token("for the scraper");
    let answer = s.send(request).await;
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    answer.text
}

fn value(text: &str, name: &str) -> f64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}"))
        .parse()
        .unwrap()
}

#[tokio::test]
async fn numbers_are_for_those_who_have_the_token() {
    let s = Scene::new().await;
    for request in [
        Request::new("GET", "/metrics"),
        Request::new("GET", "/metrics").token("for the scrapes"),
        Request::new("GET", "/metrics").token(&s.token),
        Request::new("GET", "/metrics").header("Authorization", "for the scraper"),
    ] {
        let answer = s.send(request).await;
        assert_eq!(answer.status, 401);
        answer.error();
    }
    numbers(&s).await;
    let closed = Baton::start_with(&s.db, &[]).await;
    let request = Request::new("GET", "/metrics").token("");
    assert_eq!(request.send(closed.address()).await.status, 401);
}

#[tokio::test]
async fn what_happens_is_counted() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    s.chosen(&turn, &s.b).await;
    let next = turn.next(&s.b);
    next.save_user_message().await;
    next.start().await;
    next.save_response(&[parts::switch(&s.c.id, &turn.conversation)])
        .await;
    s.names(&next, &s.c).await;
    eventually("the open switch shows", async || {
        (value(&numbers(&s).await, "baton_open_switches") >= 1.0).then_some(())
    })
    .await;
    next.end().await;
    s.names(&next, &s.c).await;
    next.touch_user_message().await;
    s.closed(&next, "tool").await;
    let text = eventually("all is counted", async || {
        let text = numbers(&s).await;
        text.contains("origin=\"tool\",outcome=\"settled\"} 1")
            .then_some(text)
    })
    .await;
    assert!(text.contains("baton_switches_total{origin=\"api\",outcome=\"settled\"} 1\n"));
    assert!(value(&text, "baton_repairs_total") >= 1.0);
    assert!(value(&text, "baton_repair_seconds_count") >= 1.0);
    assert!(text.contains("baton_events_total{result=\"taken\"}"));
    let route = "baton_http_requests_total{route=\"/api/convos/{conversation}\",method=\"PATCH\",status=\"200\"} 1\n";
    assert!(text.contains(route), "{text}");
    assert!(value(&text, "baton_stream_lag_seconds") < 5.0);
    assert!(value(&text, "baton_saved_position_age_seconds") < 30.0);
    assert!(!text.contains(&turn.conversation) && !text.contains(&s.user.hex()));
}

#[tokio::test]
async fn paths_that_are_nobodys_do_not_become_labels() {
    let s = Scene::new().await;
    s.send(Request::new("GET", "/some/invention")).await;
    s.send(Request::new("BREW", "/livez")).await;
    let text = numbers(&s).await;
    assert!(
        text.contains("{route=\"none\",method=\"GET\",status=\"404\"} 1\n"),
        "{text}"
    );
    assert!(
        text.contains("{route=\"/livez\",method=\"other\",status=\"405\"} 1\n"),
        "{text}"
    );
    assert!(!text.contains("invention") && !text.contains("BREW"));
}
