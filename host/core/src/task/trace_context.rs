//! Trace context of a task: the trace and span of W3C Trace Context, and the workflow, as members
//! of the metadata of messages and tasks.
//!
//! Nothing is random: the span of a task, and a new trace's id, are derived from the task's id, so
//! they can be computed from that id at any time, also after a restart. If a client's message names
//! a trace, the task is a span of that trace.

use a2a_hub_protocol::{
    event::Created,
    id::{MAX_ID, TaskId},
    message::{Message, Metadata},
    trace::{NAMES, PARENT_SPAN, SPAN, TRACEPARENT, TRACESTATE, TraceContext, WORKFLOW},
};

/// Metadata member with the parent task.
pub const PARENT_TASK: &str = "parentTaskId";

/// Members of a task's metadata that only the hub writes.
pub const MEMBERS: [&str; 6] = [TRACEPARENT, TRACESTATE, WORKFLOW, SPAN, PARENT_SPAN, PARENT_TASK];

/// Trace flags with a defined meaning: sampled, and random trace id (W3C Trace Context Level 2,
/// section 3.2.2.5).
const KNOWN_FLAGS: u8 = 0b11;

/// Maximum number of `tracestate` members (W3C Trace Context, section 3.3.1.1).
const MAX_STATES: usize = 32;

/// Maximum length of a propagated `tracestate` in characters (section 3.3.1.5).
const MAX_STATE: usize = 512;

/// Length above which members of an overlong `tracestate` are dropped first.
const LONG_STATE: usize = 128;

/// Position of a task in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Name of the task's workflow.
    pub workflow: String,
    /// Trace id, 32 hexadecimal digits.
    trace: String,
    /// Span id, 16 hexadecimal digits.
    span: String,
    parent: Option<String>,
    flags: u8,
    /// Value of `tracestate` to propagate.
    state: Option<String>,
}

impl Trace {
    /// Position of a client's task, if the client gave a valid trace or workflow in its message or,
    /// failing that, in the `headers`.
    pub fn of_client(
        task: &TaskId,
        message: Option<&Metadata>,
        headers: Option<&TraceContext>,
    ) -> Option<Self> {
        let message = TraceContext::of_metadata(message);
        let contexts = [Some(&message), headers];
        let contexts = || contexts.iter().flatten();
        let workflow =
            contexts().find_map(|context| context.workflow.clone().filter(|name| is_name(name)));
        let position = contexts().find_map(|context| ClientPosition::from_context(context));
        if workflow.is_none() && position.is_none() {
            return None;
        }
        let begun = Self::begun(task);
        let workflow = workflow.unwrap_or(begun.workflow);
        let span = begun.span;
        Some(match position {
            Some(ClientPosition::Trace(Traceparent { trace, span: parent, flags }, state)) => {
                Self { workflow, trace, span, parent: Some(parent), flags, state }
            }
            Some(ClientPosition::Span(parent)) => {
                Self { workflow, span, parent: Some(parent), ..Self::begun(task) }
            }
            None => Self { workflow, span, ..Self::begun(task) },
        })
    }

    /// Position of a task that begins its own trace.
    pub fn begun(task: &TaskId) -> Self {
        let (trace, span) = digits(task);
        Self { workflow: task.to_string(), trace, span, parent: None, flags: 1, state: None }
    }

    /// Position of a task according to its metadata; without any, it begins its own trace.
    pub fn for_task(task: &TaskId, facts: Option<&Metadata>) -> Self {
        let begun = Self::begun(task);
        let context = TraceContext::of_metadata(facts);
        let Some(Traceparent { trace, span, flags }) =
            context.traceparent.as_deref().and_then(Traceparent::parse)
        else {
            return begun;
        };
        let workflow = context.workflow.unwrap_or(begun.workflow);
        Self {
            workflow,
            trace,
            span,
            parent: context.parent_span,
            flags,
            state: context.tracestate,
        }
    }

    /// Position of a child of this task.
    pub fn child(&self, task: &TaskId) -> Self {
        let (_, span) = digits(task);
        Self { span, parent: Some(self.span.clone()), ..self.clone() }
    }

