//! Fuzzes reading gRPC calls: `cargo fuzz run grpc`. The first byte selects the method, the rest is
//! the message.
#![no_main]

use a2a_hub_protocol::{
    binding::grpc::{GrpcMethod, SERVICES},
    dialect::grpc::read,
    method::Method,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, message)) = bytes.split_first() else { return };
    let method = Method::ALL[usize::from(first >> 1) % Method::ALL.len()].name();
    if let Ok(call) = GrpcMethod::named(SERVICES[usize::from(first & 1)], method) {
        let _ = read(&call, message);
    }
});
