//! The official A2A bindings: REST, gRPC, agent cards, their keys and the registry.

pub(super) mod cards;
pub(super) mod grpc;
pub(super) mod jwks;
pub(super) mod registry;
pub(super) mod rest;
