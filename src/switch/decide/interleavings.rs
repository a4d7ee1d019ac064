//! Random interleavings of LibreChat's writes and of Baton's steps, held against the rules.
//!
//! A small model of LibreChat writes turns of every kind into a conversation and its messages, in
//! the orders that were measured. One or two instances of Baton look at it as the real ones do: an
//! event at a time, each reading and each write a step of its own, between which LibreChat goes
//! on; they repeat events, look without being asked, crash and start again. In the end the
//! conversation must name the newest decision. No write may undo a later one, or repeat what is
//! in force.

use std::collections::HashMap;

use mongodb::bson::{DateTime, oid::ObjectId};
use proptest::prelude::*;

use super::{Decision, Guard, Sight, Source, decide, ended, later_turn};
use crate::librechat::{MessageHead, MessageId, Turn};

type Agent = u8;

/// What a turn does. Agents are numbers.
#[derive(Clone, Debug)]
struct Script {
    agent: Agent,
    kind: Kind,
    /// The client asks for another answer to the last message in place of sending a new one.
    regenerates: bool,
    /// The next turn begins after so many steps of this one, before R, and cancels the rest.
    cancelled_after: Option<usize>,
    /// The user renames the conversation after so many steps.
    renamed_after: Option<usize>,
}

#[derive(Clone, Debug)]
enum Kind {
    Plain,
    Switch {
        to: Agent,
        tool_writes: bool,
        start_is_late: bool,
    },
    /// The user stops it: U is touched, R saved unfinished, and no END follows.
    Stopped {
        to: Option<Agent>,
    },
    /// Every client leaves: R is saved early, and once more at the end.
    Deserted {
        to: Agent,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    InsertU,
    TouchU,
    Start,
    ToolWrites(Agent),
    InsertR { unfinished: bool },
    FinishR,
    End,
    TouchR,
    Rename,
}

impl Script {
    fn steps(&self, touches_r: bool) -> Vec<Step> {
        let mut steps = vec![if self.regenerates {
            Step::TouchU
        } else {
            Step::InsertU
        }];
        let end = [Step::End, Step::TouchU];
        match &self.kind {
            Kind::Plain => {
                steps.extend([Step::Start, Step::InsertR { unfinished: false }]);
                steps.extend(end);
            }
            Kind::Switch {
                to,
                tool_writes,
                start_is_late,
            } => {
                let tool = tool_writes.then_some(Step::ToolWrites(*to));
                let (first, second) = if *start_is_late {
                    (tool, Some(Step::Start))
                } else {
                    (Some(Step::Start), tool)
                };
                steps.extend(first);
                steps.extend(second);
                steps.push(Step::InsertR { unfinished: false });
                steps.extend(end);
            }
            Kind::Stopped { .. } => {
                steps.extend([
                    Step::Start,
                    Step::TouchU,
                    Step::InsertR { unfinished: true },
                ]);
                return self.disturbed(steps);
            }
            Kind::Deserted { .. } => {
                steps.extend([
                    Step::Start,
                    Step::InsertR { unfinished: true },
                    Step::FinishR,
                ]);
                steps.extend(end);
            }
        }
        if touches_r {
            steps.push(Step::TouchR);
        }
        self.disturbed(steps)
    }

    fn disturbed(&self, mut steps: Vec<Step>) -> Vec<Step> {
        if let Some(after) = self.renamed_after {
            let after = after.min(steps.len());
            // A conversation is not renamed before it exists.
            if after > 1 {
                steps.insert(after, Step::Rename);
            }
        }
        if let Some(after) = self.cancelled_after {
            let start = steps.iter().position(|step| *step == Step::Start);
            let response = steps
                .iter()
                .position(|step| matches!(step, Step::InsertR { .. }));
            let after = after.min(response.unwrap_or(usize::MAX));
            steps.truncate(after.max(start.map_or(0, |start| start + 1)));
        }
        steps
    }

