//! The dispatcher in this process, fed by hand, so that what comes when is the test's choice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use baton::aliases::Aliases;
use baton::feed::{Checkpoint, Checkpoints, Delivery, Item};
use baton::health::Health;
use baton::librechat::access::Access;
use baton::librechat::specs::Specs;
use baton::librechat::{
    Change, ConversationChange, ConversationKey, Conversations, Messages, ToolNames,
};
use baton::metrics::Metrics;
use baton::reconcile::{Bell, Context, Learned, Reconciler, Undone, requests};
use baton::switch::calls::Calls;
use baton::switch::policy::{AllowList, Brake};
use baton::switch::record::{Status, Switch};
use baton::switch::store::Store;
use mongodb::Client;
use mongodb::bson::{Bson, Document, RawDocumentBuf, Timestamp, doc};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::harness::{
    Agent, LibreChat, Mongod, TestDb, Topology, Turn, User, eventually, holds, parts,
};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// The driver's name under which a desk reads and writes, for MongoDB's failpoints.
const DESK: &str = "desk";

/// A dispatcher and what it is fed.
struct Desk {
    db: Client,
    librechat: String,
    state: String,
    deliver: mpsc::Sender<Delivery>,
    health: Health,
    stop: CancellationToken,
    task: JoinHandle<Result<(), Undone>>,
}

impl Desk {
    async fn open(db: &TestDb, guard: Duration) -> Self {
        let client = Client::with_uri_str(format!("{}&appName={DESK}", db.uri))
            .await
            .unwrap();
        let (librechat, state) = (client.database(&db.librechat), client.database(&db.state));
        let health = Health::new();
        let context = Context {
            conversations: Conversations::new(&librechat),
            messages: Messages::new(&librechat),
            access: Arc::new(Access::new(librechat.clone())),
            specs: Arc::new(Specs::default()),
            allow: Arc::new(AllowList::default()),
            brake: Brake::default(),
            aliases: Arc::new(Aliases::default()),
            tools: Arc::new(tools()),
            store: Store::new(&state, 24 * HOUR),
            calls: Calls::new(&state, 24 * HOUR),
            guard,
            bell: Bell::default(),
            learned: Learned::default(),
            health: health.clone(),
            metrics: Metrics::new(),
            abandon: CancellationToken::new(),
            deadline: None,
        };
        let (deliver, deliveries) = mpsc::channel(16);
        let checkpoints = Checkpoints::new(&state, DESK, String::new());
        let stop = CancellationToken::new();
        let (_, requests) = requests();
        let reconciler = Reconciler::new(context.into(), checkpoints, deliveries, requests);
        let task = tokio::spawn(reconciler.run(stop.clone()));
        Self {
            db: client,
            librechat: db.librechat.clone(),
            state: db.state.clone(),
            deliver,
            health,
            stop,
            task,
        }
    }

    /// Delivers a change, and waits until it and all before it are dealt with.
    async fn deals_with(&self, change: Change) {
        static POSITIONS: AtomicU32 = AtomicU32::new(1);
        let time = Timestamp {
            time: POSITIONS.fetch_add(1, Ordering::Relaxed),
            increment: 0,
        };
        let delivery = Delivery {
            item: Item::Change {
                change,
                at: Timestamp {
                    time: 0,
                    increment: 0,
                },
            },
            position: Some(Checkpoint {
                token: RawDocumentBuf::new(),
                time,
            }),
        };
        self.deliver.send(delivery).await.unwrap();
        let saved = self
            .db
            .database(&self.state)
            .collection::<Document>("checkpoints");
        holds("the change is dealt with", async || {
            saved
                .find_one(doc! { "_id": DESK, "time": { "$gte": time } })
                .await
                .unwrap()
                .is_some()
        })
        .await;
    }

    /// The turn's response, as the stream shows its insertion.
    async fn response(&self, turn: &Turn) -> Change {
        let database = self.db.database(&self.librechat);
        let stored = database
            .collection::<Document>("messages")
            .find_one(doc! { "messageId": &turn.response })
            .await
            .unwrap()
            .expect("R is saved");
        let id = stored.get_object_id("_id").unwrap();
        let response = Messages::new(&database).response(&tools(), id, None).await;
        Change::Response(response.unwrap().expect("R holds a call"))
    }

