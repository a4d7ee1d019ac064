//! The message that a turn has answered, as its final shows it, and how another agent is given it.
//!
//! What makes the client send a message once more is LibreChat's recovery of queued messages
//! (`client/src/hooks/Chat/useSteerConvert.ts`, v0.8.8): `pendingSteers` of a final become messages
//! that the client sends by itself. Their sources are bound to a request by `recoverySteerId`.

use super::{AgentId, ConversationId, MessageId, SpecPatch, json::Members};

/// What a reading of LibreChat's that names a row as an override ends in, where the row is to be
/// saved (`0`) or left as it is (`1`; `Constants.COMMON_DIVIDER`, `BaseClient.processOverideIds`).
const SAVED: &str = "__0";
const UNSAVED: &str = "__1";

/// `generationProtocolVersion` of LibreChat v0.8.8.
const PROTOCOL: u64 = 2;

/// The message that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// U.
    pub message: MessageId,
    /// What U answers.
    pub parent: MessageId,
    /// U's text.
    pub text: String,
    /// U's files, quotes and skills, as JSON.
    extras: Vec<(&'static str, String)>,
    /// U's files.
    pub files: Vec<String>,
    /// Whether the conversation was begun from a model spec.
    pub has_spec: bool,
    /// Whether LibreChat is v0.8.8 or later, whose client can be made to send it once more.
    pub is_new: bool,
}

/// Why nobody else may be given a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unasked {
    /// LibreChat keeps nothing of a temporary chat for long.
    #[error("the chat is temporary")]
    Temporary,
    /// The response goes on with an earlier one.
    #[error("an answer was edited or continued")]
    Edited,
    /// The final does not show it.
    #[error("the turn's last event does not show the message")]
    Unknown,
}

/// How another agent is given the message.
#[derive(Clone, Debug)]
pub struct Assignment<'a> {
    /// The conversation.
    pub conversation: &'a ConversationId,
    /// The agent.
    pub to: &'a AgentId,
    /// The model spec that goes with it.
    pub patch: SpecPatch<'a>,
    /// `messageId` of its answer.
    pub answer: &'a MessageId,
    /// What it gets after the message's text.
    pub note: &'a str,
    /// Identifies this request, should it arrive twice.
    pub request: &'a str,
    /// The user's time zone, where it is known.
    pub timezone: Option<&'a str>,
}

impl Asked {
    /// The body of the POST that gives the message to another agent: a regenerate, whose response
    /// has a given id, and that leaves the row of the user's message as it is.
    #[must_use]
    pub fn post(&self, given: &Assignment<'_>) -> Vec<u8> {
        let mut body = Members::default();
        let text = format!("{}{}", self.text, given.note);
        let as_it_is = format!("{}{UNSAVED}", self.message);
        for (name, value) in [
            ("text", text.as_str()),
            ("sender", "User"),
            ("endpoint", "agents"),
            ("agent_id", given.to.as_str()),
            ("conversationId", given.conversation.as_str()),
            ("messageId", self.message.as_str()),
            ("parentMessageId", self.parent.as_str()),
            ("overrideParentMessageId", self.message.as_str()),
            ("overrideUserMessageId", as_it_is.as_str()),
            ("responseMessageId", given.answer.as_str()),
            ("clientRequestId", given.request),
        ] {
            body.set_text(name, Some(value));
        }
        for (name, value) in [
            ("isCreatedByUser", "true"),
            ("isRegenerate", "true"),
            ("isContinued", "false"),
            ("isTemporary", "false"),
            ("error", "false"),
        ] {
            body.set_raw(name, value.to_owned());
        }
        for (name, value) in &self.extras {
            body.set_raw(name, value.clone());
        }
        if let Some(timezone) = given.timezone {
            body.set_text("timezone", Some(timezone));
        }
        if let SpecPatch::Set(spec) = given.patch {
            body.set_text("spec", Some(&spec.name));
            if let Some(icon) = &spec.icon_url {
                body.set_text("iconURL", Some(icon));
            }
        }
        body.write().into_bytes()
    }

