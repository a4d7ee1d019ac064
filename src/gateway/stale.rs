//! Whether a turn that asks for an agent is the user's choice, or a tab's that cannot know that
//! the conversation was switched. Pure; no I/O.
//!
//! The two look the same on the wire. A tab knows of a switch if a final with the target was
//! delivered to some client, and if what it answers came after the switch; otherwise it repeats
//! what it knew before.

use crate::librechat::AgentId;
use crate::librechat::chat::Post;
use crate::switch::record::{Status, Switch};

/// A conversation's switches in a row, each from the target of the one before.
pub(super) struct Trail<'a> {
    /// Newest first.
    links: Vec<&'a Switch>,
}

/// What a tab that asks for an agent is to be asked in its turn.
#[derive(Debug)]
pub(super) enum Suspicion<'a> {
    /// Nothing: it passes.
    None,
    /// It cannot know of the switch.
    Certain,
    /// It knows of the switch only where its message descends from it.
    UnlessDescended(&'a Switch),
}

impl<'a> Trail<'a> {
    /// The switches that led to the agent that the conversation names now; `history` is newest
    /// first. Empty where the user has chosen since.
    pub(super) fn to(history: &'a [Switch], named: Option<&AgentId>) -> Self {
        let mut at = match history.first() {
            // What overwrites an open switch is put back.
            Some(newest) if newest.status == Status::Open => Some(&newest.to_agent),
            _ => named,
        };
        let mut links = Vec::new();
        for switch in history {
            if at != Some(&switch.to_agent) {
                break;
            }
            links.push(switch);
            at = switch.from_agent.as_ref();
        }
        Self { links }
    }

    /// The agent in force.
    pub(super) fn target(&self) -> Option<&'a Switch> {
        self.links.first().copied()
    }

    /// What to make of a POST.
    pub(super) fn suspect(&self, post: &Post) -> Suspicion<'a> {
        let Some(target) = self.target() else {
            return Suspicion::None;
        };
        if post.agent == target.to_agent || post.continues {
            return Suspicion::None;
        }
        let left = |link: &&&Switch| link.from_agent.as_ref() == Some(&post.agent);
        match self.links.iter().find(left) {
            // Neither the agent in force nor one that was left: the user's choice.
            None => Suspicion::None,
            Some(switch) if switch.delivered_at.is_none() => Suspicion::Certain,
            // What is repeated is as a rule older than the switch, in whatever tab.
            Some(_) if post.repeats => Suspicion::None,
            Some(switch) => Suspicion::UnlessDescended(switch),
        }
    }
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{DateTime, doc, oid::ObjectId};

    use super::*;

    fn switch(from: &str, to: &str, delivered: bool) -> Switch {
        let mut switch: Switch = mongodb::bson::deserialize_from_document(doc! {
            "_id": ObjectId::new(), "conversation_id": "c", "user": "u", "from_agent": from,
            "to_agent": to, "origin": "tool", "status": "settled",
        })
        .unwrap();
        switch.delivered_at = delivered.then(DateTime::now);
        switch
    }

    fn post(agent: &str) -> Post {
        Post {
            conversation: "c".into(),
            agent: agent.into(),
            parent: Some("p".into()),
            continues: false,
            repeats: false,
            has_spec: false,
        }
    }

    fn suspect(history: &[Switch], named: &str, post: &Post) -> &'static str {
        match Trail::to(history, Some(&named.into())).suspect(post) {
            Suspicion::None => "none",
            Suspicion::Certain => "certain",
            Suspicion::UnlessDescended(_) => "unless descended",
        }
    }

    #[test]
    fn a_tab_that_was_never_told_cannot_know() {
        let history = [switch("A", "B", false)];
        assert_eq!(suspect(&history, "B", &post("A")), "certain");
        let again = Post {
            repeats: true,
            ..post("A")
        };
        assert_eq!(suspect(&history, "B", &again), "certain");
    }

    #[test]
    fn a_tab_may_have_been_opened_before_the_switch() {
        let history = [switch("A", "B", true)];
        assert_eq!(suspect(&history, "B", &post("A")), "unless descended");
    }

    #[test]
    fn what_is_the_users_choice_passes() {
        let told = [switch("A", "B", true)];
        let untold = [switch("A", "B", false)];
        assert_eq!(suspect(&untold, "B", &post("B")), "none");
        assert_eq!(suspect(&untold, "B", &post("C")), "none");
        let continues = Post {
            continues: true,
            ..post("A")
        };
        assert_eq!(suspect(&untold, "B", &continues), "none");
        let repeats = Post {
            repeats: true,
            ..post("A")
        };
        assert_eq!(suspect(&told, "B", &repeats), "none");
        // The user has chosen A, or C, since.
        assert_eq!(suspect(&untold, "A", &post("A")), "none");
        assert_eq!(suspect(&untold, "C", &post("A")), "none");
        assert_eq!(suspect(&[], "B", &post("A")), "none");
    }

    #[test]
    fn a_tab_may_be_several_switches_behind() {
        let history = [switch("B", "C", true), switch("A", "B", false)];
        assert_eq!(suspect(&history, "C", &post("A")), "certain");
        assert_eq!(suspect(&history, "C", &post("B")), "unless descended");
        let broken = [switch("A", "C", true), switch("A", "B", false)];
        assert_eq!(suspect(&broken, "C", &post("B")), "none");
    }

    #[test]
    fn an_open_switch_is_in_force_whatever_the_conversation_says() {
        let mut open = switch("A", "B", false);
        open.status = Status::Open;
        assert_eq!(suspect(&[open], "A", &post("A")), "certain");
    }
}
