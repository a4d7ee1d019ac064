//! At each moment of a turn, and of those that follow it.

use mongodb::bson::{DateTime, oid::ObjectId};
use proptest::prelude::*;

use super::*;
use crate::switch::decide::{Decision, Sight, Source, decide};

fn id(n: u8) -> ObjectId {
    ObjectId::from_bytes([n; 12])
}

#[expect(clippy::unnecessary_wraps, reason = "the fields are optional")]
fn at(ms: i64) -> Option<DateTime> {
    Some(DateTime::from_millis(ms))
}

fn message(n: u8, parent: u8, by_user: bool, created: i64, updated: i64) -> MessageHead {
    MessageHead {
        object_id: id(n),
        id: n.to_string().as_str().into(),
        parent: Some(parent.to_string().as_str().into()),
        by_user,
        unfinished: false,
        created_at: at(created),
        updated_at: at(updated),
    }
}

fn u(updated: i64) -> MessageHead {
    message(3, 2, true, 0, updated)
}

fn r(updated: i64) -> MessageHead {
    message(4, 3, false, 80, updated)
}

fn unfinished(mut head: MessageHead) -> MessageHead {
    head.unfinished = true;
    head
}

/// The turn before, at rest.
fn before() -> Vec<MessageHead> {
    vec![
        message(1, 0, true, -1000, -900),
        message(2, 1, false, -910, -890),
    ]
}

fn flight(new: &[MessageHead]) -> Option<Flight> {
    let mut all = before();
    all.extend_from_slice(new);
    in_flight(&all)
}

#[test]
fn between_two_turns_none_is_in_flight() {
    assert_eq!(in_flight(&[]), None);
    assert_eq!(flight(&[]), None);
    assert_eq!(
        flight(&[u(100), r(80)]),
        None,
        "before v0.8.8 R is not touched"
    );
    assert_eq!(flight(&[u(100), r(103)]), None);
}

#[test]
fn a_message_without_an_answer_is_in_flight() {
    let flight = flight(&[u(0)]).unwrap();
    assert_eq!(flight.floor, id(3));
    assert_eq!(flight.turn.user_message, Some(u(0)));
    assert_eq!(flight.turn.response, None);
}

#[test]
fn an_answer_whose_turn_has_not_ended_is_in_flight_and_known() {
    for response in [r(80), unfinished(r(80)), unfinished(r(90))] {
        let flight = flight(&[u(0), response.clone()]).unwrap();
        assert_eq!(flight.floor, id(3));
        assert_eq!(
            flight.turn.first_response_after(flight.floor),
            Some(&response)
        );
        assert_eq!(flight.turn.response, Some(response));
    }
}

#[test]
fn a_regenerate_shows_by_its_touch_and_its_answer_is_yet_to_come() {
    for earlier in [unfinished(r(80)), r(103)] {
        let flight = flight(&[u(500), earlier]).unwrap();
        assert_eq!(flight.floor, id(4));
        assert_eq!(flight.turn.response, None);
        assert_eq!(flight.turn.first_response_after(flight.floor), None);
    }
}

#[test]
fn the_answer_of_a_regenerate_is_the_newer_one() {
    let newer = message(5, 3, false, 600, 600);
    let flight = flight(&[u(500), r(103), newer.clone()]).unwrap();
    assert_eq!(flight.floor, id(4));
    assert_eq!(flight.turn.response, Some(newer.clone()));
    assert_eq!(flight.turn.first_response_after(flight.floor), Some(&newer));
}

#[test]
fn an_answer_to_another_message_is_not_the_turns() {
    let elsewhere = message(5, 1, false, 50, 50);
    let flight = flight(&[u(0), elsewhere]).unwrap();
    assert_eq!(flight.turn.response, None);
    assert_eq!(flight.turn.first_response_after(flight.floor), None);
}

/// A turn in which clients may leave, each step with the messages and the agent that it leaves.
#[derive(Clone, Debug)]
#[expect(
    clippy::option_option,
    reason = "a save, and a save without ids, are two things"
)]
struct Step {
    messages: Vec<MessageHead>,
    /// The ids that the step saves with the conversation, of which this is the last.
    saves: Option<Option<u8>>,
}

fn steps(saved_early: bool, touches_r: bool) -> Vec<Step> {
    let step = |messages: &[MessageHead], saves| Step {
        messages: messages.to_vec(),
        saves,
    };
    let mut steps = vec![step(&[u(0)], None), step(&[u(0)], Some(Some(3)))];
    let written = if saved_early { r(90) } else { r(80) };
    if saved_early {
        steps.push(step(&[u(0), unfinished(r(80))], None));
    }
    steps.push(step(&[u(0), written.clone()], None));
    steps.push(step(&[u(0), written.clone()], Some(Some(4))));
    steps.push(step(&[u(100), written], None));
    if touches_r {
        steps.push(step(&[u(100), r(103)], None));
    }
    steps
}

proptest! {
    /// Wherever in a turn the choice is made, whatever of the turn comes after it is undone, and
    /// the choice is settled at its end.
    #[test]
    fn a_choice_outlasts_the_rest_of_its_turn(
        saved_early: bool, touches_r: bool, moment in 0usize..4,
    ) {
        let steps = steps(saved_early, touches_r);
        let read = |step: &Step| { let mut all = before(); all.extend(step.messages.clone()); all };
        let flight = in_flight(&read(&steps[moment])).unwrap();
        let guard = Guard {
            user_message: Some(id(3)), response: None, floor: Some(flight.floor), saved_at: None,
        };
        let turn = |step: &Step| {
            let mut turn = Turn {
                user_message: step.messages.first().cloned(),
                response: None,
                after: step.messages[1..].to_vec(),
            };
            turn.response = turn.first_response_after(flight.floor).cloned();
            turn
        };
        for step in &steps[moment + 1..] {
            let turn = turn(step);
            if let Some(newest) = step.saves {
                let sight = Sight {
                    in_force: false, updated_at: at(95),
                    source: Source::Event { newest_message: newest.map(id) },
                };
                prop_assert_eq!(decide(&guard, &sight, Some(&turn)), Decision::Apply);
            }
        }
        let settled = Sight { in_force: true, updated_at: at(95), source: Source::Reading };
        prop_assert_eq!(decide(&guard, &settled, Some(&turn(&steps[steps.len() - 1]))), Decision::Settle);
    }

    /// A turn that begins after the choice is left alone.
    #[test]
    fn a_choice_does_not_outlast_a_later_turn(saved_early: bool, moment in 0usize..4) {
        let steps = steps(saved_early, true);
        let mut all = before();
        all.extend(steps[moment].messages.clone());
        let flight = in_flight(&all).unwrap();
        let guard = Guard {
            user_message: Some(id(3)), response: None, floor: Some(flight.floor), saved_at: None,
        };
        let mut after = steps[moment].messages[1..].to_vec();
        after.push(message(9, 4, true, 2000, 2000));
        let mut turn = Turn { user_message: Some(u(0)), response: None, after };
        turn.response = turn.first_response_after(flight.floor).cloned();
        let sight = Sight {
            in_force: false, updated_at: at(2010),
            source: Source::Event { newest_message: Some(id(9)) },
        };
        prop_assert!(matches!(decide(&guard, &sight, Some(&turn)), Decision::Supersede(_)));
    }
}
