//! The version of MongoDB, and its clock.

use std::time::{Duration, SystemTime};

use mongodb::Client;
use mongodb::bson::{Document, doc};

use super::reason::reason;
use super::report::Report;

/// The oldest that the driver speaks with.
const OLDEST: (u32, u32) = (4, 4);

/// Beyond this, tokens that have just expired or just begun would be judged wrongly, and the times
/// in the two logs could not be compared.
const CLOCK: Duration = Duration::from_secs(30);

pub(super) async fn check(client: &Client, report: &mut Report) {
    let admin = client.database("admin");
    match admin.run_command(doc! { "buildInfo": 1 }).await {
        Ok(info) => version(&info, report),
        Err(error) => report.warn("version", reason(&error), ""),
    }
    let before = SystemTime::now();
    match admin.run_command(doc! { "hello": 1 }).await {
        Ok(hello) => clock(&hello, before, report),
        Err(error) => report.warn("clock", reason(&error), ""),
    }
}

fn version(info: &Document, report: &mut Report) {
    let text = info.get_str("version").unwrap_or("unknown");
    let (major, minor) = OLDEST;
    if numbers(text).is_some_and(|version| version < OLDEST) {
        report.fail(
            "version",
            format!("MongoDB {text} is too old"),
            format!("Use MongoDB {major}.{minor} or later."),
        );
    } else {
        report.ok(
            "version",
            format!("MongoDB {text} ({major}.{minor} or later is needed)"),
        );
    }
}

fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

fn clock(hello: &Document, before: SystemTime, report: &mut Report) {
    let Ok(theirs) = hello.get_datetime("localTime") else {
        report.ok("clock", "the server does not tell the time");
        return;
    };
    let theirs = theirs.to_system_time();
    let trip = before.elapsed().unwrap_or_default();
    let ours = before + trip / 2;
    let (apart, word) = match theirs.duration_since(ours) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    let text = format!(
        "MongoDB's is {} ms {word} this machine's (asking took {} ms)",
        apart.as_millis(),
        trip.as_millis()
    );
    if apart > CLOCK {
        report.warn("clock", text, "Set both clocks, as by NTP.");
    } else {
        report.ok("clock", text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(numbers("4.10.1").unwrap() > OLDEST);
        assert!(numbers("4.2.24").unwrap() < OLDEST);
        assert!(numbers("8.0.0-rc1").unwrap() > OLDEST);
        assert_eq!(numbers("unknown"), None);
    }
}
