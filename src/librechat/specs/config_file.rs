//! The model specs in LibreChat's own configuration file, `librechat.yaml`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use thiserror::Error;

/// The name of the endpoint that serves agents (`EModelEndpoint.agents`).
pub(super) const AGENTS_ENDPOINT: &str = "agents";

/// Why `librechat.yaml` could not be used.
#[derive(Debug, Error)]
pub enum ConfigFileError {
    /// The file could not be read.
    #[error(
        "librechat.config: cannot read {}: {source}; give the path of LibreChat's own \
         librechat.yaml and let Baton read it, or leave the key out",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is not what LibreChat takes either.
    #[error(
        "librechat.config: {}{line}: {problem}; LibreChat does not take this file either: mend \
         it there",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// `:line:column` where known, else empty.
        line: String,
        /// What is wrong.
        problem: String,
    },
}

/// `modelSpecs`, in the part that concerns a switch (`specsConfigSchema` in
/// `packages/data-provider/src/models.ts`, v0.8.0 to v0.8.8-rc1).
#[derive(Debug, Default)]
pub(super) struct ModelSpecs {
    /// Whether LibreChat refuses a turn without a spec, and takes the agent from the spec whatever
    /// the client asks for (`api/server/middleware/buildEndpointOption.js`).
    pub(super) enforced: bool,
    /// The specs that LibreChat can find, in the order of the file.
    pub(super) list: Vec<ModelSpec>,
}

/// One entry of `modelSpecs.list`.
#[derive(Debug)]
pub(super) struct ModelSpec {
    pub(super) name: String,
    pub(super) icon_url: Option<String>,
    pub(super) endpoint: String,
    pub(super) agent: Option<String>,
}

impl ModelSpec {
    /// Whether a turn with this spec runs an agent from the database.
    pub(super) fn is_for_agents(&self) -> bool {
        self.endpoint == AGENTS_ENDPOINT
    }
}

impl ModelSpecs {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> Result<Self, ConfigFileError> {
        read(path, Self::parse)
    }

    fn parse(yaml: &str) -> Result<Self, Box<serde_saphyr::Error>> {
        let file: Option<File> = parse(yaml)?;
        let specs = file.and_then(|file| file.model_specs).unwrap_or_default();
        let mut seen = HashSet::new();
        let list: Vec<ModelSpec> = specs
            .list
            .unwrap_or_default()
            .into_iter()
            // Skipped by LibreChat too (`packages/data-schemas/src/app/specs.ts`, v0.8.8-rc1).
            .filter_map(Entry::with_endpoint)
            // Looked up by name, so that a second one of the same name is never found.
            .filter(|spec| seen.insert(spec.name.clone()))
            .collect();
        Ok(Self {
            enforced: specs.enforce.unwrap_or_default() && !list.is_empty(),
            list,
        })
    }
}

/// The names of the MCP servers in the file.
///
/// # Errors
///
/// The file cannot be used.
pub fn mcp_servers(path: &Path) -> Result<BTreeSet<String>, ConfigFileError> {
    let file: Option<Servers> = read(path, parse)?;
    let servers = file.and_then(|file| file.servers).unwrap_or_default();
    Ok(servers.into_keys().collect())
}

fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Box<serde_saphyr::Error>>,
) -> Result<T, ConfigFileError> {
    let yaml = fs::read_to_string(path).map_err(|source| ConfigFileError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    parse(&yaml).map_err(|error| ConfigFileError::Malformed {
        path: path.to_owned(),
        line: error
            .location()
            .map_or_else(String::new, |at| format!(":{}:{}", at.line(), at.column())),
        problem: error.to_string(),
    })
}

fn parse<T: DeserializeOwned>(yaml: &str) -> Result<T, Box<serde_saphyr::Error>> {
    let options = serde_saphyr::options! {
        // As js-yaml reads it: "yes" is a word.
        strict_booleans: true,
        // The file holds keys of providers; an error must not show any of it.
        with_snippet: false,
    };
    Ok(serde_saphyr::from_str_with_options(yaml, options)?)
}

#[derive(Deserialize)]
#[expect(clippy::zero_sized_map_values, reason = "a set is no mapping to serde")]
struct Servers {
    #[serde(rename = "mcpServers")]
    servers: Option<BTreeMap<String, IgnoredAny>>,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "modelSpecs")]
    model_specs: Option<Section>,
}

#[derive(Default, Deserialize)]
struct Section {
    enforce: Option<bool>,
    list: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(rename = "iconURL")]
    icon_url: Option<String>,
    preset: Option<Preset>,
}

#[derive(Deserialize)]
struct Preset {
    endpoint: Option<String>,
    agent_id: Option<String>,
    #[serde(rename = "iconURL")]
    icon_url: Option<String>,
}

