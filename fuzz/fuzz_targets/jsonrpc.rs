//! Reading requests: `cargo fuzz run jsonrpc`. Whatever comes, there is an answer.
#![no_main]

use a2a_hub_protocol::{
    id::MAX_ID,
    jsonrpc::{Frame, read},
};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let requests = match read(bytes) {
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
});
