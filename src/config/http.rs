//! `[http]` and `[ops]`: the addresses to listen on.

use std::net::{Ipv4Addr, SocketAddr};

use super::layers::Layers;
use super::parse;
use super::problem::Complaint;

/// `[http]`: the public address.
#[derive(Clone, Debug)]
pub struct Http {
    /// Where users' requests arrive.
    pub listen: SocketAddr,
}

/// `[ops]`: the address for operators and for LibreChat itself.
#[derive(Clone, Debug)]
pub struct Ops {
    /// Where health and the like are served; `None`: on `http.listen`.
    pub listen: Option<SocketAddr>,
}

impl Http {
    pub(super) fn read(layers: &mut Layers) -> Self {
        let default = (Ipv4Addr::LOCALHOST, 8787).into();
        Self {
            listen: layers.or("http.listen", default, parse::address),
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
        Self { listen }
    }
}
