//! `[switch]`: what counts as a switch, and for how long Baton looks after it.

use std::collections::BTreeMap;
use std::time::Duration;

use ::config::{Value, ValueKind};

use super::layers::Layers;
use super::parse;
use super::problem::Complaint;
use crate::librechat::AgentId;
use crate::switch::policy::Brake;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// `[switch]`: what counts as a switch, and for how long Baton looks after it.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Other MCP servers whose tool is trusted, by their names in `librechat.yaml`.
    pub servers: Vec<String>,
    /// The tools whose success is a switch, by their plain names.
    pub tools: Vec<String>,
    /// Whether LibreChat's own handoffs are made permanent too.
    pub native_handoffs: bool,
    /// How long a switch is guarded where the end of its turn is never seen.
    pub guard: Duration,
    /// How long a closed switch is kept on record.
    pub retention: Duration,
    /// Which agent may hand over to which, by ids, names or aliases; empty: any to any.
    pub allow: BTreeMap<String, Vec<String>>,
    /// How often a conversation may be switched.
    pub max_per_conversation: Brake,
    /// The model spec whose preset is the agent.
    pub specs: BTreeMap<AgentId, String>,
}

impl Switch {
    pub(super) fn read(layers: &mut Layers) -> Self {
        let switch = Self {
            servers: layers.or("switch.servers", Vec::new(), names),
            tools: layers.or("switch.tools", vec!["switch_agent".to_owned()], tools),
            native_handoffs: layers.or("switch.native_handoffs", false, parse::boolean),
            // Shorter than a minute, and LibreChat's retries would outlast it; much longer than a
            // day, and an old message edited today would count as a new switch.
            guard: layers.or("switch.guard", HOUR, parse::duration(MINUTE..=7 * DAY)),
            retention: layers.or(
                "switch.retention",
                90 * DAY,
                parse::duration(DAY..=3650 * DAY),
            ),
            allow: layers.or("switch.allow", BTreeMap::new(), allow),
            max_per_conversation: layers.or("switch.max_per_conversation", Brake::default(), brake),
            specs: layers.or("switch.specs", BTreeMap::new(), specs),
        };
        if switch.guard > switch.retention {
            let mend = "give a time no longer than switch.retention, or lengthen that";
            layers.complain("switch.guard", Complaint::new("outlasts the record", mend));
        }
        switch
    }
}

/// Checks the name of a tool or an MCP server.
pub(super) fn named(name: &str) -> Result<(), Complaint> {
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(Complaint::new(
            format!("{name:?} is no name"),
            "give names without blanks",
        ));
    }
    Ok(())
}

fn names(value: Value) -> Result<Vec<String>, Complaint> {
    let names = parse::strings(value)?;
    names.iter().try_for_each(|name| named(name))?;
    Ok(names)
}

fn tools(value: Value) -> Result<Vec<String>, Complaint> {
    let names = names(value)?;
    if names.is_empty() {
        return Err(Complaint::new(
            "the list is empty",
            "name at least one tool, or remove the key",
        ));
    }
    if let Some(name) = names.iter().find(|name| name.contains("_mcp_")) {
        return Err(Complaint::new(
            format!("{name:?} holds the name of a server"),
            "give the tool's plain name here and the server's in switch.servers",
        ));
    }
    Ok(names)
}

fn allow(value: Value) -> Result<BTreeMap<String, Vec<String>>, Complaint> {
    let mut allow: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (from, to) in parse::pairs(value)? {
        let to = match to.kind {
            ValueKind::String(one) => vec![one],
            list => parse::strings(list.into())?,
        };
        let targets = allow.entry(reference(&from)?).or_default();
        for target in to {
            targets.push(reference(&target)?);
        }
    }
    Ok(allow)
}

/// An agent's id, its name, or an alias; `*` is every agent. Names are agents' own and may change,
/// so whether there is such an agent shows when it is asked for.
fn reference(text: &str) -> Result<String, Complaint> {
    let text = text.trim();
    if text.is_empty() {
        let mend = "give an agent's id, its name or its alias, or \"*\" for every agent";
        return Err(Complaint::new("an empty name", mend));
    }
    Ok(text.to_owned())
}

/// `"10 in 10m"`.
fn brake(value: Value) -> Result<Brake, Complaint> {
    let text = parse::text(value)?;
    let parsed = text.split_once(" in ").and_then(|(most, within)| {
        Some(Brake {
            most: most.trim().parse().ok().filter(|most| *most > 0)?,
            within: humantime::parse_duration(within.trim()).ok()?,
        })
    });
    parsed
        .filter(|brake| (Duration::from_secs(1)..=DAY).contains(&brake.within))
        .ok_or_else(|| {
            Complaint::new(
                format!("{text:?} is no limit"),
                "give a number and a time of at most a day, as in \"10 in 10m\"",
            )
        })
}

fn specs(value: Value) -> Result<BTreeMap<AgentId, String>, Complaint> {
    let mut specs = BTreeMap::new();
    for (agent, spec) in parse::pairs(value)? {
        let spec = parse::text(spec)?;
        if spec.is_empty() {
            return Err(Complaint::new(
                format!("{agent} has an empty name"),
                "give the name of a model spec",
            ));
        }
        if specs.insert(parse::agent(&agent)?, spec).is_some() {
            return Err(Complaint::new(
                format!("{agent} is there twice"),
                "give an agent one model spec",
            ));
        }
    }
    Ok(specs)
}
