//! Settings of plug-in components: required signatures, and limits of their compilation.

use crate::error::ConfigError;
use a2a_hub_core::plugin::signature::{SignaturePolicy, TrustedKeys};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// `[plugins]`: requirements and limits for loading a component.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plugins {
    /// Signature policy. By default, files of the plugins folder need no signature, and downloads
    /// do.
    pub policy: Option<SignaturePolicy>,
    /// Public keys of minisign that are trusted to sign components, by the operator's names for
    /// them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
    /// CPU time for compiling one component, in milliseconds.
    pub compile_cpu_ms: u64,
    /// Memory for compiling one component, in MiB.
    pub compile_memory_mb: u64,
}

impl Default for Plugins {
    /// A Python agent of 20 MiB, the largest useful one, takes half of this time on a slow machine.
    /// A compiler that is itself not optimised takes several times as long.
    fn default() -> Self {
        let compile_cpu_ms = if cfg!(debug_assertions) { 300_000 } else { 60_000 };
        Self { policy: None, keys: BTreeMap::new(), compile_cpu_ms, compile_memory_mb: 2_048 }
    }
}

impl Plugins {
    /// Signature policy for files in the plugins folder.
    pub fn policy_for_files(&self) -> SignaturePolicy {
        self.policy.unwrap_or(SignaturePolicy::Warn)
    }

    /// Signature policy for downloaded components.
    pub fn policy_for_downloads(&self) -> SignaturePolicy {
        self.policy.unwrap_or(SignaturePolicy::Require)
    }

    /// Keys that are trusted to sign components.
    pub fn trusted_keys(&self) -> Result<TrustedKeys, ConfigError> {
        Ok(TrustedKeys::named(&self.keys)?)
    }

    /// CPU time for compiling a component.
    pub fn compile_cpu(&self) -> Duration {
        Duration::from_millis(self.compile_cpu_ms)
    }

    /// Memory for compiling a component, in bytes.
    pub fn compile_memory(&self) -> u64 {
        self.compile_memory_mb.saturating_mul(1 << 20)
    }
}
