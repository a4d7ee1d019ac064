//! What the operator allows.

use baton::switch::record::Status;
use serde_json::json;

use super::{Scene, Wiring, call, to};
use crate::harness::parts;

#[tokio::test]
async fn only_what_is_on_the_list_may_be_switched_to() {
    let s = Scene::with(&[("BATON__SWITCH__ALLOW", "agent a=agent b")]).await;
    let turn = s.begun().await;
    let refused = s.call(Wiring::Request, &turn, to(&s.c)).await;
    assert!(refused.message().contains("does not allow"), "{refused:?}");
    assert_eq!(refused.offers(), ["Agent B"]);
    s.names(&turn, &s.a).await;
    let records = s.records(&turn).await;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].status, Status::Rejected);
    let list = call(&s.baton, Wiring::Request, &turn, "list_agents", json!({})).await;
    assert_eq!(list.offers(), ["Agent B"]);
    let allowed = s.call(Wiring::Request, &turn, to(&s.b)).await.succeeded();
    turn.finish(&[refused.part(), allowed.part()]).await;
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn the_list_is_asked_once_it_is_known_who_called() {
    let s = Scene::with(&[("BATON__SWITCH__ALLOW", "Agent A=Agent B")]).await;
    let turn = s.begun().await;
    let unlisted = s.call(Wiring::User, &turn, to(&s.c)).await.succeeded();
    turn.finish(&[unlisted.part()]).await;
    s.overtaken().await;
    s.names(&turn, &s.a).await;
    let records = s.records(&turn).await;
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].status, Status::Rejected);
    assert_eq!(
        records[0].detail.as_deref(),
        Some("switch.allow does not allow it")
    );
}

#[tokio::test]
async fn a_call_that_turns_out_not_to_be_allowed_is_taken_back() {
    let s = Scene::with(&[("BATON__SWITCH__ALLOW", "Agent A=Agent B")]).await;
    let turn = s.conversation().await.next(&s.a);
    turn.save_user_message().await;
    // START has not come, so that nobody knows yet who answers.
    let called = s.call(Wiring::Request, &turn, to(&s.c)).await.succeeded();
    s.names(&turn, &s.c).await;
    turn.start().await;
    turn.save_response(&[called.part()]).await;
    let record = s.ends(&turn, Status::Rejected).await;
    assert_eq!(record.from_agent, None);
    s.names(&turn, &s.a).await;
    turn.end().await;
    turn.touch_user_message().await;
    s.overtaken().await;
    s.names(&turn, &s.a).await;
    assert_eq!(s.records(&turn).await.len(), 1);
}

#[tokio::test]
async fn agents_that_hand_to_and_fro_are_stopped() {
    let s = Scene::with(&[("BATON__SWITCH__MAX_PER_CONVERSATION", "2 in 10m")]).await;
    let mut turn = s.begun().await;
    for target in [&s.b, &s.a] {
        let called = s.call(Wiring::Request, &turn, to(target)).await.succeeded();
        turn.finish(&[called.part()]).await;
        s.ends(&turn, Status::Settled).await;
        turn = turn.next(target);
        turn.save_user_message().await;
        turn.start().await;
    }
    let refused = s.call(Wiring::Request, &turn, to(&s.b)).await;
    assert!(refused.message().contains("too often"), "{refused:?}");
    // Whoever does not say where the call is from is stopped when the response is saved.
    let called = s.call(Wiring::User, &turn, to(&s.b)).await.succeeded();
    turn.finish(&[called.part(), parts::switch(&s.c.id, &turn.conversation)])
        .await;
    s.overtaken().await;
    s.names(&turn, &s.a).await;
    let rejected = s.records(&turn).await;
    let rejected: Vec<_> = rejected
        .iter()
        .filter(|record| record.status == Status::Rejected)
        .map(|record| record.detail.as_deref().unwrap())
        .collect();
    assert_eq!(rejected.len(), 3, "{rejected:?}");
    assert!(
        rejected
            .iter()
            .all(|detail| detail.contains("switch.max_per_conversation"))
    );
}
