//! The target answers in the same stream, and both answers become one message.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use baton::switch::answer::{Stage as Come, Way};
use baton::switch::record::Status;
use http_body_util::BodyExt;
use mongodb::bson::doc;
use serde_json::{Value, json};

use super::stage::{FIRST, SECOND, SPLICE, Stage, kinds};
use super::{data, last};
use crate::harness::{Baton, free_address, holds, parts};

const JOINED: [&str; 5] = ["text", "tool_call", "text", "agent_update", "text"];

#[tokio::test]
async fn both_answers_are_one_stream_and_one_message() {
    for recording in ["s-m", "s-a2", "new-a2", "v87-a2"] {
        let t = Stage::of(recording).await;
        let asked = t.asked().await;
        let path = t.stream(FIRST, "");
        let (told, ()) = tokio::join!(t.s.get(&path), t.answers([parts::text("Paid.")]));
        let told: Vec<Value> = data(&told.text());
        // All that A said but its last event, then B's, counted from where A ended.
        let first = t.recording.events("up");
        let (_, before) = first.split_last().unwrap();
        assert_eq!(told[..before.len()].iter().collect::<Vec<_>>(), before);
        let resumed = &told[before.len()]["resumeState"];
        assert_eq!(
            kinds(&resumed["aggregatedContent"]),
            JOINED[..4],
            "{recording}"
        );
        assert_eq!(resumed["responseMessageId"], t.turn.response.as_str());
        assert_eq!(resumed["userMessage"]["text"], asked.as_str());
        let steps: Vec<&Value> = told[before.len()..]
            .iter()
            .filter(|said| said["event"] == "on_run_step")
            .map(|said| &said["data"])
            .collect();
        assert_eq!(steps[0]["index"], 4);
        assert_eq!(steps[0]["runId"], t.turn.response.as_str());
        assert!(
            told.iter()
                .skip(1)
                .all(|said| said.get("created").is_none())
        );
        let end = told.last().unwrap();
        assert_eq!(end["final"], true);
        assert_eq!(end["conversation"]["agent_id"], t.s.b.id.as_str());
        assert_eq!(end["requestMessage"]["text"], asked.as_str());
        assert_eq!(
            end["responseMessage"]["messageId"],
            t.turn.response.as_str()
        );
        assert_eq!(kinds(&end["responseMessage"]["content"]), JOINED);
        let ids = end["runMessages"].as_array().unwrap().iter();
        let ids: Vec<&str> = ids.filter_map(|it| it["messageId"].as_str()).collect();
        assert!(ids.contains(&t.turn.response.as_str()));
        let [assigned] = &t.assigned()[..] else {
            panic!("{:?}", t.assigned());
        };
        let answer = assigned["responseMessageId"].as_str().unwrap();
        assert!(!ids.contains(&answer));
        assert_eq!(t.kinds().await, JOINED);
        let stored = t.message(&t.turn.response).await.unwrap();
        assert_eq!(stored["content"][4]["agentId"], t.s.b.id.as_str());
        assert_eq!(stored["content"][4]["text"], "Paid.");
        assert_eq!(stored["unfinished"], false);
        t.is_joined(answer).await;
        assert_eq!(t.asked().await, asked);
        assert_eq!(t.turn.agent_now(&t.s.db).await, Some(t.s.b.id.clone()));
        let record = t.record(|record| record.delivered_at.is_some()).await;
        assert_eq!(record.status, Status::Settled);
        assert_eq!(record.answered_by().unwrap().as_str(), t.s.b.id);
        assert_eq!(record.answer_message().unwrap().as_str(), answer);
        let answer = record.answer.unwrap();
        assert_eq!((answer.way, answer.stage), (Way::Splice, Come::Done));
    }
}

