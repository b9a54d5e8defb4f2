//! Health reports: whether work would succeed now, and the command that would mend it.

use crate::{Health, HealthStatus};

impl Health {
    /// Work would succeed.
    pub fn healthy() -> Self {
        Self { status: HealthStatus::Healthy, version: None, detail: None, fix: None }
    }

    /// It runs, but something is missing.
    pub fn degraded(detail: impl Into<String>) -> Self {
        Self { status: HealthStatus::Degraded, detail: Some(detail.into()), ..Self::healthy() }
    }

    /// Work would fail.
    pub fn unhealthy(detail: impl Into<String>) -> Self {
        Self { status: HealthStatus::Unhealthy, detail: Some(detail.into()), ..Self::healthy() }
    }

    /// The version of what does the work.
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The command that mends it.
    #[must_use]
    pub fn with_fix(mut self, command: impl Into<String>) -> Self {
        self.fix = Some(command.into());
        self
    }
}
