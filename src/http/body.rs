//! Reading a request's body: bounded in size and in time.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::timeout;

use super::error::ApiError;

/// A longer body is refused.
pub(super) const LIMIT: usize = 16 * 1024;

/// So much of a refused body is read and thrown away: a client that is still sending would not
/// read the answer, and a connection closed on it would take the answer away.
const DRAINED: usize = 1024 * 1024;

/// How long a body may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the rest of a refused body may take.
const DRAINING: Duration = Duration::from_secs(2);

/// Reads the whole body before anything else is done about the request, so that a slow client
/// holds nothing but its connection, and whatever is refused later finds the client listening.
pub(crate) async fn buffered(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match timeout(PATIENCE, read(&parts.headers, body)).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(parts, bytes.into())).await,
        Ok(Err(error)) => error.into_response(),
        Err(_) => {
            let message = format!("the body did not arrive within {} s", PATIENCE.as_secs());
            let error = ApiError::new(StatusCode::REQUEST_TIMEOUT, message);
            ([(header::CONNECTION, "close")], error).into_response()
        }
    }
}

async fn read(headers: &HeaderMap, mut body: Body) -> Result<Vec<u8>, ApiError> {
    let too_large = || {
        let message = format!("the body is longer than {LIMIT} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if body.size_hint().lower() > LIMIT as u64 {
        // A client that asks first has not begun to send.
        if !headers.contains_key(header::EXPECT) {
            drain(body).await;
        }
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame
            .map_err(|_| ApiError::new(StatusCode::BAD_REQUEST, "the body could not be read"))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        if bytes.len() + data.len() > LIMIT {
            drain(body).await;
            return Err(too_large());
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}

/// Throws away what is left of a body, within bounds.
pub(super) async fn drain(mut body: Body) {
    let mut left = DRAINED;
    let drained = async {
        while let Some(Ok(frame)) = body.frame().await {
            let Some(data) = frame.data_ref() else {
                continue;
            };
            match left.checked_sub(data.len()) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    };
    // Whoever sends slower than this does not get to read the answer.
    let _ = timeout(DRAINING, drained).await;
}
