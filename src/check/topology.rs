//! Whether MongoDB is of a kind that has change streams.

use mongodb::options::ClientOptions;

use super::report::Report;
use crate::mongo::{Found, Misfit};

const WHAT: &str = "replica set";

/// Judges the topology and gives the options to go on with, mended where the URI does not fit, so
/// that one problem does not hide the others.
pub(super) fn check(
    mut options: ClientOptions,
    found: &Found,
    report: &mut Report,
) -> Option<ClientOptions> {
    if found.is_router() {
        report.ok(WHAT, "a sharded cluster, by its router");
        return Some(options);
    }
    match Misfit::of(&options, found) {
        None => {
            let name = found.set_name().unwrap_or_default();
            let members = found.hello.get_array("hosts").map_or(1, Vec::len);
            let plural = if members == 1 { "" } else { "s" };
            report.ok(WHAT, format!("{name}, of {members} member{plural}"));
        }
        Some(misfit) => {
            report.fail(WHAT, misfit.problem(), misfit.remedy());
            match misfit {
                Misfit::NoSetYet(_) => return None,
                Misfit::Alone(_) => {
                    options.repl_set_name = None;
                    options.direct_connection = Some(true);
                    return Some(options);
                }
                Misfit::OtherSet { named, .. } => options.repl_set_name = Some(named),
            }
        }
    }
    if found.hello.get_str("primary").is_err() {
        report.warn(
            WHAT,
            "it has no primary at the moment, so nothing can be written",
            "See rs.status() in mongosh. An election takes seconds.",
        );
    }
    Some(options)
}
