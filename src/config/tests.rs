//! The layers as an operator meets them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use super::*;

const URI: &str = "mongodb://127.0.0.1:27017/LibreChat";
const REFERENCE: &str = include_str!("../../config.toml");

fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let owned = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
    pairs.iter().map(owned).collect()
}

fn load(text: &str, pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    Settings::from_layers(Path::new("config.toml"), text, variables(pairs))
}

fn settings(text: &str, pairs: &[(&str, &str)]) -> Settings {
    let mut pairs = pairs.to_vec();
    pairs.push(("MONGO_URI", URI));
    load(text, &pairs).unwrap()
}

/// The problems, one a line; with a URI, so that its lack is none of them.
fn problems(text: &str, pairs: &[(&str, &str)]) -> Vec<String> {
    let mut pairs = pairs.to_vec();
    pairs.push(("MONGO_URI", URI));
    let error = load(text, &pairs).unwrap_err();
    error.problems.iter().map(ToString::to_string).collect()
}

fn problem(text: &str, pairs: &[(&str, &str)]) -> String {
    let mut all = problems(text, pairs);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

/// The reference with every setting uncommented.
fn uncommented() -> String {
    let setting = |line: &str| {
        line.strip_prefix('#')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
            .map(str::to_owned)
    };
    REFERENCE
        .lines()
        .map(|line| setting(line).unwrap_or_else(|| line.to_owned()) + "\n")
        .collect()
}

#[test]
fn the_reference_holds_the_defaults() {
    let defaults = format!("{:#?}", settings("", &[]));
    assert_eq!(format!("{:#?}", settings(REFERENCE, &[])), defaults);
    assert_eq!(format!("{:#?}", settings(&uncommented(), &[])), defaults);
}

#[test]
fn the_reference_lists_every_key() {
    let mut layers = Layers::new(Path::new("config.toml"), &uncommented(), []).unwrap();
    let listed: BTreeSet<String> = layers.given.iter().map(|(key, _)| key.clone()).collect();
    Settings::take(&mut layers);
    let known = layers.known.iter().map(ToString::to_string).collect();
    assert_eq!(listed, known);
}

#[test]
fn the_defaults_are_those_of_the_design() {
    let settings = settings("", &[]);
    assert_eq!(settings.mongodb.database, "LibreChat");
    assert_eq!(settings.state.database, "baton");
    assert_eq!(settings.http.listen.to_string(), "127.0.0.1:8787");
    assert_eq!(settings.ops.listen, None);
    assert_eq!(settings.http.base_path, "");
    let limit = settings.http.rate_limit.unwrap();
    assert_eq!((limit.requests, limit.burst), (20, 200));
    assert_eq!(limit.per, Duration::from_secs(1));
    assert!(settings.http.trusted_proxies.is_empty());
    assert!(settings.http.cors_origins.is_empty());
    assert_eq!(settings.auth.mode, AuthMode::Jwt);
    assert_eq!(settings.mcp.server, "baton");
    assert_eq!(settings.switch.tools, ["switch_agent"]);
    assert!(settings.switch.servers.is_empty());
    assert!(!settings.switch.native_handoffs);
    assert_eq!(settings.switch.guard, Duration::from_secs(3600));
    assert_eq!(settings.switch.retention, Duration::from_secs(90 * 86_400));
    assert!(!settings.gateway.enabled);
    assert_eq!(settings.gateway.same_turn, SameTurn::Off);
    assert_eq!(settings.log.format, LogFormat::Text);
    assert_eq!(settings.log.level, "info");
}

#[test]
fn the_environment_wins_over_the_file() {
    let file = "[log]\nlevel = \"warn\"\n[switch]\nguard = \"2h\"\n";
    let settings = settings(file, &[("BATON__LOG__LEVEL", "debug")]);
    assert_eq!(settings.log.level, "debug");
    assert_eq!(settings.switch.guard, Duration::from_secs(7200));
}

#[test]
fn lists_and_tables_can_be_given_in_the_environment() {
    let settings = settings(
        "",
        &[
            ("BATON__SWITCH__SERVERS", "forge-spawn, other,"),
            ("BATON__SWITCH__ALLOW", "agent_a=agent_b,agent_a=agent_c"),
            ("BATON__SWITCH__SPECS", "agent_b=billing"),
            ("BATON__SWITCH__NATIVE_HANDOFFS", "true"),
        ],
    );
    assert_eq!(settings.switch.servers, ["forge-spawn", "other"]);
    assert_eq!(settings.switch.allow["agent_a"], ["agent_b", "agent_c"]);
    assert_eq!(settings.switch.specs[&"agent_b".into()], "billing");
    assert!(settings.switch.native_handoffs);
}

#[test]
fn tables_can_be_given_in_the_file() {
    let file = "[switch]\nallow = { agent_a = [\"agent_b\"] }\n[switch.specs]\nagent_b = \"x\"\n";
    let settings = settings(file, &[]);
    assert_eq!(settings.switch.allow["agent_a"], ["agent_b"]);
    assert_eq!(settings.switch.specs[&"agent_b".into()], "x");
}

#[test]
fn an_empty_variable_is_as_if_it_were_not_set() {
    let settings = settings("", &[("BATON__LOG__LEVEL", ""), ("JWT_SECRET", "")]);
    assert_eq!(settings.log.level, "info");
    assert!(settings.auth.jwt_secret.is_none());
}

#[test]
fn librechats_names_work_and_ours_win() {
    let own = "mongodb://127.0.0.1:27018/other";
    let variables = [("BATON__MONGODB__URI", own), ("JWT_SECRET", "s3cret")];
    let settings = settings("", &variables);
    assert_eq!(settings.mongodb.uri.expose(), own);
    assert_eq!(settings.mongodb.database, "other");
    assert_eq!(settings.auth.jwt_secret.unwrap().expose(), "s3cret");
}

#[test]
fn a_uri_without_a_database_means_the_one_that_librechat_takes() {
    let variables = [("BATON__MONGODB__URI", "mongodb://127.0.0.1:27017")];
    assert_eq!(settings("", &variables).mongodb.database, "test");
    let variables = [variables[0], ("BATON__MONGODB__DATABASE", "chat")];
    assert_eq!(settings("", &variables).mongodb.database, "chat");
}

#[test]
fn a_secret_can_be_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let token = "0123456789abcdef0123456789abcdef";
    let settings = load(
        "",
        &[
            ("MONGO_URI_FILE", &file("uri", &format!("{URI}\n"))),
            ("JWT_SECRET_FILE", &file("jwt", " blanks stay \r\n")),
            ("BATON__MCP__TOKEN_FILE", &file("mcp", token)),
            ("BATON__METRICS__TOKEN_FILE", &file("metrics", "m")),
        ],
    )
    .unwrap();
    assert_eq!(settings.mongodb.uri.expose(), URI);
    assert_eq!(settings.auth.jwt_secret.unwrap().expose(), " blanks stay ");
    assert_eq!(settings.mcp.token.unwrap().expose(), token);
    assert_eq!(settings.metrics.token.unwrap().expose(), "m");
}

