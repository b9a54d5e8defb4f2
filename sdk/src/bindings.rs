//! Generated from `wit/`: the imports and exports of world `plugin`. Use the crate's own names instead.
#![allow(
    missing_docs,
    unsafe_code,
    unused_qualifications,
    clippy::all,
    reason = "generated code, whose lints differ between targets"
)]

wit_bindgen::generate!({
    world: "plugin",
    path: "../wit",
    generate_all,
    additional_derives: [PartialEq],
    additional_derives_ignore: ["source"],
    pub_export_macro: true,
    export_macro_name: "__export",
    default_bindings_module: "a2a_hub_sdk::bindings",
});
