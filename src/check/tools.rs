//! The MCP endpoint, and what the operator's names for agents stand for.

use std::collections::BTreeSet;

use mongodb::Client;

use super::report::Report;
use crate::aliases::Aliases;
use crate::config::Settings;
use crate::librechat::AgentId;
use crate::librechat::access::Access;
use crate::mongo::words;
use crate::switch::policy::AllowList;

pub(super) async fn check(settings: &Settings, client: &Client, report: &mut Report) {
    match &settings.mcp.token {
        Some(_) => report.ok(
            "mcp",
            format!("/mcp is open to the server {}", settings.mcp.server),
        ),
        None => report.ok(
            "mcp",
            "mcp.token is not set, so that there is no /mcp and no switch_agent of Baton's",
        ),
    }
    let allow = AllowList::new(settings.switch.allow.clone());
    let aliases = Aliases::new(
        settings.agents.aliases.clone(),
        settings.agents.file.clone(),
    );
    let access = Access::new(client.database(&settings.mongodb.database));
    for reference in allow.references().collect::<BTreeSet<_>>() {
        check_reference(reference, &aliases, &access, report).await;
    }
}

async fn check_reference(reference: &str, aliases: &Aliases, access: &Access, report: &mut Report) {
    let id = aliases
        .get(reference)
        .or_else(|| AgentId::stored(reference));
    let found = match &id {
        Some(id) => access.with_id(id).await,
        None => access.with_name(reference).await,
    };
    match found.as_deref() {
        Ok([]) => report.warn(
            "switch.allow",
            format!("{reference:?} names no agent"),
            "give an agent's id, its exact name or an alias (agents.aliases, agents.file)",
        ),
        Ok(agents) => {
            let ids: Vec<_> = agents.iter().map(|agent| agent.id.as_str()).collect();
            report.ok(
                "switch.allow",
                format!("{reference:?} is {}", ids.join(", ")),
            );
        }
        Err(error) => report.warn("switch.allow", words(error), "agents could not be read"),
    }
}
