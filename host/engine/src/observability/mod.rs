//! Observation of the hub: metrics, events, trace spans and the state of the store.

pub mod expiring_questions;
pub mod hub_event_stream;
pub mod hub_events;
pub mod log_span;
pub mod metrics;
pub mod span_export;
pub mod storage_monitor;