    /// Trace id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.trace
    }

    /// Id of the task's span: 16 hexadecimal digits.
    pub fn span_id(&self) -> &str {
        &self.span
    }

    /// Id of the parent span, if any.
    pub fn parent_id(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// True if the trace is sampled.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// Value of `tracestate` to propagate.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Value of a `traceparent` header with the task's span as the parent.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span, self.flags)
    }

    /// Trace context for requests on behalf of the task.
    pub fn context(&self) -> TraceContext {
        TraceContext {
            traceparent: Some(self.traceparent()),
            tracestate: self.state.clone(),
            workflow: Some(self.workflow.clone()),
            span: Some(self.span.clone()),
            parent_span: self.parent.clone(),
        }
    }

    /// The trace context as members of metadata.
    pub fn members(&self) -> Metadata {
        let context = self.context();
        context.entries().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
}

/// Valid trace context of a message, for propagation in headers as well.
pub fn message_context(message: Option<&Metadata>) -> TraceContext {
    let context = TraceContext::of_metadata(message);
    let traceparent = context.traceparent.filter(|header| Traceparent::parse(header).is_some());
    let tracestate =
        context.tracestate.as_deref().filter(|_| traceparent.is_some()).and_then(state);
    TraceContext {
        traceparent,
        tracestate,
        workflow: context.workflow.filter(|name| is_name(name)),
        span: context.span.filter(|span| is_span(span)),
        parent_span: context.parent_span.filter(|span| is_span(span)),
    }
}

/// Removes the trace context from metadata.
pub fn without_trace(mut facts: Metadata) -> Metadata {
    for name in NAMES {
        facts.remove(name);
    }
    facts
}

/// Initial metadata of a child task: the trace context of its message, and its parent.
pub fn facts_of_child(message: &Message, parent: &TaskId) -> Metadata {
    let metadata = message.metadata.as_ref();
    let known = NAMES.iter().filter_map(|name| {
        let value = metadata?.get(*name)?.clone();
        Some(((*name).to_owned(), value))
    });
    known.chain([(PARENT_TASK.to_owned(), parent.as_str().into())]).collect()
}

/// Workflow that a task belongs to from its creation, if any.
pub fn workflow(created: &Created) -> Option<String> {
    created.task.metadata.as_ref()?.get(WORKFLOW)?.as_str().map(str::to_owned)
}

/// Position of the client of a new task.
enum ClientPosition {
    /// A trace, with the `tracestate` to propagate.
    Trace(Traceparent, Option<String>),
    /// A span of an unknown trace.
    Span(String),
}

impl ClientPosition {
    /// Position from a client's trace context. Its own span takes precedence over its parent span,
    /// as in a `traceparent`.
    fn from_context(context: &TraceContext) -> Option<Self> {
        if let Some(parent) = context.traceparent.as_deref().and_then(Traceparent::parse) {
            return Some(Self::Trace(parent, context.tracestate.as_deref().and_then(state)));
        }
        let mut spans = [&context.span, &context.parent_span].into_iter().flatten();
        spans.find(|span| is_span(span)).cloned().map(Self::Span)
    }
}

/// Parsed `traceparent` (W3C Trace Context, section 3.2.2).
struct Traceparent {
    trace: String,
    span: String,
    flags: u8,
}

impl Traceparent {
    fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().splitn(5, '-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        // A later version may add fields after the flags.
        let is_known = is_hex(version, 2) && version != "ff";
        let ends = parts.next().is_none() || version != "00";
        let is_valid = is_known && ends && is_hex(trace, 32) && is_hex(flags, 2);
        (is_valid && is_one(trace) && is_span(span)).then_some(())?;
        // This version propagates no other flags.
        let flags = u8::from_str_radix(flags, 16).ok()? & KNOWN_FLAGS;
        Some(Self { trace: trace.to_owned(), span: span.to_owned(), flags })
    }
}

/// Propagated part of a `tracestate` (section 3.3.1): `None` for an invalid list; of an overlong
/// list first the long members are dropped, then the last ones.
fn state(list: &str) -> Option<String> {
    let mut members: Vec<_> =
        list.split(',').map(|member| member.trim_matches([' ', '\t'])).collect();
    members.retain(|member| !member.is_empty());
    if members.len() > MAX_STATES || !members.iter().all(|member| is_state(member)) {
        return None;
    }
    let length = |members: &[&str]| {
        members.iter().map(|member| member.len() + 1).sum::<usize>().saturating_sub(1)
    };
    if length(&members) > MAX_STATE {
        members.retain(|member| member.len() <= LONG_STATE);
    }
    while length(&members) > MAX_STATE {
        members.pop();
    }
    Some(members.join(",")).filter(|members| !members.is_empty())
}

