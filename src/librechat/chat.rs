//! LibreChat's chat requests: their paths, and the body that begins a turn.
//!
//! `api/server/routes/agents/{index,chat}.js`; the body is made by
//! `packages/data-provider/src/createPayload.ts`. Only `agent_id` decides who answers, and `spec`
//! where model specs are enforced; everything else of a body goes on as it came.

use super::{AgentId, ConversationId, MessageId, SpecPatch, json::Members};

/// Everything below it is the chat of agents.
pub const CHAT: &str = "/api/agents/chat";

/// What a request of the chat is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatRequest {
    /// Begins a turn: POST to the chat itself or to the name of an endpoint.
    Start,
    /// Reads a turn's events.
    Stream {
        /// The stream's id is the conversation's.
        conversation: ConversationId,
        /// `generationCreatedAt`: when the turn was begun, in milliseconds by LibreChat's clock
        /// (v0.8.8).
        begun: Option<i64>,
    },
    /// Asks whether a turn is running.
    Status(ConversationId),
    /// Stops a turn.
    Abort,
    /// Any other: steering, resuming a paused turn, the list of running ones.
    Other,
}

impl ChatRequest {
    /// What a request is for. `None`: it is not the chat's. Express takes a path in any case of
    /// letters and with a slash at its end.
    #[must_use]
    pub fn of(method: &str, path: &str, query: Option<&str>) -> Option<Self> {
        let below = path
            .get(..CHAT.len())
            .filter(|start| start.eq_ignore_ascii_case(CHAT))
            .map(|_| &path[CHAT.len()..])?;
        let below = match below.strip_prefix('/') {
            Some(below) => below.strip_suffix('/').unwrap_or(below),
            None if below.is_empty() => below,
            None => return None,
        };
        let (what, id) = match below.split_once('/') {
            Some((what, id)) => (what, Some(id).filter(|id| !id.contains('/'))),
            None => (below, None),
        };
        let is_deeper = below.contains('/');
        Some(match (method, what.to_ascii_lowercase().as_str(), id) {
            ("GET", "stream", Some(id)) => Self::Stream {
                conversation: id.into(),
                begun: query.and_then(begun),
            },
            ("GET", "status", Some(id)) => Self::Status(id.into()),
            ("POST", "abort", None) if !is_deeper => Self::Abort,
            ("POST", "resume" | "steer", _) => Self::Other,
            ("POST", _, None) if !is_deeper => Self::Start,
            _ => Self::Other,
        })
    }
}

fn begun(query: &str) -> Option<i64> {
    query
        .split('&')
        .find_map(|pair| pair.strip_prefix("generationCreatedAt="))
        .and_then(|value| value.parse().ok())
}

/// The conversation that a request to stop names.
#[must_use]
pub fn aborted(body: &[u8]) -> Option<ConversationId> {
    let body = Members::read(body)?;
    ["conversationId", "streamId", "abortKey"]
        .iter()
        .find_map(|name| body.text(name))
        // Up to v0.8.1 the key is `conversation:…`.
        .map(|id| id.split(':').next().unwrap_or(&id).into())
}

/// The members by which a request says which generation it means.
const GENERATIONS: [&str; 2] = ["generationCreatedAt", "expectedPredecessorCreatedAt"];

/// The generation that a request's body is about (v0.8.8), and its conversation.
#[must_use]
pub fn generation(body: &[u8]) -> Option<(ConversationId, i64)> {
    let conversation = aborted(body)?;
    let body = Members::read(body)?;
    let generation = GENERATIONS.iter().find_map(|name| body.get(name))?;
    Some((conversation, generation))
}

/// The same body about another generation.
#[must_use]
pub fn with_generation(body: &[u8], generation: i64) -> Option<Vec<u8>> {
    let mut body = Members::read(body)?;
    let name = *GENERATIONS.iter().find(|name| body.has(name))?;
    body.set_raw(name, generation.to_string());
    Some(body.write().into_bytes())
}

/// LibreChat's answer to a POST that begins a turn: `generationCreatedAt`, from v0.8.8 on.
#[must_use]
pub fn started(answer: &[u8]) -> Option<Option<i64>> {
    let answer = Members::read(answer).filter(|answer| answer.has("streamId"))?;
    Some(answer.get("generationCreatedAt"))
}

/// Where the events of a generation are, from their beginning on, whoever has read them before.
#[must_use]
pub fn stream(conversation: &ConversationId, generation: Option<i64>) -> String {
    let path = format!("{CHAT}/stream/{conversation}?resume=true");
    match generation {
        Some(generation) => {
            format!("{path}&generationCreatedAt={generation}&generationProtocolVersion=2")
        }
        None => path,
    }
}

/// Where it is said whether a generation runs.
#[must_use]
pub fn status(conversation: &ConversationId) -> String {
    format!("{CHAT}/status/{conversation}")
}

