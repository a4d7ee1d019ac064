//! `[http]` and `[ops]`: the addresses to listen on, and who may ask how often.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use ::config::Value;
use axum::http::{HeaderValue, Uri};
use ipnet::IpNet;

use super::layers::Layers;
use super::parse;
use super::problem::Complaint;
use super::secret::Secret;

/// `[http]`: the public address.
#[derive(Clone, Debug)]
pub struct Http {
    /// Where users' requests arrive.
    pub listen: SocketAddr,
    /// A path that the routes of the API are under as well; empty or beginning with `/`.
    pub base_path: String,
    /// How often one user, and one address, may ask; `None`: without limit.
    pub rate_limit: Option<RateLimit>,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Web origins whose pages may call.
    pub cors_origins: Vec<HeaderValue>,
}

/// So many requests in a time, and a burst of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// At least one.
    pub requests: u32,
    /// The time.
    pub per: Duration,
    /// At least one.
    pub burst: u32,
}

/// `[ops]`: the address for operators and for LibreChat itself.
#[derive(Clone, Debug)]
pub struct Ops {
    /// Where health and the like are served; `None`: on `http.listen`.
    pub listen: Option<SocketAddr>,
    /// What opens the page `/ops`; `None`: there is none.
    pub token: Option<Secret>,
}

impl Http {
    pub(super) fn read(layers: &mut Layers) -> Self {
        let address = (Ipv4Addr::LOCALHOST, 8787).into();
        let limit = RateLimit {
            requests: 20,
            per: Duration::from_secs(1),
            burst: 200,
        };
        Self {
            listen: layers.or("http.listen", address, parse::address),
            base_path: layers.or("http.base_path", String::new(), base_path),
            rate_limit: layers.or("http.rate_limit", Some(limit), rate_limit),
            trusted_proxies: layers.or("http.trusted_proxies", Vec::new(), networks),
            cors_origins: layers.or("http.cors_origins", Vec::new(), origins),
        }
    }
}

impl Ops {
    pub(super) fn read(layers: &mut Layers, http: &Http) -> Self {
        let listen = layers.optional("ops.listen", parse::address);
        if listen.is_some_and(|listen| listen == http.listen && listen.port() != 0) {
            let found = format!("{} is http.listen too", http.listen);
            let mend = "give another port, or leave it empty to serve both on one";
            layers.complain("ops.listen", Complaint::new(found, mend));
        }
        Self {
            listen,
            token: layers.optional("ops.token", parse::token),
        }
    }
}

/// Plain segments: anything else would be a pattern to the router, or be written in two ways.
fn base_path(value: Value) -> Result<String, Complaint> {
    let text = parse::text(value)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
    let segment = |s: &str| !s.is_empty() && s.chars().all(plain) && s.chars().any(|c| c != '.');
    match text.trim_end_matches('/').strip_prefix('/') {
        Some(rest) if rest.split('/').all(segment) => Ok(format!("/{rest}")),
        _ => Err(Complaint::new(
            format!("{text:?} is no path to put routes under"),
            "give one that begins with / and has letters, digits, - and _ in it, as in \"/baton\"",
        )),
    }
}

/// `20/s burst 200`, `100/m` (a burst of one time's requests), or `off`.
fn rate_limit(value: Value) -> Result<Option<RateLimit>, Complaint> {
    let text = parse::text(value)?;
    if text == "off" {
        return Ok(None);
    }
    let count = |text: &str| {
        text.parse()
            .ok()
            .filter(|count| (1..=1_000_000).contains(count))
    };
    let parsed = || {
        let mut words = text.split_whitespace();
        let (requests, unit) = words.next()?.split_once('/')?;
        let requests = count(requests)?;
        let per = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        };
        let burst = match (words.next(), words.next(), words.next()) {
            (None, ..) => requests,
            (Some("burst"), Some(burst), None) => count(burst)?,
            _ => return None,
        };
        Some(RateLimit {
            requests,
            per: Duration::from_secs(per),
            burst,
        })
    };
    parsed().map(Some).ok_or_else(|| {
        Complaint::new(
            format!("{text:?} is no rate"),
            "give requests per s, m or h and a burst, as in \"20/s burst 200\" or \"100/m\", or \"off\"",
        )
    })
}

/// Addresses and networks.
fn networks(value: Value) -> Result<Vec<IpNet>, Complaint> {
    let network = |text: String| {
        let text = text.trim();
        let one = |address: IpAddr| IpNet::from(address);
        (text.parse::<IpNet>().ok())
            .or_else(|| text.parse().ok().map(one))
            .ok_or_else(|| {
                Complaint::new(
                    format!("{text:?} is no address and no network"),
                    "give IP addresses or networks, as in [\"127.0.0.1\", \"10.0.0.0/8\"]",
                )
            })
    };
    parse::strings(value)?.into_iter().map(network).collect()
}

/// Origins as browsers send them: scheme, host and port, nothing after.
fn origins(value: Value) -> Result<Vec<HeaderValue>, Complaint> {
    let origin = |text: String| {
        let text = text.trim().to_ascii_lowercase();
        let is_origin = text.parse::<Uri>().is_ok_and(|uri| {
            let scheme = uri
                .scheme_str()
                .is_some_and(|s| s == "http" || s == "https");
            let authority = uri.authority().is_some_and(|a| !a.as_str().contains('@'));
            scheme && authority && uri.path() == "/" && !text.ends_with('/')
        });
        HeaderValue::from_str(&text)
            .ok()
            .filter(|_| is_origin)
            .ok_or_else(|| {
                Complaint::new(
                    format!("{text:?} is no origin"),
                    "give scheme, host and port alone, as in [\"https://chat.example.org\"]",
                )
            })
    };
    parse::strings(value)?.into_iter().map(origin).collect()
}
