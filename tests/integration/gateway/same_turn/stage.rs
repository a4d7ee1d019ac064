//! A stand-in for LibreChat that plays a recorded turn and then the target's, write by write. What
//! it says of conversations and messages is what LibreChat's own data layer has written.

use std::sync::{Arc, Mutex, OnceLock};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{Response, StatusCode};
use baton::switch::record::{Status, Switch};
use futures::{StreamExt, TryStreamExt, stream};
use mongodb::bson::{Bson, Document, doc};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::{Scene, events_of, json_of};
use super::{Recording, event};
use crate::harness::{TestDb, Turn, Upstream, eventually, holds, parts};

pub const SPLICE: (&str, &str) = ("BATON__GATEWAY__SAME_TURN", "splice");

/// `generationCreatedAt` of the turn that switches, and of the target's.
pub const FIRST: i64 = 1000;
pub const SECOND: i64 = 2000;

/// What the target has come to.
#[derive(Clone, Debug)]
enum Act {
    Writing,
    Ended(String),
}

/// A turn of A's that switched to B, and LibreChat.
pub struct Stage {
    pub s: Scene,
    pub turn: Turn,
    pub recording: Recording,
    play: Arc<Play>,
    upstream: Upstream,
}

struct Play {
    world: OnceLock<(mongodb::Database, Turn)>,
    a: Mutex<String>,
    b: Mutex<Vec<Value>>,
    /// B's message in the recording.
    recorded: Mutex<String>,
    /// Bodies of the POSTs that set the target to work.
    assigned: Mutex<Vec<Value>>,
    others: Mutex<Vec<(String, Value)>>,
    answer: Mutex<Option<StatusCode>>,
    status: Mutex<Value>,
    act: watch::Sender<Act>,
    /// A's last event waits for this.
    curtain: watch::Sender<bool>,
    /// Readers of A's stream.
    readers: Arc<()>,
    is_old: bool,
}

impl Stage {
    pub async fn of(recording: &str) -> Self {
        Self::with(recording, &[SPLICE], "{}").await
    }

    pub async fn with(recording: &str, settings: &[(&str, &str)], args: &str) -> Self {
        let play = Arc::new(Play {
            world: OnceLock::new(),
            a: Mutex::default(),
            b: Mutex::default(),
            recorded: Mutex::default(),
            assigned: Mutex::default(),
            others: Mutex::default(),
            answer: Mutex::default(),
            status: Mutex::new(json!({ "active": false })),
            act: watch::Sender::new(Act::Writing),
            curtain: watch::Sender::new(true),
            readers: Arc::default(),
            is_old: recording.starts_with("v87"),
        });
        let plays = Arc::clone(&play);
        let upstream = Upstream::serve(move |request| {
            let play = Arc::clone(&plays);
            async move { play.answer(request).await }
        })
        .await;
        let s = Scene::with(&upstream, settings).await;
        let turn = match recording {
            "new-a2" => Turn::first(&s.librechat, &s.user, &s.a),
            _ => s.conversation().await.next(&s.a),
        };
        let recording = Recording::of(recording, &turn, &s.a, &s.b);
        turn.save_user_message().await;
        turn.start().await;
        let call = parts::call_with_id(
            "call_1",
            parts::TOOL,
            args,
            &parts::success(&s.b.id, &turn.conversation),
        );
        let content = [
            parts::text("One moment."),
            call,
            parts::text("Billing will."),
        ];
        turn.finish(&content).await;
        s.record(&turn, |record| record.status == Status::Settled)
            .await;
        let mut end = (*recording.events("up").last().unwrap()).clone();
        end["responseMessage"]["content"] = bson_as_json(&Bson::Array(content.to_vec()));
        end["requestMessage"]["text"] = json!(text_of(&s.db, &turn).await);
        *play.a.lock().unwrap() = recording
            .events("up")
            .into_iter()
            .filter(|data| data["final"] != true)
            .chain([&end])
            .map(event)
            .collect();
        let b: Vec<Value> = recording.events("upB").into_iter().cloned().collect();
        let said = b
            .last()
            .and_then(|end| end["responseMessage"]["messageId"].as_str());
        said.unwrap_or("no recording")
            .clone_into(&mut play.recorded.lock().unwrap());
        *play.b.lock().unwrap() = b;
        let world = (s.db.database(), turn.clone());
        assert!(play.world.set(world).is_ok());
        Self {
            s,
            turn,
            recording,
            play,
            upstream,
        }
    }

    /// LibreChat's URL.
    pub fn url(&self) -> String {
        self.upstream.url()
    }

    /// A's final is to be another one.
    pub fn change_final(&self, change: impl Fn(&mut Value)) {
        let mut a = self.play.a.lock().unwrap();
        let (before, end) = a.rsplit_once("event: message").unwrap();
        let mut end = super::last(end);
        change(&mut end);
        *a = format!("{before}{}", event(&end));
    }

    /// A's last event is to wait until [`Stage::go_on`].
    pub fn hold(&self) {
        self.play.curtain.send_replace(false);
    }

