//! Rates of the hub as ratios to a baseline server's in the same run, and the accepted ones.
//! Figures of different runs are not comparable, their ratios are.

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// Minimum of a ratio, as a part of the accepted one, to allow for noise of the machine.
const LEAST: f64 = 0.85;

/// Ratios by the compared work.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Ratios(BTreeMap<String, f64>);

/// Accepted ratios by mode of measurement.
type Accepted = BTreeMap<String, Ratios>;

impl Ratios {
    pub(crate) fn insert(&mut self, title: String, ratio: f64) {
        self.0.insert(title, ratio);
    }

    /// Accepted ratios of a mode.
    pub(crate) fn accepted(mode: &str) -> Result<Self> {
        let accepted = read()?;
        let known = accepted.get(mode).cloned();
        known.with_context(|| format!("nothing is accepted for `{mode}` yet: run it with --accept"))
    }

    /// Stores these ratios as the accepted ones.
    pub(crate) fn accept(&self, mode: &str) -> Result<()> {
        let mut accepted = read()?;
        let round = |ratio: &f64| (ratio * 1000.0).round() / 1000.0;
        let rounded = self.0.iter().map(|(title, ratio)| (title.clone(), round(ratio)));
        accepted.insert(mode.to_owned(), Self(rounded.collect()));
        let mut text = serde_json::to_string_pretty(&accepted)?;
        text.push('\n');
        let file = file();
        fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))?;
        println!("\naccepted, in {}", file.display());
        Ok(())
    }

    /// Fails if a ratio of `now` is too far below the accepted one.
    pub(crate) fn check(&self, now: &Self) -> Result<()> {
        println!("\n{:<58}{:>10}{:>10}", "ratio to bare + disk", "accepted", "now");
        let mut worse = Vec::new();
        for (title, accepted) in &self.0 {
            let now = *now.0.get(title).with_context(|| format!("`{title}` was not raced"))?;
            let is_worse = now < accepted * LEAST;
            let mark = if is_worse { "  worse" } else { "" };
            println!("{title:<58}{accepted:>10.3}{now:>10.3}{mark}");
            worse.extend(is_worse.then_some(title.as_str()));
        }
        ensure!(
            worse.is_empty(),
            "more than 15 % below what was accepted: {}; measure again with nothing else to do, and profile with --profile",
            worse.join("; ")
        );
        Ok(())
    }
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("bench/accepted.json")
}

fn read() -> Result<Accepted> {
    let file = file();
    match fs::read(&file) {
        Ok(text) => {
            serde_json::from_slice(&text).with_context(|| format!("{} is damaged", file.display()))
        }
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => Ok(Accepted::default()),
        Err(why) => Err(why).with_context(|| format!("failed to read {}", file.display())),
    }
}
