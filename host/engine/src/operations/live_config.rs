//! The current configuration.

use a2a_hub_config::{Config, Level};
use a2a_hub_core::identity::CertificateFingerprint;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Mutex as AsyncMutex;

/// Reads the configuration as at the hub's start: its file, the environment and the command line.
/// The error is a text for people.
pub type ReadConfig = Arc<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// Sets the hub's log level.
pub type SetLevel = Arc<dyn Fn(Level) + Send + Sync>;

/// The effective configuration, and how to replace it.
pub struct LiveConfig {
    counts: Mutex<Config>,
    pub(super) read: ReadConfig,
    set_level: SetLevel,
    /// Held during a reload: concurrent reloads run one after the other.
    pub(super) turn: AsyncMutex<()>,
}

impl LiveConfig {
    /// Starts with `config`, until another one is read.
    pub fn new(config: Config, read: ReadConfig, set_level: SetLevel) -> Self {
        Self { counts: Mutex::new(config), read, set_level, turn: AsyncMutex::default() }
    }

    /// The effective configuration.
    pub fn now(&self) -> Config {
        self.counts.lock().clone()
    }

    /// Fingerprints of client certificates that are refused.
    pub fn denied_certificates(&self) -> Vec<CertificateFingerprint> {
        self.counts.lock().tls.denied.clone()
    }

    pub(super) fn set(&self, config: Config) {
        (self.set_level)(config.logging.level);
        *self.counts.lock() = config;
    }
}