#[test]
fn a_secret_and_its_file_are_one_too_many() {
    assert_eq!(
        problem("", &[("MONGO_URI_FILE", "/nowhere")]),
        "MONGO_URI: mongodb.uri: MONGO_URI_FILE is set too; unset one of the two"
    );
}

#[test]
fn a_secret_file_that_cannot_be_read_is_named() {
    assert_eq!(
        problem("", &[("BATON__MCP__TOKEN_FILE", "/nowhere")]),
        "BATON__MCP__TOKEN_FILE (/nowhere): mcp.token: cannot read the file: No such file or \
         directory (os error 2); name a file of text that this user may read"
    );
}

#[test]
fn a_lack_is_told_once_with_the_ways_to_mend_it() {
    let error = load("", &[]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the configuration cannot be used:\n  mongodb.uri: not set; Baton needs LibreChat's \
         MongoDB: set it in config.toml or as BATON__MONGODB__URI, as in \
         \"mongodb://127.0.0.1:27017/LibreChat?replicaSet=rs0\"; LibreChat's own MONGO_URI will do"
    );
}

#[test]
fn all_problems_are_told_with_key_and_place() {
    let file = "[http]\nlisten = \"localhost:80\"\n\n[switch]\nguard = \"10s\"\ntools = \"x\"\n";
    assert_eq!(
        problems(file, &[("BATON__LOG__FORMAT", "xml")]),
        [
            "config.toml:2: http.listen: \"localhost:80\" is no address with a port; give an IP \
             address and a port, as in \"127.0.0.1:8787\", \"0.0.0.0:8787\" or \"[::]:8787\"",
            "config.toml:6: switch.tools: found a string; give a list, as in [\"one\", \"two\"]",
            "config.toml:5: switch.guard: \"10s\" is too short; give a time from 1m to 7d, as \
             in \"90m\", \"12h\" or \"7d\"",
            "BATON__LOG__FORMAT: log.format: found \"xml\"; give \"text\" or \"json\"",
        ]
    );
}

