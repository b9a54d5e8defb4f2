//! Checks that the SDK's bindings match the contract in `wit/`.

use std::{env, fs, path::Path};
use wit_bindgen_core::{Files, WorldGenerator as _, wit_parser::Resolve};
use wit_bindgen_rust::Opts;

/// The bindings are generated once and committed: the generator takes longer to build than the SDK,
/// and each agent would build it.
#[test]
fn bindings_match_the_contract() {
    let xtask = env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let root = Path::new(&xtask).parent().unwrap();
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(root.join("wit")).unwrap();
    let world = resolve.select_world(&[package], Some("plugin")).unwrap();

    let opts = Opts {
        format: false,
        generate_all: true,
        additional_derive_attributes: vec!["PartialEq".into()],
        additional_derive_ignore: vec!["source".into(), "origin".into(), "permission".into()],
        pub_export_macro: true,
        export_macro_name: Some("__export".into()),
        default_bindings_module: Some("a2a_hub_sdk::bindings".into()),
        ..Opts::default()
    };
    let mut files = Files::default();
    opts.build().generate(&mut resolve, world, &mut files).unwrap();
    let (_, made) = files.iter().next().unwrap();

    let kept = root.join("sdk/src/bindings/plugin.in");
    if fs::read(&kept).unwrap_or_default() != made {
        fs::write(&kept, made).unwrap();
        panic!("{} was not made from `wit/` as it is: it is now, commit it", kept.display());
    }
}
