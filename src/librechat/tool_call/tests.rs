use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use serde_json::{Value, json};

use super::*;

fn names() -> ToolNames {
    ToolNames::new(
        &["switch_agent".to_owned(), "hand_over".to_owned()],
        &["trusted".to_owned()],
        "baton",
    )
}

fn answer() -> Value {
    json!({
        "action": "switch_agent", "agent_id": "agent_b", "conversation_id": "c",
        "status": "success",
    })
}

fn call(name: &str, output: impl Into<Bson>) -> Document {
    let call = doc! { "id": "call_0", "name": name, "args": "{}", "output": output.into() };
    doc! { "type": "tool_call", "tool_call": call }
}

fn read(part: &Document) -> Result<SwitchCall, NoSwitch> {
    let part = RawDocumentBuf::try_from(part).unwrap();
    SwitchCall::read(&part, &names(), &"c".into())
}

fn said(answer: &Value) -> Result<String, NoSwitch> {
    read(&call("switch_agent", answer.to_string())).map(|call| call.to.to_string())
}

/// The answer with one field changed, or without it.
fn but(field: &str, value: Value) -> Value {
    let mut answer = answer();
    let fields = answer.as_object_mut().unwrap();
    match value {
        Value::String(without) if without == "(none)" => fields.remove(field),
        value => fields.insert(field.to_owned(), value),
    };
    answer
}

#[test]
fn the_tool_alone_and_of_trusted_servers_counts() {
    for (name, own) in [
        ("switch_agent", false),
        ("hand_over", false),
        ("switch_agent_mcp_trusted", false),
        ("hand_over_mcp_trusted", false),
        ("switch_agent_mcp_baton", true),
        ("hand_over_mcp_baton", true),
    ] {
        let read = read(&call(name, answer().to_string())).unwrap();
        assert_eq!(read.kind == CallKind::Own, own, "{name}");
    }
    for name in [
        "",
        "switch",
        "switch_agent_mcp_",
        "switch_agent_mcp_stranger",
        "x_switch_agent",
    ] {
        assert_eq!(
            read(&call(name, answer().to_string())),
            Err(NoSwitch::NotATrustedTool)
        );
    }
}

#[test]
fn only_a_part_that_is_a_call_counts() {
    let mut part = call("switch_agent", answer().to_string());
    part.insert("type", "text");
    assert_eq!(read(&part), Err(NoSwitch::NotATrustedTool));
    part.remove("type");
    assert_eq!(read(&part), Err(NoSwitch::NotATrustedTool));
    let none = doc! { "type": "tool_call" };
    assert_eq!(read(&none), Err(NoSwitch::NotATrustedTool));
}

#[test]
fn the_answer_says_what_it_must() {
    let none = || json!("(none)");
    let b = Ok("agent_b".to_owned());
    assert_eq!(said(&answer()), b);
    assert_eq!(said(&but("action", none())), b);
    assert_eq!(said(&but("action", json!("x"))), Err(NoSwitch::NoAnswer));
    assert_eq!(said(&but("status", json!("error"))), Err(NoSwitch::Failed));
    assert_eq!(said(&but("status", none())), Err(NoSwitch::Failed));
    assert_eq!(said(&but("conversation_id", none())), b);
    assert_eq!(
        said(&but("conversation_id", json!("d"))),
        Err(NoSwitch::OtherConversation)
    );
    assert_eq!(said(&but("agent_id", none())), Err(NoSwitch::NoAnswer));
    assert_eq!(said(&but("agent_id", json!(""))), Err(NoSwitch::NoAnswer));
    assert_eq!(said(&but("agent_id", json!(5))), Err(NoSwitch::NoAnswer));
}

#[test]
fn success_may_be_a_flag_where_there_is_no_status() {
    let flagged = |status: Value, success: bool| {
        let mut answer = but("status", status);
        answer["success"] = success.into();
        said(&answer).is_ok()
    };
    assert!(flagged(json!("(none)"), true));
    assert!(!flagged(json!("(none)"), false));
    assert!(!flagged(json!("error"), true), "the status counts");
    assert!(flagged(json!("success"), false), "the status counts");
}

#[test]
fn the_output_has_the_shape_of_any_version() {
    let text = answer().to_string();
    let item = doc! { "type": "text", "text": &text };
    let listed = json!([{ "type": "image" }, { "type": "text", "text": &text }]).to_string();
    for output in [
        Bson::from(text.clone()),
        format!("\n {text}").into(),
        listed.into(),
        item.clone().into(),
        vec![Bson::Null, item.into()].into(),
    ] {
        assert!(
            read(&call("switch_agent", output.clone())).is_ok(),
            "{output}"
        );
    }
    for output in [
        Bson::Null,
        5.into(),
        "".into(),
        "agent_b".into(),
        Bson::from(format!("{text}{}", " ".repeat(OUTPUT_LIMIT))),
    ] {
        assert_eq!(read(&call("switch_agent", output)), Err(NoSwitch::NoAnswer));
    }
}

#[test]
fn a_fingerprint_tells_all_apart_that_a_call_says() {
    let print = |part: &Document| {
        let call = part.get_document("tool_call").unwrap();
        fingerprint(&RawDocumentBuf::try_from(call).unwrap())
    };
    let one = call("switch_agent", "x");
    assert_eq!(print(&one), print(&one.clone()));
    for field in ["id", "name", "args", "output"] {
        let mut other = one.clone();
        let call = other.get_document_mut("tool_call").unwrap();
        call.insert(field, "other");
        assert_ne!(print(&one), print(&other), "{field}");
    }
    let mut later = one.clone();
    let saved_again = later.get_document_mut("tool_call").unwrap();
    saved_again.insert("progress", 1);
    assert_eq!(
        print(&one),
        print(&later),
        "what else is saved says nothing"
    );
}

#[test]
fn whether_to_answer_now_is_read_from_the_arguments() {
    for (args, said) in [
        (Bson::from("{}"), None),
        (r#"{"answer_now":false}"#.into(), Some(false)),
        (r#"{"answer_now":"True"}"#.into(), Some(true)),
        (r#"{"answer_now":3}"#.into(), None),
        (r#"{"answer_now":"#.into(), None),
        (doc! { "answer_now": true }.into(), Some(true)),
        (Bson::Null, None),
    ] {
        let mut part = call("switch_agent", answer().to_string());
        let call = part.get_document_mut("tool_call").unwrap();
        call.insert("args", args.clone());
        assert_eq!(read(&part).unwrap().answer_now, said, "{args}");
    }
}
