//! Whether the servers that Baton trusts are those that switch.

use std::time::Duration;

use mongodb::Client;

use super::report::Report;
use crate::config::Settings;
use crate::librechat::specs::mcp_servers;
use crate::librechat::{Messages, ToolNames};
use crate::mongo::words;

const WHAT: &str = "switch.servers";

/// How far back calls are looked for.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);

/// Holds the names against LibreChat's own file, where that is given.
pub(super) fn servers(settings: &Settings, report: &mut Report) {
    let Some(path) = &settings.librechat.config else {
        return;
    };
    let known = match mcp_servers(path) {
        Ok(known) => known,
        Err(error) => return report.warn(WHAT, error.to_string(), ""),
    };
    let own = settings.mcp.token.is_some().then_some(&settings.mcp.server);
    let named = settings.switch.servers.iter().map(|name| (WHAT, name));
    for (key, name) in named.chain(own.map(|name| ("mcp.server", name))) {
        if !known.contains(name) {
            let known: Vec<_> = known.iter().map(String::as_str).collect();
            report.warn(
                key,
                format!("the mcpServers of {} have no {name:?}", path.display()),
                match known.as_slice() {
                    [] => "They have none at all; a server may also be LibreChat's own, in its \
                           database."
                        .to_owned(),
                    known => format!(
                        "They have {}. A server may also be LibreChat's own, in its database.",
                        known.join(", ")
                    ),
                },
            );
        }
    }
}

/// Looks for calls that would have been switches, had their server been trusted: the change stream
/// leaves them out, so that a running Baton cannot tell of them.
pub(super) async fn calls(settings: &Settings, client: &Client, report: &mut Report) {
    let switch = &settings.switch;
    let names = ToolNames::new(&switch.tools, &switch.servers, &settings.mcp.server);
    let messages = Messages::new(&client.database(&settings.mongodb.database));
    let seen = match messages.untrusted(&switch.tools, &names, RECENT).await {
        Ok(seen) => seen,
        Err(error) => {
            return report.warn(
                "calls",
                format!(
                    "the last day's could not be looked through: {}",
                    words(&error)
                ),
                "",
            );
        }
    };
    for (tool, server) in seen {
        report.warn(
            "calls",
            format!(
                "calls of {tool} by MCP server `{server}` were seen, which switch.servers does \
                 not name"
            ),
            format!(
                "If they are to switch, add it: BATON__SWITCH__SERVERS={}",
                [&switch.servers[..], std::slice::from_ref(&server)]
                    .concat()
                    .join(",")
            ),
        );
    }
}
