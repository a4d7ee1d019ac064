//! The page in Debian's Chromium, with real switches of a real daemon.

use std::process::Stdio;

use mongodb::bson::{DateTime, Document, doc, oid::ObjectId};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use super::{Scene, TOKEN};
use crate::harness::{Mongod, Topology, Turn, tools};

/// What a name or a reason must never become.
const HOSTILE: &str =
    "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script>\u{202e}";

const HOUR: i64 = 60 * 60 * 1000;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium: make test-full"]
async fn an_operator_sees_what_happens() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let mut s = Scene::with(&mongod, ["Front desk", HOSTILE]).await;
    let mut open: Option<Turn> = None;
    let mut driver = drive(&format!("http://{}", s.baton.address()));
    let mut asked = BufReader::new(driver.stdout.take().unwrap()).lines();
    let mut answers = driver.stdin.take().unwrap();
    while let Some(line) = asked.next_line().await.unwrap() {
        let answer = match line.strip_prefix("do ").unwrap() {
            "refused" => {
                s.refused(HOSTILE).await;
                json!({ "hostile": HOSTILE })
            }
            "settled" => {
                s.settled(&s.b).await;
                json!({})
            }
            "open" => {
                let turn = s.switched(&s.b).await;
                let answer = json!({ "conversation": turn.conversation });
                open = Some(turn);
                answer
            }
            "end" => {
                open.take().unwrap().touch_user_message().await;
                json!({})
            }
            "much" => {
                much(&s).await;
                let all = s.db.switches().count_documents(doc! {}).await.unwrap();
                json!({ "all": all })
            }
            "away" => {
                mongod.kill();
                json!({})
            }
            "back" => {
                mongod.restart().await;
                json!({})
            }
            "stop" => {
                s.baton.stop().await;
                json!({})
            }
            "start" => {
                s.baton.restart().await;
                json!({})
            }
            other => panic!("{other}"),
        };
        let line = format!("{answer}\n");
        answers.write_all(line.as_bytes()).await.unwrap();
    }
    assert!(driver.wait().await.unwrap().success());
}

fn drive(url: &str) -> tokio::process::Child {
    let folder = tools::npm("frontend");
    let mut command = Command::new("node");
    command
        .args(["ops.mjs", url, TOKEN])
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    if let Ok(screenshots) = std::env::var("BATON_SCREENSHOTS") {
        command.arg(screenshots);
    }
    command.spawn().unwrap()
}

/// The records of a busy day, as they would stand by now: it cannot be waited for.
async fn much(s: &Scene) {
    let mut agents = vec![s.a.id.clone()];
    for name in [
        "Billing",
        "Technical support",
        "Returns",
        "Travel",
        "Legal review for contracts of all kinds",
        "Translator",
    ] {
        agents.push(s.librechat.agent(&s.user, name).await.id);
    }
    let users: Vec<_> = (0..5).map(|_| ObjectId::new().to_hex()).collect();
    let now = DateTime::now().timestamp_millis();
    let records: Vec<_> = (0..160).map(|i| record(i, now, &agents, &users)).collect();
    let switches = s.db.state_database().collection::<Document>("switches");
    // The switches of the test itself are few, and the hostile agent's name is no name to show.
    switches.delete_many(doc! {}).await.unwrap();
    switches.insert_many(records).await.unwrap();
}

fn record(i: i64, now: i64, agents: &[String], users: &[String]) -> Document {
    // From the front desk to the others for the most part, and from some of them onwards.
    let pairs = [
        (0, 1),
        (0, 2),
        (0, 1),
        (0, 3),
        (0, 2),
        (1, 3),
        (2, 6),
        (0, 4),
        (3, 1),
        (4, 6),
        (0, 1),
        (2, 0),
        (0, 5),
        (1, 2),
    ];
    let of = |choices: i64| usize::try_from(i % choices).unwrap();
    let (from, to) = pairs[of(14)];
    // Busy by day, quiet by night.
    let ago = i * i * 22 * HOUR / (160 * 160) + (i * 7919) % HOUR;
    let learned = now - ago - 5_000;
    let status = match i {
        _ if i % 23 == 7 => "rejected",
        _ if i % 11 == 4 => "superseded",
        _ => "settled",
    };
    let at = |after: i64| DateTime::from_millis(learned + after);
    let detail = match status {
        "rejected" => "the agent is not shared with the user",
        "superseded" => "a newer message of the user's",
        _ => "the turn ended with the target in force",
    };
    let reason = [
        "The customer asks about an invoice.",
        "Needs a technician.",
        "The parcel came back.",
    ];
    let origins = ["mcp", "mcp", "tool", "api", "handoff"];
    let mut record = doc! {
        "conversation_id": crate::harness::uuid(), "user": &users[of(5)],
        "message_id": crate::harness::uuid(),
        "from_agent": &agents[from], "to_agent": &agents[to],
        "origin": origins[of(5)],
        "status": status, "detail": detail, "reason": reason[of(3)],
        "repairs": 0_i64, "corrected": 0_i64, "created_at": at(0), "closed_at": at(5),
    };
    if status != "rejected" {
        let saved = 60 + i % 30;
        record.insert("applied_at", at(3));
        record.insert("closed_at", at(saved + 1_900 + i % 700));
        if i % 10 < 7 {
            let overwritten = (learned + saved).to_string();
            record.insert("repairs", 1_i64);
            record.insert("put_back", doc! { overwritten: at(saved + 2 + i % 4) });
        }
        if i % 4 == 1 {
            record.insert("delivered_at", at(saved + 40));
        }
    }
    record
}
