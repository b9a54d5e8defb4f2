//! Tests of metrics and traces.

mod metrics;
mod spans;
mod traces;
