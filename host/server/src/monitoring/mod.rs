//! Endpoints for monitoring: probes and metrics.

pub(super) mod metrics;
pub(super) mod probes;
