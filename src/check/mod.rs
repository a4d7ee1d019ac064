//! `baton check`: what is wrong with a deployment, and how to mend it.
//!
//! What can be tried is tried, on the deployment itself: a right is not looked up but used. Nothing
//! of LibreChat's is changed.

mod collections;
mod gateway;
mod login;
mod oplog;
mod reach;
mod reason;
mod report;
mod rights;
mod running;
mod server;
mod state;
mod tools;
mod topology;
mod trust;

pub use collections::{Lacking, lacking};
pub use report::Report;
pub use running::{Probe, running};

use std::path::Path;

use crate::config::Settings;

/// Checks the deployment that `settings` describe. [`Report::failed`] tells how it went.
pub async fn check(settings: &Settings, report: &mut Report) {
    examine(settings, report).await;
    report.close();
}

async fn examine(settings: &Settings, report: &mut Report) {
    let file = settings.file.as_deref().map(Path::display);
    let file = file.map_or("no file".to_owned(), |file| file.to_string());
    report.ok(
        "configuration",
        format!("every key can be used (of {file} and the environment)"),
    );
    for doubt in &settings.doubts {
        report.warn("configuration", doubt, "");
    }
    trust::servers(settings, report);
    let Some(options) = reach::options(settings, report).await else {
        return;
    };
    let Some(found) = reach::first(&options, report).await else {
        return;
    };
    let Some(options) = topology::check(options, &found, report) else {
        return;
    };
    let Some(login) = login::check(options, &found, report).await else {
        return;
    };
    server::check(&login.client, report).await;
    if found.is_replica_set() {
        oplog::check(&login.client, report).await;
    }
    let refused = [
        collections::check(settings, &login.client, report).await,
        rights::check(settings, &login.client, found.has_streams(), report).await,
        state::check(settings, &login.client, report).await,
    ];
    rights::explain(settings, &login, &refused.concat(), report);
    tools::check(settings, &login.client, report).await;
    gateway::check(settings, &login.client, report).await;
    trust::calls(settings, &login.client, report).await;
}
