//! The official A2A bindings: REST, gRPC, agent cards, their keys, the registry, and ARD.

pub(super) mod ard;
pub(super) mod cards;
pub(super) mod grpc;
pub(super) mod jwks;
pub(super) mod registry;
pub(super) mod rest;
