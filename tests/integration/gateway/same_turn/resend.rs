//! LibreChat's own web client sends the message once more, to the target.

use std::sync::{Arc, Mutex};

use baton::switch::answer::{Stage, Way};
use baton::switch::record::{Status, Switch};
use mongodb::bson::{doc, oid::ObjectId};
use serde_json::{Value, json};

use super::super::{Scene, events_of, json_of};
use super::{Recording, event, last};
use crate::harness::{Turn, Upstream, parts};

const RESEND: [(&str, &str); 1] = [("BATON__GATEWAY__SAME_TURN", "resend")];

/// A turn of A's that switched to B, and what LibreChat says of it.
struct Switched {
    upstream: Upstream,
    s: Scene,
    turn: Turn,
    said: Arc<Mutex<String>>,
    recording: Recording,
}

impl Switched {
    async fn with(args: &str, settings: &[(&str, &str)]) -> Self {
        let said = Arc::new(Mutex::new(String::new()));
        let says = Arc::clone(&said);
        let upstream = Upstream::start(move |seen| {
            if seen.uri.path().contains("/stream/") {
                events_of(says.lock().unwrap().clone())
            } else {
                json_of(&json!({ "status": "started" }))
            }
        })
        .await;
        let s = Scene::with(&upstream, settings).await;
        let turn = s.conversation().await.next(&s.a);
        turn.save_user_message().await;
        turn.start().await;
        let call = parts::call_with_id(
            "call_1",
            parts::TOOL,
            args,
            &parts::success(&s.b.id, &turn.conversation),
        );
        turn.finish(&[call, parts::text("Done")]).await;
        s.record(&turn, |record| record.status == Status::Settled)
            .await;
        let recording = Recording::of("c2", &turn, &s.a, &s.b);
        *said.lock().unwrap() = recording.stream("up");
        Self {
            upstream,
            s,
            turn,
            said,
            recording,
        }
    }

    /// The turn's final as a client gets it.
    async fn last(&self) -> Value {
        let path = format!("/api/agents/chat/stream/{}", self.turn.conversation);
        last(&self.s.get(&path).await.text())
    }

    async fn record(&self) -> Switch {
        self.s.record(&self.turn, |_| true).await
    }

    /// A's final with a change, as LibreChat is to say it.
    fn say(&self, change: impl Fn(&mut Value)) {
        let mut end = (*self.recording.events("up").last().unwrap()).clone();
        change(&mut end);
        *self.said.lock().unwrap() = event(&end);
    }
}

#[tokio::test]
async fn the_client_is_asked_to_send_the_message_once_more_and_only_once() {
    let t = Switched::with("{}", &RESEND).await;
    let told = t.last().await;
    assert_eq!(told["conversation"]["agent_id"], t.s.b.id.as_str());
    let steers = told["pendingSteers"].as_array().unwrap();
    assert_eq!(steers.len(), 1);
    assert_eq!(steers[0]["text"], told["requestMessage"]["text"]);
    let record = t.record().await;
    let answer = record.answer.as_ref().unwrap();
    assert_eq!((answer.way, answer.stage), (Way::Resend, Stage::Claimed));
    assert_eq!(steers[0]["steerId"], answer.message_id.as_str());
    // Another tab reads the same stream.
    let other = t.last().await;
    assert_eq!(other["conversation"]["agent_id"], t.s.b.id.as_str());
    assert_eq!(other.get("pendingSteers"), None);
}

#[tokio::test]
async fn what_the_client_sends_once_more_is_an_ordinary_message() {
    let t = Switched::with("{}", &RESEND).await;
    let told = t.last().await;
    let steer = &told["pendingSteers"][0]["steerId"];
    let body = json!({
        "text": "x", "endpoint": "agents", "agent_id": t.s.b.id, "messageId": steer,
        "conversationId": t.turn.conversation, "parentMessageId": t.turn.response,
        "overrideUserMessageId": steer, "recoverySteerId": steer, "clientRequestId": "r",
        "expectedPredecessorCreatedAt": 5,
    });
    t.s.post("/api/agents/chat/agents", &body).await;
    let arrived: Value = serde_json::from_slice(&t.upstream.last().body).unwrap();
    let id = steer.as_str().unwrap();
    assert_eq!(
        arrived,
        json!({
            "text": "x", "endpoint": "agents", "agent_id": t.s.b.id, "messageId": steer,
            "conversationId": t.turn.conversation, "parentMessageId": t.turn.response,
            "overrideUserMessageId": format!("{id}__0"), "clientRequestId": "r",
        })
    );
    let record = t.record().await;
    assert_eq!(record.answered_by().unwrap().as_str(), t.s.b.id);
    assert_eq!(record.answer_message().unwrap().as_str(), id);
    // One that LibreChat itself had queued passes as it is.
    let mut queued = body.clone();
    queued["recoverySteerId"] = json!("of-librechat");
    t.s.post("/api/agents/chat/agents", &queued).await;
    let arrived: Value = serde_json::from_slice(&t.upstream.last().body).unwrap();
    assert_eq!(arrived, queued);
}

#[tokio::test]
async fn the_model_may_say_that_it_has_answered_itself() {
    let t = Switched::with(r#"{"answer_now":false}"#, &RESEND).await;
    let told = t.last().await;
    assert_eq!(told["conversation"]["agent_id"], t.s.b.id.as_str());
    assert_eq!(told.get("pendingSteers"), None);
    assert_eq!(t.record().await.answer, None);
}

#[tokio::test]
async fn nothing_is_sent_again_where_it_is_off_or_cannot_be() {
    let off = Switched::with("{}", &[]).await;
    assert_eq!(off.last().await.get("pendingSteers"), None);
    let t = Switched::with("{}", &RESEND).await;
    for change in [
        |end: &mut Value| end["generationProtocolVersion"] = json!(1),
        |end: &mut Value| end["conversation"]["isTemporary"] = json!(true),
        |end: &mut Value| end["responseMessage"]["isEdited"] = json!(true),
        |end: &mut Value| end["responseMessage"]["unfinished"] = json!(true),
    ] {
        t.say(change);
        let told = t.last().await;
        assert_eq!(told["conversation"]["agent_id"], t.s.b.id.as_str());
        assert_eq!(told.get("pendingSteers"), None);
    }
    assert_eq!(t.record().await.answer, None);
}

#[tokio::test]
async fn an_upload_that_the_target_cannot_read_stays_with_the_agent_that_has_it() {
    let t = Switched::with("{}", &RESEND).await;
    let owner = ObjectId::parse_str(&t.turn.user).unwrap();
    let file = doc! { "file_id": "f", "user": owner, "embedded": true };
    t.s.db.collection("files").insert_one(file).await.unwrap();
    t.say(|end| end["requestMessage"]["files"] = json!([{ "file_id": "f" }]));
    assert_eq!(t.last().await.get("pendingSteers"), None);
    t.s.db
        .collection("agents")
        .update_one(
            doc! { "id": &t.s.b.id },
            doc! { "$set": { "tools": ["file_search"] } },
        )
        .await
        .unwrap();
    let steers = &t.last().await["pendingSteers"];
    assert_eq!(steers[0]["files"], json!([{ "file_id": "f" }]));
}
