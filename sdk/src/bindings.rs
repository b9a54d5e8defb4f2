//! Imports and exports of world `plugin`, generated from `wit/` by `xtask/tests/bindings.rs`. Use
//! the names of the crate's root instead.
#![allow(
    missing_docs,
    unsafe_code,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "generated code, whose lints differ between targets"
)]

include!("bindings/plugin.in");
