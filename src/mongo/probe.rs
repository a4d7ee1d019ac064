//! What a MongoDB says of itself to anyone who asks.

use std::time::Duration;

use mongodb::Client;
use mongodb::bson::{Document, doc};
use mongodb::error::Result;
use mongodb::options::{ClientOptions, ServerAddress};

/// How long a server may take to answer. Between machines of one deployment this is much.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A server as it presents itself, without a login, so that a wrong password hides nothing.
pub struct Found {
    /// Where it is.
    pub address: ServerAddress,
    /// Its answer to `hello`.
    pub hello: Document,
}

impl Found {
    /// Asks one of the servers of the URI, whatever set it belongs to.
    ///
    /// # Errors
    ///
    /// It does not answer, or not as MongoDB does.
    pub async fn at(options: &ClientOptions, address: ServerAddress) -> Result<Self> {
        let mut options = options.clone();
        options.hosts = vec![address.clone()];
        options.direct_connection = Some(true);
        options.repl_set_name = None;
        options.load_balanced = None;
        options.srv_max_hosts = None;
        options.credential = None;
        options.connect_timeout = Some(PATIENCE);
        options.server_selection_timeout = Some(PATIENCE);
        let admin = Client::with_options(options)?.database("admin");
        let hello = admin.run_command(doc! { "hello": 1 }).await?;
        Ok(Self { address, hello })
    }

    /// The name of its replica set.
    #[must_use]
    pub fn set_name(&self) -> Option<&str> {
        self.hello.get_str("setName").ok()
    }

    /// Whether it belongs to a replica set.
    #[must_use]
    pub fn is_replica_set(&self) -> bool {
        self.set_name().is_some()
    }

    /// Whether it is the router of a sharded cluster.
    #[must_use]
    pub fn is_router(&self) -> bool {
        self.hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid")
    }

    /// Whether it has an oplog, which change streams are made from.
    #[must_use]
    pub fn has_streams(&self) -> bool {
        self.is_replica_set() || self.is_router()
    }
}
