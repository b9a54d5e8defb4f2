//! Fuzzes reading REST requests: `cargo fuzz run rest`. The first line is the path and the query,
//! the rest is the body.
#![no_main]

use a2a_hub_protocol::{binding::rest::Verb, dialect::rest::read};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (target, body) = bytes.split_at(end);
    let target = String::from_utf8_lossy(target);
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    for verb in [Verb::Get, Verb::Post, Verb::Delete] {
        let _ = read(verb, path, Some(query), body);
    }
});
