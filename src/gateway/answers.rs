//! The target is set to work on the message in which it was switched to, and watched to its end.
//!
//! The claim is on record before LibreChat is asked, with the id that the answer is to have. So
//! there is one answer among all tabs and instances, and whoever finds a claim can tell what
//! became of it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use axum::http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::Gateway;
use super::events::is_events;
use super::headers::set_length;
use super::same_turn::{Refusal, Turn};
use super::take::{Taken, take};
use super::upstream::UpstreamError;
use crate::librechat::asked::{Asked, Assignment};
use crate::librechat::chat::{CHAT, PROTOCOL_HEADER, started, stream};
use crate::librechat::sse::Frames;
use crate::metrics::Passage;
use crate::mongo::words;
use crate::reconcile::{Context, End};
use crate::switch::answer::Stage;
use crate::switch::record::Switch;

/// LibreChat answers this POST before it does anything.
const START: Duration = Duration::from_secs(10);

/// Its answer is a few ids, or a sentence.
const LIMIT: usize = 64 << 10;

/// A stream that breaks off is read again so often, at first after this time.
const ATTEMPTS: u32 = 6;
const AGAIN: Duration = Duration::from_millis(500);

/// How long others wait for a claimed answer to begin.
const BEGINNING: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(50);

impl Gateway {
    /// Sets the target of a claimed switch to work. The record as it is then.
    ///
    /// It is a task of its own: what was begun is brought to its end, whether the client stays or
    /// goes.
    pub(super) async fn begin(
        self: &Arc<Self>,
        context: &Arc<Context>,
        switch: Switch,
        asked: Asked,
        turn: Turn,
    ) -> Result<Switch, Refusal> {
        let (gateway, context) = (Arc::clone(self), Arc::clone(context));
        let work = tokio::spawn(async move {
            let switch = gateway.try_begin(&context, switch, &asked, &turn).await?;
            context.metrics.passed(Passage::AnswerBegun);
            tracing::info!(
                conversation = %switch.conversation_id, by = %switch.to_agent,
                "the target is at work on the same message"
            );
            let kept = gateway.keep(context, switch.clone(), turn.credentials);
            tokio::spawn(kept);
            Ok(switch)
        });
        work.await.unwrap_or(Err(Refusal::Unbegun))
    }

    async fn try_begin(
        &self,
        context: &Context,
        mut switch: Switch,
        asked: &Asked,
        turn: &Turn,
    ) -> Result<Switch, Refusal> {
        let Some(answer) = &mut switch.answer else {
            return Err(Refusal::Taken);
        };
        let body = asked.post(&Assignment {
            conversation: &switch.conversation_id,
            to: &switch.to_agent,
            patch: context.specs.patch(asked.has_spec, &switch.to_agent),
            answer: &answer.message_id,
            note: answer.note.as_deref().unwrap_or_default(),
            request: &Uuid::new_v4().to_string(),
            timezone: self.zones.of(&turn.credentials).as_deref(),
        });
        let mut headers = turn.credentials.clone();
        if asked.is_new {
            headers.insert(PROTOCOL_HEADER, HeaderValue::from_static("2"));
        }
        let posted = timeout(START, self.post(&format!("{CHAT}/agents"), headers, body)).await;
        let (status, said) = match posted {
            Ok(Ok(answer)) => answer,
            // It may have begun all the same: its message shows it, if so.
            Ok(Err(error)) => return Err(Refusal::Unanswered(error)),
            Err(_) => return Err(Refusal::Unbegun),
        };
        let Some(generation) = started(&said).filter(|_| status == StatusCode::OK) else {
            let detail = format!("LibreChat refuses ({status})");
            context
                .store
                .answer_ended(switch.id, Stage::Failed, Some(&detail))
                .await?;
            return Err(Refusal::Refused(status));
        };
        answer.stage = Stage::Begun;
        answer.generation = generation;
        context.store.answer_begun(switch.id, generation).await?;
        Ok(switch)
    }

    /// Reads the target's stream to its end. While somebody reads it, LibreChat saves nothing
    /// unfinished, however the clients come and go.
    async fn keep(self: Arc<Self>, context: Arc<Context>, switch: Switch, credentials: HeaderMap) {
        let mut end = Ending::Cut;
        for attempt in 0..ATTEMPTS {
            end = match self.open(&switch, &credentials).await {
                Ok(response) if is_events(response.headers()) => {
                    read_to_end(response.into_body()).await
                }
                Ok(response) if is_over(response.status()) => Ending::Ended,
                Ok(_) | Err(_) => Ending::Cut,
            };
            if !matches!(end, Ending::Cut) {
                break;
            }
            sleep(AGAIN * 2_u32.pow(attempt)).await;
        }
        let end = match &end {
            Ending::Cut => End::Unknown,
            Ending::Ended => End::Seen,
            Ending::Failed(words) => End::Failed(words),
        };
        // What is not done here is left to whoever looks for what was left.
        if let Err(error) = context.end_answer(&switch, end).await {
            let error = words(&error);
            tracing::warn!(error, "an answer is still to be ended");
        }
    }

    /// The target's stream, from its beginning.
    pub(super) async fn open(
        &self,
        switch: &Switch,
        credentials: &HeaderMap,
    ) -> Result<Response<Body>, UpstreamError> {
        let generation = switch.answer.as_ref().and_then(|it| it.generation);
        let path = stream(&switch.conversation_id, generation);
        let mut headers = credentials.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.send(request(Method::GET, &path, headers, Bytes::new())?)
            .await
    }

    async fn post(
        &self,
        path: &str,
        mut headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<(StatusCode, Bytes), UpstreamError> {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        set_length(&mut headers, body.len());
        let request = request(Method::POST, path, headers, body.into())?;
        let response = self.send(request).await?;
        let status = response.status();
        Ok(match take(response.into_body(), LIMIT).await {
            Taken::Whole(body) => (status, body),
            Taken::Rest(_) => (status, Bytes::new()),
        })
    }

    /// The record of an answer that another tab has claimed, once it has begun. `None`: it does
    /// not come about.
    pub(super) async fn begun_by_another(
        &self,
        context: &Context,
        switch: &Switch,
    ) -> Result<Option<Switch>, Refusal> {
        let until = Instant::now() + BEGINNING;
        while Instant::now() < until {
            let Some(now) = context.store.get(switch.id).await? else {
                return Ok(None);
            };
            match now.answer.as_ref().map(|answer| answer.stage) {
                Some(Stage::Begun | Stage::Done) => return Ok(Some(now)),
                Some(Stage::Claimed) => sleep(LOOK).await,
                Some(Stage::Failed) | None => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// Whether LibreChat has forgotten a generation, or another one runs.
pub(super) fn is_over(status: StatusCode) -> bool {
    matches!(status, StatusCode::NOT_FOUND | StatusCode::CONFLICT)
}

/// How a stream ended.
#[derive(Debug)]
enum Ending {
    /// It broke off.
    Cut,
    /// With its last event, or before anybody could read it.
    Ended,
    /// With LibreChat's words for what went wrong.
    Failed(String),
}

async fn read_to_end(mut body: Body) -> Ending {
    let mut frames = Frames::default();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(chunk) = frame.into_data() else {
            continue;
        };
        for event in frames.push(&chunk) {
            if let Some(words) = event.failure() {
                return Ending::Failed(words);
            }
            if event.is_final() {
                return Ending::Ended;
            }
        }
    }
    Ending::Cut
}

fn request(
    method: Method,
    path: &str,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Body>, UpstreamError> {
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().map_err(|_| UpstreamError::NoAddress)?;
    *request.headers_mut() = headers;
    Ok(request)
}
