//! Whether an agent can read what a user has uploaded with a message.
//!
//! LibreChat gives a file to the tool that it was uploaded for, and to nobody where the agent does
//! not have that tool (`categorizeFileForToolResources` in `packages/api/src/agents/resources.ts`):
//! files that were embedded to `file_search`, files in the code environment to `execute_code`. All
//! others go to the model itself.

use futures::TryStreamExt;
use mongodb::{
    Collection,
    bson::{RawDocument, RawDocumentBuf, doc, oid::ObjectId},
    error::Result,
};

use super::Access;
use crate::librechat::{
    AgentId, UserId,
    raw::Lenient,
    schema::{AGENTS, FILES},
};

impl Access {
    /// Whether the agent can read each of these files of the user's, by their `file_id`.
    ///
    /// # Errors
    ///
    /// What MongoDB answers.
    pub async fn can_read(&self, user: &UserId, files: &[String], agent: &AgentId) -> Result<bool> {
        if files.is_empty() {
            return Ok(true);
        }
        let Ok(owner) = ObjectId::parse_str(user.as_str()) else {
            return Ok(false);
        };
        let database = self.reads.database();
        let uploaded: Collection<RawDocumentBuf> = database.collection(FILES);
        let agents: Collection<RawDocumentBuf> = database.collection(AGENTS);
        let files = async {
            let found = uploaded
                .find(doc! { "file_id": { "$in": files }, "user": owner })
                .projection(doc! { "embedded": 1, "metadata": 1 });
            found.await?.try_collect::<Vec<_>>().await
        };
        let agent = async {
            let found = agents
                .find_one(doc! { "id": agent })
                .projection(doc! { "tools": 1 });
            found.await
        };
        let (files, agent) = tokio::try_join!(files, agent)?;
        let agent = agent.as_deref();
        Ok(files
            .iter()
            .filter_map(|file| tool_for(file))
            .all(|tool| agent.is_some_and(|agent| has_tool(agent, tool))))
    }
}

/// The tool that alone can read a file. `None`: the model can.
fn tool_for(file: &RawDocument) -> Option<&'static str> {
    let metadata = file.document("metadata");
    let has = |name| metadata.is_some_and(|metadata| metadata.value(name).is_some());
    // Before v0.8.8 it is `fileIdentifier`.
    if has("codeEnvRef") || has("fileIdentifier") {
        Some("execute_code")
    } else if file.flag("embedded") == Some(true) {
        Some("file_search")
    } else {
        None
    }
}

fn has_tool(agent: &RawDocument, tool: &str) -> bool {
    let tools = agent.array("tools").into_iter().flatten().flatten();
    tools
        .into_iter()
        .any(|name| name.as_str().is_some_and(|name| name == tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_for_the_tool_that_it_was_uploaded_for() {
        let tool = |file| tool_for(&RawDocumentBuf::try_from(&file).unwrap());
        assert_eq!(tool(doc! { "embedded": true }), Some("file_search"));
        let code = doc! { "embedded": true, "metadata": { "codeEnvRef": { "id": "x" } } };
        assert_eq!(tool(code), Some("execute_code"));
        let older = doc! { "metadata": { "fileIdentifier": "x" } };
        assert_eq!(tool(older), Some("execute_code"));
        assert_eq!(tool(doc! { "embedded": false, "metadata": {} }), None);
    }

    #[test]
    fn an_agent_has_the_tools_that_it_names() {
        let agent = doc! { "tools": [1, "file_search", "file_search_mcp_x"] };
        let agent = RawDocumentBuf::try_from(&agent).unwrap();
        assert!(has_tool(&agent, "file_search"));
        assert!(!has_tool(&agent, "execute_code"));
    }
}
