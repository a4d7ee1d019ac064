//! The script that holds a MongoDB server, see `tests/tools/keep-mongod`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::tools::tool;

/// A server that ends when this value or this process does.
pub(super) struct Keeper {
    script: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Keeper {
    /// Starts the script; the server itself is started by the command `start`.
    pub(super) fn of(arguments: &[String]) -> (Self, PathBuf) {
        let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools");
        let mut script = Command::new(tools.join("keep-mongod"))
            .arg(tool("mongod"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the tests; the script notices that they have ended.
            .process_group(0)
            .spawn()
            .expect("tests/tools/keep-mongod");
        let mut keeper = Self {
            commands: script.stdin.take(),
            answers: BufReader::new(script.stdout.take().expect("a pipe")),
            script,
        };
        let folder = keeper.answer();
        (keeper, folder.into())
    }

    pub(super) fn tell(&mut self, command: &str) {
        let commands = self.commands.as_mut().expect("an open pipe");
        writeln!(commands, "{command}").expect("the script takes commands");
        self.answer();
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line);
        assert!(
            read.is_ok_and(|n| n > 0),
            "tests/tools/keep-mongod has ended"
        );
        line.trim_end().to_owned()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // The script ends the server when its input closes; waiting for it leaves no zombie.
        self.commands = None;
        let _ = self.script.wait();
    }
}
