//! Signers of files in the plugins folder: the detached signature `x.wasm.minisig` next to `x.wasm`
//! is read with the same checks.

use super::file_error::FileError;
use a2a_hub_config::Plugins;
use a2a_hub_core::plugin::signature::{Provenance, SignaturePolicy, Untrusted};
use std::path::{Path, PathBuf};

/// Suffix of a signature file's name.
pub(in crate::registry) const ENDING: &str = ".minisig";

/// Path of a component's signature file, whether or not it exists.
pub fn signature_path(component: &Path) -> PathBuf {
    let mut path = component.as_os_str().to_owned();
    path.push(ENDING);
    path.into()
}

/// Verifies a component's signature against the operator's policy and returns its signer. Hashes
/// the component, so it blocks.
pub(in crate::registry) fn admit(
    component: &[u8],
    signature: Option<&[u8]>,
    plugins: &Plugins,
) -> Result<Provenance, FileError> {
    let policy = plugins.policy_for_files();
    if policy == SignaturePolicy::Off {
        return Ok(Provenance::Unsigned);
    }
    let signature = signature
        .map(|bytes| str::from_utf8(bytes).map_err(|_| Untrusted::Unreadable("it is not text")));
    let keys = plugins.trusted_keys()?;
    let provenance = keys.provenance(component, signature.transpose()?);
    policy.admit(&provenance)?;
    if provenance.signer().is_none() && (plugins.policy.is_some() || !plugins.keys.is_empty()) {
        tracing::warn!("plugin joins without a signature of any of `plugins.keys`");
    }
    Ok(provenance)
}
