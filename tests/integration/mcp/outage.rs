//! MongoDB goes away, or falls silent, in the middle of a call: the call is answered all the same.

use std::time::Duration;

use baton::switch::record::Status;
use mongodb::bson::{Document, doc};
use serde_json::json;
use tokio::time::timeout;

use super::{Called, Scene, Wiring, call, to};
use crate::harness::{Mongod, Topology, Turn};

const AWAY: &str = "the database did not answer in time; nothing was switched, try again";

/// Longer than any call takes, so that a hung one fails its test and does not hang it.
const HUNG: Duration = Duration::from_secs(60);

/// The driver's name under which Baton works, for MongoDB's failpoints.
const BATON: &str = "baton (switches)";

async fn answered(call: impl Future<Output = Called>) -> Called {
    timeout(HUNG, call).await.expect("the call hangs")
}

/// MongoDB holds Baton's next `update` of the collection back for so many ms. Gives how often it
/// had held anything back before.
async fn hold_back(s: &Scene, namespace: String, ms: i32) -> i64 {
    let failpoint = doc! {
        "configureFailPoint": "failCommand",
        "mode": { "times": 1 },
        "data": {
            "failCommands": ["update"],
            "namespace": namespace,
            "appName": BATON,
            "blockConnection": true,
            "blockTimeMS": ms,
        },
    };
    let set = admin(s, failpoint).await;
    set.get_i64("count")
        .or_else(|_| set.get_i32("count").map(i64::from))
        .unwrap()
}

/// Waits until MongoDB holds a command back.
async fn is_held_back(s: &Scene, before: i64) {
    let wait = doc! {
        "waitForFailPoint": "failCommand", "timesEntered": before + 1, "maxTimeMS": 30_000,
    };
    admin(s, wait).await;
}

async fn admin(s: &Scene, command: Document) -> Document {
    let admin = s.db.client.database("admin");
    admin.run_command(command).await.unwrap()
}

/// Nothing came of the failed call, and the tool works again.
async fn nothing_was_switched(s: &Scene, turn: &Turn, failed: &Called) {
    s.baton.ready().await;
    turn.finish(&[failed.part()]).await;
    s.overtaken().await;
    s.names(turn, &s.a).await;
    assert!(s.records(turn).await.is_empty());
    let next = turn.next(&s.a);
    next.save_user_message().await;
    next.start().await;
    let called = s.call(Wiring::Request, &next, to(&s.b)).await.succeeded();
    next.finish(&[called.part()]).await;
    s.ends(&next, Status::Settled).await;
    s.names(&next, &s.b).await;
}

#[tokio::test]
async fn a_call_while_mongodb_is_gone_is_an_error_of_the_tool() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::on(&mongod, &[]).await;
    let turn = s.begun().await;
    mongod.kill();
    let arguments = json!({ "query": "Agent" });
    let (request, user, list) = tokio::join!(
        answered(s.call(Wiring::Request, &turn, to(&s.b))),
        answered(s.call(Wiring::User, &turn, to(&s.b))),
        answered(call(
            &s.baton,
            Wiring::User,
            &turn,
            "list_agents",
            arguments
        )),
    );
    for called in [&request, &user, &list] {
        assert_eq!(called.message(), AWAY);
    }
    mongod.restart().await;
    nothing_was_switched(&s, &turn, &request).await;
}

#[tokio::test]
async fn mongodb_may_go_before_a_call_is_durable() {
    for kill in [false, true] {
        let mongod = Mongod::start(Topology::ReplicaSet).await;
        let s = Scene::on(&mongod, &[]).await;
        let turn = s.begun().await;
        let calls = format!("{}.calls", s.db.state);
        let before = hold_back(&s, calls, 1000).await;
        let (failed, ()) =
            tokio::join!(answered(s.call(Wiring::Request, &turn, to(&s.b))), async {
                is_held_back(&s, before).await;
                if kill {
                    mongod.kill();
                } else {
                    mongod.pause();
                }
            });
        assert_eq!(failed.message(), AWAY);
        if kill {
            mongod.restart().await;
        } else {
            mongod.resume();
        }
        nothing_was_switched(&s, &turn, &failed).await;
    }
}

#[tokio::test]
async fn a_call_that_is_durable_is_a_success_whatever_mongodb_does_then() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::on(&mongod, &[]).await;
    let turn = s.begun().await;
    let conversations = format!("{}.conversations", s.db.librechat);
    let before = hold_back(&s, conversations, 1000).await;
    let (called, ()) = tokio::join!(answered(s.call(Wiring::Request, &turn, to(&s.b))), async {
        is_held_back(&s, before).await;
        mongod.pause();
    });
    let called = called.succeeded();
    mongod.resume();
    s.names(&turn, &s.b).await;
    turn.finish(&[called.part()]).await;
    s.ends(&turn, Status::Settled).await;
    s.names(&turn, &s.b).await;
}
