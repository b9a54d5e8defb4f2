//! What the hub tells of itself to whoever gathers traces.

use serde::{Deserialize, Serialize};

/// `[telemetry]`: what the hub sends to those who watch it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// `[telemetry.otlp]`: spans of tasks, by the OpenTelemetry Protocol.
    pub otlp: Otlp,
}

/// Where the spans of tasks are sent (OTLP over HTTP, in Protobuf).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Otlp {
    /// The URL of the receiver, without `/v1/traces`; without it, nothing is sent.
    pub endpoint: Option<String>,
}

impl Otlp {
    /// Where spans are posted, if anywhere.
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
