//! Many at once.

use baton::switch::record::Status;
use futures::future::join_all;

use super::{Scene, Wiring, call, to};
use crate::harness::Turn;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_calls_at_once_are_all_answered_and_all_last() {
    let s = Scene::new().await;
    let first = join_all((0..200).map(|_| s.begun()));
    let turns = first.await;
    let calls = turns
        .iter()
        .map(|turn| s.call(Wiring::Request, turn, to(&s.b)));
    let called: Vec<_> = join_all(calls).await;
    let ids: std::collections::BTreeSet<_> = called
        .iter()
        .map(|called| called.clone().succeeded().json["switch_id"].to_string())
        .collect();
    assert_eq!(ids.len(), turns.len());
    join_all(turns.iter().zip(&called).map(async |(turn, called)| {
        turn.finish(&[called.part()]).await;
        s.ends(turn, Status::Settled).await;
        s.names(turn, &s.b).await;
    }))
    .await;
}

#[tokio::test]
async fn calls_of_one_turn_at_once_are_one_switch() {
    let s = Scene::new().await;
    let turn = s.begun().await;
    let targets = [&s.b, &s.c, &s.b, &s.c, &s.b];
    let calls = targets.map(|agent| s.call(Wiring::Request, &turn, to(agent)));
    let called: Vec<_> = join_all(calls)
        .await
        .into_iter()
        .map(super::Called::succeeded)
        .collect();
    let parts: Vec<_> = called.iter().map(super::Called::part).collect();
    turn.finish(&parts).await;
    let record = s.ends(&turn, Status::Settled).await;
    assert_eq!(
        record.to_agent,
        s.b.id.as_str().into(),
        "the last one in the content"
    );
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_turn_that_is_told_to_two_instances_is_one_switch() {
    for wiring in [Wiring::Request, Wiring::User] {
        let s = Scene::new().await;
        let second = Scene::start(&s.db, &[]).await;
        let mut turn = s.begun().await;
        for target in [&s.b, &s.c] {
            let (one, two) = tokio::join!(
                s.call(wiring, &turn, to(target)),
                call(&second, wiring, &turn, "switch_agent", to(target)),
            );
            turn.finish(&[one.succeeded().part(), two.succeeded().part()])
                .await;
            s.ends(&turn, Status::Settled).await;
            s.names(&turn, target).await;
            turn = turn.next(target);
            turn.save_user_message().await;
            turn.start().await;
        }
        assert_eq!(s.records(&turn).await.len(), 2);
    }
}

#[tokio::test]
async fn a_conversation_may_be_made_in_the_middle_of_a_call() {
    let s = Scene::new().await;
    for _ in 0..30 {
        let turn = Turn::first(&s.librechat, &s.user, &s.a);
        turn.save_user_message().await;
        let (called, _) = tokio::join!(s.call(Wiring::Request, &turn, to(&s.b)), turn.start());
        turn.finish(&[called.succeeded().part()]).await;
        s.ends(&turn, Status::Settled).await;
        s.names(&turn, &s.b).await;
    }
}