#[test]
fn unknown_keys_are_refused_wherever_they_are() {
    let file = "top = 1\n[switch]\ngaurd = \"1h\"\n[empty]\n[other]\nkey = 1\n";
    let variables = [("BATON__LOG__LEVLE", "x"), ("BATON__log__level", "x")];
    let found = problems(file, &variables);
    let has = |start: &str| found.iter().any(|line| line.starts_with(start));
    assert_eq!(found.len(), 6, "{found:#?}");
    assert!(has(
        "config.toml:1: top: no such key; remove it; the sections are agents, auth, gateway"
    ));
    assert!(has(
        "config.toml:3: switch.gaurd: no such key; did you mean `guard`? switch has allow, guard"
    ));
    assert!(has("config.toml:4: empty: no such key"));
    assert!(has("config.toml:6: other.key: no such key"));
    assert!(has(
        "BATON__LOG__LEVLE: log.levle: no such key; did you mean `level`? log has format, level"
    ));
    assert!(has("BATON__log__level: BATON__log__level: no such key"));
}

#[test]
fn near_misses_are_told_what_was_meant() {
    for (text, meant) in [
        ("[swich]\nservers = []", "`switch`"),
        ("[switch]\nserver = []", "`servers`"),
        ("[mongo_db]\nuri = \"\"", "`mongodb`"),
        ("[switch]\nSERVERS = []", "`servers`"),
    ] {
        let found = problem(text, &[]);
        assert!(found.contains(&format!("did you mean {meant}?")), "{found}");
    }
    let found = problem("[database]\nuri = \"\"", &[]);
    assert!(!found.contains("did you mean"), "{found}");
}

#[test]
fn variables_that_look_like_a_mistake_are_doubted() {
    let doubts = |pairs: &[(&str, &str)]| {
        let mut all = vec![("BATON__SWITCH__SERVERS", "switcher")];
        all.extend(pairs);
        settings("", &all).doubts
    };
    for name in [
        "BATON_MCP__TOKEN",
        "BATON_MCP_TOKEN",
        "baton__mcp__token",
        "Baton_Mcp_Token_File",
    ] {
        let found = doubts(&[(name, "x")]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(name), "{found:?}");
        assert!(found[0].contains("did you mean BATON__MCP__TOKEN?"));
    }
    assert_eq!(doubts(&[("BATON_SWITCH__SEVRERS", "x")]).len(), 1);
    // Kubernetes' own, and a variable of LibreChat's beside Baton's.
    assert!(doubts(&[("BATON_PORT", "tcp://10.0.0.1:8787")]).is_empty());
    assert!(doubts(&[("BATON_SWITCH_SERVERS", "x")]).is_empty());
}

#[test]
fn trusting_nobody_is_doubted() {
    let trusts = |name: &str, value: &str| settings("", &[(name, value)]).doubts.is_empty();
    assert!(!trusts("BATON__LOG__LEVEL", "info"));
    assert!(trusts("BATON__SWITCH__SERVERS", "switcher"));
    assert!(trusts(
        "BATON__MCP__TOKEN",
        "0123456789abcdef0123456789abcdef"
    ));
}

#[test]
fn another_type_is_told_with_an_example_and_the_bounds_in_short() {
    let found = problem("[switch]\nretention = 90", &[]);
    assert_eq!(
        found,
        "config.toml:2: switch.retention: found an integer; give a time from 1d to 3650d, as in \
         \"90m\", \"12h\" or \"7d\""
    );
    let found = problem("[http]\nlisten = 8787", &[]);
    assert!(found.contains("as in \"127.0.0.1:8787\""), "{found}");
}

#[test]
fn a_file_that_is_not_utf_8_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, b"[log]\nlevel = \"\xff\"\n").unwrap();
    let error = Settings::load(Some(&path), []).unwrap_err().to_string();
    assert!(
        error.contains("config.toml is not UTF-8; save it as UTF-8"),
        "{error}"
    );
}

