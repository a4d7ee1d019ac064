//! The settings: complete and valid before anything is bound or connected.
//!
//! Layers, each over the one before: defaults, `config.toml`, the environment. A section is a file
//! here, and reads its own keys; `config.toml` in the root of the repository describes them all.

mod agents;
mod auth;
mod environment;
mod file;
mod gateway;
mod http;
mod layers;
mod librechat;
mod log;
mod mcp;
mod metrics;
mod mongodb;
mod parse;
mod problem;
mod secret;
mod state;
mod switch;

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use layers::Layers;

use crate::librechat::specs::{Specs, SpecsError};

pub use agents::Agents;
pub use auth::{Auth, AuthMode};
pub use gateway::{Gateway, SameTurn};
pub use http::{Http, Ops, RateLimit};
pub use librechat::LibreChat;
pub use log::{Log, LogFormat};
pub use mcp::Mcp;
pub use metrics::Metrics;
pub use mongodb::Mongodb;
pub use problem::{Complaint, ConfigError, Problem};
pub use secret::Secret;
pub use state::State;
pub use switch::Switch;

/// The file that is read where none is named, if it is there.
pub const DEFAULT_FILE: &str = "config.toml";

/// All settings, valid each by itself and together.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where LibreChat's data is.
    pub mongodb: Mongodb,
    /// Where Baton's own records are.
    pub state: State,
    /// The public address.
    pub http: Http,
    /// The address for operators.
    pub ops: Ops,
    /// How users are known.
    pub auth: Auth,
    /// LibreChat itself.
    pub librechat: LibreChat,
    /// Names that the operator gives to agents.
    pub agents: Agents,
    /// Baton as an MCP server.
    pub mcp: Mcp,
    /// What counts as a switch.
    pub switch: Switch,
    /// The model spec of each agent: `switch.specs` and what `librechat.config` says.
    pub specs: Specs,
    /// Baton in front of LibreChat.
    pub gateway: Gateway,
    /// Numbers.
    pub metrics: Metrics,
    /// The log.
    pub log: Log,
    /// The configuration file that was read.
    pub file: Option<PathBuf>,
    /// What can be used, but may not be as it is meant; each a sentence.
    pub doubts: Vec<String>,
}

impl Settings {
    /// Reads the settings of a process: `file`, or `config.toml` where there is one, and the
    /// variables of its environment.
    ///
    /// # Errors
    ///
    /// With everything that is wrong, each by key, place and remedy.
    pub fn load(
        file: Option<&Path>,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let path = file.unwrap_or(Path::new(DEFAULT_FILE));
        let (text, read) = match fs::read_to_string(path) {
            Ok(text) => (text, Some(path.to_owned())),
            Err(error) if file.is_none() && error.kind() == ErrorKind::NotFound => {
                (String::new(), None)
            }
            Err(error) => {
                let shown = path.display();
                let complaint = if error.kind() == ErrorKind::InvalidData {
                    Complaint::new(format!("{shown} is not UTF-8"), "save it as UTF-8")
                } else {
                    Complaint::new(
                        format!("cannot read {shown}: {error}"),
                        "name a file that this user may read, with --config",
                    )
                };
                let (key, place) = (String::new(), None);
                return Err(Problem {
                    key,
                    place,
                    complaint,
                }
                .into());
            }
        };
        let settings = Self::from_layers(path, &text, variables)?;
        Ok(Self {
            file: read,
            ..settings
        })
    }

    /// Reads the settings from the text of a `config.toml` alone.
    ///
    /// # Errors
    ///
    /// As [`Settings::load`].
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::from_layers(Path::new(DEFAULT_FILE), text, [])
    }

    fn from_layers(
        path: &Path,
        text: &str,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Layers::new(path, text, variables)?;
        let mut settings = Self::take(&mut layers);
        layers.doubt_strangers();
        settings.doubts.append(&mut layers.doubts);
        layers.finish().map(|()| settings)
    }

    fn take(layers: &mut Layers) -> Self {
        let mongodb = Mongodb::read(layers);
        let state = State::read(layers, &mongodb);
        let http = Http::read(layers);
        let ops = Ops::read(layers, &http);
        let librechat = LibreChat::read(layers);
        let switch = Switch::read(layers);
        let mcp = Mcp::read(layers);
        Self {
            doubts: doubts(&switch, &mcp),
            file: None,
            auth: Auth::read(layers, &librechat),
            agents: Agents::read(layers),
            mcp,
            specs: specs(layers, &switch, &librechat),
            gateway: Gateway::read(layers, &librechat, &ops),
            metrics: Metrics::read(layers),
            log: Log::read(layers),
            mongodb,
            state,
            http,
            ops,
            librechat,
            switch,
        }
    }
}

/// Settings that are right one by one, and together of no use.
fn doubts(switch: &Switch, mcp: &Mcp) -> Vec<String> {
    let mut doubts = Vec::new();
    if switch.servers.is_empty() && mcp.token.is_none() {
        doubts.push(
            "no MCP server's tool is trusted: name the server in switch.servers, or set mcp.token \
             to use Baton's own tool"
                .to_owned(),
        );
    }
    doubts
}

fn specs(layers: &mut Layers, switch: &Switch, librechat: &LibreChat) -> Specs {
    match Specs::load(&switch.specs, librechat.config.as_deref()) {
        Ok(specs) => specs,
        Err(error) => {
            let key = match error {
                SpecsError::ConfigFile(_) => "librechat.config",
                _ => "switch.specs",
            };
            // The error names the key itself, for those who have it from elsewhere.
            let text = error.to_string();
            let text = text.strip_prefix(key).unwrap_or(&text);
            let text = text.strip_prefix(": ").unwrap_or(text);
            layers.complain(key, text.to_owned().into());
            Specs::default()
        }
    }
}

#[cfg(test)]
mod tests;
