//! A client's stream goes on with the target's.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use futures::stream;
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use super::Gateway;
use super::answers::is_over;
use super::events::is_events;
use super::finals::{Told, name, note, standing};
use crate::librechat::chat::status;
use crate::librechat::final_event::FinalEvent;
use crate::librechat::lost_final::sources;
use crate::librechat::splice::{Splice, Spliced};
use crate::librechat::sse::{Event, Frames};
use crate::mongo::words;
use crate::reconcile::{Context, End};
use crate::switch::record::Switch;

/// A client's share of the target's stream.
pub(super) struct Follower {
    pub(super) gateway: Arc<Gateway>,
    pub(super) context: Arc<Context>,
    /// The switch whose target answers.
    pub(super) switch: Switch,
    pub(super) splice: Splice,
    pub(super) credentials: HeaderMap,
}

/// The client has gone.
struct Gone;

type Out = mpsc::Sender<Bytes>;

impl Follower {
    /// What the client gets from now on; of `opened`, where it reads the stream already.
    pub(super) fn into_body(self, opened: Option<Body>) -> Body {
        let (give, mut take) = mpsc::channel::<Bytes>(1);
        tokio::spawn(async move {
            // A client that goes is none of the target's business.
            let _ = self.run(opened, &give).await;
        });
        Body::from_stream(stream::poll_fn(move |cx| {
            let bytes = take.poll_recv(cx);
            bytes.map(|bytes| bytes.map(Ok::<_, axum::Error>))
        }))
    }

    async fn run(&self, opened: Option<Body>, out: &Out) -> Result<(), Gone> {
        let body = match opened {
            Some(body) => body,
            None => match self.gateway.open(&self.switch, &self.credentials).await {
                Ok(response) if is_events(response.headers()) => response.into_body(),
                // It has ended by now: LibreChat has forgotten it.
                Ok(response) if is_over(response.status()) => {
                    return self.end(None, End::Seen, out).await;
                }
                // The client finds out, and comes back.
                Ok(_) | Err(_) => return Ok(()),
            },
        };
        self.follow(body, out).await
    }

    async fn follow(&self, mut body: Body, out: &Out) -> Result<(), Gone> {
        let mut frames = Frames::default();
        loop {
            let chunk = tokio::select! {
                frame = body.frame() => match frame {
                    Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
                    Some(Err(_)) | None => return Ok(()),
                },
                () = out.closed() => return Err(Gone),
            };
            let mut ready = Vec::new();
            for event in frames.push(&chunk) {
                match self.splice.event(&event) {
                    Spliced::Same => ready.extend_from_slice(&event.raw()),
                    Spliced::Changed(data) => ready.extend_from_slice(&event.with_data(&data)),
                    Spliced::Nothing => {}
                    Spliced::Final => {
                        send(out, ready.into()).await?;
                        return self.end(Some(&event), End::Seen, out).await;
                    }
                    Spliced::Failed(words) => {
                        send(out, ready.into()).await?;
                        return self.end(None, End::Failed(&words), out).await;
                    }
                }
            }
            send(out, ready.into()).await?;
        }
    }

    /// Gives the client its last event, which shows what is stored by now.
    async fn end(&self, event: Option<&Event>, end: End<'_>, out: &Out) -> Result<(), Gone> {
        let said = event.map(Event::data);
        let read = said
            .as_ref()
            .and_then(|data| FinalEvent::read(data, &self.context.tools));
        // The target may have switched, too: that takes effect with the next message.
        let next = match &read {
            Some(said) => standing(&self.context, said).await,
            None => None,
        };
        if let Err(error) = self.context.end_answer(&self.switch, end).await {
            let error = words(&error);
            tracing::warn!(
                error,
                "a client is shown an answer that is still to be ended"
            );
        }
        let [conversation, messages] = sources(&self.switch.conversation_id);
        let status = status(&self.switch.conversation_id);
        let (conversation, messages, status) = tokio::join!(
            self.gateway.read(&conversation, &self.credentials),
            self.gateway.read(&messages, &self.credentials),
            self.gateway.read(&status, &self.credentials),
        );
        let (Some(conversation), Some(messages)) = (conversation, messages) else {
            return Ok(());
        };
        let end = self
            .splice
            .end(said.as_deref(), &conversation, &messages, status.as_deref());
        let Some(data) = end else {
            return Ok(());
        };
        let Some(read) = FinalEvent::read(&data, &self.context.tools) else {
            return Ok(());
        };
        let (switch, now) = match next {
            Some(standing) => (standing.switch, standing.conversation),
            None => (self.switch.clone(), None),
        };
        let data = name(&self.context, &read, &data, &switch, now.as_ref()).unwrap_or(data);
        let last = [b"event: message\ndata: ", &data[..], b"\n\n"].concat();
        send(out, last.into()).await?;
        // There is room again: it is on its way.
        if out.reserve().await.is_ok() && !read.stopped {
            for told in [&self.switch, &switch] {
                let told = Told::Switch(told.id, told.to_agent.clone());
                note(&self.gateway.ledger, told);
            }
        }
        Ok(())
    }
}

async fn send(out: &Out, bytes: Bytes) -> Result<(), Gone> {
    if bytes.is_empty() {
        return Ok(());
    }
    out.send(bytes).await.map_err(|_| Gone)
}
