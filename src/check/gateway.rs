//! Whether LibreChat can do what `gateway.same_turn` asks of it.

use mongodb::Client;

use super::reason::reason;
use super::report::Report;
use crate::config::{SameTurn, Settings};
use crate::librechat::schema;

const WHAT: &str = "gateway.same_turn";

pub(super) async fn check(settings: &Settings, client: &Client, report: &mut Report) {
    if settings.gateway.same_turn != SameTurn::Resend {
        return;
    }
    let database = client.database(&settings.mongodb.database);
    match database.list_collection_names().await {
        Ok(there) if there.iter().any(|name| name == schema::SINCE_V0_8_8) => {
            report.ok(WHAT, "LibreChat's web client can send a message once more");
        }
        Ok(_) => report.warn(
            WHAT,
            "this LibreChat seems to be older than v0.8.8: \"resend\" is as \"off\" here",
            "Its web client cannot send a message once more. Update LibreChat, or set \"splice\".",
        ),
        Err(error) => report.warn(WHAT, reason(&error), ""),
    }
}
