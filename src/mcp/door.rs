//! Who may ask: `POST /mcp` alone, with the token, under a name that is this server's.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header, uri::Authority};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::post_service;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use super::board::Slot;
use super::server::Server;
use crate::config::{Mcp, Secret};
use crate::http::error;

/// More than this no call of these tools has, in bytes.
const BODY: usize = 64 * 1024;

/// Names in which a cluster or a container's host ends; no page of the internet has them.
const PRIVATE: [&str; 4] = [".svc", ".local", ".internal", ".localhost"];

/// What a request has to show.
struct Door {
    token: Secret,
    hosts: Vec<Authority>,
}

/// The route `/mcp`. Without a token there is none. `same_turn`: the target of a switch answers
/// the message in which it is switched to.
pub fn router(settings: &Mcp, slot: Slot, same_turn: bool) -> Router {
    let Some(token) = &settings.token else {
        return Router::new();
    };
    let hosts = settings.allowed_hosts.iter();
    let door = Arc::new(Door {
        token: token.clone(),
        hosts: hosts.filter_map(|host| host.parse().ok()).collect(),
    });
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(None)
        // The names are checked at the door, which also knows those of clusters.
        .disable_allowed_hosts()
        .enforce_origin_validation()
        // Its token stays as it is: cancelled, it would turn calls under way into 500.
        .with_max_request_body_bytes(BODY);
    let server = Server::new(slot, &settings.server, same_turn);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    // Any other method is 405 before anybody asks for a token: LibreChat tries HEAD and GET first,
    // and takes a 401 for OAuth.
    let methods = post_service(service).route_layer(from_fn_with_state(door, enter));
    Router::new().route("/mcp", methods)
}

async fn enter(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if !door.is_ours(headers) {
        let message = "mcp.allowed_hosts does not have this Host";
        return error(StatusCode::FORBIDDEN, message);
    }
    if !door.knows(headers) {
        let message = "mcp.token is needed, as in Authorization: Bearer <token>";
        return error(StatusCode::UNAUTHORIZED, message);
    }
    next.run(request).await
}

impl Door {
    fn knows(&self, headers: &HeaderMap) -> bool {
        let shown = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim());
        shown.is_some_and(|shown| self.token.is(shown))
    }

    /// Whether the name is ours, so that a page whose name is made to lead here is refused.
    fn is_ours(&self, headers: &HeaderMap) -> bool {
        let host = headers
            .get(header::HOST)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.parse::<Authority>().ok());
        let Some(host) = host else {
            return false;
        };
        let name = host.host().trim_matches(['[', ']']).to_ascii_lowercase();
        let listed = |known: &Authority| {
            known.host().eq_ignore_ascii_case(host.host())
                && known
                    .port_u16()
                    .is_none_or(|port| host.port_u16() == Some(port))
        };
        let address = name.parse::<IpAddr>().ok();
        if name == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return true;
        }
        if !self.hosts.is_empty() {
            return self.hosts.iter().any(listed);
        }
        address.is_some() || !name.contains('.') || PRIVATE.iter().any(|end| name.ends_with(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(hosts: &[&str]) -> Door {
        Door {
            token: "0123456789abcdef0123456789abcdef".into(),
            hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
        }
    }

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        [(name, value.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn only_the_token_opens() {
        let knows = |value: &str| door(&[]).knows(&with(header::AUTHORIZATION, value));
        assert!(knows("Bearer 0123456789abcdef0123456789abcdef"));
        assert!(knows("bearer  0123456789abcdef0123456789abcdef"));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcdef0123456789abcdeF",
            "Basic x",
        ] {
            assert!(!knows(wrong), "{wrong}");
        }
        assert!(!door(&[]).knows(&HeaderMap::new()));
    }

    #[test]
    fn names_of_containers_and_clusters_are_ours() {
        let ours = |host: &str| door(&[]).is_ours(&with(header::HOST, host));
        for host in [
            "localhost:8787",
            "127.0.0.1",
            "[::1]:8787",
            "baton:8787",
            "baton",
            "10.0.0.7:80",
            "baton.chat.svc.cluster.local:8787",
            "baton.chat.svc",
            "host.docker.internal",
        ] {
            assert!(ours(host), "{host}");
        }
        for host in ["example.org", "baton.example.org:8787", "", "a b"] {
            assert!(!ours(host), "{host}");
        }
        assert!(!door(&[]).is_ours(&HeaderMap::new()));
    }

    #[test]
    fn a_list_leaves_no_other_name() {
        let ours = |host: &str| {
            door(&["baton.example.org", "other:81"]).is_ours(&with(header::HOST, host))
        };
        for host in [
            "Baton.example.org:8787",
            "baton.example.org",
            "other:81",
            "localhost",
        ] {
            assert!(ours(host), "{host}");
        }
        for host in ["baton:8787", "other:82", "other", "10.0.0.7"] {
            assert!(!ours(host), "{host}");
        }
    }
}
