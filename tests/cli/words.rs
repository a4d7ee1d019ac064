//! What the command line says and how it ends.

use std::net::TcpListener;
use std::process::{Command, Output};

use crate::daemon::URI;

/// Runs `baton` in an empty folder and environment.
pub(crate) fn baton(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_baton"))
        .args(arguments)
        .current_dir(folder.path())
        .env_clear()
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn help_tells_a_stranger_what_baton_is_and_how_it_ends() {
    let output = baton(&["--help"], &[]);
    let help = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    for word in [
        "LibreChat",
        "run ",
        "check ",
        "switches ",
        "config ",
        "switch.servers",
        "--config",
        "MONGO_URI",
        "BATON__SECTION__KEY",
        "Exit codes",
    ] {
        assert!(help.contains(word), "{word} is not in:\n{help}");
    }
}

#[test]
fn every_command_has_help_and_needs_no_configuration_for_it() {
    for command in ["run", "check", "switches", "config"] {
        let output = baton(&[command, "--help"], &[]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(text(&output.stdout).contains("--config"), "{command}");
    }
}

#[test]
fn version_is_the_crates() {
    let output = baton(&["--version"], &[]);
    assert_eq!(
        text(&output.stdout),
        format!("baton {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn bad_configuration_ends_every_command_with_2_and_names_the_keys() {
    for command in ["run", "check", "switches"] {
        let output = baton(&[command], &[("BATON__LOG__FORMAT", "xml")]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert!(said.contains("\n  mongodb.uri: not set"), "{said}");
        assert!(
            said.contains("\n  BATON__LOG__FORMAT: log.format: "),
            "{said}"
        );
    }
}

#[test]
fn a_file_that_is_named_and_missing_is_bad_configuration() {
    let output = baton(&["--config", "none.toml", "run"], &[("MONGO_URI", URI)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("none.toml"));
}

#[test]
fn an_address_that_is_taken_is_named_by_its_key() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let variables = [("MONGO_URI", URI), ("BATON__HTTP__LISTEN", &address)];
    let output = baton(&["run"], &variables);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains(&format!("http.listen: cannot listen on {address}")),
        "{said}"
    );
}

#[test]
fn switches_says_in_one_line_that_mongodb_is_away() {
    let output = baton(&["switches"], &[("MONGO_URI", URI)]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(
        said,
        "baton: cannot read the switches: MongoDB does not answer: 127.0.0.1:9: I/O error: \
         Connection refused (os error 111); `baton check` says what to do\n"
    );
}

#[test]
fn an_address_of_another_machine_is_told_once_with_what_to_do() {
    let variables = [
        ("MONGO_URI", URI),
        ("BATON__HTTP__LISTEN", "192.0.2.1:8787"),
    ];
    let said = text(&baton(&["run"], &variables).stderr);
    assert!(said.contains("this machine has no such address"), "{said}");
    assert_eq!(said.matches("os error").count(), 1, "{said}");
}

#[test]
fn config_prints_the_reference_and_needs_none_itself() {
    let output = baton(&["config"], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), include_str!("../../config.toml"));
}
