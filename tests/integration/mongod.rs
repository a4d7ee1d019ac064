//! The harness itself: what other tests take for granted.

use mongodb::bson::doc;

use crate::harness::{Mongod, Topology, holds};

#[tokio::test]
async fn a_replica_set_has_change_streams() {
    let db = Mongod::shared().await.db().await;
    let stream = db.database().watch().await;
    assert!(stream.is_ok(), "{:?}", stream.err());
}

#[tokio::test]
async fn a_standalone_server_has_none() {
    let mongod = Mongod::start(Topology::Standalone).await;
    let db = mongod.db().await;
    db.conversations().insert_one(doc! {}).await.unwrap();
    let error = db.database().watch().await.expect_err("no oplog");
    assert!(error.to_string().contains("40573"), "{error}");
}

#[tokio::test]
async fn a_server_that_was_killed_comes_back_with_its_data() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let db = mongod.db().await;
    db.conversations()
        .insert_one(doc! { "_id": 1 })
        .await
        .unwrap();
    mongod.kill();
    mongod.restart().await;
    holds("the document is read again", async || {
        matches!(db.conversations().count_documents(doc! {}).await, Ok(1))
    })
    .await;
}

#[tokio::test]
async fn a_server_with_users_refuses_strangers() {
    let mongod = Mongod::start(Topology::ReplicaSetWithUsers).await;
    let db = mongod.db().await;
    db.conversations().insert_one(doc! {}).await.unwrap();
    let stranger = mongodb::Client::with_uri_str(mongod.uri_as(None, "admin"))
        .await
        .unwrap();
    let answer = stranger.database(&db.librechat).list_collections().await;
    assert!(answer.is_err());
}
