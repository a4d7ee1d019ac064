//! The headers that change between the client and LibreChat.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use axum::http::{Request, Uri};
use ipnet::IpNet;

const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What is between two neighbours alone (RFC 9110, 7.6.1).
const HOP_BY_HOP: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// What LibreChat alone says, to MCP servers: nobody may say it in its place.
const LIBRECHATS: [HeaderName; 4] = [
    HeaderName::from_static("x-user-id"),
    HeaderName::from_static("x-conversation-id"),
    HeaderName::from_static("x-message-id"),
    HeaderName::from_static("x-parent-message-id"),
];

/// What only a proxy may say that is trusted, beyond what is set here.
const PROXYS: [HeaderName; 4] = [
    FORWARDED,
    HeaderName::from_static("x-real-ip"),
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
];

/// The proxies before Baton whose word on the client counts.
#[derive(Clone, Debug, Default)]
pub struct Trusted(Arc<[IpNet]>);

impl Trusted {
    /// These networks' word counts.
    #[must_use]
    pub fn new(networks: &[IpNet]) -> Self {
        Self(networks.into())
    }

    fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Makes a client's headers those of a request to LibreChat.
pub(super) fn to_upstream<B>(request: &mut Request<B>, peer: SocketAddr, trusted: &Trusted) {
    let host = host(request.uri(), request.headers());
    let headers = request.headers_mut();
    drop_hop_by_hop(headers);
    headers.remove(EXPECT); // answered here
    for name in LIBRECHATS {
        headers.remove(name);
    }
    let client = peer.ip().to_canonical();
    let is_trusted = trusted.contains(client);
    if !is_trusted {
        for name in [FORWARDED_FOR, FORWARDED_HOST, FORWARDED_PROTO]
            .into_iter()
            .chain(PROXYS)
        {
            headers.remove(name);
        }
    }
    let before: Vec<String> = headers
        .get_all(FORWARDED_FOR)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(str::to_owned)
        .chain([client.to_string()])
        .collect();
    if let Ok(value) = HeaderValue::from_str(&before.join(", ")) {
        headers.insert(FORWARDED_FOR, value);
    }
    if let Some(host) = host {
        // LibreChat is to see the name that the browser sees.
        headers.entry(FORWARDED_HOST).or_insert(host.clone());
        headers.insert(HOST, host);
    }
    headers
        .entry(FORWARDED_PROTO)
        .or_insert(HeaderValue::from_static("http"));
}

/// Makes LibreChat's headers those of an answer to the client.
pub(super) fn to_client(headers: &mut HeaderMap) {
    drop_hop_by_hop(headers);
}

/// Events can only be read as they are.
pub(super) fn ask_for_identity<B>(request: &mut Request<B>) {
    let identity = HeaderValue::from_static("identity");
    request.headers_mut().insert(ACCEPT_ENCODING, identity);
}

/// The length of a body that was changed is another.
pub(super) fn set_length(headers: &mut HeaderMap, length: usize) {
    headers.remove(TRANSFER_ENCODING);
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
}

fn host(uri: &Uri, headers: &HeaderMap) -> Option<HeaderValue> {
    // A request in absolute form says it there (RFC 9112, 3.2.2).
    uri.authority()
        .and_then(|authority| HeaderValue::from_str(authority.as_str()).ok())
        .or_else(|| headers.get(HOST).cloned())
}

fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        // A client could have what says who it is taken away.
        .filter(|name| *name != HOST && *name != CONTENT_LENGTH)
        .collect();
    for name in named.into_iter().chain(HOP_BY_HOP) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(peer: &str, trusted: &[&str], given: &[(&str, &str)]) -> HeaderMap {
        let mut request = Request::builder().uri("/");
        for (name, value) in given {
            request = request.header(*name, *value);
        }
        let mut request = request.body(()).unwrap();
        let networks: Vec<IpNet> = trusted.iter().map(|net| net.parse().unwrap()).collect();
        to_upstream(
            &mut request,
            SocketAddr::new(peer.parse().unwrap(), 9),
            &Trusted::new(&networks),
        );
        request.headers().clone()
    }

    #[test]
    fn a_stranger_cannot_say_who_it_is() {
        let headers = upstream(
            "192.0.2.7",
            &["10.0.0.0/8"],
            &[
                ("host", "chat.example"),
                ("x-forwarded-for", "1.2.3.4"),
                ("x-forwarded-proto", "https"),
                ("x-real-ip", "1.2.3.4"),
                ("forwarded", "for=1.2.3.4"),
                ("x-user-id", "someone"),
            ],
        );
        assert_eq!(headers["x-forwarded-for"], "192.0.2.7");
        assert_eq!(headers["x-forwarded-proto"], "http");
        assert_eq!(headers["x-forwarded-host"], "chat.example");
        assert_eq!(headers["host"], "chat.example");
        for name in ["x-real-ip", "forwarded", "x-user-id"] {
            assert!(!headers.contains_key(name), "{name}");
        }
    }

    #[test]
    fn a_trusted_proxy_is_added_to() {
        let headers = upstream(
            "::ffff:10.1.1.1",
            &["10.0.0.0/8"],
            &[
                ("x-forwarded-for", "203.0.113.5"),
                ("x-forwarded-for", "10.2.2.2"),
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "chat.example"),
                ("host", "inside"),
            ],
        );
        assert_eq!(
            headers["x-forwarded-for"],
            "203.0.113.5, 10.2.2.2, 10.1.1.1"
        );
        assert_eq!(headers["x-forwarded-proto"], "https");
        assert_eq!(headers["x-forwarded-host"], "chat.example");
        assert_eq!(headers["host"], "inside");
    }

    #[test]
    fn what_is_between_neighbours_stays_there() {
        let headers = upstream(
            "192.0.2.7",
            &[],
            &[
                ("connection", "keep-alive, X-Mine, host"),
                ("x-mine", "1"),
                ("host", "h"),
                ("te", "trailers"),
                ("proxy-authorization", "secret"),
                ("authorization", "Bearer t"),
                ("cookie", "a=b"),
            ],
        );
        for name in ["connection", "x-mine", "te", "proxy-authorization"] {
            assert!(!headers.contains_key(name), "{name}");
        }
        assert_eq!(headers["authorization"], "Bearer t");
        assert_eq!(headers["cookie"], "a=b");
        assert_eq!(headers["host"], "h");
    }
}
