//! The writes of a turn come in many orders; in each of them the newest decision stands.

use futures::future::join_all;
use mongodb::bson::{Bson, doc};

use crate::harness::{
    Agent, Baton, LibreChat, Mongod, TestDb, Turn, User, eventually, holds, parts,
};

/// A write of a turn, after U.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// START, which LibreChat does not wait for.
    Start,
    /// The plain tool's own write.
    Tool,
    /// R is saved in mid-turn, since all clients have left.
    Partial,
    /// R is saved.
    Response,
    End,
    /// U and R are saved once more.
    Touches,
    Title,
    Rename,
}

use Step::{End, Partial, Rename, Response, Start, Title, Tool, Touches};

/// Orders that were seen, and those that may follow from what is not awaited.
const ORDERS: &[&[Step]] = &[
    &[Start, Tool, Response, End, Touches],
    // A fast model.
    &[Tool, Start, Response, End, Touches],
    &[Tool, Response, Start, End, Touches],
    // The title comes at any time.
    &[Start, Tool, Title, Response, End, Touches],
    &[Start, Tool, Response, Title, End, Touches],
    &[Start, Tool, Response, End, Title, Touches],
    &[Tool, Start, Response, End, Touches, Title],
    // The user renames the conversation in mid-turn, which carries R in `messages`.
    &[Start, Tool, Rename, Response, End, Touches],
    &[Start, Tool, Response, Rename, End, Touches],
    &[Tool, Response, Rename, Start, End, Touches],
    // All clients leave.
    &[Start, Tool, Partial, Response, End, Touches],
    &[Tool, Start, Partial, Response, End, Touches],
    &[Start, Tool, Partial, Rename, Response, End, Touches],
    &[Tool, Partial, Start, Rename, Response, End, Touches],
];

struct Stage {
    db: TestDb,
    librechat: LibreChat,
    user: User,
    a: Agent,
    b: Agent,
    c: Agent,
    _baton: Baton,
}

impl Stage {
    async fn set() -> Self {
        let db = Mongod::shared().await.db().await;
        let librechat = LibreChat::on(&db);
        let user = librechat.user().await;
        let [a, b, c] = [
            librechat.agent(&user, "A").await,
            librechat.agent(&user, "B").await,
            librechat.agent(&user, "C").await,
        ];
        let trust = [("BATON__SWITCH__SERVERS", "switcher")];
        let baton = Baton::start_with(&db, &trust).await;
        Self {
            db,
            librechat,
            user,
            a,
            b,
            c,
            _baton: baton,
        }
    }

    /// A turn with A in a conversation that has one already, in either way of saving.
    async fn second_turn(&self, append: bool) -> Turn {
        let mut first = Turn::first(&self.librechat, &self.user, &self.a);
        first.append = append;
        first.run_plain().await;
        first.next(&self.a)
    }

    async fn stands(&self, turn: &Turn, agent: &Agent, order: &[Step]) {
        let what = format!(
            "{} stands after {order:?}, append: {}",
            agent.name, turn.append
        );
        holds(&what, async || {
            turn.agent_now(&self.db).await.as_ref() == Some(&agent.id)
        })
        .await;
    }

    async fn settles(&self, turn: &Turn, order: &[Step]) {
        let (state, why) = self.closed(turn, order).await;
        assert_eq!(
            state, "settled",
            "{why}; {order:?}, append: {}",
            turn.append
        );
    }

    /// In which state and why the turn's switch was closed.
    async fn closed(&self, turn: &Turn, order: &[Step]) -> (String, String) {
        let what = format!(
            "the switch is closed after {order:?}, append: {}",
            turn.append
        );
        eventually(&what, async || {
            let of_turn = doc! { "message_id": &turn.response, "status": { "$ne": "open" } };
            let record = self.db.switches().find_one(of_turn).await.unwrap()?;
            let text = |key| record.get_str(key).unwrap_or_default().to_owned();
            Some((text("status"), text("detail")))
        })
        .await
    }
}

async fn perform(turn: &Turn, order: &[Step], target: &Agent) {
    let call = parts::switch(&target.id, &turn.conversation);
    let content: Vec<Bson> = vec![call, parts::text("Switched")];
    turn.save_user_message().await;
    for step in order {
        match step {
            Start => drop(turn.start().await),
            Tool => drop(turn.tool_writes(target).await),
            Partial => drop(turn.save_unfinished_response(&content).await),
            Response => drop(turn.save_response(&content).await),
            End => drop(turn.end().await),
            Touches => {
                turn.touch_user_message().await;
                turn.touch_response(&content).await;
            }
            Title => drop(turn.title("A title").await),
            Rename => drop(turn.rename("Another").await),
        }
    }
}

fn every_order() -> impl Iterator<Item = (&'static [Step], bool)> {
    ORDERS
        .iter()
        .flat_map(|order| [(*order, false), (*order, true)])
}

#[tokio::test]
async fn a_switch_stands_whatever_the_order() {
    let stage = Stage::set().await;
    join_all(every_order().map(async |(order, append)| {
        let turn = stage.second_turn(append).await;
        perform(&turn, order, &stage.b).await;
        stage.settles(&turn, order).await;
        stage.stands(&turn, &stage.b, order).await;
    }))
    .await;
}

#[tokio::test]
async fn a_switch_in_a_first_turn_stands_whatever_the_order() {
    let stage = Stage::set().await;
    // Before START there is no conversation that a user could rename.
    let orders = every_order().filter(|(order, _)| {
        let first = order.iter().find(|step| matches!(step, Rename | Start));
        matches!(first, Some(Start))
    });
    join_all(orders.map(async |(order, append)| {
        let mut turn = Turn::first(&stage.librechat, &stage.user, &stage.a);
        turn.append = append;
        perform(&turn, order, &stage.b).await;
        stage.settles(&turn, order).await;
        stage.stands(&turn, &stage.b, order).await;
    }))
    .await;
}

#[tokio::test]
async fn the_users_next_choice_stands_whatever_the_order() {
    let stage = Stage::set().await;
    join_all(every_order().map(async |(order, append)| {
        let turn = stage.second_turn(append).await;
        perform(&turn, order, &stage.b).await;
        // The next turn begins at once, before Baton need have closed the switch.
        let next = turn.next(&stage.c);
        next.run_plain().await;
        stage.closed(&turn, order).await;
        stage.stands(&turn, &stage.c, order).await;
    }))
    .await;
}

#[tokio::test]
async fn a_switch_back_in_the_next_turn_stands_whatever_the_order() {
    let stage = Stage::set().await;
    join_all(every_order().map(async |(order, append)| {
        let turn = stage.second_turn(append).await;
        perform(&turn, order, &stage.b).await;
        let next = turn.next(&stage.b);
        perform(&next, order, &stage.a).await;
        stage.settles(&next, order).await;
        stage.stands(&next, &stage.a, order).await;
    }))
    .await;
}
