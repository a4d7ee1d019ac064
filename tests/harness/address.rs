//! Addresses for servers that are started here.

use std::net::{SocketAddr, TcpListener};

/// A free port of 127.0.0.1, below those that the system gives to outgoing connections, so that a
/// server can have it back after a restart.
pub fn free_address() -> SocketAddr {
    std::iter::repeat_with(|| SocketAddr::from(([127, 0, 0, 1], fastrand::u16(20_000..32_000))))
        .find(|address| TcpListener::bind(address).is_ok())
        .expect("a free port")
}