#[test]
fn other_variables_are_none_of_our_business() {
    settings("", &[("BATON_PORT", "tcp://10.0.0.1:8787"), ("HOME", "/")]);
}

#[test]
fn a_file_that_is_no_toml_is_told_by_line_and_never_quoted() {
    let found = problem("[mongodb]\nuri = \"mongodb://u:hunter2@h\n", &[]);
    assert!(found.starts_with("config.toml:2: not TOML: "), "{found}");
    assert!(!found.contains("hunter2"), "{found}");
}

#[test]
fn a_bad_uri_is_explained_without_its_password() {
    let bad = [
        "mongodb://user:hunter2%@host/db",
        "mongodb://user:hun/ter2@host/db",
        "mongodb://user:hunter2@host:port/db",
        "mongodb://user:hunter2@host/db?nosuchoption=hunter2",
        "mongodb://user:hunter2",
        "postgres://user:hunter2@host/db",
    ];
    for uri in bad {
        let error = load("", &[("MONGO_URI", uri)]).unwrap_err().to_string();
        assert!(error.contains("\n  MONGO_URI: mongodb.uri: "), "{error}");
        assert!(!error.contains("ter2"), "{error}");
        assert_eq!(error.lines().count(), 2, "{error}");
    }
}

#[test]
fn an_option_that_only_librechats_driver_knows_is_named() {
    let uri = "mongodb://user:pw@host/db?noSuchOption=1";
    let error = load("", &[("MONGO_URI", uri)]).unwrap_err().to_string();
    assert!(
        error.contains("the driver knows no option \"nosuchoption\""),
        "{error}"
    );
}

#[test]
fn secrets_are_never_shown() {
    let token = "hunter2-hunter2-hunter2-hunter2-hunter2";
    let uri = "mongodb://user:hunter2@host/db";
    let variables = [
        ("BATON__MONGODB__URI", uri),
        ("JWT_SECRET", token),
        ("BATON__MCP__TOKEN", token),
        ("BATON__METRICS__TOKEN", token),
    ];
    let shown = format!("{:#?}", settings("", &variables));
    assert!(!shown.contains("hunter2"), "{shown}");
    let short = problem("", &[("BATON__MCP__TOKEN", "hunter2")]);
    assert!(!short.contains("hunter2"), "{short}");
}

#[test]
fn settings_that_contradict_one_another_are_refused() {
    let found = |text: &str| problem(text, &[]);
    assert!(found("[state]\ndatabase = \"librechat\"").contains("is LibreChat's database"));
    assert!(found("[auth]\nmode = \"librechat\"").starts_with("librechat.url: not set"));
    assert!(found("[ops]\nlisten = \"127.0.0.1:8787\"").contains("is http.listen too"));
    assert!(found("[switch]\nguard = \"2d\"\nretention = \"1d\"").contains("outlasts the record"));
    let gateway = problems("[gateway]\nenabled = true", &[]);
    assert!(gateway[0].starts_with("librechat.url: not set; the gateway"));
    assert!(gateway[1].starts_with("ops.listen: not set; with the gateway"));
    let alone = found("[gateway]\nsame_turn = \"splice\"");
    assert!(alone.contains("gateway.same_turn") && alone.contains("the gateway is off"));
}

#[test]
fn values_that_make_no_sense_are_refused() {
    for text in [
        "[switch]\ntools = []",
        "[switch]\ntools = [\"switch_agent_mcp_baton\"]",
        "[switch]\ntools = [1]",
        "[switch]\nservers = [\"a b\"]",
        "[switch]\nallow = { \" \" = [\"agent_b\"] }",
        "[switch]\nallow = { agent_a = [\"\"] }",
        "[switch]\nmax_per_conversation = \"ten in 10m\"",
        "[switch]\nmax_per_conversation = \"0 in 10m\"",
        "[switch]\nmax_per_conversation = \"10 in 2d\"",
        "[switch]\nmax_per_conversation = \"10\"",
        "[gateway]\nsame_turn = \"on\"",
        "[gateway]\nsame_turn = true",
        "[agents]\naliases = { billing = \"Billing\" }",
        "[agents]\naliases = { \"*\" = \"agent_b\" }",
        "[agents]\nfile = \"/nowhere\"",
        "[mcp]\nallowed_hosts = [\"http://baton\"]",
        "[switch]\nspecs = { agent_a = \"\" }",
        "[switch]\nnative_handoffs = \"true\"",
        "[switch]\nretention = \"1h\"",
        "[switch]\nguard = \"8d\"",
        "[switch]\nguard = 60",
        "[state]\ndatabase = \"a.b\"",
        "[state]\ndatabase = \"admin\"",
        "[librechat]\nurl = \"127.0.0.1:3080\"",
        "[librechat]\nurl = \"http://user:pw@host\"",
        "[librechat]\nconfig = \"/nowhere\"",
        "[log]\nlevel = \"loud\"",
        "mongodb = \"x\"",
    ] {
        assert_eq!(problems(text, &[]).len(), 1, "{text}");
    }
}

