//! The server as rmcp sees it: no state, and an answer to every call within 5 s.

use std::borrow::Cow;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use tokio::time::{Instant, timeout};

use super::answer::{Answer, Failure};
use super::board::Slot;
use super::describe::{self, LIST_AGENTS, SWITCH_AGENT};
use super::headers::Caller;
use super::{list_agents, switch_agent};

/// What is not done by then is answered as such.
const WORK: Duration = Duration::from_millis(4200);

/// An answer is given by then, even where the work neither ends nor fails.
const ANSWER: Duration = Duration::from_millis(4800);

/// The server.
#[derive(Clone)]
pub(super) struct Server {
    slot: Slot,
    name: Arc<str>,
    same_turn: bool,
}

impl Server {
    /// `name` is the server's in `librechat.yaml`; `same_turn`: the target answers the message in
    /// which it is switched to.
    pub(super) fn new(slot: Slot, name: &str, same_turn: bool) -> Self {
        Self {
            slot,
            name: name.into(),
            same_turn,
        }
    }

    async fn work(
        &self,
        name: &str,
        arguments: &JsonObject,
        parts: Option<Parts>,
    ) -> CallToolResult {
        let deadline = Instant::now() + WORK;
        let headers = parts.map(|parts| parts.headers).unwrap_or_default();
        let caller = match Caller::read(&headers, &self.name) {
            Ok(caller) => caller,
            Err(why) => {
                tracing::warn!(why, "a call without the headers that it needs");
                return failed(Failure::new(why));
            }
        };
        let Some(board) = self.slot.get() else {
            return failed(Failure::new("Baton is starting; try again in a moment"));
        };
        match name {
            SWITCH_AGENT => switch_agent::run(board, caller, arguments, deadline)
                .await
                .into_result(),
            _ => list_agents::run(board, caller, arguments, deadline).await,
        }
    }
}

/// What `work` comes to, or by [`ANSWER`] an error. rmcp never answers a call whose handler panics,
/// so the work is a task of its own.
async fn answered(work: impl Future<Output = CallToolResult> + Send + 'static) -> CallToolResult {
    let work = tokio::spawn(work);
    let abort = work.abort_handle();
    match timeout(ANSWER, work).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => {
            tracing::error!(%error, "a call failed");
            failed(Failure::new(
                "the call failed in Baton; nothing was switched",
            ))
        }
        Err(_) => {
            abort.abort();
            failed(Failure::database())
        }
    }
}

fn failed(failure: Failure) -> CallToolResult {
    Answer::success().failed(failure).into_result()
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("baton", env!("CARGO_PKG_VERSION")))
    }

    /// Those that were tried with real clients.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25).into()
    }

    fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> + Send + '_ {
        ready(Ok(ListToolsResult::with_all_items(describe::tools(
            self.same_turn,
        ))))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if ![SWITCH_AGENT, LIST_AGENTS].contains(&&*request.name) {
            return Err(ErrorData::invalid_params("no such tool", None));
        }
        let parts = context.extensions.get::<Parts>().cloned();
        let arguments = request.arguments.unwrap_or_default();
        let server = self.clone();
        let work = async move { server.work(&request.name, &arguments, parts).await };
        Ok(answered(work).await.into())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use rmcp::model::ContentBlock;
    use serde_json::Value;

    use super::*;

    #[track_caller]
    fn is_an_error(result: &CallToolResult, message: &str) {
        assert_eq!(result.is_error, Some(true));
        let [ContentBlock::Text(text)] = &*result.content else {
            panic!("not one text: {result:?}");
        };
        let answer: Value = serde_json::from_str(&text.text).unwrap();
        assert_eq!(answer["status"], "error");
        assert_eq!(answer["message"], message);
    }

    #[tokio::test]
    async fn work_that_panics_is_answered() {
        let result = answered(async { panic!("a fault of Baton's") }).await;
        is_an_error(&result, "the call failed in Baton; nothing was switched");
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_never_ends_is_answered_within_5_s_and_given_up() {
        let held = Arc::new(());
        let work = {
            let held = Arc::clone(&held);
            async move {
                let () = pending().await;
                drop(held);
                failed(Failure::new("never"))
            }
        };
        let started = Instant::now();
        let result = answered(work).await;
        // By the clock of the paused runtime, which nothing but the wait itself moves.
        assert!(started.elapsed() < Duration::from_secs(5));
        is_an_error(&result, &Failure::database().message);
        tokio::task::yield_now().await;
        assert_eq!(Arc::strong_count(&held), 1, "the work is still held");
    }
}
