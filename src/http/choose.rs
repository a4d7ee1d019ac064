//! `PATCH /api/convos/{conversationId}`: the user chooses the agent.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::api::Api;
use super::error::ApiError;
use super::json::Body;
use super::openapi::Failures;
use super::path::{ConversationPath, no_such_conversation};
use super::user::User;
use crate::librechat::AgentId;
use crate::reconcile::{NotChosen, Unfit};

/// LibreChat's ids have 27 characters. A longer text than this is no agent's.
const LONGEST: usize = 256;

/// What the user asks for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Choice {
    /// The agent that the conversation is to have.
    #[schema(
        min_length = 1,
        max_length = 256,
        example = "agent_TEiCFUrdcmZmLR89Tdclm"
    )]
    agent_id: String,
}

/// It is done.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Chosen {
    /// Always true.
    success: bool,
}

/// Choose the agent of a conversation
///
/// It is in force at once. A turn that is still running does not undo it; a later turn of the
/// user's may. To choose what is chosen changes nothing.
#[utoipa::path(
    patch,
    path = "/api/convos/{conversationId}",
    operation_id = "chooseAgent",
    params(("conversationId" = String, Path, description = "A conversation of the user's")),
    request_body = Choice,
    responses((status = 200, description = "It is in force", body = Chosen), Failures),
    security(("token" = []))
)]
pub(super) async fn choose(
    State(api): State<Arc<Api>>,
    user: User,
    ConversationPath(conversation): ConversationPath,
    Body(choice): Body<Choice>,
) -> Result<Json<Chosen>, ApiError> {
    if choice.agent_id.is_empty() || choice.agent_id.len() > LONGEST {
        let wrong = format!("give an agent's id, of 1 to {LONGEST} bytes");
        return Err(ApiError::field("agent_id", wrong));
    }
    let handle = &api.slot.get()?.handle;
    let key = user.account.conversation(conversation);
    let to = AgentId::from(choice.agent_id);
    match handle.choose(key, to, user.deadline.0).await {
        Ok(()) => Ok(Json(Chosen { success: true })),
        Err(why) => Err(refusal(why)),
    }
}

/// An agent that the user may not view is told apart from one that does not exist by nothing.
fn refusal(why: NotChosen) -> ApiError {
    match why {
        NotChosen::NoSuchConversation => no_such_conversation(),
        NotChosen::LeftAlone => ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, why.to_string()),
        NotChosen::Unfit(Unfit::NotAllowed) => ApiError::new(
            StatusCode::FORBIDDEN,
            "the operator does not allow this conversation's agent to be changed to that one",
        ),
        NotChosen::Unfit(Unfit::Enforced) => ApiError::new(
            StatusCode::FORBIDDEN,
            "this LibreChat enforces its model specs, and none has that agent",
        ),
        NotChosen::Unfit(Unfit::Refused(_)) => {
            let wrong = "agent_id: no such agent, or none that you may use";
            ApiError::new(StatusCode::UNPROCESSABLE_ENTITY, wrong)
        }
        NotChosen::Unavailable => ApiError::database(),
    }
}
