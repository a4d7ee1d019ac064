//! The rules: what is to be done about a switch, given what is known. Pure; no I/O, no clock.
//!
//! A switch belongs to a turn: the user's message U and the response R. LibreChat's own saves of
//! that turn (START, END, and whatever saves come with them) write the old agent back, and are
//! undone. Whatever a later turn, or the user, decides stands. Turns are ordered by the `_id`s
//! that MongoDB gave their messages. LibreChat's times are only compared with each other, within
//! one conversation; they are never compared with a clock of anybody else's.

use mongodb::bson::{DateTime, oid::ObjectId};

use crate::librechat::{MessageHead, Turn};

/// The open switch, as far as the rules ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// U's `_id`, where it is known.
    pub user_message: Option<ObjectId>,
    /// R's `_id`, once R is saved.
    pub response: Option<ObjectId>,
    /// Where R was not known when the switch was learned of: R is the first response to U that is
    /// newer than this message.
    pub floor: Option<ObjectId>,
    /// When R was saved with the call in it, by LibreChat's clock. The turn's end touches U
    /// after that.
    pub saved_at: Option<DateTime>,
}

/// The conversation's agent, as an event or a reading shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    /// Whether the conversation names the switch's target, model spec and all.
    pub in_force: bool,
    /// `updatedAt`: of an event, as that write set it; of a reading, as it stands.
    pub updated_at: Option<DateTime>,
    /// How it was seen.
    pub source: Source,
}

/// How the conversation's agent was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A write of `agent_id`, with the newest of the message ids that the same write set.
    Event {
        /// `None` where the write set no `messages`.
        newest_message: Option<ObjectId>,
    },
    /// The document as it was read before the turn was.
    Reading,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing yet; the turn is still to end.
    Hold,
    /// The turn cannot be judged without reading it.
    Read,
    /// Put the target (back) in force.
    Apply,
    /// The turn has ended and the target stands: close the switch, once another reading of the
    /// conversation, made after the turn's, still shows the target in force.
    Settle,
    /// A later decision stands: close the switch and leave the conversation alone.
    Supersede(Later),
}

/// The evidence of a later decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Later {
    /// A user's message newer than U.
    UserMessage,
    /// Another response to U, newer than R.
    Regenerated,
    /// U was touched again after a response that was stopped: it is being regenerated.
    RegeneratedAfterStop,
    /// LibreChat saved the conversation for a message of another turn.
    OtherTurnSaved,
    /// The agent was written after the turn had ended.
    ChosenAfterEnd,
}

impl Later {
    /// The evidence in words, for the record.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::UserMessage => "a newer message of the user's",
            Self::Regenerated => "the response was regenerated",
            Self::RegeneratedAfterStop => "the stopped response is being regenerated",
            Self::OtherTurnSaved => "another turn was saved after it",
            Self::ChosenAfterEnd => "the agent was chosen after the turn had ended",
        }
    }
}

/// Decides about an open switch.
///
/// `turn` is `None` before it has been read. What is read must be read in this order: the
/// conversation (or the event's arrival) first, then the turn; so that a later turn which wrote
/// the conversation is always among the messages.
#[must_use]
pub fn decide(guard: &Guard, sight: &Sight, turn: Option<&Turn>) -> Decision {
    if let Source::Event { newest_message } = sight.source {
        if sight.in_force || sight.updated_at.is_none() {
            // Without `updatedAt` it is no save of LibreChat's: a tool's own write or Baton's.
            return Decision::Hold;
        }
        let this_turns = newest_message.is_some_and(|newest| {
            guard.response == Some(newest) || guard.user_message == Some(newest)
        });
        if this_turns {
            return Decision::Apply;
        }
    }
    let Some(turn) = turn else {
        return Decision::Read;
    };
    if let Some(later) = later_turn(guard, turn) {
        return Decision::Supersede(later);
    }
    if let Source::Event {
        newest_message: Some(newest),
    } = sight.source
        && !turn.accounts_for(newest)
    {
        return Decision::Supersede(Later::OtherTurnSaved);
    }
    let end = ended(guard, turn);
    match (sight.in_force, end) {
        (true, Some(_)) => Decision::Settle,
        (true, None) => Decision::Hold,
        (false, None) => Decision::Apply,
        (false, Some(touch)) => after_end(guard, sight, turn, touch),
    }
}

/// Whether a later turn exists, and by what.
#[must_use]
pub fn later_turn(guard: &Guard, turn: &Turn) -> Option<Later> {
    if turn.after.iter().any(|head| head.by_user) {
        return Some(Later::UserMessage);
    }
    let response = turn.response.as_ref();
    let u = turn.user_message.as_ref().map(|u| &u.id);
    let last_known = response.map(|r| r.object_id).or(guard.floor);
    let newer_sibling = |head: &MessageHead| {
        u.is_some()
            && head.parent.as_ref() == u
            && last_known.is_some_and(|known| head.object_id > known)
    };
    if turn.after.iter().any(newer_sibling) {
        return Some(Later::Regenerated);
    }
    let touched_after = |r: &MessageHead| {
        let touched = turn.user_message.as_ref().and_then(|u| u.updated_at);
        touched > guard.saved_at.max(r.created_at)
    };
    response
        .is_some_and(|r| r.unfinished && touched_after(r))
        .then_some(Later::RegeneratedAfterStop)
}

/// The touch of U that ended the turn: R is finished, and U was touched after R was saved.
///
/// LibreChat touches U right after END (`api/server/controllers/agents/request.js`). R itself is
/// touched still later in v0.8.8, so that R's `updatedAt` says nothing.
#[must_use]
pub fn ended(guard: &Guard, turn: &Turn) -> Option<DateTime> {
    let response = turn.response.as_ref().filter(|r| !r.unfinished)?;
    let touch = turn.user_message.as_ref()?.updated_at?;
    (Some(touch) > guard.saved_at.max(response.created_at)).then_some(touch)
}

/// The conversation names another agent, and the turn's end has been seen.
fn after_end(guard: &Guard, sight: &Sight, turn: &Turn, touch: DateTime) -> Decision {
    // From v0.8.8 on R is touched 3 ms after U. Where U is newer than a touched R, the turn is
    // just ending, or U has been touched once more by a regenerate: another look will tell, by
    // R's touch or by the new response.
    let response = turn.response.as_ref();
    let r_touch = response.and_then(|r| r.updated_at);
    let r_was_touched = r_touch > guard.saved_at.max(response.and_then(|r| r.created_at));
    if r_was_touched && Some(touch) > r_touch {
        return Decision::Hold;
    }
    if sight.updated_at <= Some(touch) {
        return Decision::Apply;
    }
    match sight.source {
        Source::Event { .. } => Decision::Supersede(Later::ChosenAfterEnd),
        // Saved after the end, but not by a regenerate, which touches U: a rename or a title.
        Source::Reading => Decision::Apply,
    }
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod interleavings;
