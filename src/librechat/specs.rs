//! Model specs: what a conversation's `spec` and `iconURL` become when it is switched.
//!
//! A conversation begun from a model spec carries the spec's name and icon. LibreChat shows them
//! in place of the agent's, and where `modelSpecs.enforce` is set, takes the agent of every turn
//! from the spec (`api/server/middleware/buildEndpointOption.js`, v0.8.0 to v0.8.8-rc1).

mod config_file;
mod error;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use self::config_file::{ModelSpec, ModelSpecs};
use super::AgentId;

pub use self::config_file::{ConfigFileError, mcp_servers};
pub use self::error::SpecsError;

/// A model spec, as a conversation names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// `conversations.spec`.
    pub name: String,
    /// `conversations.iconURL`: a path, an address, or the name of an endpoint whose icon it is.
    /// `None` where the spec has none, or where only its name is known; LibreChat fills it in
    /// at the next turn (v0.8.2 on).
    pub icon_url: Option<String>,
}

/// What to do about `spec` and `iconURL` of a conversation that is switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecPatch<'a> {
    /// Leave both as they are.
    Keep,
    /// Write the spec's name and icon; where it has no icon, remove the old one.
    Set(&'a Spec),
    /// Remove both.
    Clear,
    /// Do not switch: LibreChat would go on with the old agent, or refuse the next turn.
    Refuse,
}

/// The model spec of each agent.
#[derive(Clone, Debug, Default)]
pub struct Specs {
    enforced: bool,
    by_agent: HashMap<AgentId, Spec>,
}

impl Specs {
    /// Takes the specs from LibreChat's configuration file, where one is given, and over them those
    /// that the operator names (`switch.specs`: agent → spec).
    ///
    /// Of several specs with the same agent the first in the file counts.
    ///
    /// # Errors
    ///
    /// The file cannot be used, or the operator names a spec that it does not have or that could
    /// not serve the agent.
    pub fn load(
        named: &BTreeMap<AgentId, String>,
        config_file: Option<&Path>,
    ) -> Result<Self, SpecsError> {
        let file = config_file.map(ModelSpecs::read).transpose()?;
        Self::new(named, file.as_ref())
    }

    fn new(
        named: &BTreeMap<AgentId, String>,
        file: Option<&ModelSpecs>,
    ) -> Result<Self, SpecsError> {
        let mut specs = Self::default();
        if let Some(file) = file {
            specs.enforced = file.enforced;
            for spec in file.list.iter().filter(|spec| spec.is_for_agents()) {
                if let Some(agent) = &spec.agent {
                    let agent = AgentId::from(agent.as_str());
                    specs.by_agent.entry(agent).or_insert_with(|| spec.into());
                }
            }
        }
        for (agent, name) in named {
            let spec = match file {
                Some(file) => named_in(file, agent, name)?,
                None => Spec {
                    name: name.clone(),
                    icon_url: None,
                },
            };
            specs.by_agent.insert(agent.clone(), spec);
        }
        Ok(specs)
    }

    /// The spec of a conversation with this agent, where there is one.
    #[must_use]
    pub fn for_agent(&self, agent: &AgentId) -> Option<&Spec> {
        self.by_agent.get(agent)
    }

    /// Whether LibreChat refuses a turn without a spec and takes the agent from the spec. Only its
    /// configuration file tells; without one it is taken not to.
    #[must_use]
    pub fn enforced(&self) -> bool {
        self.enforced
    }

    /// What a switch to `target` does to `spec` and `iconURL` of a conversation, of which
    /// `has_spec` says whether it has a `spec` now.
    ///
    /// A conversation without one keeps having none, unless specs are enforced: then its next turn
    /// needs one.
    #[must_use]
    pub fn patch(&self, has_spec: bool, target: &AgentId) -> SpecPatch<'_> {
        match self.for_agent(target) {
            Some(spec) if has_spec || self.enforced => SpecPatch::Set(spec),
            None if self.enforced => SpecPatch::Refuse,
            None if has_spec => SpecPatch::Clear,
            _ => SpecPatch::Keep,
        }
    }
}

impl From<&ModelSpec> for Spec {
    fn from(spec: &ModelSpec) -> Self {
        Self {
            name: spec.name.clone(),
            icon_url: spec.icon_url.clone(),
        }
    }
}

/// The spec of this name, if it can serve the agent.
fn named_in(file: &ModelSpecs, agent: &AgentId, name: &str) -> Result<Spec, SpecsError> {
    let Some(spec) = file.list.iter().find(|spec| spec.name == name) else {
        return Err(SpecsError::Unknown {
            agent: agent.clone(),
            spec: name.to_owned(),
            known: listed(file),
        });
    };
    if !spec.is_for_agents() {
        return Err(SpecsError::NotForAgents {
            agent: agent.clone(),
            spec: name.to_owned(),
            endpoint: spec.endpoint.clone(),
        });
    }
    if file.enforced && spec.agent.as_deref() != Some(agent.as_str()) {
        return Err(SpecsError::RunsAnother {
            agent: agent.clone(),
            spec: name.to_owned(),
            runs: spec.agent.clone().unwrap_or_else(|| "no agent".to_owned()),
        });
    }
    Ok(spec.into())
}

/// The names of the specs that are for agents, to choose from.
fn listed(file: &ModelSpecs) -> String {
    let names = file.list.iter().filter(|spec| spec.is_for_agents());
    let names: Vec<String> = names.map(|spec| format!("{:?}", spec.name)).collect();
    if names.is_empty() {
        "none for agents".to_owned()
    } else {
        names.join(", ")
    }
}

#[cfg(test)]
mod tests;