    /// A's last event may come.
    pub fn go_on(&self) {
        self.play.curtain.send_replace(true);
    }

    /// Nobody reads A's stream any more.
    pub async fn is_unread(&self) {
        holds("nobody reads the stream", async || {
            Arc::strong_count(&self.play.readers) == 1
        })
        .await;
    }

    /// LibreChat is to refuse the target.
    pub fn refuse(&self, status: StatusCode) {
        *self.play.answer.lock().unwrap() = Some(status);
    }

    /// What LibreChat says of the conversation's status.
    pub fn say_status(&self, status: Value) {
        *self.play.status.lock().unwrap() = status;
    }

    /// The path of the stream of a generation.
    pub fn stream(&self, generation: i64, more: &str) -> String {
        let path = format!("/api/agents/chat/stream/{}", self.turn.conversation);
        if self.play.is_old {
            format!("{path}?x=1{more}")
        } else {
            format!("{path}?generationCreatedAt={generation}{more}")
        }
    }

    /// The bodies by which the target was set to work.
    pub fn assigned(&self) -> Vec<Value> {
        self.play.assigned.lock().unwrap().clone()
    }

    /// The last body that came to this path, besides.
    pub fn came(&self, path: &str) -> Value {
        let others = self.play.others.lock().unwrap();
        let came = others.iter().rev().find(|(to, _)| to.ends_with(path));
        came.unwrap().1.clone()
    }

    /// The id that the target's answer is to have, once it was set to work.
    pub async fn answer_id(&self) -> String {
        eventually("the target is at work", async || {
            let id = self.assigned().first()?["responseMessageId"].clone();
            Some(id.as_str()?.to_owned())
        })
        .await
    }

    /// The target's turn, as LibreChat writes it.
    pub async fn answering(&self) -> Turn {
        let mut answer = self.turn.regenerated(&self.s.b);
        answer.response = self.answer_id().await;
        answer
    }

    /// The target answers with these parts.
    pub async fn answers(&self, content: impl Into<Vec<Bson>>) {
        let content = &content.into();
        let answer = self.answering().await;
        answer.save_response(content).await;
        answer.end().await;
        answer.touch_response(content).await;
        self.ends(|_| ()).await;
    }

    /// The user stops the target: LibreChat saves what it had of both messages.
    pub async fn is_stopped(&self, content: impl Into<Vec<Bson>>) {
        let content = &content.into();
        let answer = self.answering().await;
        answer.save_unfinished_response(content).await;
        let text = self.assigned()[0]["text"].as_str().unwrap().to_owned();
        self.s
            .db
            .messages()
            .update_one(
                doc! { "messageId": &self.turn.user_message },
                doc! { "$set": { "text": text } },
            )
            .await
            .unwrap();
        self.ends(|end| {
            end["aborted"] = json!(true);
            end["conversation"] =
                json!({ "conversationId": end["conversation"]["conversationId"] });
            end["responseMessage"]["unfinished"] = json!(true);
        })
        .await;
    }

    /// LibreChat sends the last event of the target's turn.
    pub async fn ends(&self, change: impl Fn(&mut Value)) {
        let id = self.answer_id().await;
        let mut end = self.play.b.lock().unwrap().last().unwrap().clone();
        let content = self.message(&id).await;
        end["responseMessage"] = content.unwrap_or(json!({ "messageId": id }));
        change(&mut end);
        self.play.act.send_replace(Act::Ended(event(&end)));
    }

    /// LibreChat sends an error instead.
    pub fn fails(&self, words: &str) {
        let data = json!({ "error": words, "generationProtocolVersion": 2 });
        let wire = format!("event: error\ndata: {data}\n\n");
        self.play.act.send_replace(Act::Ended(wire));
    }

    /// A message as a client gets it.
    pub async fn message(&self, id: &str) -> Option<Value> {
        let messages = self.s.db.messages();
        let found = messages.find_one(doc! { "messageId": id }).await;
        Some(as_client(&found.unwrap()?))
    }

    /// The kinds of the parts of the response.
    pub async fn kinds(&self) -> Vec<String> {
        let response = self.message(&self.turn.response).await.unwrap();
        kinds(&response["content"])
    }

    /// The record of the switch.
    pub async fn record(&self, wanted: impl Fn(&Switch) -> bool) -> Switch {
        self.s.record(&self.turn, wanted).await
    }

    /// Both messages are one: nothing else is left of the target's.
    pub async fn is_joined(&self, answer: &str) {
        assert_eq!(self.message(answer).await, None);
        let conversation = self.turn.document(&self.s.db).await.unwrap();
        let listed = conversation.get_array("messages").unwrap().len();
        let key = doc! { "conversationId": &self.turn.conversation };
        let stored = self.s.db.messages().count_documents(key).await.unwrap();
        assert_eq!(u64::try_from(listed).unwrap(), stored);
    }

    /// What the user asked, as it is stored.
    pub async fn asked(&self) -> String {
        text_of(&self.s.db, &self.turn).await
    }
}

