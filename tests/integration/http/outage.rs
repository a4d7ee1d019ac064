//! While MongoDB is away: answers in time that say so, and nothing that is done later all the same.

use std::time::{Duration, Instant};

use super::{Scene, text};
use crate::harness::{Mongod, Topology, holds};

const IN_TIME: Duration = Duration::from_secs(5);

async fn unready(s: &Scene) {
    let started = Instant::now();
    let mut answer = s.baton.get("/readyz").await.unwrap();
    while answer.0 == 200 {
        assert!(
            started.elapsed() < IN_TIME,
            "it still says that it is ready"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
        answer = s.baton.get("/readyz").await.unwrap();
    }
    assert_eq!(answer.0, 503);
    assert!(answer.1.contains("detail"), "{}", answer.1);
    assert_eq!(s.baton.get("/livez").await.unwrap().0, 200);
}

async fn told_in_time(s: &Scene, turn: &crate::harness::Turn) {
    let started = Instant::now();
    let (patch, history) = tokio::join!(s.choose(turn, &s.b), s.history(turn, ""));
    assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
    for answer in [patch, history] {
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.error().contains("database"), "{answer:?}");
        assert!(answer.header("retry-after").is_some());
    }
}

async fn works_again(s: &Scene, turn: &crate::harness::Turn) {
    s.baton.ready().await;
    assert_eq!(turn.agent_now(&s.db).await.as_deref(), Some(&*s.a.id));
    let records = s.records(turn).await;
    let void = |record: &mongodb::bson::Document| text(record, "status") == "rejected";
    assert!(records.iter().all(void), "{records:#?}");
    holds("a choice is taken", async || {
        s.choose(turn, &s.c).await.status == 200
    })
    .await;
    s.names(turn, &s.c).await;
}

#[tokio::test]
async fn a_server_that_is_gone_is_503_and_what_was_asked_then_is_not_done_later() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::on(&mongod, &[]).await;
    let turn = s.conversation().await;
    mongod.kill();
    tokio::join!(unready(&s), told_in_time(&s, &turn));
    mongod.restart().await;
    works_again(&s, &turn).await;
}

#[tokio::test]
async fn a_server_that_is_silent_is_503_and_what_was_asked_then_is_not_done_later() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::on(&mongod, &[]).await;
    let turn = s.conversation().await;
    mongod.pause();
    tokio::join!(unready(&s), told_in_time(&s, &turn));
    mongod.resume();
    works_again(&s, &turn).await;
}

/// The server fails every command of this name, or holds it back, until it is told to stop.
async fn fail(s: &Scene, command: &str, data: mongodb::bson::Document) {
    let mut data = data;
    data.insert("failCommands", [command]);
    let fail = mongodb::bson::doc! {
        "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data,
    };
    s.db.client
        .database("admin")
        .run_command(fail)
        .await
        .unwrap();
}

async fn mend(s: &Scene) {
    let mend = mongodb::bson::doc! { "configureFailPoint": "failCommand", "mode": "off" };
    s.db.client
        .database("admin")
        .run_command(mend)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_choice_whose_write_hangs_is_taken_back() {
    for command in ["findAndModify", "update"] {
        let mongod = Mongod::start(Topology::ReplicaSet).await;
        let s = Scene::on(&mongod, &[]).await;
        let turn = s.conversation().await;
        let hold = mongodb::bson::doc! { "blockConnection": true, "blockTimeMS": 7000 };
        fail(&s, command, hold).await;
        let started = Instant::now();
        let answer = s.choose(&turn, &s.b).await;
        assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
        assert_eq!(answer.status, 503, "{command}: {answer:?}");
        mend(&s).await;
        holds("the choice is void", async || {
            let records = s.records(&turn).await;
            records.iter().any(|r| text(r, "status") == "rejected")
        })
        .await;
        // The commands that were held back have been let go by then.
        tokio::time::sleep(Duration::from_secs(8)).await;
        holds("the conversation is as it was", async || {
            turn.agent_now(&s.db).await.as_deref() == Some(&*s.a.id)
        })
        .await;
        works_again(&s, &turn).await;
    }
}