#[tokio::test]
async fn the_target_gets_the_message_and_is_told_who_hands_over() {
    let t = Stage::of("s-m").await;
    let asked = t.asked().await;
    let path = t.stream(FIRST, "");
    let request = Request::get(t.s.url(&path))
        .header("authorization", "Bearer t")
        .header("user-agent", "a browser");
    let stream = t.s.send(request.body(Body::empty()).unwrap()).await;
    t.answers([parts::text("Paid.")]).await;
    stream.into_body().collect().await.unwrap();
    let body = &t.assigned()[0];
    assert_eq!(body["agent_id"], t.s.b.id.as_str());
    assert_eq!(body["endpoint"], "agents");
    assert_eq!(body["conversationId"], t.turn.conversation.as_str());
    assert_eq!(body["isRegenerate"], true);
    assert_eq!(
        body["overrideParentMessageId"],
        t.turn.user_message.as_str()
    );
    let untouched = format!("{}__1", t.turn.user_message);
    assert_eq!(body["overrideUserMessageId"], untouched.as_str());
    let text = body["text"].as_str().unwrap();
    let note = text.strip_prefix(&asked).unwrap();
    assert!(note.contains("transferred to you from \"A\""), "{note}");
}

#[tokio::test]
async fn tabs_and_instances_have_it_answered_once() {
    let t = Stage::of("s-m").await;
    let (url, ops) = (t.url(), free_address().to_string());
    let other = Baton::start_with(
        &t.s.db,
        &[
            ("BATON__SWITCH__SERVERS", "switcher"),
            ("BATON__GATEWAY__ENABLED", "true"),
            ("BATON__LIBRECHAT__URL", &url),
            ("BATON__OPS__LISTEN", &ops),
            SPLICE,
        ],
    )
    .await;
    let path = t.stream(FIRST, "");
    let there = format!("http://{}{path}", other.address());
    let there = Request::get(there).body(Body::empty()).unwrap();
    let (one, two, three, ()) = tokio::join!(
        t.s.get(&path),
        t.s.get(&path),
        t.s.ask(there),
        t.answers([parts::text("Paid.")]),
    );
    for told in [one, two, three] {
        let end = last(&told.text());
        assert_eq!(end["conversation"]["agent_id"], t.s.b.id.as_str());
        assert_eq!(kinds(&end["responseMessage"]["content"]), JOINED);
    }
    assert_eq!(t.assigned().len(), 1);
    assert_eq!(t.kinds().await, JOINED);
}

#[tokio::test]
async fn stop_stops_the_target_and_what_it_said_stays() {
    for recording in ["stop-m", "v87-a2"] {
        let t = Stage::of(recording).await;
        let asked = t.asked().await;
        let path = t.stream(FIRST, "");
        let stop = async {
            t.answer_id().await;
            let mut body = json!({ "conversationId": t.turn.conversation });
            if recording == "stop-m" {
                body["generationCreatedAt"] = json!(FIRST);
            }
            t.s.post("/api/agents/chat/abort", &body).await
        };
        let (told, _, ()) = tokio::join!(t.s.get(&path), stop, t.is_stopped([parts::text("Pai")]));
        if recording == "stop-m" {
            assert_eq!(t.came("/abort")["generationCreatedAt"], SECOND);
        }
        let end = last(&told.text());
        assert_eq!(end["responseMessage"]["unfinished"], true);
        assert_eq!(end["conversation"]["agent_id"], t.s.b.id.as_str());
        assert_eq!(kinds(&end["responseMessage"]["content"]), JOINED);
        assert_eq!(end["requestMessage"]["text"], asked.as_str());
        assert_eq!(t.asked().await, asked);
        assert_eq!(t.kinds().await, JOINED);
    }
}

