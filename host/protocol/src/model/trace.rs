//! The trace that whoever speaks is in: the names and values of W3C Trace Context, and of the Local Hub's own headers, as they
//! were said. What they mean, and which of them make sense, `core::trace` knows.

use crate::model::message::Metadata;
use serde_json::Value;

/// The trace and the span that whoever speaks is in (W3C Trace Context, section 3.2).
pub const TRACEPARENT: &str = "traceparent";

/// What the tracing systems on the way want to be handed on (W3C Trace Context, section 3.3).
pub const TRACESTATE: &str = "tracestate";

/// The workflow: what a client calls a piece of work of several tasks, or the id of the task at the root of the tree.
pub const WORKFLOW: &str = "x-workflow-id";

/// The span of whoever speaks: in a task, that of the task.
pub const SPAN: &str = "x-span-id";

/// The span that this one is part of.
pub const PARENT_SPAN: &str = "x-parent-span-id";

/// The names under which it is said, in headers and in metadata alike.
pub const NAMES: [&str; 5] = [TRACEPARENT, TRACESTATE, WORKFLOW, SPAN, PARENT_SPAN];

/// What was said of a trace, in headers or in metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext {
    /// [`TRACEPARENT`].
    pub traceparent: Option<String>,
    /// [`TRACESTATE`], a list with commas between its members.
    pub tracestate: Option<String>,
    /// [`WORKFLOW`].
    pub workflow: Option<String>,
    /// [`SPAN`].
    pub span: Option<String>,
    /// [`PARENT_SPAN`].
    pub parent_span: Option<String>,
}

impl TraceContext {
    /// What is said under each of the [`NAMES`].
    pub fn read(said: impl Fn(&str) -> Option<String>) -> Self {
        Self {
            traceparent: said(TRACEPARENT),
            tracestate: said(TRACESTATE),
            workflow: said(WORKFLOW),
            span: said(SPAN),
            parent_span: said(PARENT_SPAN),
        }
    }

    /// What is said in metadata; what is no text is not said.
    pub fn of_metadata(facts: Option<&Metadata>) -> Self {
        Self::read(|name| facts?.get(name).and_then(Value::as_str).map(str::to_owned))
    }

    /// What is said, under its names.
    pub fn said(&self) -> impl Iterator<Item = (&'static str, &str)> {
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
    fn what_is_read_under_a_name_is_said_under_it() {
        let facts: Metadata =
            NAMES.into_iter().map(|name| (name.to_owned(), json!(format!("of {name}")))).collect();
        let read = TraceContext::of_metadata(Some(&facts));
        let said: Vec<_> = read.said().collect();
        assert_eq!(said.len(), NAMES.len());
        for (name, value) in said {
            assert_eq!(value, format!("of {name}"));
        }
        let numbers: Metadata = NAMES.into_iter().map(|name| (name.to_owned(), json!(1))).collect();
        assert_eq!(TraceContext::of_metadata(Some(&numbers)), TraceContext::default());
        assert_eq!(TraceContext::of_metadata(None), TraceContext::default());
    }
}