/// A query that asks for another generation than it did.
#[must_use]
pub fn query_with_generation(query: &str, generation: i64) -> String {
    let pairs = query.split('&').map(|pair| {
        if pair.starts_with("generationCreatedAt=") {
            format!("generationCreatedAt={generation}")
        } else {
            pair.to_owned()
        }
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// The time zone that a body says the user is in.
#[must_use]
pub fn timezone(body: &[u8]) -> Option<String> {
    Members::read(body)?.text("timezone")
}

/// The header by which a client says that it knows generations (v0.8.8).
pub const PROTOCOL_HEADER: &str = "x-librechat-generation-protocol";

/// The body of a POST that begins a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// The conversation; every POST of a new one has none.
    pub conversation: ConversationId,
    /// The agent that the client asks for.
    pub agent: AgentId,
    /// The message that the new one answers.
    pub parent: Option<MessageId>,
    /// The client goes on with a response (`isContinued`).
    pub continues: bool,
    /// The client has a message answered again (`isRegenerate`), or an answer's text changed and
    /// gone on with (`editedContent`).
    pub repeats: bool,
    /// Whether it names a model spec.
    pub has_spec: bool,
}

impl Post {
    /// Reads a body. `None`: it begins a conversation, or is not for an agent.
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        let body = Members::read(body)?;
        if body.text("endpoint").as_deref() != Some("agents") {
            return None;
        }
        let conversation = body
            .text("conversationId")
            .filter(|id| !matches!(id.as_str(), "" | "new" | "null"))?;
        Some(Self {
            conversation: conversation.into(),
            agent: body.text("agent_id")?.into(),
            parent: body.text("parentMessageId").map(MessageId::from),
            continues: body.flag("isContinued"),
            repeats: body.flag("isRegenerate") || body.has("editedContent"),
            has_spec: body.has("spec"),
        })
    }

    /// The body with another agent, and the model spec that goes with it.
    #[must_use]
    pub fn name(body: &[u8], agent: &AgentId, patch: SpecPatch<'_>) -> Option<Vec<u8>> {
        let mut body = Members::read(body)?;
        body.set_text("agent_id", Some(agent.as_str()));
        match patch {
            SpecPatch::Set(spec) => {
                body.set_text("spec", Some(&spec.name));
                match &spec.icon_url {
                    Some(icon) if body.has("iconURL") => body.set_text("iconURL", Some(icon)),
                    _ => body.remove("iconURL"),
                }
            }
            SpecPatch::Clear => {
                body.remove("spec");
                body.remove("iconURL");
            }
            SpecPatch::Keep | SpecPatch::Refuse => {}
        }
        Some(body.write().into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart() {
        let of = |method: &str, path: &str| {
            ChatRequest::of(method, path, Some("a=1&generationCreatedAt=17"))
        };
        assert_eq!(
            of("POST", "/api/agents/chat/agents"),
            Some(ChatRequest::Start)
        );
        assert_eq!(of("POST", "/api/agents/chat"), Some(ChatRequest::Start));
        assert_eq!(
            of("POST", "/api/Agents/chat/agents/"),
            Some(ChatRequest::Start)
        );
        assert_eq!(
            of("POST", "/api/agents/chat/abort"),
            Some(ChatRequest::Abort)
        );
        for other in ["steer", "steer/cancel", "resume"] {
            let path = format!("/api/agents/chat/{other}");
            assert_eq!(of("POST", &path), Some(ChatRequest::Other), "{other}");
        }
        let stream = ChatRequest::Stream {
            conversation: "c".into(),
            begun: Some(17),
        };
        assert_eq!(of("GET", "/api/agents/chat/stream/c"), Some(stream));
        let status = ChatRequest::Status("c".into());
        assert_eq!(of("GET", "/api/agents/chat/status/c"), Some(status));
        for path in ["/api/agents/chats", "/api/agents", "/", "/é", "*"] {
            assert_eq!(of("POST", path), None, "{path}");
        }
    }

    #[test]
    fn a_generation_is_named_in_several_ways() {
        let stop = br#"{"conversationId":"c","generationCreatedAt":17}"#;
        assert_eq!(generation(stop), Some(("c".into(), 17)));
        let sent = br#"{"conversationId":"c","expectedPredecessorCreatedAt":17,"n":1.0}"#;
        assert_eq!(generation(sent), Some(("c".into(), 17)));
        assert_eq!(
            with_generation(sent, 18).unwrap(),
            br#"{"conversationId":"c","expectedPredecessorCreatedAt":18,"n":1.0}"#
        );
        assert_eq!(generation(br#"{"conversationId":"c"}"#), None);
        assert_eq!(
            query_with_generation("a=1&generationCreatedAt=17&b", 18),
            "a=1&generationCreatedAt=18&b"
        );
        let answer = br#"{"streamId":"c","generationCreatedAt":5}"#;
        assert_eq!(started(answer), Some(Some(5)));
        assert_eq!(started(br#"{"streamId":"c"}"#), Some(None));
        assert_eq!(started(br#"{"status":"settled"}"#), None);
    }

    #[test]
    fn a_new_conversation_is_nobodys() {
        let read = |conversation: &str| {
            Post::read(
                format!(
                    r#"{{"endpoint":"agents","agent_id":"A","conversationId":{conversation}}}"#
                )
                .as_bytes(),
            )
        };
        assert_eq!(read("null"), None);
        assert_eq!(read("\"new\""), None);
        assert_eq!(read("\"c\"").unwrap().conversation, "c".into());
    }

    #[test]
    fn all_but_the_agent_stays() {
        let body =
            br#"{"text":"x","agent_id":"A","addedConvo":{"agent_id":"A"},"spec":"s","n":1.0}"#;
        let named = Post::name(body, &"B".into(), SpecPatch::Clear).unwrap();
        assert_eq!(
            String::from_utf8(named).unwrap(),
            r#"{"text":"x","agent_id":"B","addedConvo":{"agent_id":"A"},"n":1.0}"#
        );
    }
}
