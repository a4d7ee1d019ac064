//! A stream of events on its way to the client: bytes pass as they come, a final is settled first.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, Response};
use futures::future::BoxFuture;
use hyper::body::Frame;

use super::finals::{Settled, Told, note, settle};
use super::ledger::Ledger;
use super::same_turn::Turn;
use crate::librechat::sse::{Framer, Piece};

/// Sees to the events of an answer, where it is a stream of them. With a `turn` the target of a
/// switch may answer the message in which it was switched to.
pub(super) fn watch(
    mut response: Response<Body>,
    ledger: &Ledger,
    turn: Option<Turn>,
) -> Response<Body> {
    if !is_events(response.headers()) {
        return response;
    }
    response.headers_mut().remove(CONTENT_LENGTH); // it may become another
    let ledger = ledger.clone();
    response.map(|upstream| Body::new(Events::new(upstream, ledger, turn)))
}

/// Whether the answer is events that can be read.
pub(super) fn is_events(headers: &HeaderMap) -> bool {
    let says = |name, is: fn(&str) -> bool| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(is)
    };
    let is_plain = |encoding: &str| encoding.eq_ignore_ascii_case("identity");
    says(CONTENT_TYPE, |kind| kind.starts_with("text/event-stream")) == Some(true)
        && says(CONTENT_ENCODING, is_plain) != Some(false)
}

struct Events {
    upstream: Body,
    ledger: Ledger,
    turn: Option<Turn>,
    framer: Framer,
    pieces: Vec<Piece>,
    ready: VecDeque<Piece>,
    settling: Option<BoxFuture<'static, Settled>>,
    told: Option<Told>,
    /// What the client reads instead of the rest.
    follow: Option<Body>,
    end: Option<Result<(), axum::Error>>,
}

impl Events {
    fn new(upstream: Body, ledger: Ledger, turn: Option<Turn>) -> Self {
        Self {
            upstream,
            ledger,
            turn,
            framer: Framer::default(),
            pieces: Vec::new(),
            ready: VecDeque::new(),
            settling: None,
            told: None,
            follow: None,
            end: None,
        }
    }

    /// Takes the next frame from LibreChat.
    fn take(&mut self, frame: Option<Result<Frame<Bytes>, axum::Error>>) {
        match frame {
            Some(Ok(frame)) => {
                // Trailers do not pass: they are between two neighbours here.
                if let Ok(chunk) = frame.into_data() {
                    self.framer.push(&chunk, &mut self.pieces);
                    self.ready.extend(self.pieces.drain(..));
                }
            }
            end => {
                self.ready.extend(self.framer.finish().map(Piece::Pass));
                self.end = Some(end.map_or(Ok(()), |frame| frame.map(|_| ())));
            }
        }
    }
}

impl HttpBody for Events {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        // Asked for more: what was given last is on its way.
        if let Some(told) = this.told.take() {
            note(&this.ledger, told);
        }
        loop {
            if let Some(body) = &mut this.follow {
                return Pin::new(body).poll_frame(cx);
            }
            if let Some(settling) = &mut this.settling {
                let settled = ready!(settling.as_mut().poll(cx));
                this.settling = None;
                this.told = settled.told;
                if let Some(body) = settled.then {
                    this.follow = Some(body);
                    continue;
                }
                return Poll::Ready(Some(Ok(Frame::data(settled.bytes))));
            }
            match this.ready.pop_front() {
                Some(Piece::Pass(bytes)) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                Some(Piece::Event(event)) => {
                    let (ledger, turn) = (this.ledger.clone(), this.turn.clone());
                    let settled = async move { settle(&ledger, turn.as_ref(), event).await };
                    this.settling = Some(Box::pin(settled));
                }
                None => match this.end.take() {
                    Some(Ok(())) => {
                        this.end = Some(Ok(()));
                        return Poll::Ready(None);
                    }
                    Some(Err(error)) => {
                        this.end = Some(Ok(()));
                        return Poll::Ready(Some(Err(error)));
                    }
                    None => {
                        let frame = ready!(Pin::new(&mut this.upstream).poll_frame(cx));
                        this.take(frame);
                    }
                },
            }
        }
    }
}
