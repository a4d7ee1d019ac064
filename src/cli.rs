//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::check::Probe;

/// Makes agent handoffs in LibreChat permanent.
#[derive(Debug, Parser)]
#[command(
    version,
    about = "Makes agent handoffs in LibreChat permanent",
    long_about = "Makes agent handoffs in LibreChat permanent.\n\n\
        In LibreChat a tool can hand a conversation over to another agent, but LibreChat's next \
        save of the conversation undoes it. Baton runs beside LibreChat, watches its MongoDB for \
        such switches, and keeps the conversation with the agent it was handed to, until the user \
        chooses another. LibreChat itself is not changed.",
    after_long_help = HELP,
    arg_required_else_help = true
)]
pub struct Cli {
    /// The configuration file [default: config.toml, if it is there].
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// A configuration file with every key, its default and what it means.
pub const REFERENCE: &str = include_str!("../config.toml");

/// The environment and the exit codes.
const HELP: &str = "\
Environment (over the configuration file):
  MONGO_URI                 LibreChat's MongoDB, as LibreChat itself names it
  JWT_SECRET                LibreChat's secret for its users' tokens
  BATON__SECTION__KEY       any key: BATON__SWITCH__GUARD=2h is switch.guard;
                            lists are separated by commas
  ..._FILE                  for a secret: the file that holds it (MONGO_URI_FILE,
                            BATON__MCP__TOKEN_FILE)

A tool's call switches only where Baton trusts its MCP server: name the server in switch.servers
(BATON__SWITCH__SERVERS), as librechat.yaml does, or give agents Baton's own tool (mcp.token).
`baton config` lists every key, with its default and what it means.

Exit codes:
  0    done; after SIGTERM or SIGINT: all saved
  1    failed; `check`: something is to be mended
  2    the configuration or the command line cannot be used
  130  a second SIGINT ended it at once (143: SIGTERM)

Begin with `baton check`: it says what is wrong with a deployment and how to mend it.";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch LibreChat's MongoDB and keep switches, until SIGTERM or SIGINT.
    #[command(
        long_about = "Watch LibreChat's MongoDB and keep switches, until SIGTERM or SIGINT. \
        Any number may run side by side."
    )]
    Run,
    /// Say what is wrong with this deployment, and how to mend it.
    #[command(
        long_about = "Say what is wrong with this deployment, and how to mend it: MongoDB, \
        its replica set and its rights, LibreChat's collections, the clock. Each line begins with \
        ok, warn or FAIL; the exit code is 1 where one begins with FAIL.\n\n\
        With --live or --ready instead: ask the `baton run` of this configuration, on this \
        machine, how it is, as a container's health check does."
    )]
    Check(Check),
    /// List the switches on record, newest first.
    Switches(Switches),
    /// Print a configuration file with every key, its default and what it means.
    Config,
}

/// What to check.
#[derive(Args, Debug)]
#[group(multiple = false)]
pub struct Check {
    /// Only whether the running process works (/livez): else a restart would help.
    #[arg(long)]
    pub live: bool,
    /// Only whether it also follows MongoDB and can write its records (/readyz).
    #[arg(long)]
    pub ready: bool,
}

impl Check {
    /// What to ask the running process, if that is what to do.
    #[must_use]
    pub fn probe(&self) -> Option<Probe> {
        match self {
            Self { live: true, .. } => Some(Probe::Live),
            Self { ready: true, .. } => Some(Probe::Ready),
            Self { .. } => None,
        }
    }
}

/// Which switches to list.
#[derive(Args, Debug)]
pub struct Switches {
    /// Only those of this conversation.
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,
    /// Only those of this user.
    #[arg(long, value_name = "ID")]
    pub user: Option<String>,
    /// At most so many, the newest.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=10_000))]
    pub limit: i64,
    /// One JSON object a line instead of a table.
    #[arg(long)]
    pub json: bool,
}