    async fn close(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

fn tools() -> ToolNames {
    ToolNames::new(
        &["switch_agent".to_owned()],
        &["switcher".to_owned()],
        "baton",
    )
}

struct Scene {
    db: TestDb,
    librechat: LibreChat,
    user: User,
    a: Agent,
    b: Agent,
    c: Agent,
}

impl Scene {
    async fn on(mongod: &Mongod) -> Self {
        let db = mongod.db().await;
        let librechat = LibreChat::on(&db);
        librechat.seed_roles().await;
        let user = librechat.user().await;
        let a = librechat.agent(&user, "A").await;
        let b = librechat.agent(&user, "B").await;
        let c = librechat.agent(&user, "C").await;
        Self {
            db,
            librechat,
            user,
            a,
            b,
            c,
        }
    }

    async fn second_turn(&self) -> Turn {
        let first = Turn::first(&self.librechat, &self.user, &self.a);
        first.run_plain().await;
        let turn = first.next(&self.a);
        turn.save_user_message().await;
        turn.start().await;
        turn
    }

    async fn names(&self, turn: &Turn, agent: &Agent) {
        holds("the conversation names the agent", async || {
            turn.agent_now(&self.db).await.as_deref() == Some(&agent.id)
        })
        .await;
    }

    async fn record(&self, turn: &Turn) -> Option<Switch> {
        self.db
            .state_database()
            .collection::<Switch>("switches")
            .find_one(doc! { "message_id": &turn.response })
            .await
            .unwrap()
    }

    async fn closed(&self, turn: &Turn) -> Switch {
        eventually("the switch is closed", async || {
            let record = self.record(turn).await?;
            (record.status != Status::Open).then_some(record)
        })
        .await
    }

    /// The write that made the conversation what it is, as the stream shows it.
    async fn last_write(&self, turn: &Turn, with_key: bool) -> Change {
        let document = turn.document(&self.db).await.unwrap();
        let messages = document.get_array("messages").unwrap().iter();
        Change::Conversation(ConversationChange {
            object_id: document.get_object_id("_id").unwrap(),
            key: with_key.then(|| {
                let (conversation, user) = (turn.conversation.as_str(), turn.user.as_str());
                ConversationKey::new(conversation.into(), user.into(), None)
            }),
            agent: document.get_str("agent_id").ok().map(Into::into),
            updated_at: document.get_datetime("updatedAt").ok().copied(),
            newest_message: messages.filter_map(Bson::as_object_id).max(),
        })
    }
}

fn switch_to(agent: &Agent, turn: &Turn) -> Bson {
    parts::switch(&agent.id, &turn.conversation)
}

/// Makes commands of desks on one collection fail with an error that does not pass. Gives how
/// often MongoDB had failed on purpose before.
async fn refuse(s: &Scene, command: &str, collection: &str, mode: impl Into<Bson>) -> i64 {
    let failpoint = doc! {
        "configureFailPoint": "failCommand",
        "mode": mode,
        "data": {
            "failCommands": [command],
            "namespace": format!("{}.{collection}", s.db.librechat),
            "appName": DESK,
            "errorCode": 8000,
        },
    };
    let admin = s.db.client.database("admin");
    let set = admin.run_command(failpoint).await.unwrap();
    set.get_i64("count")
        .or_else(|_| set.get_i32("count").map(i64::from))
        .unwrap()
}

#[tokio::test]
async fn two_instances_agree_on_a_second_switch_of_the_turn() {
    let s = Scene::on(Mongod::shared().await).await;
    let (first, second) = (Desk::open(&s.db, HOUR).await, Desk::open(&s.db, HOUR).await);
    let turn = s.second_turn().await;
    let to_b = switch_to(&s.b, &turn);
    turn.save_unfinished_response(std::slice::from_ref(&to_b))
        .await;
    first.deals_with(first.response(&turn).await).await;
    second.deals_with(second.response(&turn).await).await;
    s.names(&turn, &s.b).await;

    let both = [to_b, switch_to(&s.c, &turn)];
    turn.save_unfinished_response(&both).await;
    first.deals_with(first.response(&turn).await).await;
    second.deals_with(second.response(&turn).await).await;
    s.names(&turn, &s.c).await;
    turn.finish(&both).await;
    let record = s.closed(&turn).await;
    assert_eq!(record.status, Status::Settled, "{record:?}");
    assert_eq!(record.to_agent, s.c.id.as_str().into());
    // Until it knew of C, the second may have put B back once.
    assert!(record.repairs <= 3, "{record:?}");
    s.names(&turn, &s.c).await;
}

#[tokio::test]
async fn an_instance_that_missed_the_second_switch_of_a_turn_gives_way() {
    let s = Scene::on(Mongod::shared().await).await;
    let (first, second) = (Desk::open(&s.db, HOUR).await, Desk::open(&s.db, HOUR).await);
    let turn = s.second_turn().await;
    let to_b = switch_to(&s.b, &turn);
    turn.save_unfinished_response(std::slice::from_ref(&to_b))
        .await;
    first.deals_with(first.response(&turn).await).await;
    second.deals_with(second.response(&turn).await).await;

    let both = [to_b, switch_to(&s.c, &turn)];
    turn.save_unfinished_response(&both).await;
    first.deals_with(first.response(&turn).await).await;
    first.close().await;
    // Only the second is left, which knows of B alone.
    s.names(&turn, &s.c).await;
    turn.finish(&both).await;
    let record = s.closed(&turn).await;
    assert_eq!(record.status, Status::Settled, "{record:?}");
    assert_eq!(record.to_agent, s.c.id.as_str().into());
    s.names(&turn, &s.c).await;
}

#[tokio::test]
async fn a_conversation_that_cannot_be_written_is_given_up_in_the_end() {
    let s = Scene::on(Mongod::shared().await).await;
    let desk = Desk::open(&s.db, Duration::from_secs(1)).await;
    let turn = s.second_turn().await;
    let hostile = doc! { "$set": { "agent_id": 5 } };
    let key = doc! { "conversationId": &turn.conversation };
    s.db.conversations().update_one(key, hostile).await.unwrap();
    turn.save_unfinished_response(&[switch_to(&s.b, &turn)])
        .await;
    desk.deals_with(desk.response(&turn).await).await;
    assert_eq!(s.closed(&turn).await.status, Status::Superseded);
}

#[tokio::test]
async fn a_write_that_mongodb_refuses_does_not_make_baton_unready() {
    let s = Scene::on(Mongod::shared().await).await;
    let desk = Desk::open(&s.db, HOUR).await;
    let turn = s.second_turn().await;
    let refuse = doc! {
        "collMod": "conversations", "validator": { "agent_id": { "$ne": &s.b.id } },
    };
    s.db.database().run_command(refuse).await.unwrap();
    turn.save_unfinished_response(&[switch_to(&s.b, &turn)])
        .await;
    desk.deals_with(desk.response(&turn).await).await;
    assert_eq!(s.record(&turn).await.unwrap().status, Status::Open);
    let other = s.second_turn().await;
    other
        .save_unfinished_response(&[switch_to(&s.c, &other)])
        .await;
    desk.deals_with(desk.response(&other).await).await;
    s.names(&other, &s.c).await;
    assert!(desk.health.report().checks[1].ok);
}

#[tokio::test]
async fn a_refused_look_is_taken_again() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::on(&mongod).await;
    let desk = Desk::open(&s.db, HOUR).await;
    let turn = s.second_turn().await;
    let call = [switch_to(&s.b, &turn)];
    turn.save_response(&call).await;
    desk.deals_with(desk.response(&turn).await).await;
    s.names(&turn, &s.b).await;
    let before = refuse(&s, "find", "conversations", "alwaysOn").await;
    let failed = doc! {
        "waitForFailPoint": "failCommand", "timesEntered": before + 3, "maxTimeMS": 30_000,
    };
    let admin = s.db.client.database("admin");
    admin.run_command(failed).await.unwrap();
    refuse(&s, "find", "conversations", "off").await;
    turn.end().await;
    turn.touch_user_message().await;
    assert_eq!(s.closed(&turn).await.status, Status::Settled);
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn an_adopted_switch_is_guarded_from_its_first_event_on() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::on(&mongod).await;
    let desk = Desk::open(&s.db, HOUR).await;
    let turn = s.second_turn().await;
    turn.save_response(&[switch_to(&s.b, &turn)]).await;
    desk.deals_with(desk.response(&turn).await).await;
    s.names(&turn, &s.b).await;
    desk.close().await;
    turn.end().await;
    s.names(&turn, &s.a).await;

    // The first glance and the look after it succeed, and put B back; no later one does.
    refuse(&s, "find", "messages", doc! { "skip": 2 }).await;
    let desk = Desk::open(&s.db, HOUR).await;
    s.names(&turn, &s.b).await;
    turn.end().await;
    s.names(&turn, &s.a).await;
    desk.deals_with(s.last_write(&turn, false).await).await;
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn a_sub_agents_thread_is_left_alone_even_where_it_is_new() {
    let s = Scene::on(Mongod::shared().await).await;
    let desk = Desk::open(&s.db, HOUR).await;
    let turn = Turn::first(&s.librechat, &s.user, &s.a);
    turn.save_user_message().await;
    turn.save_unfinished_response(&[switch_to(&s.b, &turn)])
        .await;
    desk.deals_with(desk.response(&turn).await).await;
    assert_eq!(s.record(&turn).await.unwrap().status, Status::Open);

    turn.start().await;
    // As if START itself had set it; the stream shows one write.
    let key = doc! { "conversationId": &turn.conversation };
    let mark = doc! { "$set": { "subagentThread": { "parent": "x" } } };
    s.db.conversations().update_one(key, mark).await.unwrap();
    desk.deals_with(s.last_write(&turn, true).await).await;
    assert_eq!(s.closed(&turn).await.status, Status::Superseded);
    assert_eq!(
        turn.agent_now(&s.db).await.as_deref(),
        Some(s.a.id.as_str())
    );
}

#[tokio::test]
async fn a_record_of_another_shape_keeps_no_instance_from_starting() {
    let s = Scene::on(Mongod::shared().await).await;
    let foreign = doc! { "status": "open", "origin": "telepathy", "reason": "the secret" };
    s.db.switches().insert_one(foreign).await.unwrap();
    let desk = Desk::open(&s.db, HOUR).await;
    let turn = s.second_turn().await;
    turn.save_response(&[switch_to(&s.b, &turn)]).await;
    desk.deals_with(desk.response(&turn).await).await;
    s.names(&turn, &s.b).await;
}

#[tokio::test]
async fn an_end_between_two_reads_is_not_taken_for_the_target_in_force() {
    let mongod = Mongod::start(Topology::ReplicaSet).await;
    let s = Scene::on(&mongod).await;
    let desk = Desk::open(&s.db, HOUR).await;
    let turn = s.second_turn().await;
    turn.tool_writes(&s.b).await;
    turn.save_response(&[switch_to(&s.b, &turn)]).await;
    let response = desk.response(&turn).await;
    // The conversation is read at once, and the turn when it has ended.
    let slow = doc! {
        "configureFailPoint": "failCommand",
        "mode": { "times": 1 },
        "data": {
            "failCommands": ["find"],
            "namespace": format!("{}.messages", s.db.librechat),
            "appName": DESK,
            "blockConnection": true,
            "blockTimeMS": 1500,
        },
    };
    let admin = s.db.client.database("admin");
    let before = admin.run_command(slow).await.unwrap();
    let before = before.get_i32("count").map_or(0, i64::from);
    let blocked = doc! {
        "waitForFailPoint": "failCommand", "timesEntered": before + 1, "maxTimeMS": 30_000,
    };
    let end = async {
        admin.run_command(blocked).await.unwrap();
        turn.end().await;
        turn.touch_user_message().await;
    };
    tokio::join!(desk.deals_with(response), end);
    assert_eq!(s.closed(&turn).await.status, Status::Settled);
    s.names(&turn, &s.b).await;
}
