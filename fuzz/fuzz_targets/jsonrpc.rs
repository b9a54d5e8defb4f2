//! Reading requests: `cargo fuzz run jsonrpc`. Whatever comes, there is an answer.
#![no_main]

use a2a_hub_protocol::{
    binding::jsonrpc::{Beside, Frame, read},
    dialect::{Dialect, Version},
    id::MAX_ID,
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for spelled in [Dialect::Hub, Dialect::Official(Version::V1)] {
        let requests = match read(bytes, spelled, Beside::Metadata) {
            Frame::One(request) => vec![*request],
            Frame::Batch(requests) => requests,
        };
        assert!(!requests.is_empty());
        for request in requests {
            if let Some(id) = request.id {
                assert!(
                    id.to_json().to_string().len() <= 6 * MAX_ID + 2,
                    "at worst, each byte is escaped"
                );
            }
        }
    }
});
