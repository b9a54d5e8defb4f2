//! Health of agents: the schedule of checks and the circuit breaker.

pub mod check_schedule;
pub mod circuit_breaker;
