//! Programs that the tests run, fetched where the machine has none: `tests/tools/`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Installs the npm packages of a folder of `tests/`, and gives its path.
pub fn npm(folder: &str) -> PathBuf {
    let folder = tests().join(folder);
    let installed = Command::new(tests().join("tools/npm"))
        .arg(&folder)
        .status();
    let installed = installed.expect("tests/tools/npm").success();
    assert!(installed, "npm could not install {}", folder.display());
    folder
}

/// The path of a program that a script of `tests/tools/` fetches.
pub fn tool(name: &str) -> String {
    let answer = Command::new(tests().join("tools").join(name))
        .stderr(Stdio::inherit())
        .output()
        .expect("a script of tests/tools");
    assert!(answer.status.success(), "tests/tools/{name} found none");
    String::from_utf8_lossy(&answer.stdout)
        .trim_end()
        .to_owned()
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}
