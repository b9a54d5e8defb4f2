//! Service parameters of a request (A2A 1.0, section 3.2.6). Most bindings transport them in
//! headers; transports without headers put them into the request's metadata.

use crate::{
    codec::members::Members,
    model::{error::A2aError, trace::TraceContext},
};
use serde_json::{Map, Value, json};

/// Service parameter with the client's version of A2A.
pub const VERSION: &str = "a2a-version";

/// Service parameters with the extensions that the client requests: the names in 1.0 and in 0.3.
pub const EXTENSIONS: [&str; 2] = ["a2a-extensions", "x-a2a-extensions"];

/// Name of the object with service parameters, in the metadata of a request and in its response.
pub const MEMBER: &str = "a2a-service-parameters";

/// Service parameters of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceParams {
    /// Version of the client, if it sent one; an empty one means 0.3 (section 3.6.2).
    pub version: Option<String>,
    /// URIs of the extensions that the client requests.
    pub extensions: Vec<String>,
    /// Trace context of the client.
    pub trace: TraceContext,
}

impl ServiceParams {
    /// Reads the service parameters from the metadata in a request's parameters; `None` if absent.
    /// Names are case-insensitive, and unknown ones are ignored.
    pub fn of_metadata(params: &Value) -> Result<Option<Self>, A2aError> {
        let members = params.get("metadata").and_then(|facts| facts.get(MEMBER));
        let Some(members) = members.filter(|given| !given.is_null()) else { return Ok(None) };
        let at = format!("metadata.{MEMBER}");
        let Value::Object(members) = members else {
            return Err(A2aError::invalid(&at, "must be an object"));
        };
        let lower = |(name, value): (&String, &Value)| (name.to_ascii_lowercase(), value.clone());
        let members: Map<_, _> = members.iter().map(lower).collect();
        // Invalid trace values count as absent.
        let trace = TraceContext::of_metadata(Some(&members));
        let mut of = Members::new(Value::Object(members), at)?;
        let version = of.text(VERSION)?;
        let mut extensions = Vec::new();
        for name in EXTENSIONS {
            extensions.extend(listed(of.text(name)?.as_deref().unwrap_or_default()));
        }
        Ok(Some(Self { version, extensions, trace }))
    }
}

/// URIs of a comma-separated list.
pub fn listed(list: &str) -> impl Iterator<Item = String> {
    list.split(',').map(str::trim).filter(|uri| !uri.is_empty()).map(str::to_owned)
}

/// Service parameters of a response, which name the activated extensions; `None` if none is active.
pub fn activated(extensions: &[String]) -> Option<Value> {
    (!extensions.is_empty()).then(|| json!({ "A2A-Extensions": extensions.join(", ") }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_params_are_read_from_metadata() {
        let read =
            |given: Value| ServiceParams::of_metadata(&json!({ "metadata": { MEMBER: given } }));
        let said = read(
            json!({"A2A-Version": "1.0", "a2a-extensions": "urn:a, urn:b,", "X-A2A-Extensions": "urn:c", "other": 1,
                "Traceparent": "00-a", "tracestate": 3}),
        );
        let said = said.unwrap().unwrap();
        assert_eq!(said.version.as_deref(), Some("1.0"));
        assert_eq!(said.extensions, ["urn:a", "urn:b", "urn:c"]);
        let traceparent = Some("00-a".to_owned());
        assert_eq!(said.trace, TraceContext { traceparent, ..TraceContext::default() });
        assert_eq!(read(json!({"A2A-Version": ""})).unwrap().unwrap().version.as_deref(), Some(""));
        assert_eq!(read(Value::Null).unwrap(), None);
        for params in [json!({}), json!({"metadata": 1}), json!({"metadata": null}), json!([])] {
            assert_eq!(ServiceParams::of_metadata(&params).unwrap(), None, "{params}");
        }
        let refused = [read(json!("1.0")), read(json!({"A2A-Version": 1.0}))];
        let refused = refused.map(|why| why.unwrap_err().to_string());
        insta::assert_snapshot!(refused.join("\n"), @r"
        `metadata.a2a-service-parameters`: must be an object
        `metadata.a2a-service-parameters.a2a-version`: must be a string
        ");
    }

    #[test]
    fn response_names_activated_extensions() {
        assert_eq!(activated(&[]), None);
        let both = activated(&["urn:a".to_owned(), "urn:b".to_owned()]);
        assert_eq!(both, Some(json!({ "A2A-Extensions": "urn:a, urn:b" })));
    }
}
