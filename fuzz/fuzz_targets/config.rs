//! Fuzzes reading the configuration: `cargo fuzz run config`. Invalid input must give an error, not
//! a panic.
#![no_main]

use a2a_hub_config::{Config, Settings};
use std::{env, fs, path::PathBuf, process, sync::LazyLock};

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| env::temp_dir().join(format!("a2a-hub-fuzz-{}.toml", process::id())));

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(why) = toml::from_str::<Config>(text) {
        assert!(!why.to_string().is_empty());
    }
    fs::write(&*FILE, text).expect("there is room for temporary files");
    match Settings::load(Some(FILE.clone()), &[]) {
        Ok(settings) => {
            // A parsed configuration can be written and parsed again.
            let shown = toml::to_string(&settings.config).expect("it can be written as TOML");
            toml::from_str::<Config>(&shown).expect("what was written can be read");
        }
        Err(why) => assert!(!why.to_string().is_empty()),
    }
});
