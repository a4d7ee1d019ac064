//! The operator's policy: from which agent to which a conversation may be switched, and how often.

use std::{collections::BTreeMap, time::Duration};

use crate::{aliases::Aliases, librechat::AgentId};

const ANY: &str = "*";

/// `switch.max_per_conversation`: a brake on agents that hand a conversation to and fro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    /// So many switches,
    pub most: u32,
    /// within this time.
    pub within: Duration,
}

impl Default for Brake {
    fn default() -> Self {
        Self {
            most: 10,
            within: Duration::from_secs(10 * 60),
        }
    }
}

/// An agent as far as a rule may name it.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// Its id.
    pub id: &'a AgentId,
    /// Its name, where it is known.
    pub name: Option<&'a str>,
}

/// `switch.allow`. Empty: every switch is allowed.
#[derive(Clone, Debug, Default)]
pub struct AllowList {
    rules: BTreeMap<String, Vec<String>>,
}

impl AllowList {
    /// Rules from → to. Each side names an agent by id, name or alias; `*` stands for every agent.
    #[must_use]
    pub fn new(rules: BTreeMap<String, Vec<String>>) -> Self {
        Self { rules }
    }

    /// Whether it takes the name of the agent that switches to know what the rules say of it.
    #[must_use]
    pub fn asks_for_names(&self, aliases: &Aliases) -> bool {
        self.rules.keys().any(|reference| {
            reference != ANY
                && AgentId::stored(reference).is_none()
                && aliases.get(reference).is_none()
        })
    }

    /// Every way in which the rules refer to an agent, for who wants to know what they mean.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        let targets = self.rules.values().flatten();
        self.rules
            .keys()
            .chain(targets)
            .map(String::as_str)
            .filter(|reference| *reference != ANY)
    }

    /// Whether a switch from `from` (where it is known) to `to` is allowed. To stay is no switch.
    #[must_use]
    pub fn allows(&self, from: Option<Named<'_>>, to: Named<'_>, aliases: &Aliases) -> bool {
        let is_of = |reference: &str| {
            reference == ANY || from.is_some_and(|from| refers(reference, from, aliases))
        };
        self.rules.is_empty()
            || from.is_some_and(|from| from.id == to.id)
            || self
                .rules
                .iter()
                .filter(|(reference, _)| is_of(reference))
                .flat_map(|(_, targets)| targets)
                .any(|target| target == ANY || refers(target, to, aliases))
    }
}

/// An alias is the operator's own word, so it wins over an agent that happens to be called so.
fn refers(reference: &str, agent: Named<'_>, aliases: &Aliases) -> bool {
    if reference == agent.id.as_str() {
        return true;
    }
    match aliases.get(reference) {
        Some(id) => id == *agent.id,
        None => agent
            .name
            .is_some_and(|name| name.trim().to_lowercase() == reference.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(rules: &[(&str, &[&str])]) -> AllowList {
        AllowList::new(
            rules
                .iter()
                .map(|(from, to)| ((*from).into(), to.iter().map(|s| (*s).into()).collect()))
                .collect(),
        )
    }

    fn allows(list: &AllowList, from: Option<&str>, to: &str) -> bool {
        let known = [("alias".to_owned(), "agent_c".into())].into();
        let aliases = Aliases::new(known, None);
        let (from, to) = (from.map(AgentId::from), AgentId::from(to));
        // Every agent's name is its id in capitals with blanks around it.
        let names = [from.as_ref(), Some(&to)]
            .map(|id| format!(" {} ", id.map_or("", AgentId::as_str).to_uppercase()));
        let from = from.as_ref().map(|id| Named {
            id,
            name: Some(&names[0]),
        });
        list.allows(
            from,
            Named {
                id: &to,
                name: Some(&names[1]),
            },
            &aliases,
        )
    }

    #[test]
    fn an_empty_list_allows_everything() {
        assert!(allows(&AllowList::default(), Some("a"), "b"));
        assert!(allows(&AllowList::default(), None, "b"));
    }

    #[test]
    fn only_what_a_rule_names_is_allowed() {
        let list = list(&[("a", &["b"]), ("b", &["*"]), ("*", &["home"])]);
        assert!(allows(&list, Some("a"), "b"));
        assert!(!allows(&list, Some("a"), "c"));
        assert!(allows(&list, Some("b"), "c"));
        assert!(allows(&list, Some("x"), "home"));
        assert!(!allows(&list, Some("x"), "b"));
        assert!(!allows(&list, None, "b"));
        assert!(allows(&list, None, "home"));
        assert!(allows(&list, Some("a"), "a"));
    }

    #[test]
    fn agents_go_by_name_and_alias_too() {
        let list = list(&[("AGENT_A", &["Agent_B", "alias"])]);
        assert!(allows(&list, Some("agent_a"), "agent_b"));
        assert!(allows(&list, Some("agent_a"), "agent_c"));
        assert!(!allows(&list, Some("agent_a"), "agent_d"));
        assert!(!allows(&list, Some("agent_b"), "agent_c"));
    }

    #[test]
    fn names_are_asked_for_where_a_rule_has_one() {
        let aliases = Aliases::new([("alias".to_owned(), "agent_c".into())].into(), None);
        assert!(
            !list(&[("agent_a", &["Name"]), ("*", &[]), ("alias", &[])]).asks_for_names(&aliases)
        );
        assert!(list(&[("Name", &["agent_a"])]).asks_for_names(&aliases));
    }
}
