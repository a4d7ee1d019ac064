//! How the target of a switch comes to answer the message in which it was switched to. It is kept
//! with the record, so that whoever finds a beginning can bring it to its end.

use mongodb::bson::DateTime;
use serde::{Deserialize, Serialize};

use super::record::Switch;
use crate::librechat::{AgentId, MessageId};

/// Who has the message answered by the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// The client, which sends it once more.
    Resend,
    /// The gateway, in the stream of the agent that handed over.
    Splice,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Somebody is about to begin it, and nobody else will.
    Claimed,
    /// LibreChat has the target at work, or has had.
    Begun,
    /// The target has answered, and LibreChat's messages are as they are to stay.
    Done,
    /// It did not come about.
    Failed,
}

/// The target's answer to the message in which it was switched to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Who has it given.
    pub way: Way,
    /// How far it has come.
    pub stage: Stage,
    /// The target.
    pub by: AgentId,
    /// `messageId` of the target's response, chosen beforehand (splice), or of the user's message
    /// as it is sent again (resend).
    pub message_id: MessageId,
    /// What the target is told after the message's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// `generationCreatedAt` of the turn that switched, in milliseconds by LibreChat's clock
    /// (v0.8.8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<i64>,
    /// `generationCreatedAt` of the target's turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Why it did not come about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// When it was claimed, by MongoDB's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimed_at: Option<DateTime>,
}

impl Answer {
    /// Whether there may still be something to do about it.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Claimed | Stage::Begun)
    }
}

/// More of a reason than this is not passed on, in characters.
const REASON: usize = 1000;

/// What the target is told after the user's message: who hands over, and why.
#[must_use]
pub fn note(from: Option<&str>, reason: Option<&str>) -> String {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let from = from.map_or_else(String::new, |name| format!(" from {:?}", one_line(name)));
    let reason = reason.map(one_line).filter(|reason| !reason.is_empty());
    let reason = reason.map_or_else(String::new, |reason| {
        let reason: String = reason.chars().take(REASON).collect();
        format!(" The reason: {reason:?}.")
    });
    format!(
        "\n\n(Not from the user: control of this conversation was transferred to you{from}.{reason} \
         Process the user's original message above.)"
    )
}

impl Switch {
    /// The agent that answers the message in which the switch was made, where that is not only the
    /// one that made it.
    #[must_use]
    pub fn answered_by(&self) -> Option<&AgentId> {
        self.answer
            .as_ref()
            .filter(|answer| matches!(answer.stage, Stage::Begun | Stage::Done))
            .map(|answer| &answer.by)
    }

    /// The message of that answer, as [`Answer::message_id`] has it.
    #[must_use]
    pub fn answer_message(&self) -> Option<&MessageId> {
        self.answered_by()?;
        self.answer.as_ref().map(|answer| &answer.message_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_told_who_hands_over_and_why() {
        assert_eq!(
            note(Some("Front desk"), Some("asks for\n an \"invoice\"")),
            "\n\n(Not from the user: control of this conversation was transferred to you from \
             \"Front desk\". The reason: \"asks for an \\\"invoice\\\"\". Process the user's \
             original message above.)"
        );
        assert_eq!(
            note(None, Some(" ")),
            "\n\n(Not from the user: control of this conversation was transferred to you. Process \
             the user's original message above.)"
        );
    }
}