    fn target(&self) -> Option<Agent> {
        match self.kind {
            Kind::Plain => None,
            Kind::Switch { to, .. } | Kind::Deserted { to } => Some(to),
            Kind::Stopped { to } => to,
        }
    }
}

#[derive(Clone, Debug)]
struct Message {
    head: MessageHead,
    turn: usize,
    call: Option<Agent>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Conversation {
    agent: Agent,
    updated_at: i64,
}

#[derive(Clone, Debug)]
enum Event {
    Response {
        message: usize,
        saved_at: i64,
    },
    Agent {
        agent: Agent,
        updated_at: Option<i64>,
        newest: Option<ObjectId>,
    },
}

/// LibreChat and MongoDB.
struct World {
    now: i64,
    turns: Vec<(Script, Vec<Step>)>,
    turn: usize,
    step: usize,
    conversation: Option<Conversation>,
    listed: usize,
    messages: Vec<Message>,
    u: usize,
    r: Option<usize>,
    /// The newest turn that has saved the conversation.
    saved_by: usize,
    log: Vec<Event>,
}

fn oid(number: usize) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&(number as u64 + 1).to_be_bytes());
    ObjectId::from_bytes(bytes)
}

fn at(millis: i64) -> DateTime {
    DateTime::from_millis(millis)
}

impl World {
    fn new(scripts: Vec<Script>, touches_r: bool) -> Self {
        let last = scripts.len() - 1;
        let turns = scripts
            .into_iter()
            .enumerate()
            .map(|(index, mut script)| {
                script.regenerates &= index > 0;
                script.cancelled_after = script.cancelled_after.filter(|_| index < last);
                let steps = script.steps(touches_r);
                (script, steps)
            })
            .collect();
        Self {
            now: 1000,
            turns,
            turn: 0,
            step: 0,
            conversation: None,
            listed: 0,
            messages: Vec::new(),
            u: 0,
            r: None,
            saved_by: 0,
            log: Vec::new(),
        }
    }

    fn is_done(&self) -> bool {
        self.turn >= self.turns.len()
    }

    /// Makes the next write.
    fn advance(&mut self) {
        let Some((script, steps)) = self.turns.get(self.turn) else {
            return;
        };
        let Some(step) = steps.get(self.step).copied() else {
            self.turn += 1;
            self.step = 0;
            self.r = None;
            return;
        };
        let (agent, target) = (script.agent, script.target());
        self.step += 1;
        self.now += 5;
        match step {
            Step::InsertU => {
                let parent = self.messages.last().map(|m| m.head.id.clone());
                self.u = self.insert(true, parent, false, None);
            }
            Step::TouchU => {
                self.messages[self.u].head.updated_at = Some(at(self.now));
                if self.step == 1 {
                    self.now += 1;
                }
            }
            Step::Start | Step::End => {
                let lists = !(step == Step::Start && self.turns[self.turn].0.regenerates);
                self.save(agent, lists);
                self.saved_by = self.turn;
            }
            Step::ToolWrites(to) => {
                if let Some(conversation) = &mut self.conversation
                    && conversation.agent != to
                {
                    conversation.agent = to;
                    self.log.push(Event::Agent {
                        agent: to,
                        updated_at: None,
                        newest: None,
                    });
                }
            }
            Step::InsertR { unfinished } => {
                let parent = Some(self.messages[self.u].head.id.clone());
                let message = self.insert(false, parent, unfinished, target);
                self.r = Some(message);
                if target.is_some() {
                    self.log.push(Event::Response {
                        message,
                        saved_at: self.now,
                    });
                }
            }
            Step::FinishR => {
                let message = self.r.expect("R was inserted");
                let head = &mut self.messages[message].head;
                head.unfinished = false;
                head.updated_at = Some(at(self.now));
                self.log.push(Event::Response {
                    message,
                    saved_at: self.now,
                });
            }
            Step::TouchR => {
                let message = self.r.expect("R was inserted");
                self.messages[message].head.updated_at = Some(at(self.now));
            }
            Step::Rename => {
                self.listed = self.messages.len();
                if let Some(conversation) = &mut self.conversation {
                    conversation.updated_at = self.now;
                }
            }
        }
    }

    fn insert(
        &mut self,
        by_user: bool,
        parent: Option<MessageId>,
        unfinished: bool,
        call: Option<Agent>,
    ) -> usize {
        let number = self.messages.len();
        self.messages.push(Message {
            head: MessageHead {
                object_id: oid(number),
                id: format!("m{number}").into(),
                parent,
                by_user,
                unfinished,
                created_at: Some(at(self.now)),
                updated_at: Some(at(self.now)),
            },
            turn: self.turn,
            call,
        });
        number
    }

