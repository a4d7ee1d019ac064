//! The last event of a turn, made anew out of what LibreChat has saved.
//!
//! Where a turn ends before its client reads the stream, LibreChat has forgotten the turn, and
//! answers 404 (`api/server/routes/agents/index.js`). The client takes `runMessages` as the whole
//! list of messages.

use mongodb::bson::DateTime;
use serde_json::value::RawValue;

use super::{ConversationId, json::Members};

/// The paths that a client reads a conversation and its messages from.
#[must_use]
pub fn sources(conversation: &ConversationId) -> [String; 2] {
    [
        format!("/api/convos/{conversation}"),
        format!("/api/messages/{conversation}"),
    ]
}

/// The data of a final, out of LibreChat's answers: the conversation, its messages, and the 404.
///
/// `None`: there is no response that was written since the turn was `begun`, in milliseconds.
#[must_use]
pub fn lost_final(
    conversation: &[u8],
    messages: &[u8],
    refusal: &[u8],
    begun: Option<i64>,
) -> Option<Vec<u8>> {
    let conversation = Members::read(conversation)?;
    let list: Vec<&RawValue> = serde_json::from_slice(messages).ok()?;
    let all: Vec<Members<'_>> = list
        .iter()
        .filter_map(|raw| Members::read(raw.get().as_bytes()))
        .collect();
    let time = |message: &Members<'_>, name| {
        let text = message.text(name)?;
        Some(DateTime::parse_rfc3339_str(text).ok()?.timestamp_millis())
    };
    let by_user = |message: &Members<'_>| message.flag("isCreatedByUser");
    let response = all
        .iter()
        .filter(|message| !by_user(message))
        .max_by_key(|message| time(message, "updatedAt"))?;
    let written = time(response, "updatedAt")?;
    let is_old = begun.is_some_and(|begun| written < begun);
    let unanswered = |message: &&Members<'_>| {
        by_user(message) && time(message, "createdAt").is_some_and(|made| made > written)
    };
    if is_old || all.iter().any(|message| unanswered(&message)) {
        return None;
    }
    let parent = response.text("parentMessageId")?;
    let request = all
        .iter()
        .find(|message| message.text("messageId").as_ref() == Some(&parent))?;
    let mut event = Members::default();
    event.set_raw("final", "true".to_owned());
    event.set_raw("conversation", conversation.write());
    event.set_text("title", conversation.text("title").as_deref());
    event.set_raw("requestMessage", request.write());
    event.set_raw("responseMessage", response.write());
    event.set_raw(
        "runMessages",
        std::str::from_utf8(messages).ok()?.to_owned(),
    );
    let protocol = Members::read(refusal)
        .and_then(|refusal| refusal.raw("generationProtocolVersion").map(str::to_owned));
    if let Some(protocol) = protocol {
        event.set_raw("generationProtocolVersion", protocol);
    }
    Some(event.write().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONVERSATION: &[u8] = br#"{"conversationId":"c","title":"T","agent_id":"B"}"#;
    const REFUSAL: &[u8] = br#"{"error":"Stream not found","generationProtocolVersion":2}"#;

    fn message(id: &str, parent: &str, by_user: bool, second: u8) -> String {
        let at = format!("2026-11-30T19:00:{second:02}.000Z");
        format!(
            r#"{{"messageId":"{id}","parentMessageId":"{parent}","isCreatedByUser":{by_user},"createdAt":"{at}","updatedAt":"{at}"}}"#
        )
    }

    #[test]
    fn the_newest_response_ends_the_turn() {
        let messages = [
            message("u1", "0", true, 1),
            message("r1", "u1", false, 2),
            message("u2", "r1", true, 3),
            message("r2", "u2", false, 4),
        ];
        let messages = format!("[{}]", messages.join(","));
        let data = lost_final(CONVERSATION, messages.as_bytes(), REFUSAL, None).unwrap();
        let event: serde_json::Value = serde_json::from_slice(&data).unwrap();
        assert_eq!(event["final"], true);
        assert_eq!(event["conversation"]["agent_id"], "B");
        assert_eq!(event["title"], "T");
        assert_eq!(event["requestMessage"]["messageId"], "u2");
        assert_eq!(event["responseMessage"]["messageId"], "r2");
        assert_eq!(event["runMessages"].as_array().unwrap().len(), 4);
        assert_eq!(event["generationProtocolVersion"], 2);
        let begun = DateTime::parse_rfc3339_str("2026-11-30T19:00:05Z").unwrap();
        let late = Some(begun.timestamp_millis());
        assert_eq!(
            lost_final(CONVERSATION, messages.as_bytes(), REFUSAL, late),
            None
        );
    }

    #[test]
    fn a_turn_without_a_response_has_no_end() {
        let messages = [
            message("u1", "0", true, 1),
            message("r1", "u1", false, 2),
            message("u2", "r1", true, 3),
        ];
        let messages = format!("[{}]", messages.join(","));
        assert_eq!(
            lost_final(CONVERSATION, messages.as_bytes(), REFUSAL, None),
            None
        );
        assert_eq!(lost_final(CONVERSATION, b"[]", REFUSAL, None), None);
    }
}
