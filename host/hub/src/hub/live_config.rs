//! The configuration as it is now.

use a2a_hub_config::{Config, Level};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Mutex as AsyncMutex;

/// Reads the configuration as the hub was started with it: its file, the environment and the command line. Why it cannot be
/// read is told for people.
pub type ReadConfig = Arc<dyn Fn() -> Result<Config, String> + Send + Sync>;

/// Has the hub log from this level on.
pub type SetLevel = Arc<dyn Fn(Level) + Send + Sync>;

/// The configuration that counts, and the way to another one.
pub struct LiveConfig {
    counts: Mutex<Config>,
    pub(super) read: ReadConfig,
    set_level: SetLevel,
    /// Held while another one is followed: those who ask at once are served one after the other.
    pub(super) turn: AsyncMutex<()>,
}

impl LiveConfig {
    /// `config` counts until another one is read.
    pub fn new(config: Config, read: ReadConfig, set_level: SetLevel) -> Self {
        Self { counts: Mutex::new(config), read, set_level, turn: AsyncMutex::default() }
    }

    /// The configuration that counts now.
    pub fn now(&self) -> Config {
        self.counts.lock().clone()
    }

    pub(super) fn set(&self, config: Config) {
        (self.set_level)(config.logging.level);
        *self.counts.lock() = config;
    }
}
