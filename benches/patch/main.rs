//! How many choices a second, and how long the slowest of a hundred takes, next to the bare update
//! that a choice comes down to. Needs `wrk`.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a benchmark that cannot go on says why and stops"
)]
#![allow(missing_docs, unreachable_pub, reason = "it is a program of its own")]

#[path = "../../tests/harness/mod.rs"]
mod harness;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mongodb::bson::doc;
use mongodb::options::WriteConcern;

use harness::{Baton, JWT_SECRET, LibreChat, Mongod, Topology, Turn};

const CONVERSATIONS: usize = 64;
const CONNECTIONS: usize = 16;
const TIME: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let db = mongod.db().await;
    let librechat = LibreChat::on(&db);
    librechat.seed_roles().await;
    librechat.call("seedSystemGrants", []).await;
    librechat.build_indexes().await;
    let user = librechat.user().await;
    let a = librechat.agent(&user, "A").await;
    let b = librechat.agent(&user, "B").await;
    let mut turns = Vec::new();
    for _ in 0..CONVERSATIONS {
        let turn = Turn::first(&librechat, &user, &a);
        turn.run_plain().await;
        turns.push(turn);
    }
    let settings = [
        ("JWT_SECRET", JWT_SECRET),
        ("BATON__HTTP__RATE_LIMIT", "off"),
        ("BATON__LOG__LEVEL", "warn"),
    ];
    let baton = Baton::start_with(&db, &settings).await;

    println!("{CONNECTIONS} at once for {} s each\n", TIME.as_secs());
    let conversations = db.conversations();
    let majority = WriteConcern::majority();
    let turns = Arc::new(turns);
    let (count, mut times) = measure(async |n| {
        let turn = &turns[n % CONVERSATIONS];
        let agent = [&b, &a][n / CONVERSATIONS % 2];
        let key = doc! { "conversationId": &turn.conversation, "user": &turn.user };
        let set = doc! { "$set": { "agent_id": &agent.id } };
        let update = conversations.update_one(key, set);
        let done = update.write_concern(majority.clone()).await.unwrap();
        assert_eq!(done.modified_count, 1);
    })
    .await;
    times.sort_unstable();
    let share = |percent: usize| times[(times.len() - 1) * percent / 100];
    println!("the bare update, written to the majority:");
    let seconds = usize::try_from(TIME.as_secs()).unwrap();
    println!("  {}/s", count / seconds);
    println!("  50 % {:?}, 99 % {:?}\n", share(50), share(99));

    let ids: Vec<&str> = turns
        .iter()
        .map(|turn| turn.conversation.as_str())
        .collect();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/patch/choose.lua");
    println!("PATCH /api/convos/:id:");
    let status = Command::new(std::env::var("WRK").as_deref().unwrap_or("wrk"))
        .args(["--threads", "2", "--latency", "--timeout", "10s"])
        .args(["--connections", &CONNECTIONS.to_string()])
        .args(["--duration", &format!("{}s", TIME.as_secs())])
        .args(["--script", script, &format!("http://{}", baton.address())])
        .env("TOKEN", librechat.token(&user).await)
        .env("CONVERSATIONS", ids.join(" "))
        .env("AGENTS", format!("{} {}", a.id, b.id))
        .status()
        .expect("wrk: install it, or name it in WRK");
    assert!(status.success(), "not every choice was answered 200");
}

/// Runs `one` again and again, so many at once, and tells how often and how long each took.
async fn measure(one: impl AsyncFn(usize)) -> (usize, Vec<Duration>) {
    let next = AtomicUsize::new(0);
    let end = Instant::now() + TIME;
    let workers = (0..CONNECTIONS).map(|_| async {
        let mut times = Vec::new();
        while Instant::now() < end {
            let started = Instant::now();
            one(next.fetch_add(1, Ordering::Relaxed)).await;
            times.push(started.elapsed());
        }
        times
    });
    let times: Vec<Duration> = futures::future::join_all(workers).await.concat();
    (times.len(), times)
}
