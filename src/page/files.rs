//! The files of the page, as they are in the program.

use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::digest;
use crate::http::ApiError;

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! files {
    ($($name:literal: $kind:expr),+ $(,)?) => {
        [$(($name, $kind, include_str!(concat!("web/", $name)))),+]
    };
}

const FILES: [(&str, &str, &str); 11] = files! {
    "page.css": CSS,
    "icon.svg": SVG,
    "login.js": SCRIPT,
    "page.js": SCRIPT,
    "dom.js": SCRIPT,
    "words.js": SCRIPT,
    "vitals.js": SCRIPT,
    "bars.js": SCRIPT,
    "flows.js": SCRIPT,
    "layout.js": SCRIPT,
    "switches.js": SCRIPT,
};

/// `GET /ops/{file}`. There is nothing in them that anybody may not see.
pub(super) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some((_, kind, text)) = FILES.iter().find(|(known, ..)| *known == name) else {
        return ApiError::new(StatusCode::NOT_FOUND, "no such path").into_response();
    };
    let tag = format!("\"{}\"", digest::hex([text.as_bytes()], 16));
    let is_known = headers
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let Ok(tag) = HeaderValue::from_str(&tag) else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "").into_response();
    };
    let kept = [
        (header::ETAG, tag),
        // Kept, and asked for again each time: another version has others under the same names.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    if is_known {
        (StatusCode::NOT_MODIFIED, kept).into_response()
    } else {
        let kind = [(header::CONTENT_TYPE, *kind)];
        (kept, kind, *text).into_response()
    }
}
