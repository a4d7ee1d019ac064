//! `[librechat]`: LibreChat itself.

use std::fs::File;
use std::path::PathBuf;

use axum::http::Uri;

use super::layers::Layers;
use super::parse;
use super::problem::Complaint;
use super::value::Value;

/// `[librechat]`: LibreChat itself.
#[derive(Clone, Debug)]
pub struct LibreChat {
    /// Its base URL, as Baton reaches it.
    pub url: Option<Uri>,
    /// Its `librechat.yaml`; the file could be opened.
    pub config: Option<PathBuf>,
}

impl LibreChat {
    pub(super) fn read(layers: &mut Layers) -> Self {
        Self {
            url: layers.optional("librechat.url", url),
            config: layers.optional("librechat.config", readable),
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

fn readable(value: Value) -> Result<PathBuf, Complaint> {
    let path = PathBuf::from(value.string()?);
    let failure = match File::open(&path).and_then(|file| file.metadata()) {
        Ok(metadata) if metadata.is_file() => return Ok(path),
        Ok(_) => "not a file".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Complaint::new(
        format!("cannot read {}: {failure}", path.display()),
        "name LibreChat's librechat.yaml, or leave it empty",
    ))
}
