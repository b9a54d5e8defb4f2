//! State of one guest instance (the wasmtime store): resources, limits, host functions and WASI.

pub(super) mod bindings;
pub(super) mod convert;
pub(super) mod http_egress;
pub(super) mod limits;
pub(super) mod linker;
#[cfg(target_os = "linux")]
pub(super) mod openat2;
pub(super) mod redaction;
pub(super) mod replay;
pub(super) mod replay_clock;
pub(super) mod resources;
pub(super) mod state;
pub(super) mod usage;
pub(super) mod wasi_http;
pub(super) mod workspace;