impl Entry {
    fn with_endpoint(self) -> Option<ModelSpec> {
        let preset = self.preset?;
        let endpoint = preset.endpoint.filter(|endpoint| !endpoint.is_empty())?;
        // The spec's icon, else its preset's, else the endpoint's (`getModelSpecIconURL` in
        // `client/src/utils/endpoints.ts`, v0.8.0 to v0.8.8-rc1). An empty one is none.
        let icon_url = self
            .icon_url
            .or(preset.icon_url)
            .unwrap_or_else(|| endpoint.clone());
        Some(ModelSpec {
            name: self.name,
            icon_url: Some(icon_url).filter(|icon| !icon.is_empty()),
            endpoint,
            agent: preset.agent_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(yaml: &str) -> ModelSpecs {
        ModelSpecs::parse(yaml).unwrap()
    }

    #[test]
    fn a_file_without_specs_has_none() {
        for yaml in [
            "",
            "# nothing\n",
            "version: 1.3.5\ncache: true\n",
            "modelSpecs:\n",
            "modelSpecs:\n  enforce: true\n",
            "modelSpecs:\n  enforce: true\n  list: []\n",
        ] {
            let specs = parsed(yaml);
            assert!(specs.list.is_empty() && !specs.enforced, "{yaml}");
        }
    }

    #[test]
    fn the_icon_is_the_specs_else_the_presets_else_the_endpoints() {
        let specs = parsed(
            r#"
modelSpecs:
  list:
    - { name: own, label: l, iconURL: /images/own.png, preset: { endpoint: agents, iconURL: /p.png } }
    - { name: preset, label: l, preset: { endpoint: agents, iconURL: /p.png } }
    - { name: endpoint, label: l, preset: { endpoint: agents } }
    - { name: none, label: l, iconURL: "", preset: { endpoint: agents, iconURL: /p.png } }
"#,
        );
        let icons: Vec<Option<&str>> = specs
            .list
            .iter()
            .map(|spec| spec.icon_url.as_deref())
            .collect();
        assert_eq!(
            icons,
            [
                Some("/images/own.png"),
                Some("/p.png"),
                Some("agents"),
                None
            ]
        );
    }

    #[test]
    fn merge_keys_and_anchors_are_followed_as_librechat_follows_them() {
        let specs = parsed(
            "
x-agent: &agent { endpoint: agents, maxContextTokens: 4000 }
modelSpecs:
  enforce: true
  list:
    - name: sales
      label: Sales
      preset: { <<: *agent, agent_id: agent_b }
",
        );
        assert!(specs.enforced);
        assert_eq!(specs.list[0].endpoint, "agents");
        assert_eq!(specs.list[0].agent.as_deref(), Some("agent_b"));
    }

    #[test]
    fn specs_that_librechat_would_not_find_are_left_out() {
        let specs = parsed(
            "
modelSpecs:
  list:
    - { name: no endpoint, label: l, preset: { agent_id: agent_a } }
    - { name: twice, label: l, preset: { endpoint: openAI } }
    - { name: twice, label: l, preset: { endpoint: agents, agent_id: agent_a } }
",
        );
        assert_eq!(specs.list.len(), 1);
        assert_eq!(specs.list[0].endpoint, "openAI");
    }

    #[test]
    fn an_error_names_file_and_line_and_shows_none_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("librechat.yaml");
        let secret = "apiKey: sk-secret";
        for (yaml, line) in [
            (format!("version: 1\n{secret}\nmodelSpecs: [\n"), ":"),
            (format!("{secret}\nmodelSpecs:\n  enforce: yes\n"), ":3:"),
            (
                format!("{secret}\nmodelSpecs:\n  list:\n    - label: x\n"),
                ":4:",
            ),
            (
                format!("{secret}\nmodelSpecs: {{}}\nmodelSpecs: {{}}\n"),
                ":3:",
            ),
        ] {
            fs::write(&path, &yaml).unwrap();
            let error = ModelSpecs::read(&path).unwrap_err().to_string();
            let place = format!("{}{line}", path.display());
            assert!(error.contains(&place), "{error}");
            assert!(!error.contains("sk-secret"), "{error}");
        }
    }

    #[test]
    fn servers_are_known_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("librechat.yaml");
        fs::write(
            &path,
            "mcpServers:\n  one: { url: x }\n  two:\n    command: y\n",
        )
        .unwrap();
        let names = mcp_servers(&path).unwrap();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["one", "two"]);
        fs::write(&path, "version: 1\n").unwrap();
        assert!(mcp_servers(&path).unwrap().is_empty());
    }

    #[test]
    fn a_missing_file_is_an_error_that_names_the_key() {
        let error = ModelSpecs::read(Path::new("/nowhere/librechat.yaml")).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("librechat.config: cannot read /nowhere"),
            "{error}"
        );
    }
}
