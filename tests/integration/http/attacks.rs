//! What an attacker would try.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Scene, claims, text};
use crate::harness::{Answer, JWT_SECRET, Request, User, holds};

/// A token of any algorithm, made by the library that LibreChat has.
async fn forged(s: &Scene, user: &User, algorithm: &str, secret: &str) -> String {
    let claims = serde_json::from_value(claims(user, json!({}))).unwrap();
    s.librechat.forged(claims, algorithm, secret).await
}

#[tokio::test]
async fn algorithms_cannot_be_confused() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    let ask = async |token: &str| {
        let path = format!("/api/convos/{}", turn.conversation);
        let body = json!({ "agent_id": s.b.id });
        s.send(Request::new("PATCH", &path).token(token).json(&body))
            .await
    };
    for algorithm in ["none", "HS384", "HS512"] {
        let token = forged(&s, &s.user, algorithm, JWT_SECRET).await;
        let answer = ask(&token).await;
        assert_eq!(answer.status, 401, "{algorithm}: {answer:?}");
        assert_eq!(answer.error(), "the token is not valid");
    }
    let good = forged(&s, &s.user, "HS256", JWT_SECRET).await;
    let [head, body, signature] = *good.split('.').collect::<Vec<_>>() else {
        panic!("three parts");
    };
    let other = s.librechat.user().await;
    let others = forged(&s, &other, "HS256", "guessed").await;
    let their_body = others.split('.').nth(1).unwrap();
    // {"alg":"RS256","typ":"JWT"}, {"alg":"none"}, {"alg":"NONE"}, {"alg":"hs256"}
    let rs256 = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9";
    for token in [
        format!("{rs256}.{body}.{signature}"),
        format!("eyJhbGciOiJub25lIn0.{body}."),
        format!("eyJhbGciOiJub25lIn0.{body}"),
        format!("eyJhbGciOiJOT05FIn0.{body}."),
        format!("eyJhbGciOiJoczI1NiJ9.{body}.{signature}"),
        format!("{head}.{their_body}.{signature}"),
        format!("{head}.{body}."),
        format!("{head}.{body}"),
        format!("{head}.{body}.{signature}A"),
        format!("{head}.{body}.{signature}.{signature}"),
        format!("{head}..{signature}"),
        "..".to_owned(),
        others,
    ] {
        let answer = ask(&token).await;
        assert_eq!(answer.status, 401, "{token}: {answer:?}");
        assert_eq!(answer.error(), "the token is not valid", "{token}");
    }
    assert_eq!(ask(&good).await.status, 200);
}

#[tokio::test]
async fn a_path_names_one_conversation_or_none() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    let id = &turn.conversation;
    for path in [
        format!("/api/convos/..%2f{id}"),
        format!("/api/convos/%2e%2e/{id}"),
        format!("/api/convos/{id}%00"),
        format!("/api/convos/{id}%20"),
        format!("/api/convos/{}", id.to_uppercase()),
        format!("/api/convos/{id}/"),
        format!("/api/convos//{id}"),
        format!("/api/convos/{id}/../{id}"),
        format!("/API/convos/{id}"),
        "/api/convos/%7B%22%24ne%22%3Anull%7D".to_owned(),
        "/api/convos/%24ne".to_owned(),
        "/api/convos/.*".to_owned(),
        "/api/convos/%ff".to_owned(),
        "/api/convos/%".to_owned(),
        "/api/convos/[$ne]=".to_owned(),
        format!("/api/convos/{}", "a".repeat(5000)),
    ] {
        let body = json!({ "agent_id": s.b.id });
        let request = Request::new("PATCH", &path).token(&s.token).json(&body);
        let answer = s.send(request).await;
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        answer.error();
    }
    assert_eq!(turn.agent_now(&s.db).await.as_deref(), Some(&*s.a.id));
    let query = s.patch(&format!("{id}?agent_id=agent_x&user=other"), &s.b.id);
    assert_eq!(
        s.send(query).await.status,
        200,
        "a query is nobody's concern"
    );
}

#[tokio::test]
async fn an_agents_id_is_a_text_and_nothing_else() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    for id in [
        "$ne",
        "agent_*",
        "agent_.*",
        "ephemeral",
        "Agent_x",
        "agent_\u{0}",
        "agent_\u{202e}",
        "__proto__",
        "agent_'; drop",
    ] {
        let answer = s.send(s.patch(&turn.conversation, id)).await;
        assert_eq!(answer.status, 422, "{id:?}: {answer:?}");
        assert_eq!(
            answer.error(),
            "agent_id: no such agent, or none that you may use"
        );
    }
    assert!(s.records(&turn).await.is_empty());
}

#[tokio::test]
async fn a_client_that_sends_a_byte_a_second_holds_up_nobody() {
    let s = Scene::new().await;
    let turn = s.conversation().await;
    let request = s.patch(&turn.conversation, &s.b.id);
    let head = request.head(s.baton.address());
    let slow = async {
        let mut crowd = Vec::new();
        for _ in 0..300 {
            let mut stream = TcpStream::connect(s.baton.address()).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            crowd.push(stream);
        }
        let started = Instant::now();
        let mut first = crowd.pop().unwrap();
        let answer = loop {
            // A byte of a body that never gets to its end.
            let _ = first.write_all(b" ").await;
            let wait = Duration::from_secs(1);
            if let Ok(answer) = tokio::time::timeout(wait, Answer::read(&mut first)).await {
                break answer.unwrap();
            }
            assert!(started.elapsed() < Duration::from_secs(25), "never told");
        };
        assert_eq!(answer.status, 408, "{answer:?}");
        answer.error();
    };
    let others = async {
        for agent in [&s.b, &s.a].into_iter().cycle().take(20) {
            s.chosen(&turn, agent).await;
        }
    };
    tokio::pin!(slow);
    tokio::select! {
        () = &mut slow => panic!("the others were held up"),
        () = others => {}
    }
    slow.await;
}

#[tokio::test]
async fn a_thousand_requests_at_once_are_all_answered() {
    let s = Scene::with(&[("BATON__HTTP__RATE_LIMIT", "off")]).await;
    let mut turns = Vec::new();
    for _ in 0..20 {
        turns.push(s.conversation().await);
    }
    let agents = [&s.b, &s.c, &s.a];
    let all = (0..1000).map(async |n: usize| {
        let started = Instant::now();
        let answer = s.choose(&turns[n % turns.len()], agents[n / turns.len() % 3]);
        let answer = answer.await;
        // What cannot be done in time is refused, and nothing is left unanswered. The rest is the
        // wait for a turn, and for the processor that the clients share with the server.
        assert!(started.elapsed() < Duration::from_secs(20), "{answer:?}");
        answer
    });
    let mut good = 0;
    for answer in futures::future::join_all(all).await {
        if answer.status == 200 {
            good += 1;
        } else {
            assert_eq!(answer.status, 503, "{answer:?}");
            answer.error();
        }
    }
    assert!(good > 0);
    for turn in &turns {
        holds("nothing is left open", async || {
            let records = s.records(turn).await;
            records
                .iter()
                .all(|record| text(record, "status") != "open")
        })
        .await;
    }
    s.chosen(&turns[0], &s.b).await;
    s.names(&turns[0], &s.b).await;
}