/// True if a member of a `tracestate` is a valid key and value.
fn is_state(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else { return false };
    let begins = key.starts_with(|it: char| it.is_ascii_lowercase() || it.is_ascii_digit());
    let is_key = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b"_-*/@".contains(&it);
    let is_value = |it: u8| matches!(it, b' '..=b'~') && it != b'=';
    begins
        && key.len() <= 256
        && key.bytes().all(is_key)
        && (1..=256).contains(&value.len())
        && value.bytes().all(is_value)
}

/// True if this is a valid name of a workflow.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_ID
}

fn is_span(text: &str) -> bool {
    is_hex(text, 16) && is_one(text)
}

/// True unless the id is all zeros, which is invalid.
fn is_one(digits: &str) -> bool {
    digits.bytes().any(|digit| digit != b'0')
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

/// Trace id and span id from a task's id: its 32 hexadecimal digits, and their second half, which
/// is unique. The hub creates ids of these digits; any other id is hashed to 32 digits.
fn digits(task: &TaskId) -> (String, String) {
    let plain: String = task.as_str().chars().filter(|it| *it != '-').collect();
    let plain = if is_hex(&plain, 32) {
        plain
    } else {
        let folded = task.as_str().bytes().fold(0x6132_612d_6875_6200_u128, |sum, byte| {
            (sum ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        });
        format!("{folded:032x}")
    };
    let span = plain[16..].to_owned();
    (plain, span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const ABOVE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn said(members: &[(&str, &str)]) -> Metadata {
        members.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect()
    }

    fn beside(members: &[(&str, &str)]) -> TraceContext {
        TraceContext::of_metadata(Some(&said(members)))
    }

    #[test]
    fn task_and_children_join_clients_trace() {
        let [root, child] = ["0199-root", "0199-child"].map(TaskId::new);
        let context = said(&[(TRACEPARENT, ABOVE), (TRACESTATE, "rojo=1")]);
        let trace = Trace::of_client(&root, Some(&context), None).unwrap();
        assert_eq!(trace.parent.as_deref(), Some("b7ad6b7169203331"));
        assert_eq!(trace.trace, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((trace.workflow.as_str(), trace.state()), ("0199-root", Some("rojo=1")));
        let below = trace.child(&child);
        assert_eq!(below.parent.as_deref(), Some(trace.span.as_str()));
        assert_eq!((&below.trace, &below.workflow), (&trace.trace, &trace.workflow));
        assert_eq!(below.state, trace.state);
        assert_ne!(below.span, trace.span);
        assert_eq!(
            Trace::for_task(&child, Some(&below.members())),
            below,
            "it is read as it is written"
        );
        // Another hub receives the same context in headers or in the message.
        let elsewhere = TaskId::fresh();
        let heard = Trace::of_client(&elsewhere, None, Some(&below.context())).unwrap();
        assert_eq!(heard.parent_id(), Some(below.span_id()));
        assert_eq!((heard.trace_id(), &heard.workflow), (below.trace_id(), &trace.workflow));
        let message = Trace::of_client(&elsewhere, Some(&below.members()), None);
        assert_eq!(message, Some(heard));
        assert_eq!(message_context(Some(&below.members())), below.context());
    }

    #[test]
    fn task_without_trace_context_begins_trace() {
        let task = TaskId::fresh();
        let of = |members: &[(&str, &str)]| Trace::of_client(&task, Some(&said(members)), None);
        assert_eq!(Trace::of_client(&task, None, None), None);
        assert_eq!(of(&[("model", "fast")]), None);
        let begun = Trace::for_task(&task, None);
        assert_eq!(begun, Trace::begun(&task));
        assert_eq!(begun.trace, task.as_str().replace('-', ""));
        assert!(begun.trace.ends_with(&begun.span) && begun.is_sampled());
        let named = of(&[(WORKFLOW, "release")]).unwrap();
        assert_eq!((named.workflow.as_str(), named.trace), ("release", begun.trace));
        let long = "w".repeat(MAX_ID + 1);
        assert_eq!(of(&[(WORKFLOW, &long)]), None);
    }

    #[test]
    fn message_overrides_headers_invalid_is_ignored() {
        const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-00";
        const ONE: &str = "aaaaaaaaaaaaaaaa";
        const TWO: &str = "bbbbbbbbbbbbbbbb";
        let task = TaskId::new("0199aaaa-0000-7000-8000-00000000000f");
        let mut table = Vec::new();
        for (message, headers) in [
            (vec![(TRACEPARENT, ABOVE)], vec![(TRACEPARENT, OTHER), (TRACESTATE, "of=headers")]),
            (vec![], vec![(TRACEPARENT, OTHER), (TRACESTATE, "of=headers")]),
            (vec![(TRACEPARENT, "00-bad")], vec![(TRACEPARENT, OTHER), (WORKFLOW, "w")]),
            (vec![(WORKFLOW, "of message")], vec![(TRACEPARENT, ABOVE), (WORKFLOW, "of headers")]),
            (vec![(PARENT_SPAN, ONE)], vec![(TRACEPARENT, OTHER)]),
            (vec![], vec![(SPAN, ONE), (PARENT_SPAN, TWO)]),
            (vec![], vec![(SPAN, "no span"), (PARENT_SPAN, TWO)]),
            (vec![], vec![(TRACEPARENT, "00-bad"), (TRACESTATE, "of=headers")]),
            (vec![], vec![(SPAN, "0000000000000000")]),
        ] {
            let trace = Trace::of_client(&task, Some(&said(&message)), Some(&beside(&headers)));
            table.push(match trace {
                None => "nothing".to_owned(),
                Some(it) => {
                    let (parent, state) =
                        (it.parent_id().unwrap_or("-"), it.state().unwrap_or("-"));
                    format!("{} below {parent} of {}, {state}", it.traceparent(), it.workflow)
                }
            });
        }
        insta::assert_snapshot!(table.join("\n"), @r"
        00-0af7651916cd43dd8448eb211c80319c-800000000000000f-01 below b7ad6b7169203331 of 0199aaaa-0000-7000-8000-00000000000f, -
        00-11111111111111111111111111111111-800000000000000f-00 below 2222222222222222 of 0199aaaa-0000-7000-8000-00000000000f, of=headers
        00-11111111111111111111111111111111-800000000000000f-00 below 2222222222222222 of w, -
        00-0af7651916cd43dd8448eb211c80319c-800000000000000f-01 below b7ad6b7169203331 of of message, -
        00-0199aaaa00007000800000000000000f-800000000000000f-01 below aaaaaaaaaaaaaaaa of 0199aaaa-0000-7000-8000-00000000000f, -
        00-0199aaaa00007000800000000000000f-800000000000000f-01 below aaaaaaaaaaaaaaaa of 0199aaaa-0000-7000-8000-00000000000f, -
        00-0199aaaa00007000800000000000000f-800000000000000f-01 below bbbbbbbbbbbbbbbb of 0199aaaa-0000-7000-8000-00000000000f, -
        nothing
        nothing
        ");
    }

    #[test]
    fn tracestate_is_propagated_within_limits() {
        let handed = |list: &str| state(list).unwrap_or_else(|| "nothing".to_owned());
        let same =
            ["a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "t@v=x y", "0*/_-=!~", "a=1,a=2"];
        for list in same {
            assert_eq!(handed(list), list);
        }
        assert_eq!(handed(" a=1 ,,\tb=2,"), "a=1,b=2");
        for wrong in
            ["", ",", "a", "=1", "a=", "A=1", "a=1=2", "a=\u{e9}", "a=1\n", "@a=1", "a b=1"]
        {
            assert_eq!(handed(wrong), "nothing", "{wrong}");
        }
        let many =
            |count: usize| (0..count).map(|n| format!("k{n}=1")).collect::<Vec<_>>().join(",");
        assert_eq!(handed(&many(32)), many(32));
        assert_eq!(handed(&many(33)), "nothing");
        let long = format!("long={}", "x".repeat(130));
        assert_eq!(handed(&long), long, "there is room");
        let short = |n: usize| format!("s{n}={}", "y".repeat(97));
        let crowded = [long.clone(), short(0), short(1), short(2), short(3), short(4)].join(",");
        let kept = [short(0), short(1), short(2), short(3), short(4)].join(",");
        assert_eq!(handed(&crowded), kept, "long ones go first");
        let last = [kept.clone(), short(5)].join(",");
        assert_eq!(handed(&last), kept, "then the last ones");
        assert_eq!(handed(&format!("k={}", "z".repeat(257))), "nothing");
    }

    #[test]
    fn invalid_traceparent_is_ignored() {
        for wrong in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ] {
            assert!(Traceparent::parse(wrong).is_none(), "{wrong}");
        }
        for (right, flags) in [
            (ABOVE.to_owned(), 1),
            (format!(" {ABOVE}\t"), 1),
            (ABOVE.replace("-01", "-ff"), 3),
            ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more".to_owned(), 0),
        ] {
            assert_eq!(Traceparent::parse(&right).unwrap().flags, flags, "{right}");
        }
    }
}
