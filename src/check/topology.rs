//! Whether MongoDB is of a kind that has change streams.

use mongodb::options::{ClientOptions, ServerAddress};

use super::reach::Found;
use super::report::Report;

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
    let Some(name) = found.set_name() else {
        if found.hello.get_bool("isreplicaset").unwrap_or(false) {
            report.fail(
                WHAT,
                "mongod was started with --replSet, but the set does not exist yet",
                format!("Make it, once:\n{}", initiate(&found.address)),
            );
            return None;
        }
        report.fail(
            WHAT,
            "this MongoDB stands alone, and only a replica set can tell what changes in it",
            alone(&found.address),
        );
        options.repl_set_name = None;
        options.direct_connection = Some(true);
        return Some(options);
    };
    match &options.repl_set_name {
        Some(asked) if asked != name => {
            report.fail(
                WHAT,
                format!("mongodb.uri says replicaSet={asked}, and the set is called {name}"),
                format!("Write replicaSet={name} in mongodb.uri."),
            );
            options.repl_set_name = Some(name.to_owned());
        }
        _ => {
            let members = found.hello.get_array("hosts").map_or(1, Vec::len);
            let plural = if members == 1 { "" } else { "s" };
            report.ok(WHAT, format!("{name}, of {members} member{plural}"));
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

fn alone(address: &ServerAddress) -> String {
    format!(
        "One member is enough, and LibreChat's data stays as it is:\n\
         1. Start mongod with --replSet rs0 beside the options that it has. In LibreChat's\n   \
         docker-compose.override.yml:\n     \
         services:\n       mongodb:\n         command: mongod --noauth --replSet rs0 --bind_ip_all\n   \
         or in mongod.conf:\n     replication:\n       replSetName: rs0\n   \
         Where logins are on, a replica set wants --keyFile too: a file of random text, mode 600.\n\
         2. Restart it, and make the set, once:\n{}\n\
         3. LibreChat's own MONGO_URI may stay as it is.",
        initiate(address)
    )
}

/// The command that makes a set of one. The name of the member is what every client connects to.
fn initiate(address: &ServerAddress) -> String {
    let host = address.to_string();
    let local = ["127.", "localhost", "[::1]"]
        .iter()
        .any(|prefix| host.starts_with(prefix));
    let note = if local {
        "\n   The host is the name under which LibreChat and Baton both reach it. With \
         LibreChat's own\n   docker-compose that is mongodb:27017, and mongosh is: docker compose \
         exec mongodb mongosh"
    } else {
        ""
    };
    format!(
        "     mongosh --eval 'rs.initiate({{_id: \"rs0\", members: [{{_id: 0, host: \
         \"{host}\"}}]}})'{note}"
    )
}
