//! Plug-ins as the operator sees them: manifests, installations, signatures and versions.

pub mod installation;
pub mod manifest;
pub mod manifest_diff;
pub mod missing_grants;
pub mod signature;
pub mod version;
