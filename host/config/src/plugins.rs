//! Where components come from that are not built in, and what they may cost until they are loaded.

use crate::error::ConfigError;
use a2a_hub_core::signature::{SignaturePolicy, TrustedKeys};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// `[plugins]`: what a component must show, and may cost, until it is an agent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plugins {
    /// What is asked of signatures. Unless said, a file of the plugins folder need have none, and what is fetched from elsewhere
    /// must.
    pub policy: Option<SignaturePolicy>,
    /// The keys that components are signed with, by the names that the operator gives them: public keys of minisign.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
    /// How much time on the processor it may take to compile one, in milliseconds.
    pub compile_cpu_ms: u64,
    /// How much memory compiling one may take, in MiB.
    pub compile_memory_mb: u64,
}

impl Default for Plugins {
    /// A Python agent of 20 MiB, the largest that is of any use, takes half of the time on a slow machine. A compiler that is not
    /// optimised itself takes several times as long.
    fn default() -> Self {
        let compile_cpu_ms = if cfg!(debug_assertions) { 300_000 } else { 60_000 };
        Self { policy: None, keys: BTreeMap::new(), compile_cpu_ms, compile_memory_mb: 2_048 }
    }
}

impl Plugins {
    /// What is asked of the signature of a file that somebody put into the plugins folder.
    pub fn policy_for_files(&self) -> SignaturePolicy {
        self.policy.unwrap_or(SignaturePolicy::Warn)
    }

    /// What is asked of the signature of a component that is fetched from elsewhere.
    pub fn policy_for_downloads(&self) -> SignaturePolicy {
        self.policy.unwrap_or(SignaturePolicy::Require)
    }

    /// The keys that are trusted to sign components.
    pub fn trusted_keys(&self) -> Result<TrustedKeys, ConfigError> {
        Ok(TrustedKeys::named(&self.keys)?)
    }

    /// How much time on the processor it may take to compile a component.
    pub fn compile_cpu(&self) -> Duration {
        Duration::from_millis(self.compile_cpu_ms)
    }

    /// How many bytes of memory compiling a component may take.
    pub fn compile_memory(&self) -> u64 {
        self.compile_memory_mb.saturating_mul(1 << 20)
    }
}
