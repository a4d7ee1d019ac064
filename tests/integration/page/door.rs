//! Who gets in.

use super::{Scene, TOKEN};
use crate::harness::{Baton, Request};

#[tokio::test]
async fn there_is_no_page_without_a_token() {
    let s = Scene::new().await;
    let closed = Baton::start_with(&s.db, &[]).await;
    for path in ["/ops", "/ops/login", "/ops/events", "/ops/page.js"] {
        let answer = Request::new("GET", path).send(closed.address()).await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[tokio::test]
async fn nothing_is_shown_without_a_session() {
    let s = Scene::new().await;
    let turn = s.settled(&s.b).await;
    let forged = "baton_ops=99999999999.00";
    for path in ["/ops/events", "/ops/switches", "/ops/session"] {
        for cookie in ["", forged, "other=1"] {
            let answer = s.send(Request::new("GET", path).header("Cookie", cookie));
            let answer = answer.await;
            assert_eq!(answer.status, 403, "{path} {cookie}");
            assert!(!answer.text.contains(&turn.conversation));
        }
        // The token itself is no session: it does not belong into every request.
        let answer = s.send(Request::new("GET", path).token(TOKEN)).await;
        assert_eq!(answer.status, 403, "{path}");
    }
    let answer = s.send(Request::new("GET", "/ops?outcome=open")).await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), Some("ops/login?outcome=open"));
    let answer = s.send(Request::new("GET", "/ops/login")).await;
    assert!(answer.text.contains("<form"), "{answer:?}");
}

#[tokio::test]
async fn the_token_opens_and_the_way_out_closes() {
    let s = Scene::new().await;
    let answer = s.login(TOKEN).await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.header("location"), Some("../ops"));
    let cookie = answer.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Max-Age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains("Path") && !cookie.contains(TOKEN));
    let session = cookie.split(';').next().unwrap();
    let page = s
        .send(Request::new("GET", "/ops").header("Cookie", session))
        .await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("<main"), "{page:?}");
    let out = s.send(Request::new("POST", "/ops/logout")).await;
    assert_eq!(out.status, 303);
    let gone = out.header("set-cookie").unwrap();
    assert!(gone.starts_with("baton_ops=; Max-Age=0;"), "{gone}");
}

#[tokio::test]
async fn behind_https_the_cookie_stays_there() {
    let s = Scene::new().await;
    let request = Request::new("POST", "/ops/login?outcome=open")
        .header("Content-Type", "application/x-www-form-urlencoded")
        .header("X-Forwarded-Proto", "https")
        .body(format!("token={}", TOKEN.replace(' ', "+")));
    let answer = s.send(request).await;
    assert_eq!(answer.header("location"), Some("../ops?outcome=open"));
    assert!(answer.header("set-cookie").unwrap().ends_with("; Secure"));
}

#[tokio::test]
async fn wrong_tokens_are_told_so_and_counted() {
    let s = Scene::new().await;
    for wrong in ["", "x", &TOKEN[1..]] {
        let answer = s.login(wrong).await;
        assert_eq!(answer.status, 403, "{wrong}");
        assert!(answer.text.contains("This is not the token."), "{answer:?}");
        assert_eq!(answer.header("set-cookie"), None);
    }
    let hostile = "<script>alert(1)</script>";
    assert!(!s.login(hostile).await.text.contains(hostile));
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(s.login("guess").await.status);
    }
    assert!(statuses.contains(&429), "{statuses:?}");
    // Not even with the token, until the time is over.
    let answer = s.login(TOKEN).await;
    assert_eq!(answer.status, 429);
    let seconds: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    assert!(answer.text.contains("Too many tries"), "{answer:?}");
}

#[tokio::test]
async fn a_session_is_good_at_every_instance_with_the_same_token() {
    let s = Scene::new().await;
    let cookie = s.cookie().await;
    let session = |baton: &Baton| {
        let request = Request::new("GET", "/ops/session").header("Cookie", &cookie);
        let address = baton.address();
        async move { request.send(address).await.status }
    };
    let same = Baton::start_with(&s.db, &[("BATON__OPS__TOKEN", TOKEN)]).await;
    assert_eq!(session(&same).await, 204);
    let other = "another token, of the same length";
    let other = Baton::start_with(&s.db, &[("BATON__OPS__TOKEN", other)]).await;
    assert_eq!(session(&other).await, 403);
}

#[tokio::test]
async fn every_answer_says_what_the_page_may_do() {
    let s = Scene::new().await;
    for path in [
        "/ops",
        "/ops/login",
        "/ops/page.css",
        "/ops/session",
        "/ops/no.js",
    ] {
        let answer = s.send(Request::new("GET", path)).await;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"));
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(answer.header("cache-control").is_some(), "{path}");
    }
    let file = s.send(Request::new("GET", "/ops/page.js")).await;
    let kind = file.header("content-type").unwrap();
    assert_eq!(kind, "text/javascript; charset=utf-8");
    let known =
        Request::new("GET", "/ops/page.js").header("If-None-Match", file.header("etag").unwrap());
    let again = s.send(known).await;
    assert_eq!((again.status, again.text.as_str()), (304, ""));
}
