//! Health reports: the agent's ability to work now, and the command that repairs it.

use crate::{Health, HealthStatus};

impl Health {
    /// Reports that work would succeed.
    pub fn healthy() -> Self {
        Self { status: HealthStatus::Healthy, version: None, detail: None, fix: None }
    }

    /// Reports that the agent works, with something missing.
    pub fn degraded(detail: impl Into<String>) -> Self {
        Self { status: HealthStatus::Degraded, detail: Some(detail.into()), ..Self::healthy() }
    }

    /// Reports that work would fail.
    pub fn unhealthy(detail: impl Into<String>) -> Self {
        Self { status: HealthStatus::Unhealthy, detail: Some(detail.into()), ..Self::healthy() }
    }

    /// Sets the version of the program that does the work.
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the command that repairs the agent.
    #[must_use]
    pub fn with_fix(mut self, command: impl Into<String>) -> Self {
        self.fix = Some(command.into());
        self
    }
}
