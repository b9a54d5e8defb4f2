//! Tests of agents that work together: delegation, flows, routing, context memory, other hubs.

mod best;
mod decisions;
mod delegation;
mod elsewhere;
mod finding;
mod flows;
mod forest;
mod minds;
mod patterns;
mod remotes;
mod routing;
mod topics;
