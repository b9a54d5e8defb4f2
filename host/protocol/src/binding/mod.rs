//! Protocol bindings of A2A: JSON-RPC, REST and gRPC (A2A 1.0, sections 9 to 11), and the service
//! parameters of requests.

pub mod grpc;
pub mod jsonrpc;
pub mod rest;
pub mod service_params;
