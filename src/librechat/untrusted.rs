//! Calls that would count, were their MCP server trusted.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use futures::TryStreamExt;
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Document, doc};
use mongodb::error::Result;

use super::tool_call::MCP_DELIMITER;
use super::{Messages, ToolNames};

/// So many of the newest messages are looked through,
const MESSAGES: i64 = 10_000;
/// so many of which with such calls are read,
const FOUND: i64 = 200;
/// in so much time.
const PATIENCE: Duration = Duration::from_secs(5);

impl Messages {
    /// Tool and server of such calls in the newest messages that are younger than `age`.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn untrusted(
        &self,
        tools: &[String],
        names: &ToolNames,
        age: Duration,
    ) -> Result<BTreeSet<(String, String)>> {
        let since = SystemTime::now() - age;
        let since = since.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.map_or(0, |since| since.as_secs());
        let since = u32::try_from(since).unwrap_or(u32::MAX);
        let pattern = format!("^(?:{}){MCP_DELIMITER}", alternatives(tools));
        let pipeline = [
            doc! { "$match": { "_id": { "$gte": ObjectId::from_parts(since, [0; 5], [0; 3]) } } },
            doc! { "$sort": { "_id": -1 } },
            doc! { "$limit": MESSAGES },
            doc! { "$match": { "content.tool_call.name": { "$regex": pattern } } },
            doc! { "$limit": FOUND },
            doc! { "$project": { "name": "$content.tool_call.name" } },
        ];
        let found: Vec<Document> = self
            .collection()
            .aggregate(pipeline)
            .max_time(PATIENCE)
            .with_type::<Document>()
            .await?
            .try_collect()
            .await?;
        let called = found.iter().flat_map(|row| match row.get_array("name") {
            Ok(names) => names.iter().filter_map(|name| name.as_str()).collect(),
            Err(_) => Vec::new(),
        });
        Ok(called
            .filter(|name| !names.contains(name))
            .filter_map(|name| parts(tools, name))
            .collect())
    }
}

/// The tool and the server of a call's name.
fn parts(tools: &[String], name: &str) -> Option<(String, String)> {
    tools.iter().find_map(|tool| {
        let server = name
            .strip_prefix(tool.as_str())?
            .strip_prefix(MCP_DELIMITER)?;
        Some((tool.clone(), server.to_owned()))
    })
}

/// A pattern for any of the names, letter by letter.
fn alternatives(names: &[String]) -> String {
    let escaped = |name: &String| {
        name.chars()
            .flat_map(|c| {
                let special = !c.is_alphanumeric() && c != '_';
                special.then_some('\\').into_iter().chain([c])
            })
            .collect::<String>()
    };
    names.iter().map(escaped).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_apart_by_its_tool() {
        let tools = ["switch_agent".to_owned()];
        let parts = |name| parts(&tools, name);
        let expected = ("switch_agent".to_owned(), "a_mcp_b".to_owned());
        assert_eq!(parts("switch_agent_mcp_a_mcp_b"), Some(expected));
        assert_eq!(parts("switch_agent"), None);
        assert_eq!(parts("other_mcp_a"), None);
    }

    #[test]
    fn a_name_is_no_pattern() {
        let names = ["a.b".to_owned(), "c_d".to_owned()];
        assert_eq!(alternatives(&names), "a\\.b|c_d");
    }
}
