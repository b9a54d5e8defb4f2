//! Settings of exported telemetry.

use serde::{Deserialize, Serialize};

/// `[telemetry]`: telemetry that the hub exports.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// `[telemetry.otlp]`: spans of tasks, by the OpenTelemetry Protocol.
    pub otlp: Otlp,
}

/// Receiver of the tasks' spans (OTLP over HTTP, in Protobuf).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Otlp {
    /// URL of the receiver without `/v1/traces`. Without it, nothing is sent.
    pub endpoint: Option<String>,
}

impl Otlp {
    /// URL for posting spans; `None` without a receiver.
    pub fn traces_url(&self) -> Option<String> {
        let endpoint = self.endpoint.as_ref()?;
        Some(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_posted_below_the_endpoint() {
        let otlp = |endpoint: &str| Otlp { endpoint: Some(endpoint.to_owned()) }.traces_url();
        for endpoint in ["http://localhost:4318", "http://localhost:4318/"] {
            assert_eq!(otlp(endpoint).as_deref(), Some("http://localhost:4318/v1/traces"));
        }
        assert_eq!(Otlp::default().traces_url(), None);
    }
}
