//! Parts of a response's `content`, as LibreChat saves them.

use std::sync::atomic::{AtomicU32, Ordering};

use mongodb::bson::{Bson, doc};
use serde_json::json;

/// The name under which LibreChat knows the tool of an MCP server called `switcher`.
pub const TOOL: &str = "switch_agent_mcp_switcher";

/// A text.
pub fn text(text: &str) -> Bson {
    doc! { "type": "text", "text": text }.into()
}

/// A successful call of [`TOOL`].
pub fn switch(agent: &str, conversation: &str) -> Bson {
    call(TOOL, agent, &success(agent, conversation))
}

/// The same with the output as v0.8.0 saves it: a list of MCP content.
pub fn switch_in_a_list(agent: &str, conversation: &str) -> Bson {
    call(TOOL, agent, &listed(&success(agent, conversation)))
}

/// A call of any tool for `agent`, with any output, under an id of its own.
pub fn call(tool: &str, agent: &str, output: &str) -> Bson {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let id = format!("call_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    call_with_id(&id, tool, &json!({ "agent_id": agent }).to_string(), output)
}

/// A call with everything that identifies it given.
pub fn call_with_id(id: &str, tool: &str, arguments: &str, output: &str) -> Bson {
    let call = doc! {
        "id": id,
        "name": tool,
        "args": arguments,
        "type": "tool_call",
        "progress": 1,
        "output": output,
    };
    doc! { "type": "tool_call", "tool_call": call }.into()
}

/// A native handoff: `agent` is the source, which LibreChat notes on the part.
pub fn handoff(from: &str, to: &str) -> Bson {
    let call = doc! {
        "id": "call_handoff",
        "name": format!("lc_transfer_to_{to}"),
        "args": "",
        "type": "tool_call",
        "progress": 1,
    };
    doc! { "type": "tool_call", "tool_call": call, "agentId": from }.into()
}

/// What the tool answers when it has switched.
pub fn success(agent: &str, conversation: &str) -> String {
    answer(agent, conversation, "success")
}

/// What the tool answers, with any status.
pub fn answer(agent: &str, conversation: &str, status: &str) -> String {
    json!({
        "action": "switch_agent",
        "agent_id": agent,
        "conversation_id": conversation,
        "status": status,
    })
    .to_string()
}

/// An answer wrapped into MCP's list of content.
pub fn listed(answer: &str) -> String {
    json!([{ "type": "text", "text": answer }]).to_string()
}
