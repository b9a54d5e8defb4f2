//! Fuzzes reading JSON-RPC requests: `cargo fuzz run jsonrpc`. Every input must get a response.
#![no_main]

use a2a_hub_protocol::{
    binding::jsonrpc::{Beside, Frame, RequestId},
    dialect::{Dialect, Wire, jsonrpc::read},
    id::MAX_ID,
    interface::{Binding, Version},
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let official = Wire { version: Version::V1, binding: Binding::JsonRpc };
    for spelled in [Dialect::Hub, Dialect::Official(official)] {
        let requests = match read(bytes, spelled, Beside::Metadata) {
            Frame::One(request) => vec![*request],
            Frame::Batch(requests) => requests,
        };
        assert!(!requests.is_empty());
        for request in requests {
            if let Some(RequestId::Text(id)) = request.id {
                assert!(id.len() <= MAX_ID, "it is echoed");
            }
        }
    }
});
