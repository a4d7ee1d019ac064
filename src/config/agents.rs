//! `[agents]`: names that the operator gives to agents.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::config::Value;

use super::layers::Layers;
use super::parse;
use super::problem::Complaint;
use crate::aliases::read_file;
use crate::librechat::AgentId;

/// `[agents]`: names that the operator gives to agents.
#[derive(Clone, Debug, Default)]
pub struct Agents {
    /// Names by which `switch_agent` and `switch.allow` know agents.
    pub aliases: BTreeMap<String, AgentId>,
    /// A JSON file with more of them; it could be read.
    pub file: Option<PathBuf>,
}

impl Agents {
    pub(super) fn read(layers: &mut Layers) -> Self {
        Self {
            aliases: layers.or("agents.aliases", BTreeMap::new(), aliases),
            file: layers.optional("agents.file", file),
        }
    }
}

fn aliases(value: Value) -> Result<BTreeMap<String, AgentId>, Complaint> {
    let mut aliases = BTreeMap::new();
    for (name, agent) in parse::pairs(value)? {
        let name = name.trim().to_owned();
        if name.is_empty() || name == "*" {
            return Err(Complaint::new(
                format!("{name:?} is no name"),
                "give each agent a name, as in project_runner_master = \"agent_…\"",
            ));
        }
        aliases.insert(name, parse::agent(&parse::text(agent)?)?);
    }
    Ok(aliases)
}

fn file(value: Value) -> Result<PathBuf, Complaint> {
    let path = PathBuf::from(parse::string(value)?);
    match read_file(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(Complaint::new(
            format!("cannot use {}: {error}", path.display()),
            "write it as in {\"project_runner_master\": \"agent_TEiCFUrdcmZmLR89Tdclm\"}",
        )),
    }
}