    /// Reads the data of a final.
    ///
    /// # Errors
    ///
    /// Why nobody else may be given the message.
    pub fn read(data: &[u8]) -> Result<Self, Unasked> {
        let event = Members::read(data).ok_or(Unasked::Unknown)?;
        let part = |name| Members::read(event.raw(name)?.as_bytes());
        let unknown = || Unasked::Unknown;
        let conversation = part("conversation").ok_or_else(unknown)?;
        let request = part("requestMessage").ok_or_else(unknown)?;
        let response = part("responseMessage").ok_or_else(unknown)?;
        // Before v0.8.7 its end alone marks a temporary chat; later all chats may have one.
        let is_temporary = match conversation.raw("isTemporary") {
            Some(flag) => flag == "true",
            None => conversation.has("expiredAt"),
        };
        if is_temporary {
            return Err(Unasked::Temporary);
        }
        let message = request.text("messageId").ok_or_else(unknown)?;
        let parent = request.text("parentMessageId").ok_or_else(unknown)?;
        // Continue makes U its own parent.
        if response.flag("isEdited") || parent == message {
            return Err(Unasked::Edited);
        }
        let text = request.text("text").filter(|text| !text.trim().is_empty());
        let files: Vec<serde_json::Value> = request.get("files").unwrap_or_default();
        let file_id = |file: &serde_json::Value| Some(file.get("file_id")?.as_str()?.to_owned());
        Ok(Self {
            message: message.into(),
            parent: parent.into(),
            text: text.ok_or_else(unknown)?,
            extras: ["files", "quotes", "manualSkills"]
                .into_iter()
                .filter(|name| request.has(name))
                .filter_map(|name| Some((name, request.raw(name)?.to_owned())))
                .collect(),
            files: files.iter().filter_map(file_id).collect(),
            has_spec: conversation.has("spec"),
            is_new: event.get("generationProtocolVersion") >= Some(PROTOCOL),
        })
    }

    /// The final's data, so that the client sends the message once more, under this id; `at` is
    /// now, in milliseconds.
    #[must_use]
    pub fn again(&self, data: &[u8], id: &MessageId, at: i64) -> Option<Vec<u8>> {
        let mut event = Members::read(data)?;
        let mut steer = Members::default();
        steer.set_text("steerId", Some(id.as_str()));
        steer.set_text("text", Some(&self.text));
        steer.set_raw("createdAt", at.to_string());
        for (name, value) in &self.extras {
            steer.set_raw(name, value.clone());
        }
        let waiting: Vec<Box<serde_json::value::RawValue>> =
            event.get("pendingSteers").unwrap_or_default();
        let mut steers = vec![steer.write()];
        steers.extend(waiting.iter().map(|steer| steer.get().to_owned()));
        event.set_raw("pendingSteers", format!("[{}]", steers.join(",")));
        Some(event.write().into_bytes())
    }
}

/// A final's response, as a list of messages.
#[must_use]
pub fn response_of(data: &[u8]) -> Option<Vec<u8>> {
    let event = Members::read(data)?;
    Some(format!("[{}]", event.raw("responseMessage")?).into_bytes())
}

/// The queued message that a body is to begin a turn with.
#[must_use]
pub fn queued(body: &[u8]) -> Option<(ConversationId, MessageId)> {
    let body = Members::read(body)?;
    let conversation = body.text("conversationId")?;
    Some((conversation.into(), body.text("recoverySteerId")?.into()))
}

