//! The operator's allow-list: from which agent to which a conversation may be switched.

use std::collections::BTreeMap;

use crate::librechat::AgentId;

const ANY: &str = "*";

/// `switch.allow`. Empty: every switch is allowed.
#[derive(Clone, Debug, Default)]
pub struct AllowList {
    rules: BTreeMap<AgentId, Vec<AgentId>>,
}

impl AllowList {
    /// Rules from → to; `*` stands for every agent on either side.
    #[must_use]
    pub fn new(rules: BTreeMap<AgentId, Vec<AgentId>>) -> Self {
        Self { rules }
    }

    /// Whether a switch from `from` (where it is known) to `to` is allowed. To stay is no switch.
    #[must_use]
    pub fn allows(&self, from: Option<&AgentId>, to: &AgentId) -> bool {
        let any = AgentId::from(ANY);
        self.rules.is_empty()
            || from == Some(to)
            || [from, Some(&any)]
                .into_iter()
                .flatten()
                .filter_map(|from| self.rules.get(from))
                .flatten()
                .any(|allowed| *allowed == any || allowed == to)
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

    #[test]
    fn an_empty_list_allows_everything() {
        assert!(AllowList::default().allows(Some(&"a".into()), &"b".into()));
        assert!(AllowList::default().allows(None, &"b".into()));
    }

    #[test]
    fn only_what_a_rule_names_is_allowed() {
        let list = list(&[("a", &["b"]), ("b", &["*"]), ("*", &["home"])]);
        assert!(list.allows(Some(&"a".into()), &"b".into()));
        assert!(!list.allows(Some(&"a".into()), &"c".into()));
        assert!(list.allows(Some(&"b".into()), &"c".into()));
        assert!(list.allows(Some(&"x".into()), &"home".into()));
        assert!(!list.allows(Some(&"x".into()), &"b".into()));
        assert!(!list.allows(None, &"b".into()));
        assert!(list.allows(None, &"home".into()));
        assert!(list.allows(Some(&"a".into()), &"a".into()));
    }
}