    /// `saveConvo`: what did not change does not show in the event.
    fn save(&mut self, agent: Agent, lists: bool) {
        let before = self.conversation;
        self.conversation = Some(Conversation {
            agent,
            updated_at: self.now,
        });
        let newest =
            (lists && self.listed < self.messages.len()).then(|| oid(self.messages.len() - 1));
        if lists {
            self.listed = self.messages.len();
        }
        if before.is_none_or(|before| before.agent != agent) {
            self.log.push(Event::Agent {
                agent,
                updated_at: Some(self.now),
                newest,
            });
        }
    }

    fn read_turn(&self, switch: &Switch) -> Turn {
        let u = &self.messages[switch.u].head;
        Turn {
            user_message: Some(u.clone()),
            response: Some(self.messages[switch.r].head.clone()),
            after: self.messages[switch.u + 1..]
                .iter()
                .map(|m| m.head.clone())
                .collect(),
        }
    }

    /// What must stand in the end: the last turn's switch, if its response was saved, or its agent.
    fn newest_decision(&self) -> Agent {
        let last = self.turns.len() - 1;
        let switched = self
            .messages
            .iter()
            .find(|m| m.turn == last && !m.head.by_user);
        switched
            .and_then(|r| r.call)
            .unwrap_or(self.turns[last].0.agent)
    }
}

#[derive(Clone, Debug)]
struct Switch {
    to: Agent,
    turn: usize,
    u: usize,
    r: usize,
    saved_at: i64,
    open: bool,
}

impl Switch {
    fn guard(&self) -> Guard {
        Guard {
            user_message: Some(oid(self.u)),
            response: Some(oid(self.r)),
            floor: None,
            saved_at: Some(at(self.saved_at)),
        }
    }
}

/// What an instance is in the middle of.
#[derive(Clone, Debug)]
enum Doing {
    ReadConversation {
        message: usize,
        saved_at: i64,
    },
    Learn {
        message: usize,
        saved_at: i64,
        conversation: Option<Conversation>,
    },
    Judge {
        switch: usize,
        sight: Sight,
        seen: Conversation,
    },
    Look {
        switch: usize,
        conversation: Option<Conversation>,
        turn: Option<Turn>,
    },
    Verify {
        switch: usize,
    },
    Write {
        switch: usize,
        seen: Conversation,
    },
}

/// An instance of Baton.
#[derive(Default)]
struct Baton {
    position: usize,
    guarded: Option<usize>,
    doing: Option<Doing>,
}

impl Baton {
    /// A look without being asked, as the timer does.
    fn look(&mut self) {
        if let (Some(switch), None) = (self.guarded, &self.doing) {
            self.doing = Some(Doing::Look {
                switch,
                conversation: None,
                turn: None,
            });
        }
    }
}

struct Run {
    world: World,
    /// The records, by response, durable and shared.
    records: Vec<Switch>,
    by_response: HashMap<usize, usize>,
    wrong: Option<String>,
}

impl Run {
    fn step(&mut self, baton: &mut Baton) {
        match baton.doing.take() {
            Some(doing) => self.go_on(baton, doing),
            None => self.next_event(baton),
        }
    }

    fn next_event(&mut self, baton: &mut Baton) {
        let Some(event) = self.world.log.get(baton.position).cloned() else {
            return;
        };
        baton.position += 1;
        match event {
            Event::Response { message, saved_at } => {
                baton.doing = Some(Doing::ReadConversation { message, saved_at });
            }
            Event::Agent {
                agent,
                updated_at,
                newest,
            } => {
                let Some(switch) = baton.guarded else { return };
                let record = &self.records[switch];
                let sight = Sight {
                    in_force: agent == record.to,
                    updated_at: updated_at.map(at),
                    source: Source::Event {
                        newest_message: newest,
                    },
                };
                let seen = Conversation {
                    agent,
                    updated_at: updated_at.unwrap_or_default(),
                };
                match decide(&record.guard(), &sight, None) {
                    Decision::Apply => baton.doing = Some(Doing::Write { switch, seen }),
                    Decision::Read => {
                        baton.doing = Some(Doing::Judge {
                            switch,
                            sight,
                            seen,
                        });
                    }
                    _ => {}
                }
            }
        }
    }