/// The body of a queued message of which LibreChat knows nothing, as that of any other; it is saved
/// under the queued one's id.
#[must_use]
pub fn unqueued(body: &[u8]) -> Option<Vec<u8>> {
    let mut body = Members::read(body)?;
    let id = body.text("recoverySteerId")?;
    body.remove("recoverySteerId");
    body.remove("expectedPredecessorCreatedAt");
    body.set_text("overrideUserMessageId", Some(&format!("{id}{SAVED}")));
    Some(body.write().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_final(conversation: &str, request: &str, response: &str) -> String {
        format!(
            r#"{{"final":true,"conversation":{{"conversationId":"c"{conversation}}},"requestMessage":{{"messageId":"u","parentMessageId":"p","text":"x"{request}}},"responseMessage":{{"messageId":"r"{response}}},"generationProtocolVersion":2}}"#
        )
    }

    fn read(conversation: &str, request: &str, response: &str) -> Result<Asked, Unasked> {
        Asked::read(a_final(conversation, request, response).as_bytes())
    }

    #[test]
    fn a_message_is_given_to_nobody_else_where_that_would_harm() {
        let temporary = [r#","isTemporary":true"#, r#","expiredAt":"2026-01-01""#];
        for conversation in temporary {
            assert_eq!(read(conversation, "", ""), Err(Unasked::Temporary));
        }
        let kept = r#","isTemporary":false,"expiredAt":"2026-01-01""#;
        assert!(read(kept, "", "").is_ok());
        let edited = read("", "", r#","isEdited":true"#);
        assert_eq!(edited, Err(Unasked::Edited));
        let continued = read("", r#","parentMessageId":"u""#, "");
        assert_eq!(continued, Err(Unasked::Edited));
        assert_eq!(read("", r#","text":" ""#, ""), Err(Unasked::Unknown));
        assert_eq!(Asked::read(br#"{"final":true}"#), Err(Unasked::Unknown));
    }

    #[test]
    fn it_is_sent_again_with_what_it_has() {
        let request = r#","files":[{"file_id":"f","n":1.0}],"quotes":["q"]"#;
        let data = a_final("", request, "").replace(
            r#""generationProtocolVersion""#,
            r#""pendingSteers":[{"steerId":"s","text":"y"}],"generationProtocolVersion""#,
        );
        let asked = Asked::read(data.as_bytes()).unwrap();
        assert_eq!(asked.files, ["f"]);
        assert!(asked.is_new);
        let again = asked.again(data.as_bytes(), &"s2".into(), 17).unwrap();
        let again: serde_json::Value = serde_json::from_slice(&again).unwrap();
        assert_eq!(
            again["pendingSteers"],
            serde_json::json!([
                { "steerId": "s2", "text": "x", "createdAt": 17,
                  "files": [{ "file_id": "f", "n": 1.0 }], "quotes": ["q"] },
                { "steerId": "s", "text": "y" },
            ])
        );
    }

    #[test]
    fn another_agent_gets_it_with_all_that_it_has() {
        let request = r#","files":[{"file_id":"f"}],"quotes":["q"]"#;
        let asked = read("", request, "").unwrap();
        let spec = crate::librechat::specs::Spec {
            name: "sb".to_owned(),
            icon_url: None,
        };
        let body = asked.post(&Assignment {
            conversation: &"c".into(),
            to: &"B".into(),
            patch: SpecPatch::Set(&spec),
            answer: &"x".into(),
            note: " (note)",
            request: "r",
            timezone: Some("UTC"),
        });
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            body,
            serde_json::json!({
                "text": "x (note)", "sender": "User", "endpoint": "agents", "agent_id": "B",
                "conversationId": "c", "messageId": "u", "parentMessageId": "p",
                "overrideParentMessageId": "u", "overrideUserMessageId": "u__1",
                "responseMessageId": "x", "clientRequestId": "r", "isCreatedByUser": true,
                "isRegenerate": true, "isContinued": false, "isTemporary": false, "error": false,
                "files": [{ "file_id": "f" }], "quotes": ["q"], "timezone": "UTC", "spec": "sb",
            })
        );
    }

    #[test]
    fn older_clients_are_not_asked_to() {
        let data = a_final("", "", "").replace(r#","generationProtocolVersion":2"#, "");
        assert!(!Asked::read(data.as_bytes()).unwrap().is_new);
    }

    #[test]
    fn a_queued_message_becomes_an_ordinary_one() {
        let body = br#"{"text":"x","conversationId":"c","overrideUserMessageId":"s","recoverySteerId":"s","expectedPredecessorCreatedAt":5,"clientRequestId":"r"}"#;
        assert_eq!(queued(body), Some(("c".into(), "s".into())));
        let unqueued = String::from_utf8(unqueued(body).unwrap()).unwrap();
        assert_eq!(
            unqueued,
            r#"{"text":"x","conversationId":"c","overrideUserMessageId":"s__0","clientRequestId":"r"}"#
        );
        assert_eq!(queued(br#"{"text":"x","conversationId":"c"}"#), None);
    }
}
