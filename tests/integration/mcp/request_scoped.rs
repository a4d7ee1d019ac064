//! With all four headers the switch is in force at once.

use baton::switch::record::{Origin, Status};
use serde_json::json;

use super::{Scene, Wiring, to};
use crate::harness::{Turn, parts};

#[tokio::test]
async fn a_call_is_in_force_when_it_is_answered_and_outlives_its_turn() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let called = s
        .call(
            Wiring::Request,
            &turn,
            json!({ "agent": s.b.id, "reason": "Bills" }),
        )
        .await;
    let called = called.succeeded();
    assert_eq!(
        turn.agent_now(&s.db).await.as_deref(),
        Some(s.b.id.as_str())
    );
    for (key, value) in [
        ("action", "switch_agent"),
        ("agent_id", &s.b.id),
        ("agent_name", "Agent B"),
        ("from_agent_id", &s.a.id),
        ("from_agent_name", "Agent A"),
        ("conversation_id", &turn.conversation),
        ("reason", "Bills"),
    ] {
        assert_eq!(called.json[key], value, "{key}");
    }
    turn.finish(&[called.part(), parts::text("Done")]).await;
    let record = s.ends(&turn, Status::Settled).await;
    assert_eq!(record.origin, Origin::Mcp);
    assert_eq!(record.from_agent, Some(s.a.id.as_str().into()));
    assert_eq!(record.reason.as_deref(), Some("Bills"));
    assert_eq!(
        record.switch_id.as_deref(),
        called.json["switch_id"].as_str()
    );
    assert!(
        record.tool_call_id.is_some(),
        "the saved part is bound to the call"
    );
    assert_eq!(record.repairs, 1, "{record:?}");
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_call_before_the_conversation_exists_is_in_force_as_soon_as_it_does() {
    for stored in [false, true] {
        let s = Scene::new().await;
        let turn = Turn::first(&s.librechat, &s.user, &s.a);
        if stored {
            turn.save_user_message().await;
        }
        let called = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
        assert_eq!(called.json["from_agent_id"], json!(null));
        if !stored {
            turn.save_user_message().await;
        }
        turn.start().await;
        s.names(&turn, &s.b).await;
        turn.finish(&[called.part()]).await;
        turn.title("Title").await;
        let record = s.ends(&turn, Status::Settled).await;
        assert_eq!(record.from_agent, Some(s.a.id.as_str().into()));
        s.names(&turn, &s.b).await;
    }
}

#[tokio::test]
async fn start_may_come_after_the_call() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    let called = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
    s.names(&turn, &s.b).await;
    turn.start().await;
    s.names(&turn, &s.b).await;
    turn.finish(&[called.part()]).await;
    s.ends(&turn, Status::Settled).await;
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_cancelled_turn_gives_way_to_the_newer_one() {
    let s = Scene::new().await;
    let cancelled = s.begun().await;
    s.call(Wiring::Request, &cancelled, to(&s.b))
        .await
        .succeeded();
    // Its response never comes.
    let newer = cancelled.next(&s.c);
    newer.save_user_message().await;
    newer.start().await;
    let record = s.ends(&cancelled, Status::Superseded).await;
    assert_eq!(
        record.detail.as_deref(),
        Some("a newer message of the user's")
    );
    newer.finish(&[parts::text("Hello")]).await;
    s.overtaken().await;
    s.names(&newer, &s.c).await;
}

#[tokio::test]
async fn a_stopped_turn_keeps_its_switch() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let called = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
    turn.save_unfinished_response(&[called.part()]).await;
    s.overtaken().await;
    s.names(&turn, &s.b).await;
    let later = turn.next(&s.b);
    later.run_plain().await;
    s.overtaken().await;
    s.names(&later, &s.b).await;
}

#[tokio::test]
async fn the_last_of_two_calls_in_a_turn_wins() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let first = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
    let second = s.call(Wiring::Request, &turn, to(&s.c)).await.succeeded();
    assert_eq!(second.json["from_agent_id"], s.a.id.as_str());
    s.names(&turn, &s.c).await;
    turn.finish(&[first.part(), parts::text("and"), second.part()])
        .await;
    let record = s.ends(&turn, Status::Settled).await;
    assert_eq!(record.to_agent, s.c.id.as_str().into());
    assert_eq!(s.records(&turn).await.len(), 1);
    s.names(&turn, &s.c).await;
}

#[tokio::test]
async fn the_order_in_the_saved_content_decides() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let [first, second] = [
        s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded(),
        s.call(Wiring::Request, &turn, to(&s.c)).await.succeeded(),
    ];
    turn.finish(&[second.part(), first.part()]).await;
    let record = s.ends(&turn, Status::Settled).await;
    assert_eq!(record.to_agent, s.b.id.as_str().into());
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_later_call_of_another_tool_wins_over_batons_own() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let own = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
    let other = parts::switch(&s.c.id, &turn.conversation);
    turn.finish(&[own.part(), other]).await;
    let record = s.ends(&turn, Status::Settled).await;
    assert_eq!(record.origin, Origin::Tool);
    s.names(&turn, &s.c).await;
}

#[tokio::test]
async fn a_copy_of_a_call_is_nothing() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let called = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
    turn.finish(&[called.part()]).await;
    s.ends(&turn, Status::Settled).await;
    // The user goes back to A, and edits the answer that holds the call.
    let back = turn.next(&s.a);
    back.run_plain().await;
    let edited = back.regenerated(&s.a);
    edited.finish(&[called.part()]).await;
    // A fork carries it into another conversation.
    let fork = Turn::first(&s.librechat, &s.user, &s.a);
    fork.save_user_message().await;
    fork.start().await;
    fork.finish(&[called.part()]).await;
    s.overtaken().await;
    s.names(&edited, &s.a).await;
    s.names(&fork, &s.a).await;
    assert_eq!(s.records(&turn).await.len(), 1);
    assert!(s.records(&fork).await.is_empty());
}

#[tokio::test]
async fn the_agent_that_is_active_already_can_be_switched_to() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let called = s.call(Wiring::Request, &turn, to(&s.a)).await.succeeded();
    turn.finish(&[called.part()]).await;
    let record = s.ends(&turn, Status::Settled).await;
    assert_eq!((record.repairs, record.applied_at), (0, None), "{record:?}");
    s.names(&turn, &s.a).await;
}

#[tokio::test]
async fn a_later_choice_of_the_user_wins() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let called = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
    turn.finish(&[called.part()]).await;
    s.ends(&turn, Status::Settled).await;
    let later = turn.next(&s.c);
    later.run_plain().await;
    s.overtaken().await;
    s.names(&later, &s.c).await;
}

#[tokio::test]
async fn a_call_in_a_continued_response_lasts() {
    let s = Scene::new().await;
    let turn = s.conversation().await.next(&s.a);
    turn.run_plain().await;
    // R is there, and looks finished, while LibreChat adds to it.
    turn.start().await;
    let called = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
    s.names(&turn, &s.b).await;
    turn.finish(&[parts::text("An answer"), called.part()])
        .await;
    s.overtaken().await;
    s.ends(&turn, Status::Settled).await;
    s.names(&turn, &s.b).await;
}
