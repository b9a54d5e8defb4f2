//! Reading the configuration: `cargo fuzz run config --features hub`. What is wrong is said, not panicked about.
#![no_main]

use a2a_hub::config::Config;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Err(why) = toml::from_str::<Config>(text) {
        assert!(!why.to_string().is_empty());
    }
});
