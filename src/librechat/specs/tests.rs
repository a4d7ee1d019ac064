//! Which spec an agent has, and what a switch makes of it.

use std::fs;

use super::*;

const YAML: &str = "
version: 1.3.5
endpoints: { agents: { recursionLimit: 50 } }
modelSpecs:
  enforce: ENFORCE
  addedEndpoints: [openAI]
  list:
    - { name: gpt, label: GPT, default: true, preset: { endpoint: openAI, model: gpt-4o } }
    - { name: sales, label: Sales, iconURL: /s.png, preset: { endpoint: agents, agent_id: agent_s } }
    - { name: sales too, label: Sales, preset: { endpoint: agents, agent_id: agent_s } }
    - { name: help, label: Help, preset: { endpoint: agents, agent_id: agent_h } }
    - { name: not one, label: No, preset: { endpoint: openAI, agent_id: agent_x } }
    - { name: whichever, label: Any, preset: { endpoint: agents } }
";

fn load(enforce: bool, named: &[(&str, &str)]) -> Result<Specs, SpecsError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("librechat.yaml");
    fs::write(&path, YAML.replace("ENFORCE", &enforce.to_string())).unwrap();
    Specs::load(&by_agent(named), Some(&path))
}

fn by_agent(named: &[(&str, &str)]) -> BTreeMap<AgentId, String> {
    let owned = |(agent, spec): &(&str, &str)| (AgentId::from(*agent), (*spec).to_owned());
    named.iter().map(owned).collect()
}

fn name<'a>(specs: &'a Specs, agent: &str) -> Option<&'a str> {
    specs
        .for_agent(&agent.into())
        .map(|spec| spec.name.as_str())
}

#[test]
fn an_agent_has_the_first_spec_whose_preset_names_it() {
    let specs = load(false, &[]).unwrap();
    let sales = specs.for_agent(&"agent_s".into()).unwrap();
    assert_eq!(sales.name, "sales");
    assert_eq!(sales.icon_url.as_deref(), Some("/s.png"));
    assert_eq!(name(&specs, "agent_h"), Some("help"));
}

#[test]
fn a_spec_for_another_endpoint_is_no_agents_spec() {
    let specs = load(false, &[]).unwrap();
    assert_eq!(name(&specs, "agent_x"), None);
    assert_eq!(name(&specs, ""), None);
}

#[test]
fn what_the_operator_names_wins_over_the_file() {
    let specs = load(false, &[("agent_s", "sales too"), ("agent_n", "whichever")]).unwrap();
    assert_eq!(name(&specs, "agent_s"), Some("sales too"));
    let other = specs.for_agent(&"agent_n".into()).unwrap();
    assert_eq!(other.icon_url.as_deref(), Some("agents"));
}

#[test]
fn without_the_file_a_named_spec_has_no_icon_and_nothing_is_enforced() {
    let specs = Specs::load(&by_agent(&[("agent_s", "sales")]), None).unwrap();
    let sales = specs.for_agent(&"agent_s".into()).unwrap();
    assert_eq!((sales.name.as_str(), &sales.icon_url), ("sales", &None));
    assert!(!specs.enforced());
}

#[test]
fn a_named_spec_that_the_file_does_not_have_is_an_error_that_lists_what_it_has() {
    let error = load(false, &[("agent_s", "salse")])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(r#"switch.specs: agent_s = "salse""#),
        "{error}"
    );
    assert!(
        error.contains(r#""sales", "sales too", "help", "whichever""#),
        "{error}"
    );
    assert!(!error.contains("gpt"), "{error}");
}

#[test]
fn a_named_spec_that_could_not_serve_the_agent_is_an_error() {
    let not_for_agents = load(false, &[("agent_s", "gpt")]).unwrap_err();
    assert!(
        matches!(not_for_agents, SpecsError::NotForAgents { .. }),
        "{not_for_agents}"
    );
    let runs_another = load(true, &[("agent_s", "help")]).unwrap_err();
    assert!(
        matches!(runs_another, SpecsError::RunsAnother { .. }),
        "{runs_another}"
    );
    assert!(runs_another.to_string().contains("agent_h"));
}

#[test]
fn a_conversation_with_a_spec_gets_the_targets_or_none() {
    let specs = load(false, &[]).unwrap();
    let sales = specs.for_agent(&"agent_s".into()).unwrap();
    assert_eq!(specs.patch(true, &"agent_s".into()), SpecPatch::Set(sales));
    assert_eq!(specs.patch(true, &"agent_other".into()), SpecPatch::Clear);
}

#[test]
fn a_conversation_without_a_spec_keeps_having_none() {
    let specs = load(false, &[]).unwrap();
    assert_eq!(specs.patch(false, &"agent_s".into()), SpecPatch::Keep);
    assert_eq!(specs.patch(false, &"agent_other".into()), SpecPatch::Keep);
}

#[test]
fn enforced_specs_allow_only_agents_that_have_one() {
    let specs = load(true, &[]).unwrap();
    assert!(specs.enforced());
    for has_spec in [true, false] {
        assert!(matches!(
            specs.patch(has_spec, &"agent_s".into()),
            SpecPatch::Set(_)
        ));
        assert_eq!(
            specs.patch(has_spec, &"agent_other".into()),
            SpecPatch::Refuse
        );
    }
}