    fn go_on(&mut self, baton: &mut Baton, doing: Doing) {
        match doing {
            Doing::ReadConversation { message, saved_at } => {
                let conversation = self.world.conversation;
                baton.doing = Some(Doing::Learn {
                    message,
                    saved_at,
                    conversation,
                });
            }
            Doing::Learn {
                message,
                saved_at,
                conversation,
            } => {
                self.learn(baton, message, saved_at, conversation);
            }
            Doing::Judge {
                switch,
                sight,
                seen,
            } => {
                let turn = self.world.read_turn(&self.records[switch]);
                match decide(&self.records[switch].guard(), &sight, Some(&turn)) {
                    Decision::Apply => baton.doing = Some(Doing::Write { switch, seen }),
                    Decision::Supersede(_) => self.close(baton, switch),
                    _ => {}
                }
            }
            Doing::Look {
                switch,
                conversation: None,
                ..
            } => {
                let conversation = self.world.conversation;
                if conversation.is_some() {
                    baton.doing = Some(Doing::Look {
                        switch,
                        conversation,
                        turn: None,
                    });
                }
            }
            Doing::Look {
                switch,
                conversation: Some(conversation),
                turn,
            } => {
                let turn = turn.unwrap_or_else(|| self.world.read_turn(&self.records[switch]));
                self.act(baton, switch, conversation, &turn);
            }
            Doing::Verify { switch } => match self.world.conversation {
                Some(conversation) if conversation.agent == self.records[switch].to => {
                    self.close(baton, switch);
                }
                _ => {
                    baton.doing = Some(Doing::Look {
                        switch,
                        conversation: None,
                        turn: None,
                    });
                }
            },
            Doing::Write { switch, seen } => self.write(baton, switch, seen),
        }
    }

    fn learn(
        &mut self,
        baton: &mut Baton,
        message: usize,
        saved_at: i64,
        conversation: Option<Conversation>,
    ) {
        if let Some(&switch) = self.by_response.get(&message) {
            self.records[switch].saved_at = saved_at.max(self.records[switch].saved_at);
            if self.records[switch].open && baton.guarded.is_none() {
                baton.guarded = Some(switch);
                baton.doing = Some(Doing::Look {
                    switch,
                    conversation: None,
                    turn: None,
                });
            }
            return;
        }
        let found = &self.world.messages[message];
        let u = self
            .world
            .messages
            .iter()
            .position(|m| Some(&m.head.id) == found.head.parent.as_ref())
            .expect("U is there");
        let mut record = Switch {
            to: found.call.expect("a call"),
            turn: found.turn,
            u,
            r: message,
            saved_at,
            open: true,
        };
        let turn = self.world.read_turn(&record);
        record.open = later_turn(&record.guard(), &turn).is_none();
        let switch = self.records.len();
        self.by_response.insert(message, switch);
        self.records.push(record);
        if !self.records[switch].open {
            return;
        }
        if let Some(older) = baton.guarded.replace(switch) {
            self.records[older].open = false;
        }
        if let Some(conversation) = conversation {
            self.act(baton, switch, conversation, &turn);
        }
    }

    fn act(&mut self, baton: &mut Baton, switch: usize, seen: Conversation, turn: &Turn) {
        let record = &self.records[switch];
        let sight = Sight {
            in_force: seen.agent == record.to,
            updated_at: Some(at(seen.updated_at)),
            source: Source::Reading,
        };
        match decide(&record.guard(), &sight, Some(turn)) {
            Decision::Apply => baton.doing = Some(Doing::Write { switch, seen }),
            Decision::Settle => baton.doing = Some(Doing::Verify { switch }),
            Decision::Supersede(_) => self.close(baton, switch),
            Decision::Hold | Decision::Read => {}
        }
    }

    fn write(&mut self, baton: &mut Baton, switch: usize, seen: Conversation) {
        let record = self.records[switch].clone();
        let current = self.world.conversation;
        if current != Some(seen) {
            baton.doing = Some(Doing::Look {
                switch,
                conversation: None,
                turn: None,
            });
            return;
        }
        if seen.agent == record.to {
            self.wrong
                .get_or_insert(format!("a write repeats what is in force: {record:?}"));
        }
        if self.world.saved_by > record.turn {
            self.wrong.get_or_insert(format!(
                "turn {}'s choice is undone by {record:?}",
                self.world.saved_by
            ));
        }
        self.world.conversation = Some(Conversation {
            agent: record.to,
            ..seen
        });
        self.world.log.push(Event::Agent {
            agent: record.to,
            updated_at: None,
            newest: None,
        });
        if !self.records[switch].open {
            // Another instance has closed it: whatever stands in its place is taken up.
            baton.guarded = self.records.iter().rposition(|record| record.open);
            if let Some(switch) = baton.guarded {
                baton.doing = Some(Doing::Look {
                    switch,
                    conversation: None,
                    turn: None,
                });
            }
        }
    }

