//! Reading the configuration: `cargo fuzz run config`. What is wrong is said, not panicked about.
//!
//! The module stands here by itself: the hub around it would take minutes to build with instruments.
#![no_main]

// What the module takes from the sandbox is found here.
extern crate self as a2a_hub_sandbox;

#[allow(dead_code, reason = "only its reading is of interest")]
#[path = "../../host/hub/src/config.rs"]
mod config;

use config::{Config, Settings};
use std::{env, fs, path::PathBuf, process, sync::LazyLock, time::Duration};

/// As in the sandbox.
#[derive(Default)]
pub struct Limits {
    pub memory_bytes: usize,
    pub cpu: Duration,
    pub events: u64,
    pub output_bytes: u64,
    pub log_bytes: u64,
}

/// As in the sandbox.
pub mod engine {
    pub const MAX_MEMORY: usize = 1 << 30;
}

static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| env::temp_dir().join(format!("a2a-hub-fuzz-{}.toml", process::id())));

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(why) = toml::from_str::<Config>(text) {
        assert!(!why.to_string().is_empty());
    }
    fs::write(&*FILE, text).expect("there is room for temporary files");
    match Settings::load(Some(FILE.clone()), &[]) {
        Ok(settings) => {
            // What was read can be shown, and read again.
            let shown = toml::to_string(&settings.config).expect("it can be written as TOML");
            toml::from_str::<Config>(&shown).expect("what was written can be read");
        }
        Err(why) => assert!(!why.to_string().is_empty()),
    }
});
