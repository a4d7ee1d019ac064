//! The target's stream and status as the client is to see them: going on with the response of the
//! agent that handed over.
//!
//! LibreChat gives the target's answer a message of its own. Whatever names that message is made to
//! name the response instead, and the parts of its content are counted from where the response
//! ends: after its own parts, and one that says who goes on (`agent_update`, which LibreChat's web
//! client shows as the agent's name; v0.8.0 on). The shapes are those of
//! `packages/data-provider/src/types/{agents,runs}.ts`.

use serde_json::{Map, Value, json};

use super::{AgentId, MessageId, json::Members, sse::Event};

/// What of the target's generation belongs where.
#[derive(Clone, Debug, PartialEq)]
pub struct Splice {
    /// The target.
    pub by: AgentId,
    /// The message that LibreChat gives the answer.
    pub answer: MessageId,
    /// The response that it goes on with.
    pub response: MessageId,
    /// What was added to the user's message for the target alone.
    pub note: Option<String>,
    /// The response's own parts.
    before: Vec<Value>,
    /// Messages that the user queued for the turn that switched, and that are still to be sent.
    queued: Vec<Value>,
}

/// An event of the target's stream.
#[derive(Debug, PartialEq)]
pub enum Spliced {
    /// It passes as it is.
    Same,
    /// It passes with this data.
    Changed(Vec<u8>),
    /// It is not for the client.
    Nothing,
    /// It is the last one.
    Final,
    /// The target has failed, in LibreChat's words.
    Failed(String),
}

/// The part that says who goes on; `index` is its place. It names the message that the answer was
/// made as, so that whoever finds it knows that the answer is here.
#[must_use]
pub fn seam(index: usize, answer: &MessageId, by: &AgentId) -> Value {
    json!({
        "type": "agent_update",
        "agent_update": { "index": index, "runId": answer.as_str(), "agentId": by.as_str() },
    })
}

/// Where a response's own parts end.
fn own_parts(content: &[Value], answer: &MessageId) -> usize {
    let is_seam = |part: &Value| part["agent_update"]["runId"] == answer.as_str();
    content.iter().position(is_seam).unwrap_or(content.len())
}

impl Splice {
    /// `messages` is LibreChat's list with the response in it (`GET /api/messages/…`).
    #[must_use]
    pub fn new(
        by: AgentId,
        answer: MessageId,
        response: MessageId,
        note: Option<String>,
        messages: &[u8],
    ) -> Option<Self> {
        let messages: Vec<Value> = serde_json::from_slice(messages).ok()?;
        let found = |message: &&Value| message["messageId"] == response.as_str();
        let mut before = match messages.iter().find(found)?.get("content")? {
            Value::Array(content) => content.clone(),
            _ => return None,
        };
        before.truncate(own_parts(&before, &answer));
        Some(Self {
            by,
            answer,
            response,
            note,
            before,
            queued: Vec::new(),
        })
    }

    /// The same with what the last event of the turn that switched says is still to be sent
    /// (`pendingSteers`, v0.8.8).
    #[must_use]
    pub fn after(self, data: &[u8]) -> Self {
        let queued = Members::read(data).and_then(|said| said.get("pendingSteers"));
        Self {
            queued: queued.unwrap_or_default(),
            ..self
        }
    }

    /// So many parts come before those of the answer.
    fn offset(&self) -> usize {
        self.before.len() + 1
    }