    fn close(&mut self, baton: &mut Baton, switch: usize) {
        self.records[switch].open = false;
        baton.guarded = None;
    }

    /// A crash, and the next start from an older position, with the open records read again.
    fn restart(&mut self, baton: &mut Baton, back: usize) {
        baton.doing = None;
        baton.position = baton.position.saturating_sub(back);
        baton.guarded = self.records.iter().rposition(|record| record.open);
    }
}

fn run(
    scripts: Vec<Script>,
    touches_r: bool,
    schedule: &[u8],
    instances: usize,
) -> Result<(), TestCaseError> {
    let mut run = Run {
        world: World::new(scripts, touches_r),
        records: Vec::new(),
        by_response: HashMap::new(),
        wrong: None,
    };
    let mut batons: Vec<Baton> = (0..instances).map(|_| Baton::default()).collect();
    for choice in schedule {
        let which = usize::from(choice >> 4) % instances;
        match choice & 15 {
            0..=5 => run.world.advance(),
            6..=12 => run.step(&mut batons[which]),
            13 | 14 => batons[which].look(),
            _ => run.restart(&mut batons[which], 3),
        }
    }
    while !run.world.is_done() {
        run.world.advance();
    }
    // The dust settles: all events are dealt with, and looks change nothing any more.
    for _ in 0..3 {
        for baton in &mut batons {
            while baton.doing.is_some() || baton.position < run.world.log.len() {
                run.step(baton);
            }
            run.restart(baton, 0);
            baton.look();
        }
    }
    if let Some(wrong) = run.wrong {
        return Err(TestCaseError::fail(wrong));
    }
    let agent = run
        .world
        .conversation
        .map(|conversation| conversation.agent);
    prop_assert_eq!(agent, Some(run.world.newest_decision()));
    Ok(())
}

fn script() -> impl Strategy<Value = Script> {
    let agent = 0..3u8;
    let kind = prop_oneof![
        2 => Just(Kind::Plain),
        4 => (agent.clone(), any::<bool>(), any::<bool>()).prop_map(
            |(to, tool_writes, start_is_late)| Kind::Switch { to, tool_writes, start_is_late }
        ),
        1 => proptest::option::of(agent.clone()).prop_map(|to| Kind::Stopped { to }),
        1 => agent.clone().prop_map(|to| Kind::Deserted { to }),
    ];
    (
        agent,
        kind,
        proptest::bool::weighted(0.25),
        proptest::option::weighted(0.2, 2..6usize),
        proptest::option::weighted(0.3, 2..7usize),
    )
        .prop_map(
            |(agent, kind, regenerates, cancelled_after, renamed_after)| Script {
                agent,
                kind,
                regenerates,
                cancelled_after,
                renamed_after,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn the_newest_decision_stands_in_the_end(
        scripts in proptest::collection::vec(script(), 1..4),
        schedule in proptest::collection::vec(any::<u8>(), 0..120),
        instances in 1..3usize,
    ) {
        run(scripts, true, &schedule, instances)?;
    }
}

#[test]
fn a_turn_ends_with_the_touch_of_its_user_message() {
    let mut world = World::new(
        vec![Script {
            agent: 0,
            kind: Kind::Switch {
                to: 1,
                tool_writes: true,
                start_is_late: false,
            },
            regenerates: false,
            cancelled_after: None,
            renamed_after: None,
        }],
        true,
    );
    let switch = Switch {
        to: 1,
        turn: 0,
        u: 0,
        r: 1,
        saved_at: 1020,
        open: true,
    };
    let mut ends = Vec::new();
    while !world.is_done() {
        world.advance();
        if world.messages.len() > 1 {
            ends.push(ended(&switch.guard(), &world.read_turn(&switch)).is_some());
        }
    }
    // R, END, the touch of U, the touch of R, the end of the script.
    assert_eq!(ends, [false, false, true, true, true]);
}
