//! Concurrency limits of health checks.

use tokio::sync::Semaphore;

/// Semaphores for concurrent health checks (bulkhead): any number of unapproved plug-ins delays no
/// other agent.
pub(crate) struct HealthCheckPermits {
    /// For approved agents: each check may start a program.
    pub(super) others: Semaphore,
    /// For unapproved plug-ins: their checks wait for nothing and have a short deadline.
    pub(super) strangers: Semaphore,
}

impl Default for HealthCheckPermits {
    fn default() -> Self {
        Self { others: Semaphore::new(4), strangers: Semaphore::new(8) }
    }
}
