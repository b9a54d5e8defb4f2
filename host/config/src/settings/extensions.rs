//! Settings of extensions of A2A that the hub offers beside those of its agents.

use serde::{Deserialize, Serialize};

/// `[extensions]`: extensions that follow drafts, and may change with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExtensionSettings {
    /// True if the hub offers the generations of tasks.
    pub generation: bool,
}
