//! The last event of a turn: what it says, and how it names another agent.
//!
//! `{final:true, conversation, title, requestMessage, responseMessage, runMessages?, …}`
//! (`api/server/controllers/agents/request.js`). The web client does `{...state, ...conversation}`,
//! so that a member which is left out changes nothing there. After Stop `conversation` is
//! `{conversationId}` alone. With `reconcile: true` it has no messages and says only that the
//! client is to read them (v0.8.8).

use mongodb::bson::{RawDocumentBuf, serialize_to_raw_document_buf};

use super::{
    AgentId, ConversationId, MessageId, SpecPatch, SwitchCall, ToolNames, UserId, json::Members,
};

/// What a final says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalEvent {
    /// The conversation.
    pub conversation: ConversationId,
    /// Its owner, where the final says so.
    pub user: Option<UserId>,
    /// R.
    pub response: Option<MessageId>,
    /// The agent that the client will ask for from now on; none after Stop.
    pub agent: Option<AgentId>,
    /// Whether the conversation was begun from a model spec.
    pub has_spec: bool,
    /// Whether the user stopped the turn.
    pub stopped: bool,
    /// How many of R's parts are switches, LibreChat's own handoffs included where they count.
    pub calls: usize,
}

impl FinalEvent {
    /// Reads the data of an event. `None`: it is no final, or one without a conversation.
    #[must_use]
    pub fn read(data: &[u8], tools: &ToolNames) -> Option<Self> {
        let event = Members::read(data).filter(|event| event.flag("final"))?;
        let conversation = Members::read(event.raw("conversation")?.as_bytes())?;
        let response = event
            .raw("responseMessage")
            .and_then(|raw| Members::read(raw.as_bytes()))
            .unwrap_or_default();
        let id = ConversationId::from(conversation.text("conversationId")?);
        Some(Self {
            user: conversation.text("user").map(UserId::from),
            response: response.text("messageId").map(MessageId::from),
            agent: conversation.text("agent_id").map(AgentId::from),
            has_spec: conversation.has("spec"),
            stopped: event.flag("aborted") || response.flag("unfinished"),
            calls: calls(&response, tools, &id),
            conversation: id,
        })
    }

    /// The data with the agent, and the model spec that goes with it.
    #[must_use]
    pub fn name(data: &[u8], agent: &AgentId, patch: SpecPatch<'_>) -> Option<Vec<u8>> {
        let mut event = Members::read(data)?;
        let mut conversation = Members::read(event.raw("conversation")?.as_bytes())?;
        conversation.set_text("agent_id", Some(agent.as_str()));
        match patch {
            SpecPatch::Set(spec) => {
                conversation.set_text("spec", Some(&spec.name));
                conversation.set_text("iconURL", spec.icon_url.as_deref());
            }
            SpecPatch::Clear => {
                conversation.set_text("spec", None);
                conversation.set_text("iconURL", None);
            }
            SpecPatch::Keep | SpecPatch::Refuse => {}
        }
        let conversation = conversation.write();
        event.set_raw("conversation", conversation);
        Some(event.write().into_bytes())
    }
}

fn calls(response: &Members<'_>, tools: &ToolNames, conversation: &ConversationId) -> usize {
    let parts: Vec<serde_json::Value> = response.get("content").unwrap_or_default();
    let parts: Vec<RawDocumentBuf> = parts
        .iter()
        .filter(|part| part.is_object())
        .filter_map(|part| serialize_to_raw_document_buf(part).ok())
        .collect();
    SwitchCall::all_in(&parts, tools, conversation).len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::librechat::specs::Spec;

    fn tools() -> ToolNames {
        ToolNames::new(
            &["switch_agent".to_owned()],
            &["switcher".to_owned()],
            "baton",
        )
    }

    const FINAL: &str = r#"{"final":true,"conversation":{"conversationId":"c","user":"u","agent_id":"A","spec":"s","n":1.0},"title":"t","responseMessage":{"messageId":"r","content":[null,{"type":"text","text":"x"},{"type":"tool_call","tool_call":{"id":"1","name":"switch_agent_mcp_switcher","args":"{}","output":"{\"action\":\"switch_agent\",\"agent_id\":\"B\",\"status\":\"success\"}"}}]}}"#;

    #[test]
    fn a_final_is_read() {
        let read = FinalEvent::read(FINAL.as_bytes(), &tools()).unwrap();
        let expected = FinalEvent {
            conversation: "c".into(),
            user: Some("u".into()),
            response: Some("r".into()),
            agent: Some("A".into()),
            has_spec: true,
            stopped: false,
            calls: 1,
        };
        assert_eq!(read, expected);
        assert_eq!(FinalEvent::read(br#"{"final":false}"#, &tools()), None);
        assert_eq!(FinalEvent::read(br#"{"text":"final"}"#, &tools()), None);
    }

    #[test]
    fn only_agent_and_spec_change() {
        let named = |patch| {
            let data = FinalEvent::name(FINAL.as_bytes(), &"B".into(), patch).unwrap();
            String::from_utf8(data).unwrap()
        };
        let with = |agent_and_spec: &str| {
            FINAL.replace(r#""agent_id":"A","spec":"s","n":1.0"#, agent_and_spec)
        };
        assert_eq!(
            named(SpecPatch::Keep),
            with(r#""agent_id":"B","spec":"s","n":1.0"#)
        );
        assert_eq!(
            named(SpecPatch::Clear),
            with(r#""agent_id":"B","spec":null,"n":1.0,"iconURL":null"#)
        );
        let spec = Spec {
            name: "sb".to_owned(),
            icon_url: Some("i".to_owned()),
        };
        assert_eq!(
            named(SpecPatch::Set(&spec)),
            with(r#""agent_id":"B","spec":"sb","n":1.0,"iconURL":"i""#)
        );
    }
}