#[test]
fn a_file_that_is_named_must_be_there() {
    let error = Settings::load(Some(Path::new("/nowhere.toml")), []).unwrap_err();
    assert!(error.to_string().contains("cannot read /nowhere.toml"));
}

#[test]
fn librechats_own_file_is_read_and_must_fit() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = folder.path().join("librechat.yaml");
    let preset = "{name: billing, label: B, preset: {endpoint: agents, agent_id: agent_b}}";
    fs::write(
        &yaml,
        format!("version: 1.2.1\nmodelSpecs:\n  list: [{preset}]\n"),
    )
    .unwrap();
    let file = format!("[librechat]\nconfig = {yaml:?}\n");
    let spec = settings(&file, &[])
        .specs
        .for_agent(&"agent_b".into())
        .cloned();
    assert_eq!(spec.unwrap().name, "billing");
    let found = problem(&file, &[("BATON__SWITCH__SPECS", "agent_b=none")]);
    assert!(
        found.starts_with("BATON__SWITCH__SPECS: switch.specs: agent_b = \"none\": "),
        "{found}"
    );
    fs::write(&yaml, "modelSpecs: [").unwrap();
    let found = problem(&file, &[]);
    assert!(
        found.starts_with("config.toml:2: librechat.config: "),
        "{found}"
    );
}

#[test]
fn the_api_can_be_limited_and_opened() {
    let file = r#"
        [http]
        base_path = "/baton/v1/"
        rate_limit = "100/m"
        trusted_proxies = ["127.0.0.1", "10.0.0.0/8", "::1"]
        cors_origins = ["https://Chat.example.org", "http://localhost:3090"]
    "#;
    let http = settings(file, &[]).http;
    assert_eq!(http.base_path, "/baton/v1");
    let limit = http.rate_limit.unwrap();
    assert_eq!((limit.requests, limit.burst), (100, 100));
    assert_eq!(limit.per, Duration::from_secs(60));
    let proxies: Vec<String> = http
        .trusted_proxies
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(proxies, ["127.0.0.1/32", "10.0.0.0/8", "::1/128"]);
    assert_eq!(
        http.cors_origins,
        ["https://chat.example.org", "http://localhost:3090"]
    );
    let off = settings("", &[("BATON__HTTP__RATE_LIMIT", "off")]);
    assert_eq!(off.http.rate_limit, None);
}

#[test]
fn limits_and_places_that_make_no_sense_are_refused() {
    for (key, values) in [
        (
            "base_path",
            &["baton", "/", "/a//b", "/..", "/a/./b", "/{x}", "/a b", "/*"][..],
        ),
        (
            "rate_limit",
            &[
                "20",
                "0/s",
                "20/s burst 0",
                "20/d",
                "20/s 200",
                "-1/s",
                "20/s burst 5 x",
            ],
        ),
        ("trusted_proxies", &["proxy", "10.0.0.0/33", "10.0.0.1:80"]),
        (
            "cors_origins",
            &[
                "*",
                "chat.example.org",
                "https://a.org/",
                "https://a.org/x",
                "null",
                "ftp://a.org",
                "https://u@a.org",
            ],
        ),
    ] {
        for value in values {
            let variable = format!("BATON__HTTP__{}", key.to_ascii_uppercase());
            let found = problem("", &[(variable.as_str(), value)]);
            assert!(found.contains(&format!("http.{key}: ")), "{value}: {found}");
        }
    }
}
