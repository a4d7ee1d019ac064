//! Which turn is in flight at a moment when the user chooses an agent. Pure.
//!
//! A choice made while LibreChat is at work on a turn has to outlast that turn's START and END,
//! and no later one. The response is not known by its id yet: it is the first one to U that is
//! newer than the floor.

use mongodb::bson::oid::ObjectId;

use crate::librechat::{MessageHead, Turn};

use super::decide::{Guard, ended};

/// A turn that LibreChat is at work on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flight {
    /// What is known of it; U always is.
    pub turn: Turn,
    /// Its response is the first one to U that is newer than this.
    pub floor: ObjectId,
}

/// The turn in flight, given the newest messages of a conversation, oldest first.
///
/// A turn without an end counts as in flight, also where none will come because the user stopped
/// it. A regenerate of a finished answer shows from v0.8.8 on alone (U is touched after R, which
/// is otherwise touched last); that of an earlier message of the user's does not show.
#[must_use]
pub fn in_flight(newest: &[MessageHead]) -> Option<Flight> {
    let position = newest.iter().rposition(|head| head.by_user)?;
    let user_message = newest[position].clone();
    let after = newest[position + 1..].to_vec();
    let is_response = |head: &&MessageHead| head.parent.as_ref() == Some(&user_message.id);
    let mut responses = after.iter().rev().filter(is_response);
    let last = responses.next().cloned();
    let before_last = responses
        .next()
        .map_or(user_message.object_id, |head| head.object_id);
    let turn = |response| Turn {
        user_message: Some(user_message.clone()),
        response,
        after: after.clone(),
    };
    let Some(last) = last else {
        let floor = user_message.object_id;
        return Some(Flight {
            turn: turn(None),
            floor,
        });
    };
    let touched = user_message.updated_at;
    let regenerating = if last.unfinished {
        touched > last.created_at
    } else {
        last.updated_at > last.created_at && touched > last.updated_at
    };
    if regenerating {
        let floor = last.object_id;
        return Some(Flight {
            turn: turn(None),
            floor,
        });
    }
    let turn = turn(Some(last));
    let nothing_more = Guard {
        user_message: None,
        response: None,
        floor: None,
        saved_at: None,
    };
    ended(&nothing_more, &turn).is_none().then_some(Flight {
        turn,
        floor: before_last,
    })
}

#[cfg(test)]
mod tests;
