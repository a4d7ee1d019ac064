//! Each condition of the rules by itself, where the random interleavings do not tell it apart.

use mongodb::bson::{DateTime, oid::ObjectId};

use super::{Decision, Guard, Later, Sight, Source, decide, ended, later_turn};
use crate::librechat::{MessageHead, Turn};

/// The `_id` that MongoDB gave at this second.
fn id(second: u8) -> ObjectId {
    let mut bytes = [0; 12];
    bytes[3] = second;
    ObjectId::from_bytes(bytes)
}

#[expect(clippy::unnecessary_wraps, reason = "every field that it is for is one")]
fn at(ms: i64) -> Option<DateTime> {
    Some(DateTime::from_millis(ms))
}

fn head(second: u8, parent: Option<&str>, by_user: bool) -> MessageHead {
    MessageHead {
        object_id: id(second),
        id: format!("m{second}").as_str().into(),
        parent: parent.map(Into::into),
        by_user,
        unfinished: false,
        created_at: at(i64::from(second) * 100),
        updated_at: at(i64::from(second) * 100),
    }
}

/// U at 10, R at 20; R was saved with the call at once, and the turn goes on.
fn turn() -> Turn {
    let (u, r) = (head(10, None, true), head(20, Some("m10"), false));
    Turn {
        user_message: Some(u),
        response: Some(r.clone()),
        after: vec![r],
    }
}

fn touched(mut turn: Turn, ms: i64) -> Turn {
    if let Some(u) = &mut turn.user_message {
        u.updated_at = at(ms);
    }
    turn
}

fn guard() -> Guard {
    Guard {
        user_message: Some(id(10)),
        response: Some(id(20)),
        floor: None,
        saved_at: at(2000),
    }
}

fn event(updated_at: Option<DateTime>, newest_message: Option<ObjectId>) -> Sight {
    Sight {
        in_force: false,
        updated_at,
        source: Source::Event { newest_message },
    }
}

fn reading(updated_at: Option<DateTime>) -> Sight {
    Sight {
        in_force: false,
        updated_at,
        source: Source::Reading,
    }
}

#[test]
fn a_write_without_a_time_is_no_save_of_librechats() {
    let tools = event(None, None);
    assert_eq!(decide(&guard(), &tools, Some(&turn())), Decision::Hold);
}

#[test]
fn a_save_of_this_turns_is_undone_without_a_read() {
    for newest in [id(10), id(20)] {
        let sight = event(at(2100), Some(newest));
        assert_eq!(decide(&guard(), &sight, None), Decision::Apply);
    }
    let sight = event(at(2100), None);
    assert_eq!(decide(&guard(), &sight, None), Decision::Read);
}

#[test]
fn a_save_for_a_message_that_the_turn_does_not_explain_is_a_later_turns() {
    let decided = |newest| decide(&guard(), &event(at(2100), Some(newest)), Some(&turn()));
    assert_eq!(
        decided(id(21)),
        Decision::Supersede(Later::OtherTurnSaved),
        "a message that is not there to be read"
    );
    // Messages from before the turn, and one between U and R.
    assert_eq!(decided(id(9)), Decision::Apply);
    assert_eq!(decided(id(15)), Decision::Apply);
}

#[test]
fn only_a_newer_answer_to_the_same_message_is_a_regeneration() {
    let with = |sibling: MessageHead| {
        let mut turn = turn();
        turn.after.push(sibling);
        later_turn(&guard(), &turn)
    };
    let newer = head(30, Some("m10"), false);
    assert_eq!(with(newer), Some(Later::Regenerated));
    assert_eq!(with(head(15, Some("m10"), false)), None, "an older one");
    assert_eq!(with(head(30, Some("m5"), false)), None, "another's answer");
    assert_eq!(with(head(30, None, false)), None, "nobody's answer");
}

#[test]
fn where_the_users_message_is_unknown_no_answer_is_another_to_it() {
    let orphan = Turn {
        user_message: None,
        after: vec![head(30, None, false)],
        ..turn()
    };
    assert_eq!(later_turn(&guard(), &orphan), None);
}

#[test]
fn before_the_response_is_saved_only_answers_newer_than_the_switch_count() {
    let early = Guard {
        response: None,
        floor: Some(id(15)),
        saved_at: None,
        ..guard()
    };
    let with = |second| {
        let turn = Turn {
            response: None,
            after: vec![head(second, Some("m10"), false)],
            ..turn()
        };
        later_turn(&early, &turn)
    };
    assert_eq!(with(14), None);
    assert_eq!(with(16), Some(Later::Regenerated));
}

#[test]
fn a_stopped_answer_is_regenerated_where_its_question_is_touched_after_it() {
    let stopped = |touch, saved_at| {
        let mut turn = touched(turn(), touch);
        if let Some(r) = &mut turn.response {
            r.unfinished = true;
        }
        let guard = Guard {
            saved_at,
            ..guard()
        };
        (later_turn(&guard, &turn), ended(&guard, &turn))
    };
    let regenerated = (Some(Later::RegeneratedAfterStop), None);
    assert_eq!(stopped(2001, at(2000)), regenerated);
    assert_eq!(stopped(2000, at(2000)), (None, None));
    // Saved later than made, as when all clients have left.
    assert_eq!(stopped(2001, at(2500)), (None, None));
    assert_eq!(stopped(2501, at(2500)), regenerated);
    // When it was saved is not known.
    assert_eq!(stopped(1500, None), (None, None));
    assert_eq!(stopped(2001, None), regenerated);
}

#[test]
fn the_end_is_a_touch_after_the_response_was_saved() {
    let end = |touch, saved_at| {
        let guard = Guard {
            saved_at,
            ..guard()
        };
        ended(&guard, &touched(turn(), touch))
    };
    assert_eq!(end(2001, at(2000)), at(2001));
    assert_eq!(end(2000, at(2000)), None, "the same moment is not after it");
    // Continued: made long before the call was saved in it.
    assert_eq!(end(2001, at(2500)), None);
    assert_eq!(end(2501, at(2500)), at(2501));
    // When it was saved is not known.
    assert_eq!(end(1500, None), None);
    assert_eq!(end(2001, None), at(2001));
}

#[test]
fn after_the_end_a_save_up_to_the_touch_is_the_turns_own() {
    let ended = touched(turn(), 2100);
    let decided = |ms| decide(&guard(), &event(at(ms), None), Some(&ended));
    assert_eq!(decided(2100), Decision::Apply);
    assert_eq!(decided(2101), Decision::Supersede(Later::ChosenAfterEnd));
    // A rename shows no agent, and moves the time.
    let renamed = reading(at(9000));
    assert_eq!(decide(&guard(), &renamed, Some(&ended)), Decision::Apply);
}

#[test]
fn a_question_that_is_newer_than_a_touched_answer_is_waited_for() {
    let decided = |r_touch, saved_at| {
        let mut turn = touched(turn(), 2200);
        if let Some(r) = &mut turn.response {
            r.updated_at = at(r_touch);
        }
        let guard = Guard {
            saved_at,
            ..guard()
        };
        decide(&guard, &reading(at(2090)), Some(&turn))
    };
    // v0.8.8 touches R last; a U touched once more is being regenerated.
    assert_eq!(decided(2103, at(2000)), Decision::Hold);
    assert_eq!(decided(2203, at(2000)), Decision::Apply);
    // Not touched: older versions never do.
    assert_eq!(decided(2000, at(2000)), Decision::Apply);
    assert_eq!(decided(2000, None), Decision::Apply);
    // Saved once more, with the call; that is no touch.
    assert_eq!(decided(2103, at(2103)), Decision::Apply);
}
