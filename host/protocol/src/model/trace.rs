//! Trace context of a sender: the raw values of W3C Trace Context and of the Local Hub's headers.
//! `core::trace` validates and interprets them.

use crate::model::message::Metadata;
use serde_json::Value;

/// Trace id and span id of the sender (W3C Trace Context, section 3.2).
pub const TRACEPARENT: &str = "traceparent";

/// Vendor-specific data of the tracing systems (W3C Trace Context, section 3.3).
pub const TRACESTATE: &str = "tracestate";

/// Workflow: a client's name for several related tasks, or the id of the tree's root task.
pub const WORKFLOW: &str = "x-workflow-id";

/// Span of the sender; in a task, the task's span.
pub const SPAN: &str = "x-span-id";

/// Parent of the sender's span.
pub const PARENT_SPAN: &str = "x-parent-span-id";

/// Names of the values, the same in headers and in metadata.
pub const NAMES: [&str; 5] = [TRACEPARENT, TRACESTATE, WORKFLOW, SPAN, PARENT_SPAN];

/// Raw trace values from headers or metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// Value of [`TRACEPARENT`].
    pub traceparent: Option<String>,
    /// Value of [`TRACESTATE`], a comma-separated list.
    pub tracestate: Option<String>,
    /// Value of [`WORKFLOW`].
    pub workflow: Option<String>,
    /// Value of [`SPAN`].
    pub span: Option<String>,
    /// Value of [`PARENT_SPAN`].
    pub parent_span: Option<String>,
}

impl TraceContext {
    /// Reads the values of all [`NAMES`] with a lookup function.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Self {
        Self {
            traceparent: lookup(TRACEPARENT),
            tracestate: lookup(TRACESTATE),
            workflow: lookup(WORKFLOW),
            span: lookup(SPAN),
            parent_span: lookup(PARENT_SPAN),
        }
    }

    /// Reads the values from metadata, ignoring those that are not strings.
    pub fn of_metadata(facts: Option<&Metadata>) -> Self {
        Self::read(|name| facts?.get(name).and_then(Value::as_str).map(str::to_owned))
    }

    /// Yields the present values with their names.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let Self { traceparent, tracestate, workflow, span, parent_span } = self;
        let values = [traceparent, tracestate, workflow, span, parent_span];
        NAMES.into_iter().zip(values).filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn trace_values_round_trip_by_name() {
        let facts: Metadata =
            NAMES.into_iter().map(|name| (name.to_owned(), json!(format!("of {name}")))).collect();
        let read = TraceContext::of_metadata(Some(&facts));
        let said: Vec<_> = read.entries().collect();
        assert_eq!(said.len(), NAMES.len());
        for (name, value) in said {
            assert_eq!(value, format!("of {name}"));
        }
        let numbers: Metadata = NAMES.into_iter().map(|name| (name.to_owned(), json!(1))).collect();
        assert_eq!(TraceContext::of_metadata(Some(&numbers)), TraceContext::default());
        assert_eq!(TraceContext::of_metadata(None), TraceContext::default());
    }
}
