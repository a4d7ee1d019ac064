//! `baton check --live` and `--ready`, as a container's health check runs them.

use crate::daemon::{Daemon, URI};
use crate::words::{baton, text};

/// The exit code, and what is said on standard output.
fn check(flag: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let uri = [("MONGO_URI", URI)];
    let output = baton(&["check", flag], &[&uri, variables].concat());
    assert_eq!(text(&output.stderr), "");
    (output.status.code(), text(&output.stdout))
}

#[test]
fn a_daemon_without_mongodb_is_alive_and_not_ready() {
    let mut daemon = Daemon::start(&[]);
    let address = daemon.address("http");
    let here = [("BATON__HTTP__LISTEN", address.as_str())];
    let (code, said) = check("--live", &here);
    let alive = format!("ok    running: http://{address}/livez says alive\n");
    assert_eq!((code, said), (Some(0), alive));
    let (code, said) = check("--ready", &here);
    assert_eq!(code, Some(1));
    let unready = format!("FAIL  running: http://{address}/readyz says unready (503)\n");
    assert!(said.starts_with(&unready), "{said}");
    assert!(said.contains("\n      change stream: "), "{said}");
    assert!(said.contains("\n      state database: "), "{said}");
}

#[test]
fn it_is_asked_where_its_operators_ask_and_on_this_machine() {
    let mut daemon = Daemon::start(&[("BATON__OPS__LISTEN", "127.0.0.1:0")]);
    let public = daemon.address("http");
    let private = daemon.address("ops");
    let everywhere = private.replace("127.0.0.1", "0.0.0.0");
    for ops in [&private, &everywhere] {
        let settings = [
            ("BATON__HTTP__LISTEN", public.as_str()),
            ("BATON__OPS__LISTEN", ops),
        ];
        let (code, said) = check("--live", &settings);
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains(&format!("http://{private}/livez")), "{said}");
    }
    // What is not an operator's address knows nothing of it.
    let (code, said) = check("--live", &[("BATON__HTTP__LISTEN", &public)]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("nothing that is Baton's (404)"), "{said}");
}

#[test]
fn a_daemon_that_is_not_there_is_not_well() {
    let (code, said) = check("--live", &[("BATON__HTTP__LISTEN", "127.0.0.1:9")]);
    assert_eq!(code, Some(1));
    assert_eq!(
        said,
        "FAIL  running: http://127.0.0.1:9/livez cannot be asked: Connection refused (os error 111)\n      \
         Is `baton run` running here, with these settings (http.listen)?\n"
    );
    let (code, said) = check("--live", &[("BATON__HTTP__LISTEN", "127.0.0.1:0")]);
    assert_eq!(code, Some(1));
    assert!(said.contains("http.listen leaves the port"), "{said}");
}
