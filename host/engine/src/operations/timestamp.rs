//! Timestamps in client requests.

use a2a_hub_clock as clock;
use a2a_hub_protocol::error::A2aError;

/// Converts a client's timestamp to the store's format.
pub(super) fn moment(field: &str, timestamp: Option<String>) -> Result<Option<String>, A2aError> {
    let written = |timestamp: String| {
        let why = "must be a time in RFC 3339, such as `2026-01-31T12:00:00Z`";
        clock::canonical(&timestamp).ok_or_else(|| A2aError::invalid(field, why))
    };
    timestamp.map(written).transpose()
}
