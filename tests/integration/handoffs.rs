//! LibreChat's own handoffs last, where the operator says so.

use std::time::Duration;

use baton::librechat::{CallKind, Change, SwitchCall, ToolNames, change};
use futures::TryStreamExt;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};

use crate::harness::events::events;
use crate::harness::{
    Agent, Baton, LibreChat, Mongod, Pace, Replay, TestDb, Turn, eventually, holds, parts,
};

const ON: [(&str, &str); 2] = [
    ("BATON__SWITCH__NATIVE_HANDOFFS", "true"),
    ("BATON__SWITCH__SERVERS", "switcher"),
];

const V088: &str = "v0.8.8-rc1";

fn tools(handoffs: bool) -> ToolNames {
    let [tool, server] = ["switch_agent", "switcher"].map(str::to_owned);
    ToolNames::new(&[tool], &[server], "baton").with_handoffs(handoffs)
}

/// The switches that a recording's events show, each by its kind and target.
async fn switches(db: &TestDb, scene: &str, handoffs: bool) -> Vec<(CallKind, String)> {
    let tools = tools(handoffs);
    let recorded: Vec<Bson> = events(V088, scene)
        .into_iter()
        .filter(|event| event.get_str("operationType").unwrap() == "insert")
        .map(Bson::Document)
        .collect();
    let mut pipeline = vec![doc! { "$documents": recorded }];
    pipeline.extend(change::pipeline(&tools));
    let database = db.database();
    let shown = database.aggregate(pipeline);
    let shown: Vec<RawDocumentBuf> = shown
        .with_type::<RawDocumentBuf>()
        .await
        .unwrap()
        .try_collect()
        .await
        .unwrap();
    let mut found = Vec::new();
    for event in &shown {
        if let Change::Response(response) = Change::parse(event).unwrap() {
            let calls = SwitchCall::all_in(&response.calls, &tools, &response.key.conversation);
            found.extend(
                calls
                    .into_iter()
                    .map(|call| (call.kind, call.to.to_string())),
            );
        }
    }
    found
}

#[tokio::test]
async fn recorded_handoffs_are_seen_where_they_count() {
    use CallKind::{Handoff, Tool};
    let db = Mongod::shared().await.db().await;
    let [b, c] = ['B', 'C'].map(|letter| crate::harness::recording::agent(V088, letter).to_owned());
    assert_eq!(switches(&db, "e", false).await, []);
    assert_eq!(switches(&db, "e", true).await, [(Handoff, b.clone())]);
    assert_eq!(switches(&db, "f", false).await, [(Tool, c.clone())]);
    assert_eq!(switches(&db, "f", true).await, [(Tool, c), (Handoff, b)]);
}

#[tokio::test]
async fn recorded_handoffs_last_whether_baton_watches_or_crashes_or_comes_too_late() {
    for scene in ["e", "f"] {
        for (watches, crashes) in [(true, false), (false, false), (true, true)] {
            let db = Mongod::shared().await.db().await;
            let pace = Pace::AtMost(Duration::from_millis(300));
            let mut replay = Replay::of(&db, V088, scene, pace).await;
            let mut baton = None;
            if watches {
                baton = Some(Baton::start_with(&db, &ON).await);
            }
            while replay.step().await.is_some() {
                if let Some(baton) = baton.as_mut().filter(|_| crashes) {
                    baton.kill();
                    baton.restart().await;
                }
            }
            let _baton = match baton {
                Some(baton) => baton,
                None => Baton::start_with(&db, &ON).await,
            };
            let right = replay.recording().agent('B');
            let record = eventually("the handoff is settled", async || {
                let settled = doc! { "status": "settled", "to_agent": right };
                db.switches().find_one(settled).await.unwrap()
            })
            .await;
            assert_eq!(record.get_str("origin").unwrap(), "handoff");
            assert_eq!(
                db.switches().count_documents(doc! {}).await.unwrap(),
                1,
                "{scene}"
            );
            assert_eq!(replay.agent_now().await.as_deref(), Some(right), "{scene}");
        }
    }
}

struct Scene {
    db: TestDb,
    librechat: LibreChat,
    agents: [Agent; 3],
    turn: Turn,
    _baton: Baton,
}

impl Scene {
    async fn new() -> Self {
        let db = Mongod::shared().await.db().await;
        let librechat = LibreChat::on(&db);
        librechat.seed_roles().await;
        let user = librechat.user().await;
        let stranger = librechat.user().await;
        let agents = [
            librechat.agent(&user, "A").await,
            librechat.agent(&user, "B").await,
            librechat.agent(&stranger, "C").await,
        ];
        let baton = Baton::start_with(&db, &ON).await;
        let first = Turn::first(&librechat, &user, &agents[0]);
        first.run_plain().await;
        let turn = first.next(&agents[0]);
        turn.save_user_message().await;
        turn.start().await;
        Self {
            db,
            librechat,
            agents,
            turn,
            _baton: baton,
        }
    }
}

fn text_by(agent: &Agent) -> Bson {
    doc! { "type": "text", "text": "Hello", "agentId": &agent.id }.into()
}

#[tokio::test]
async fn a_handoff_to_an_agent_that_the_user_may_not_use_is_refused() {
    let s = Scene::new().await;
    let [a, _, hidden] = &s.agents;
    s.turn
        .finish(&[parts::handoff(&a.id, &hidden.id), text_by(hidden)])
        .await;
    let record = eventually("it is refused", async || {
        s.db.switches()
            .find_one(doc! { "status": "rejected" })
            .await
            .unwrap()
    })
    .await;
    assert_eq!(record.get_str("origin").unwrap(), "handoff");
    assert_eq!(
        s.turn.agent_now(&s.db).await.as_deref(),
        Some(a.id.as_str())
    );
}

#[tokio::test]
async fn odd_messages_stop_nothing() {
    let s = Scene::new().await;
    let [a, b, _] = &s.agents;
    let name = |name: Bson| doc! { "tool_call": { "name": name }, "agentId": 5 };
    let odd: [Bson; 6] = [
        doc! {}.into(),
        "lc_transfer_to_".into(),
        vec![Bson::Null, 5.into(), "lc_transfer_to_x".into()].into(),
        vec![Bson::from(name(5.into())), name(Bson::Null).into()].into(),
        // Its neighbour makes the filter of the server look at it.
        vec![
            Bson::from(name(vec![Bson::from("lc_transfer_to_x")].into())),
            name(doc! { "a": 1 }.into()).into(),
            name("lc_transfer_to_".into()).into(),
        ]
        .into(),
        vec![
            Bson::from(name("ü".repeat(20).into())),
            name("lc_transfer_to_x".into()).into(),
            Bson::Null,
        ]
        .into(),
    ];
    for content in odd {
        let message: Document = doc! {
            "messageId": crate::harness::uuid(), "conversationId": &s.turn.conversation,
            "user": &s.turn.user, "content": content,
        };
        s.db.messages().insert_one(message).await.unwrap();
    }
    s.turn
        .finish(&[parts::handoff(&a.id, &b.id), text_by(b)])
        .await;
    holds("the handoff lasts", async || {
        s.turn.agent_now(&s.db).await.as_deref() == Some(b.id.as_str())
    })
    .await;
    drop(s.librechat);
}
