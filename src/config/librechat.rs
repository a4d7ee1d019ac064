//! `[librechat]`: LibreChat itself.

use std::path::PathBuf;

use ::config::Value;
use axum::http::Uri;

use super::layers::Layers;
use super::parse;
use super::problem::Complaint;

/// `[librechat]`: LibreChat itself.
#[derive(Clone, Debug)]
pub struct LibreChat {
    /// Its base URL, as Baton reaches it.
    pub url: Option<Uri>,
    /// Its `librechat.yaml`. What it says is in [`Settings::specs`](super::Settings::specs).
    pub config: Option<PathBuf>,
}

impl LibreChat {
    pub(super) fn read(layers: &mut Layers) -> Self {
        Self {
            url: layers.optional("librechat.url", url),
            config: layers.optional("librechat.config", path),
        }
    }

    /// Reports that the URL is needed, unless it is there.
    pub(super) fn require_url(&self, layers: &mut Layers, why: &str) {
        if self.url.is_none() {
            layers.require("librechat.url", why, "\"http://127.0.0.1:3080\"");
        }
    }
}

fn url(value: Value) -> Result<Uri, Complaint> {
    let text = parse::text(value)?;
    let usable = |uri: &Uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
            && uri
                .authority()
                .is_some_and(|all| !all.as_str().contains('@'))
            && uri.query().is_none()
    };
    text.parse().ok().filter(usable).ok_or_else(|| {
        // Not quoted: it may hold a password.
        Complaint::new(
            "no URL that can be used",
            "give scheme, host and port, as in \"http://127.0.0.1:3080\"",
        )
    })
}

fn path(value: Value) -> Result<PathBuf, Complaint> {
    parse::string(value).map(PathBuf::from)
}