impl Play {
    async fn answer(&self, request: Request) -> Response<Body> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let query = head.uri.query().unwrap_or_default();
        let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
        let Some((database, turn)) = self.world.get() else {
            return json_of(&json!({}));
        };
        if head.method == "POST" {
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            if body.get("responseMessageId").is_none() {
                self.others.lock().unwrap().push((path, body));
                return json_of(&json!({ "success": true }));
            }
            self.assigned.lock().unwrap().push(body);
            if let Some(status) = *self.answer.lock().unwrap() {
                let mut refusal = json_of(&json!({ "error": "no" }));
                *refusal.status_mut() = status;
                return refusal;
            }
            let mut started = json!({
                "streamId": turn.conversation, "conversationId": turn.conversation,
                "status": "started",
            });
            if !self.is_old {
                started["generationCreatedAt"] = json!(SECOND);
            }
            return json_of(&started);
        }
        if path.contains("/chat/stream/") {
            let is_second = if self.is_old {
                !self.assigned.lock().unwrap().is_empty()
            } else {
                query.contains(&format!("generationCreatedAt={SECOND}"))
            };
            return if is_second {
                events_of(self.second(turn))
            } else {
                events_of(self.first())
            };
        }
        if path.contains("/chat/status/") {
            return json_of(&self.status.lock().unwrap());
        }
        let key = doc! { "conversationId": &turn.conversation };
        if path.starts_with("/api/convos/") {
            let conversations = database.collection::<Document>("conversations");
            let found = conversations.find_one(key).await.unwrap().unwrap();
            return json_of(&as_client(&found));
        }
        let mut key = key;
        if let Some((_, id)) = path
            .strip_prefix("/api/messages/")
            .and_then(|path| path.split_once('/'))
        {
            key.insert("messageId", id);
        }
        let messages = database.collection::<Document>("messages");
        let found: Vec<Document> = messages
            .find(key)
            .await
            .unwrap()
            .try_collect()
            .await
            .unwrap();
        json_of(&found.iter().map(as_client).collect())
    }

    /// A's stream.
    fn first(&self) -> Body {
        let a = self.a.lock().unwrap().clone();
        let at = a.rfind("event: message").unwrap();
        let (before, end) = (a[..at].to_owned(), a[at..].to_owned());
        let mut curtain = self.curtain.subscribe();
        let reader = Arc::clone(&self.readers);
        let end = stream::once(async move {
            curtain.wait_for(|may_go_on| *may_go_on).await.unwrap();
            drop(reader);
            Ok::<_, std::io::Error>(Bytes::from(end))
        });
        Body::from_stream(stream::iter([Ok(Bytes::from(before))]).chain(end))
    }

    /// The target's stream from its beginning, as somebody gets it who comes to it.
    fn second(&self, turn: &Turn) -> Body {
        let assigned = self.assigned.lock().unwrap()[0].clone();
        let id = assigned["responseMessageId"].as_str().unwrap().to_owned();
        let sync = json!({ "sync": true, "resumeState": {
            "responseMessageId": id, "runSteps": [], "aggregatedContent": [],
            "userMessage": { "messageId": turn.user_message, "text": assigned["text"] },
        }, "pendingEvents": [] });
        let recorded = self.recorded.lock().unwrap().clone();
        let b = self.b.lock().unwrap();
        let said: String = b[..b.len().saturating_sub(1)].iter().map(event).collect();
        let said = format!("{}{}", event(&sync), said.replace(&recorded, &id));
        let mut act = self.act.subscribe();
        let end = stream::once(async move {
            let ended = act.wait_for(|act| matches!(act, Act::Ended(_))).await;
            match &*ended.unwrap() {
                Act::Ended(wire) => Ok::<_, std::io::Error>(Bytes::from(wire.clone())),
                Act::Writing => unreachable!(),
            }
        });
        Body::from_stream(stream::iter([Ok(Bytes::from(said))]).chain(end))
    }
}

async fn text_of(db: &TestDb, turn: &Turn) -> String {
    let messages = db.messages();
    let found = messages.find_one(doc! { "messageId": &turn.user_message });
    let found = found.await.unwrap().unwrap();
    found.get_str("text").unwrap().to_owned()
}

/// The kinds of these parts, with whose they are.
pub fn kinds(content: &Value) -> Vec<String> {
    let parts = content.as_array().unwrap().iter();
    parts
        .map(|part| part["type"].as_str().unwrap().to_owned())
        .collect()
}

fn as_client(document: &Document) -> Value {
    let mut document = document.clone();
    for name in ["_id", "__v"] {
        document.remove(name);
    }
    bson_as_json(&document.into())
}

/// As LibreChat's JSON has it: dates are texts.
pub fn bson_as_json(value: &Bson) -> Value {
    match value {
        Bson::DateTime(at) => json!(at.try_to_rfc3339_string().unwrap()),
        Bson::ObjectId(id) => json!(id.to_hex()),
        Bson::Array(items) => items.iter().map(bson_as_json).collect(),
        Bson::Document(members) => {
            let members = members.iter();
            let members = members.map(|(name, value)| (name.clone(), bson_as_json(value)));
            Value::Object(members.collect())
        }
        other => serde_json::to_value(other).unwrap(),
    }
}
