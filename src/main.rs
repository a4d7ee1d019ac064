//! The `baton` program.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use baton::check::{Probe, Report, check, running};
use baton::cli::{Cli, Command, REFERENCE};
use baton::config::Settings;
use baton::lifecycle::Lifecycle;
use baton::run::{Listeners, run};
use baton::switches::list;
use baton::telemetry;
use clap::Parser;
use tokio::runtime::{Builder, Runtime};

/// Gives memory back to the system, which glibc's hardly does; `.cargo/config.toml` has its settings.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// As clap's own for a command line that cannot be used.
const BAD_CONFIGURATION: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Config = cli.command {
        // A reader that has gone away is no failure.
        let _ = io::stdout().write_all(REFERENCE.as_bytes());
        return ExitCode::SUCCESS;
    }
    let settings = match Settings::load(cli.config.as_deref(), env::vars_os()) {
        Ok(settings) => settings,
        Err(error) => {
            eprintln!("baton: {error}");
            return ExitCode::from(BAD_CONFIGURATION);
        }
    };
    dispatch(&cli.command, settings).unwrap_or_else(|error| {
        eprintln!("baton: {error:#}");
        ExitCode::FAILURE
    })
}

fn dispatch(command: &Command, settings: Settings) -> anyhow::Result<ExitCode> {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let code = match command {
        Command::Run => start(&runtime, settings),
        Command::Check(what) => Ok(runtime.block_on(examine(&settings, what.probe()))),
        Command::Switches(which) => runtime
            .block_on(list(&settings, which, columns(), io::stdout().lock()))
            .map(|()| ExitCode::SUCCESS)
            .map_err(Into::into),
        Command::Config => Ok(ExitCode::SUCCESS),
    };
    // Whatever still runs has had its time: a look-up of a name may block for a minute.
    runtime.shutdown_timeout(Duration::ZERO);
    code
}

fn start(runtime: &Runtime, settings: Settings) -> anyhow::Result<ExitCode> {
    telemetry::init(&settings.log)?;
    runtime.block_on(async {
        let lifecycle = Lifecycle::new().context("cannot take over the signals")?;
        let listeners = Listeners::bind(&settings)?;
        Ok(run(settings, listeners, lifecycle).await)
    })
}

/// The width of the terminal; `None` where the output goes elsewhere.
fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(width.0.into())
}

async fn examine(settings: &Settings, probe: Option<Probe>) -> ExitCode {
    let mut report = Report::new(io::stdout());
    match probe {
        Some(probe) => running(settings, probe, &mut report).await,
        None => check(settings, &mut report).await,
    }
    if report.failed() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
