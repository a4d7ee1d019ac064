//! `[metrics]`: numbers for Prometheus.

use super::layers::Layers;
use super::parse;
use super::secret::Secret;

/// `[metrics]`: numbers for Prometheus.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// What a scraper has to show; `None`: nothing is served.
    pub token: Option<Secret>,
}

impl Metrics {
    pub(super) fn read(layers: &mut Layers) -> Self {
        Self {
            token: layers.optional("metrics.token", parse::secret),
        }
    }
}
