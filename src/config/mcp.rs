//! `[mcp]`: Baton as an MCP server.

use ::config::Value;
use axum::http::uri::Authority;

use super::layers::Layers;
use super::parse;
use super::problem::Complaint;
use super::secret::Secret;
use super::switch;

/// `[mcp]`: Baton as an MCP server.
#[derive(Clone, Debug)]
pub struct Mcp {
    /// What LibreChat has to show.
    pub token: Option<Secret>,
    /// The name that `librechat.yaml` has for this server: it is part of the tool's name.
    pub server: String,
    /// The names by which it may be asked, besides those of this machine; empty: any.
    pub allowed_hosts: Vec<String>,
}

impl Mcp {
    pub(super) fn read(layers: &mut Layers) -> Self {
        let token = layers.optional("mcp.token", parse::token);
        let server = layers.or("mcp.server", "baton".to_owned(), |value| {
            let name = parse::text(value)?;
            switch::named(&name).map(|()| name)
        });
        let allowed_hosts = layers.or("mcp.allowed_hosts", Vec::new(), hosts);
        Self {
            token,
            server,
            allowed_hosts,
        }
    }
}

fn hosts(value: Value) -> Result<Vec<String>, Complaint> {
    let hosts = parse::strings(value)?;
    match hosts.iter().find(|host| host.parse::<Authority>().is_err()) {
        None => Ok(hosts),
        Some(host) => Err(Complaint::new(
            format!("{host:?} is no host"),
            "give names, with a port or without, as in [\"baton\", \"baton.example.org:8787\"]",
        )),
    }
}