    /// An event of the target's stream as the client is to see it.
    #[must_use]
    pub fn event(&self, event: &Event) -> Spliced {
        let data = event.data();
        // Most events are deltas, which name a step and nothing else.
        if data.starts_with(br#"{"event":"on_message_delta""#)
            || data.starts_with(br#"{"event":"on_reasoning_delta""#)
        {
            return Spliced::Same;
        }
        if let Some(words) = event.failure() {
            return Spliced::Failed(words);
        }
        let Ok(mut said) = serde_json::from_slice::<Value>(&data) else {
            return Spliced::Same;
        };
        if said["final"] == true {
            return Spliced::Final;
        }
        if said.get("created").is_some() {
            return Spliced::Nothing;
        }
        if said["sync"] == true {
            self.resume(&mut said);
            if let Some(said) = said.as_object_mut() {
                self.events(said, "pendingEvents");
            }
        } else {
            self.step(&mut said);
        }
        Spliced::Changed(said.to_string().into_bytes())
    }

    /// LibreChat's answer to `GET …/chat/status/…`. `None`: it is not about the answer.
    #[must_use]
    pub fn status(&self, body: &[u8]) -> Option<Vec<u8>> {
        let mut said: Value = serde_json::from_slice(body).ok()?;
        if said["resumeState"]["responseMessageId"] != self.answer.as_str() {
            return None;
        }
        self.resume(&mut said);
        let content = said["resumeState"]["aggregatedContent"].clone();
        if content.is_array() {
            said["aggregatedContent"] = content;
        }
        Some(said.to_string().into_bytes())
    }

    /// Whether LibreChat's answer to `GET …/chat/status/…` is about the answer.
    #[must_use]
    pub fn is_about(body: &[u8], answer: &MessageId) -> bool {
        let resume =
            Members::read(body).and_then(|said| said.raw("resumeState").map(str::to_owned));
        resume
            .and_then(|resume| Members::read(resume.as_bytes())?.text("responseMessageId"))
            .is_some_and(|id| id == answer.as_str())
    }

    /// What a client gets that comes to a running generation.
    fn resume(&self, said: &mut Value) {
        let Some(Value::Object(state)) = said.get_mut("resumeState") else {
            return;
        };
        self.events(state, "replayEvents");
        if let Some(Value::Array(steps)) = state.get_mut("runSteps") {
            for step in steps {
                self.shift(step.get_mut("index"));
                self.rename(step);
            }
        }
        let mut content = self.before.clone();
        content.push(seam(self.before.len(), &self.answer, &self.by));
        if let Some(Value::Array(answer)) = state.remove("aggregatedContent") {
            content.extend(answer);
        }
        state.insert("aggregatedContent".to_owned(), Value::Array(content));
        if !self.queued.is_empty() {
            let mut queued = self.queued.clone();
            if let Some(Value::Array(more)) = state.remove("pendingSteers") {
                queued.extend(more);
            }
            state.insert("pendingSteers".to_owned(), Value::Array(queued));
        }
        state.insert(
            "responseMessageId".to_owned(),
            self.response.as_str().into(),
        );
        if let (Some(Value::Object(user_message)), Some(note)) =
            (state.get_mut("userMessage"), &self.note)
        {
            let text = user_message.get("text").and_then(Value::as_str);
            if let Some(text) = text.and_then(|text| text.strip_suffix(note.as_str())) {
                let text = text.to_owned();
                user_message.insert("text".to_owned(), text.into());
            }
        }
    }

    fn events(&self, said: &mut Map<String, Value>, name: &str) {
        if let Some(Value::Array(events)) = said.get_mut(name) {
            for event in events {
                self.step(event);
            }
        }
    }

    /// An event within a turn.
    fn step(&self, event: &mut Value) {
        let kind = event["event"].as_str().unwrap_or_default();
        // The client counts usage by run: the answer's is one of its own.
        if matches!(kind, "on_token_usage" | "on_context_usage") {
            return;
        }
        match event.get_mut("data") {
            Some(Value::Object(data)) => self.place(data),
            Some(_) => {}
            // A part by itself, as agents no longer send it.
            None => self.shift(event.get_mut("index")),
        }
        self.rename(event);
    }

    /// Counts the places of parts from the response's beginning.
    fn place(&self, data: &mut Map<String, Value>) {
        self.shift(data.get_mut("index"));
        for within in ["result", "agent_update"] {
            self.shift(
                data.get_mut(within)
                    .and_then(|value| value.get_mut("index")),
            );
        }
        for index in ["activity_start_index", "activity_end_index"] {
            self.shift(data.get_mut("part").and_then(|part| part.get_mut(index)));
        }
    }

    fn shift(&self, index: Option<&mut Value>) {
        if let Some(index) = index
            && let Some(at) = index.as_u64()
        {
            *index = (at + self.offset() as u64).into();
        }
    }

    /// Names the response wherever the answer is named.
    fn rename(&self, value: &mut Value) {
        match value {
            Value::String(text) if text == self.answer.as_str() => {
                self.response.as_str().clone_into(text);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename(item)),
            Value::Object(members) => members.values_mut().for_each(|value| self.rename(value)),
            _ => {}
        }
    }

    /// The data of the last event: `said` is the target's own, where it came to that; the others
    /// are LibreChat's conversation, messages and status as they are now.
    #[must_use]
    pub fn end(
        &self,
        said: Option<&[u8]>,
        conversation: &[u8],
        messages: &[u8],
        status: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        let list: Vec<&serde_json::value::RawValue> = serde_json::from_slice(messages).ok()?;
        let named = |id: &str| {
            list.iter().find(|message| {
                let message = Members::read(message.get().as_bytes());
                message
                    .and_then(|message| message.text("messageId"))
                    .as_deref()
                    == Some(id)
            })
        };
        let response = named(self.response.as_str())?;
        let asked = Members::read(response.get().as_bytes())?.text("parentMessageId")?;
        let request = named(&asked)?;
        let mut event = if let Some(said) = said {
            Members::read(said)?
        } else {
            let conversation = Members::read(conversation)?;
            let mut event = Members::default();
            event.set_raw("final", "true".to_owned());
            event.set_text("title", conversation.text("title").as_deref());
            event.set_raw("conversation", conversation.write());
            event
        };
        let queued = self.still_queued(&event, status);
        if !queued.is_empty() {
            event.set_raw("pendingSteers", Value::Array(queued).to_string());
        }
        event.set_raw("requestMessage", request.get().to_owned());
        event.set_raw("responseMessage", response.get().to_owned());
        event.set_raw(
            "runMessages",
            std::str::from_utf8(messages).ok()?.to_owned(),
        );
        Some(event.write().into_bytes())
    }

    /// What the client is to send next: LibreChat knows, where it says so.
    fn still_queued(&self, event: &Members<'_>, status: Option<&[u8]>) -> Vec<Value> {
        let mut queued: Vec<Value> = event.get("pendingSteers").unwrap_or_default();
        let known = status
            .and_then(Members::read)
            .filter(|it| !it.flag("active"));
        let more = match known {
            Some(status) => status.get("unrecoveredSteers").unwrap_or_default(),
            None => self.queued.clone(),
        };
        for steer in more {
            if queued.iter().all(|it| it["steerId"] != steer["steerId"]) {
                queued.push(steer);
            }
        }
        queued
    }
}

#[cfg(test)]
mod tests;
