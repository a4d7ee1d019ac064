//! Where a request comes from.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::extract::connect_info::ConnectInfo;
use axum::http::{Extensions, HeaderMap};
use ipnet::IpNet;

const FORWARDED_FOR: &str = "x-forwarded-for";

/// The client's address: the peer's, or where the peer is a trusted proxy, the one that it names.
///
/// `X-Forwarded-For` is read from its end, where the proxy nearest to us has written; what stands
/// before the first address that is no trusted proxy may be anybody's invention.
pub(crate) fn client(extensions: &Extensions, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let peer = extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |info| info.0.ip());
    let mut client = peer.to_canonical();
    let named = headers.get_all(FORWARDED_FOR).iter();
    let named: Vec<&str> = named
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    for name in named.iter().rev() {
        if !trusted.iter().any(|net| net.contains(&client)) {
            break;
        }
        match parse(name.trim()) {
            Some(address) => client = address,
            None => break,
        }
    }
    client
}

/// What a client is told apart by: of IPv6 the network, of which a home has 2^64 addresses.
pub(crate) fn told_apart(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => {
            let mut octets = address.octets();
            octets[8..].fill(0);
            IpAddr::V6(octets.into())
        }
    }
}

/// Some proxies add the port.
fn parse(name: &str) -> Option<IpAddr> {
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let address = bare
        .parse::<IpAddr>()
        .ok()
        .or_else(|| Some(name.parse::<SocketAddr>().ok()?.ip()))?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(peer: &str, forwarded: &[&'static str], trusted: &[&str]) -> String {
        let mut extensions = Extensions::new();
        let peer: IpAddr = peer.parse().unwrap();
        extensions.insert(ConnectInfo(SocketAddr::new(peer, 9)));
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(FORWARDED_FOR, value.parse().unwrap());
        }
        let trusted: Vec<IpNet> = trusted.iter().map(|net| net.parse().unwrap()).collect();
        client(&extensions, &headers, &trusted).to_string()
    }

    #[test]
    fn nobody_but_a_trusted_proxy_names_another() {
        assert_eq!(seen("192.0.2.1", &["198.51.100.7"], &[]), "192.0.2.1");
        let trusted = ["192.0.2.0/24"];
        assert_eq!(
            seen("203.0.113.1", &["198.51.100.7"], &trusted),
            "203.0.113.1"
        );
        assert_eq!(
            seen("192.0.2.1", &["198.51.100.7"], &trusted),
            "198.51.100.7"
        );
        assert_eq!(seen("192.0.2.1", &[], &trusted), "192.0.2.1");
    }

    #[test]
    fn what_the_client_itself_has_written_does_not_count() {
        let trusted = ["192.0.2.0/24"];
        let chain = ["6.6.6.6, 198.51.100.7, 192.0.2.9"];
        assert_eq!(seen("192.0.2.1", &chain, &trusted), "198.51.100.7");
        let lines = ["6.6.6.6", "198.51.100.7"];
        assert_eq!(seen("192.0.2.1", &lines, &trusted), "198.51.100.7");
        assert_eq!(
            seen("192.0.2.1", &["6.6.6.6, nonsense"], &trusted),
            "192.0.2.1"
        );
    }

    #[test]
    fn ports_and_both_families_are_understood() {
        let trusted = ["::1/128", "127.0.0.0/8"];
        assert_eq!(seen("::1", &["[2001:db8::1]:443"], &trusted), "2001:db8::1");
        assert_eq!(seen("::1", &["198.51.100.7:80"], &trusted), "198.51.100.7");
        assert_eq!(
            seen("::ffff:127.0.0.1", &["198.51.100.7"], &trusted),
            "198.51.100.7"
        );
    }

    #[test]
    fn a_home_of_ipv6_is_one_client() {
        let [a, b] = ["2001:db8::1", "2001:db8::2:3"].map(|a| told_apart(a.parse().unwrap()));
        assert_eq!(a, b);
    }
}
