//! LibreChat's own handoffs: which `lc_transfer_to_…` of a response really happened.
//!
//! An edge between agents gives the model a tool `lc_transfer_to_<agentId>` (`Constants` and
//! `graphs/MultiAgentGraph.ts` in `@librechat/agents` 3.4.7). Its part has `args: ""` and no output;
//! `agentId` on it is the source, and on the parts that the target then writes the target's. A call
//! that failed, or that the turn did not outlive, has no such part after it. Agents that run side by
//! side have `groupId` on their parts; an edge with a condition is a tool `conditional_transfer`,
//! whose target is not in its name. Neither hands the conversation over to one agent.

use mongodb::bson::{RawBsonRef, RawDocument, RawDocumentBuf};

use super::{AgentId, raw::Lenient};

/// What the names of the tools begin with (`Constants.LC_TRANSFER_TO_`).
pub(crate) const PREFIX: &str = "lc_transfer_to_";

/// The target of the handoff that `parts[index]` is, if the target took over.
pub(crate) fn target(parts: &[RawDocumentBuf], index: usize) -> Option<AgentId> {
    let part = parts.get(index)?;
    let name = part.document("tool_call")?.text("name")?;
    let target = name.strip_prefix(PREFIX).filter(|id| !id.is_empty())?;
    if is_in_a_group(part) {
        return None;
    }
    parts[index + 1..]
        .iter()
        .any(|later| !is_in_a_group(later) && later.text("agentId") == Some(target))
        .then(|| target.into())
}

fn is_in_a_group(part: &RawDocument) -> bool {
    part.value("groupId")
        .is_some_and(|group| group != RawBsonRef::Null)
}

#[cfg(test)]
mod tests {
    use mongodb::bson::{Document, RawDocumentBuf, rawdoc};

    use super::target;

    fn transfer(from: &str, to: &str) -> RawDocumentBuf {
        let name = format!("lc_transfer_to_{to}");
        rawdoc! {
            "type": "tool_call", "agentId": from,
            "tool_call": { "id": "call_0", "name": name, "args": "", "type": "tool_call" },
        }
    }

    fn text(by: &str) -> RawDocumentBuf {
        rawdoc! { "type": "text", "text": "…", "agentId": by }
    }

    fn grouped(part: &RawDocumentBuf) -> RawDocumentBuf {
        let mut part: Document = part.try_into().unwrap();
        part.insert("groupId", 1);
        RawDocumentBuf::try_from(&part).unwrap()
    }

    fn targets(parts: &[RawDocumentBuf]) -> Vec<Option<String>> {
        (0..parts.len())
            .map(|index| target(parts, index).map(|id| id.to_string()))
            .collect()
    }

    #[test]
    fn a_target_that_wrote_something_took_over() {
        let parts = [text("a"), transfer("a", "b"), text("b")];
        assert_eq!(targets(&parts), [None, Some("b".to_owned()), None]);
    }

    #[test]
    fn a_target_that_wrote_nothing_did_not() {
        let parts = [text("b"), transfer("a", "b"), text("a"), text("c")];
        assert_eq!(targets(&parts), [const { None }; 4]);
    }

    #[test]
    fn a_chain_is_several_handoffs() {
        let parts = [
            transfer("a", "b"),
            transfer("b", "c"),
            text("c"),
            transfer("c", "a"),
            text("a"),
        ];
        let [b, c, a] = ["b", "c", "a"].map(|id| Some(id.to_owned()));
        assert_eq!(targets(&parts), [b, c, None, a, None]);
    }

    #[test]
    fn agents_that_run_side_by_side_take_nothing_over() {
        let parts = [transfer("a", "b"), grouped(&text("b")), grouped(&text("c"))];
        assert_eq!(targets(&parts), [const { None }; 3]);
        let parts = [grouped(&transfer("a", "b")), text("b")];
        assert_eq!(targets(&parts), [const { None }; 2]);
    }

    #[test]
    fn a_transfer_without_a_target_in_its_name_is_none() {
        for name in ["conditional_transfer", "lc_transfer_to_", "transfer"] {
            let call = rawdoc! { "type": "tool_call", "tool_call": { "name": name } };
            assert_eq!(
                targets(&[call, text("b"), text("")]),
                [const { None }; 3],
                "{name}"
            );
        }
    }

    #[test]
    fn parts_of_a_wrong_shape_are_none() {
        let parts = [
            rawdoc! {},
            rawdoc! { "tool_call": "lc_transfer_to_b" },
            rawdoc! { "tool_call": { "name": ["lc_transfer_to_b"] } },
            rawdoc! { "agentId": 5 },
        ];
        assert_eq!(targets(&parts), [const { None }; 4]);
    }
}