#[tokio::test]
async fn a_reload_shows_one_response_and_a_tab_that_comes_back_goes_on() {
    let t = Stage::of("s-a1").await;
    let first = t.s.send(
        Request::get(t.s.url(&t.stream(FIRST, "")))
            .body(Body::empty())
            .unwrap(),
    );
    let first = first.await;
    let answer = t.answer_id().await;
    t.record(|record| record.answered_by().is_some()).await;
    let text = t.assigned()[0]["text"].clone();
    t.say_status(
        json!({ "active": true, "createdAt": SECOND, "aggregatedContent": [], "resumeState": {
        "responseMessageId": answer, "runSteps": [], "aggregatedContent": [{ "type": "text" }],
        "userMessage": { "messageId": t.turn.user_message, "text": text },
    } }),
    );
    drop(first);
    let status = format!("/api/agents/chat/status/{}", t.turn.conversation);
    let status: Value = serde_json::from_slice(&t.s.get(&status).await.body).unwrap();
    assert_eq!(
        status["resumeState"]["responseMessageId"],
        t.turn.response.as_str()
    );
    assert_eq!(kinds(&status["aggregatedContent"]), JOINED);
    assert_eq!(
        status["resumeState"]["userMessage"]["text"],
        t.asked().await
    );
    // Who has reloaded knows the target's generation, who has only been cut off the first.
    let (known, unknown) = (
        t.stream(SECOND, "&resume=true"),
        t.stream(FIRST, "&resume=true"),
    );
    let (one, two, ()) = tokio::join!(
        t.s.get(&known),
        t.s.get(&unknown),
        t.answers([parts::text("Paid.")])
    );
    for told in [one, two] {
        let told = data(&told.text());
        assert_eq!(
            told[0]["resumeState"]["responseMessageId"],
            t.turn.response.as_str()
        );
        let end = told.last().unwrap();
        assert_eq!(kinds(&end["responseMessage"]["content"]), JOINED);
    }
    assert_eq!(t.assigned().len(), 1);
}

#[tokio::test]
async fn what_a_tab_asks_for_in_the_turn_is_asked_of_the_target() {
    let t = Stage::of("s-m").await;
    let path = t.stream(FIRST, "");
    let steer = async {
        t.answer_id().await;
        let body = json!({
            "conversationId": t.turn.conversation, "text": "x", "generationCreatedAt": FIRST,
        });
        t.s.post("/api/agents/chat/steer", &body).await;
        assert_eq!(t.came("/steer")["generationCreatedAt"], SECOND);
        t.answers([parts::text("Paid.")]).await;
    };
    let (_, ()) = tokio::join!(t.s.get(&path), steer);
    let next = json!({
        "endpoint": "agents", "agent_id": t.s.b.id, "conversationId": t.turn.conversation,
        "parentMessageId": t.turn.response, "expectedPredecessorCreatedAt": FIRST,
    });
    t.s.post("/api/agents/chat/agents", &next).await;
    assert_eq!(
        t.came("/chat/agents")["expectedPredecessorCreatedAt"],
        SECOND
    );
}

#[tokio::test]
async fn where_librechat_refuses_the_target_the_turn_ends_as_ever() {
    let t = Stage::of("s-m").await;
    t.refuse(StatusCode::FORBIDDEN);
    let told = last(&t.s.get(&t.stream(FIRST, "")).await.text());
    assert_eq!(told["conversation"]["agent_id"], t.s.b.id.as_str());
    assert_eq!(kinds(&told["responseMessage"]["content"]), JOINED[..3]);
    let record = t.record(|_| true).await;
    assert_eq!(record.status, Status::Settled);
    assert_eq!(record.answered_by(), None);
    assert_eq!(record.answer.unwrap().stage, Come::Failed);
}

#[tokio::test]
async fn a_target_that_fails_shows_librechats_own_error() {
    let t = Stage::of("s-m").await;
    let path = t.stream(FIRST, "");
    let fail = async {
        t.answer_id().await;
        t.fails("No such model");
    };
    let (told, ()) = tokio::join!(t.s.get(&path), fail);
    let end = last(&told.text());
    assert_eq!(end["conversation"]["agent_id"], t.s.b.id.as_str());
    let content = &end["responseMessage"]["content"];
    assert_eq!(
        kinds(content),
        ["text", "tool_call", "text", "agent_update", "error"]
    );
    assert_eq!(content[4]["error"], "No such model");
    assert_eq!(t.kinds().await, kinds(content));
    let record = t.record(|_| true).await;
    assert_eq!(record.status, Status::Settled);
    assert_eq!(record.answer.unwrap().stage, Come::Failed);
    assert_eq!(t.turn.agent_now(&t.s.db).await, Some(t.s.b.id.clone()));
}

