use super::*;

fn splice() -> Splice {
    let messages = json!([
        { "messageId": "u", "text": "x", "isCreatedByUser": true },
        { "messageId": "m1", "parentMessageId": "u", "content": [
            { "type": "text", "text": "One moment." }, { "type": "tool_call" },
            seam(2, &"x".into(), &"B".into()), { "type": "text", "text": "joined before" },
        ] },
    ]);
    let note = Some(" (note)".to_owned());
    let messages = messages.to_string();
    Splice::new(
        "B".into(),
        "x".into(),
        "m1".into(),
        note,
        messages.as_bytes(),
    )
    .unwrap()
}

fn event(data: &Value) -> Spliced {
    splice().event(&Event::new(data.to_string().as_bytes()))
}

fn changed(data: &Value) -> Value {
    match event(data) {
        Spliced::Changed(data) => serde_json::from_slice(&data).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_answers_parts_come_after_those_of_the_response() {
    let step = json!({ "event": "on_run_step", "data": {
        "id": "s", "index": 0, "stepIndex": 0, "runId": "x", "usage": null,
    } });
    let mut expected = step.clone();
    expected["data"]["index"] = json!(3);
    expected["data"]["runId"] = json!("m1");
    assert_eq!(changed(&step), expected);
    let done = json!({ "event": "on_run_step_completed", "data": {
        "result": { "id": "s", "index": 1, "tool_call": {} },
    } });
    assert_eq!(changed(&done)["data"]["result"]["index"], 4);
    let label = json!({ "event": "on_activity_label", "data": {
        "index": 2, "part": { "activity_start_index": 0, "activity_end_index": 1 },
    } });
    let label = &changed(&label)["data"];
    assert_eq!(label["index"], 5);
    assert_eq!(
        label["part"],
        json!({ "activity_start_index": 3, "activity_end_index": 4 })
    );
}

#[test]
fn what_names_the_answer_names_the_response() {
    let attachment = json!({ "event": "attachment", "data": {
        "messageId": "x", "toolCallId": "c", "conversationId": "x2",
    } });
    let data = &changed(&attachment)["data"];
    assert_eq!(data["messageId"], "m1");
    assert_eq!(data["conversationId"], "x2");
    let usage = json!({ "event": "on_token_usage", "data": { "runId": "x", "seq": 1 } });
    assert_eq!(changed(&usage), usage);
}

#[test]
fn deltas_pass_and_the_beginning_does_not() {
    let delta = br#"{"event":"on_message_delta","data":{"id":"s"}}"#;
    assert_eq!(splice().event(&Event::new(delta)), Spliced::Same);
    assert_eq!(
        event(&json!({ "created": true, "message": {} })),
        Spliced::Nothing
    );
    assert_eq!(event(&json!({ "final": true })), Spliced::Final);
}

#[test]
fn a_failure_is_told_in_librechats_words() {
    let mut frames = crate::librechat::sse::Frames::default();
    let wire =
        "event: error\ndata: {\"error\":\"No such model\",\"generationProtocolVersion\":2}\n\n";
    let events = frames.push(&wire.to_owned().into());
    assert_eq!(
        splice().event(&events[0]),
        Spliced::Failed("No such model".to_owned())
    );
}

#[test]
fn who_comes_later_gets_the_response_so_far() {
    let state = json!({
        "responseMessageId": "x", "runSteps": [{ "id": "s", "index": 0, "runId": "x" }],
        "aggregatedContent": [{ "type": "text", "text": "Hello" }],
        "userMessage": { "messageId": "u", "text": "What? (note)" },
        "collectedUsage": [{ "runId": "x" }],
        "replayEvents": [{ "event": "on_run_step", "data": { "index": 1, "runId": "x" } }],
    });
    let sync = json!({ "sync": true, "resumeState": state, "pendingEvents": [
        { "event": "on_run_step", "data": { "index": 2, "runId": "x" } },
    ] });
    let said = changed(&sync);
    let resumed = &said["resumeState"];
    assert_eq!(resumed["responseMessageId"], "m1");
    assert_eq!(resumed["runSteps"][0]["index"], 3);
    assert_eq!(resumed["runSteps"][0]["runId"], "m1");
    assert_eq!(resumed["userMessage"]["text"], "What?");
    assert_eq!(resumed["collectedUsage"][0]["runId"], "x");
    assert_eq!(resumed["replayEvents"][0]["data"]["index"], 4);
    assert_eq!(
        said["pendingEvents"][0]["data"],
        json!({ "index": 5, "runId": "m1" })
    );
    let kinds: Vec<_> = resumed["aggregatedContent"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["text", "tool_call", "agent_update", "text"]);
    let status = json!({ "active": true, "createdAt": 7, "resumeState": state }).to_string();
    assert!(Splice::is_about(status.as_bytes(), &"x".into()));
    let status: Value =
        serde_json::from_slice(&splice().status(status.as_bytes()).unwrap()).unwrap();
    assert_eq!(status["resumeState"], said["resumeState"]);
    assert_eq!(status["aggregatedContent"], resumed["aggregatedContent"]);
    let other = json!({ "active": true, "resumeState": { "responseMessageId": "y" } }).to_string();
    assert_eq!(splice().status(other.as_bytes()), None);
    assert!(!Splice::is_about(other.as_bytes(), &"x".into()));
}

#[test]
fn the_end_shows_what_is_stored() {
    let messages = json!([
        { "messageId": "u", "text": "x" },
        { "messageId": "m1", "parentMessageId": "u", "content": [1] },
    ])
    .to_string();
    let conversation = br#"{"conversationId":"c","title":"T","agent_id":"B"}"#;
    let end = |said| -> Value {
        let end = splice()
            .end(said, conversation, messages.as_bytes(), None)
            .unwrap();
        serde_json::from_slice(&end).unwrap()
    };
    let said = br#"{"final":true,"conversation":{"conversationId":"c"},"title":"Old","pendingSteers":[2],"responseMessage":{"messageId":"x"}}"#;
    let told = end(Some(said));
    assert_eq!(told["conversation"], json!({ "conversationId": "c" }));
    assert_eq!(told["pendingSteers"], json!([2]));
    assert_eq!(told["requestMessage"]["messageId"], "u");
    assert_eq!(told["responseMessage"]["content"], json!([1]));
    assert_eq!(told["runMessages"].as_array().unwrap().len(), 2);
    let made = end(None);
    assert_eq!(made["final"], true);
    assert_eq!(made["title"], "T");
    assert_eq!(made["conversation"]["agent_id"], "B");
}

#[test]
fn what_the_user_has_queued_is_not_forgotten() {
    let before = br#"{"final":true,"pendingSteers":[{"steerId":"s1"}]}"#;
    let splice = splice().after(before);
    let sync = json!({ "sync": true, "resumeState": { "pendingSteers": [{ "steerId": "s2" }] } });
    let Spliced::Changed(said) = splice.event(&Event::new(sync.to_string().as_bytes())) else {
        panic!("the same");
    };
    let said: Value = serde_json::from_slice(&said).unwrap();
    let both = json!([{ "steerId": "s1" }, { "steerId": "s2" }]);
    assert_eq!(said["resumeState"]["pendingSteers"], both);
    let messages = json!([
        { "messageId": "u" }, { "messageId": "m1", "parentMessageId": "u", "content": [] },
    ])
    .to_string();
    let end = |status: Option<&[u8]>| -> Value {
        let said = br#"{"final":true,"pendingSteers":[{"steerId":"s2"}]}"#;
        let end = splice.end(Some(said), b"{}", messages.as_bytes(), status);
        let end: Value = serde_json::from_slice(&end.unwrap()).unwrap();
        end["pendingSteers"].clone()
    };
    assert_eq!(end(None), json!([{ "steerId": "s2" }, { "steerId": "s1" }]));
    // LibreChat knows which of them the user has taken back meanwhile.
    let status = br#"{"active":false,"unrecoveredSteers":[{"steerId":"s2"},{"steerId":"s3"}]}"#;
    assert_eq!(
        end(Some(status)),
        json!([{ "steerId": "s2" }, { "steerId": "s3" }])
    );
}