#[tokio::test]
async fn a_switch_of_the_targets_takes_effect_with_the_next_message() {
    let t = Stage::of("s-m").await;
    let path = t.stream(FIRST, "");
    let answers = async {
        let call = parts::switch(&t.s.c.id, &t.turn.conversation);
        t.answers([parts::text("Not mine."), call]).await;
    };
    let (told, ()) = tokio::join!(t.s.get(&path), answers);
    let end = last(&told.text());
    assert_eq!(end["conversation"]["agent_id"], t.s.c.id.as_str());
    assert_eq!(t.assigned().len(), 1);
    let answer = t.answer_id().await;
    t.is_joined(&answer).await;
    assert_eq!(t.turn.agent_now(&t.s.db).await, Some(t.s.c.id.clone()));
    // Both are on record, and the call is not taken for one of the response's.
    let first = t.record(|record| record.delivered_at.is_some()).await;
    assert_eq!(first.to_agent.as_str(), t.s.b.id);
    let switches = t.s.db.switches();
    let second = switches.find_one(doc! { "message_id": &answer });
    let second = second.await.unwrap().unwrap();
    assert_eq!(second.get_str("status").unwrap(), "settled");
    assert_eq!(second.get_str("to_agent").unwrap(), t.s.c.id);
    assert_eq!(second.get_str("shown_in").unwrap(), t.turn.response);
    // The user goes back to B at once: that is a choice, since the tab was told of C.
    holds("a client was told of C", async || {
        let told = switches.find_one(doc! { "message_id": &answer });
        told.await.unwrap().unwrap().contains_key("delivered_at")
    })
    .await;
    let next = json!({
        "endpoint": "agents", "agent_id": t.s.b.id, "conversationId": t.turn.conversation,
        "parentMessageId": t.turn.response,
    });
    t.s.post("/api/agents/chat/agents", &next).await;
    assert_eq!(t.came("/chat/agents")["agent_id"], t.s.b.id.as_str());
}

#[tokio::test]
async fn where_every_client_has_gone_the_target_answers_the_next_message() {
    let t = Stage::of("s-m").await;
    t.hold();
    let request = Request::get(t.s.url(&t.stream(FIRST, ""))).body(Body::empty());
    let mut stream = t.s.send(request.unwrap()).await;
    stream.body_mut().frame().await.unwrap().unwrap();
    drop(stream);
    t.is_unread().await;
    t.go_on();
    assert_eq!(t.assigned(), Vec::<Value>::new());
    assert_eq!(t.record(|_| true).await.answer, None);
}

#[tokio::test]
async fn nobody_is_set_to_work_where_it_is_not_wanted_or_would_harm() {
    for (settings, args, change) in [
        (&[][..], "{}", (|_| ()) as fn(&mut Value)),
        (&[SPLICE], r#"{"answer_now":false}"#, |_| ()),
        (&[SPLICE], "{}", |end| {
            end["conversation"]["isTemporary"] = json!(true);
        }),
        (&[SPLICE], "{}", |end| {
            end["responseMessage"]["isEdited"] = json!(true);
        }),
        (&[SPLICE], "{}", |end| {
            end["responseMessage"]["unfinished"] = json!(true);
        }),
        (&[SPLICE], "{}", |end| {
            end["requestMessage"]["parentMessageId"] = end["requestMessage"]["messageId"].clone();
        }),
    ] {
        let t = Stage::with("s-m", settings, args).await;
        t.change_final(change);
        let told = last(&t.s.get(&t.stream(FIRST, "")).await.text());
        assert_eq!(told["conversation"]["agent_id"], t.s.b.id.as_str());
        assert_eq!(t.assigned(), Vec::<Value>::new());
        assert_eq!(t.record(|_| true).await.answer, None);
    }
}
