//! By which a task is known in traces: the trace and span of W3C Trace Context, and the workflow, in the members of a
//! message's and a task's metadata.
//!
//! Nothing is drawn by lot: the span of a task, and the trace that begins with one, are made of the task's id, so that whoever
//! knows a task knows its span, also after a restart. A client that is in a trace already says so in its message, and the task
//! is a span of that trace.

use a2a_hub_protocol::{
    event::Created,
    id::{MAX_ID, TaskId},
    message::{Message, Metadata},
    trace::{NAMES, PARENT_SPAN, SPAN, TRACEPARENT, TRACESTATE, TraceContext, WORKFLOW},
};

/// The task whose agent gave this one.
pub const PARENT_TASK: &str = "parentTaskId";

/// The members of metadata that the hub alone writes into a task.
pub const MEMBERS: [&str; 6] = [TRACEPARENT, TRACESTATE, WORKFLOW, SPAN, PARENT_SPAN, PARENT_TASK];

/// Flags of a trace that mean something: it is sampled, and its id is random (W3C Trace Context Level 2, section 3.2.2.5).
const KNOWN_FLAGS: u8 = 0b11;

/// How many members a `tracestate` may have (W3C Trace Context, section 3.3.1.1).
const MAX_STATES: usize = 32;

/// As many characters of a `tracestate` are handed on (section 3.3.1.5).
const MAX_STATE: usize = 512;

/// Members of it that are longer are the first that are left out where it is too long.
const LONG_STATE: usize = 128;

/// The place of a task in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// What the task's workflow is called.
    pub workflow: String,
    /// 32 hexadecimal digits.
    trace: String,
    /// 16 hexadecimal digits.
    span: String,
    parent: Option<String>,
    flags: u8,
    /// What the tracing systems on the way want to be handed on.
    state: Option<String>,
}

impl Trace {
    /// The place of a task that a client gives, if the client said anything of a trace or a workflow that makes sense: in its
    /// message, or else in headers beside it.
    pub fn of_client(
        task: &TaskId,
        message: Option<&Metadata>,
        beside: Option<&TraceContext>,
    ) -> Option<Self> {
        let message = TraceContext::of_metadata(message);
        let said = [Some(&message), beside];
        let said = || said.iter().flatten();
        let workflow = said().find_map(|said| said.workflow.clone().filter(|name| is_name(name)));
        let place = said().find_map(|said| Place::of(said));
        if workflow.is_none() && place.is_none() {
            return None;
        }
        let begun = Self::begun(task);
        let workflow = workflow.unwrap_or(begun.workflow);
        let span = begun.span;
        Some(match place {
            Some(Place::Trace(Above { trace, span: above, flags }, state)) => {
                Self { workflow, trace, span, parent: Some(above), flags, state }
            }
            Some(Place::Span(above)) => {
                Self { workflow, span, parent: Some(above), ..Self::begun(task) }
            }
            None => Self { workflow, span, ..Self::begun(task) },
        })
    }

    /// The place of a task that begins a trace of its own.
    pub fn begun(task: &TaskId) -> Self {
        let (trace, span) = digits(task);
        Self { workflow: task.to_string(), trace, span, parent: None, flags: 1, state: None }
    }

    /// The place of a task, as the task's metadata has it, or one of its own.
    pub fn of(task: &TaskId, facts: Option<&Metadata>) -> Self {
        let begun = Self::begun(task);
        let said = TraceContext::of_metadata(facts);
        let Some(Above { trace, span, flags }) = said.traceparent.as_deref().and_then(Above::parse)
        else {
            return begun;
        };
        let workflow = said.workflow.unwrap_or(begun.workflow);
        Self { workflow, trace, span, parent: said.parent_span, flags, state: said.tracestate }
    }

    /// The place of a child of that task.
    pub fn child(&self, task: &TaskId) -> Self {
        let (_, span) = digits(task);
        Self { span, parent: Some(self.span.clone()), ..self.clone() }
    }

    /// The trace's id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.trace
    }

    /// The id of the task's span: 16 hexadecimal digits.
    pub fn span_id(&self) -> &str {
        &self.span
    }

    /// The span that the task's is part of, if it is part of one.
    pub fn parent_id(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// Whether whoever began the trace wants it to be kept.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// What the tracing systems on the way want to be handed on.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The value of a `traceparent` header that says whose turn it is.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span, self.flags)
    }

    /// What is said of the task's place beside what is sent on its behalf.
    pub fn context(&self) -> TraceContext {
        TraceContext {
            traceparent: Some(self.traceparent()),
            tracestate: self.state.clone(),
            workflow: Some(self.workflow.clone()),
            span: Some(self.span.clone()),
            parent_span: self.parent.clone(),
        }
    }

    /// The same as members of metadata.
    pub fn members(&self) -> Metadata {
        let context = self.context();
        context.said().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
}

/// What a message says of its trace that makes sense, to be said beside it too, in headers.
pub fn beside(message: Option<&Metadata>) -> TraceContext {
    let said = TraceContext::of_metadata(message);
    let traceparent = said.traceparent.filter(|header| Above::parse(header).is_some());
    let tracestate = said.tracestate.as_deref().filter(|_| traceparent.is_some()).and_then(state);
    TraceContext {
        traceparent,
        tracestate,
        workflow: said.workflow.filter(|name| is_name(name)),
        span: said.span.filter(|span| is_span(span)),
        parent_span: said.parent_span.filter(|span| is_span(span)),
    }
}

/// The same metadata with nothing in it of any trace.
pub fn without_trace(mut facts: Metadata) -> Metadata {
    for name in NAMES {
        facts.remove(name);
    }
    facts
}

/// The facts of a child, as its task's metadata has them from the beginning: its place in the trace, as its message has it, and
/// its parent.
pub fn facts_of_child(message: &Message, parent: &TaskId) -> Metadata {
    let told = message.metadata.as_ref();
    let known = NAMES.iter().filter_map(|name| {
        let value = told?.get(*name)?.clone();
        Some(((*name).to_owned(), value))
    });
    known.chain([(PARENT_TASK.to_owned(), parent.as_str().into())]).collect()
}

/// The workflow that a task belongs to from its beginning, if it belongs to one.
pub fn workflow(created: &Created) -> Option<String> {
    created.task.metadata.as_ref()?.get(WORKFLOW)?.as_str().map(str::to_owned)
}

/// Where a client stands that gives a task.
enum Place {
    /// In a trace, with what is to be handed on.
    Trace(Above, Option<String>),
    /// In a span, of whatever trace.
    Span(String),
}

impl Place {
    /// Where whoever said this stands. A span of one's own stands for more than the one above it, as in a `traceparent`.
    fn of(said: &TraceContext) -> Option<Self> {
        if let Some(above) = said.traceparent.as_deref().and_then(Above::parse) {
            return Some(Self::Trace(above, said.tracestate.as_deref().and_then(state)));
        }
        let mut spans = [&said.span, &said.parent_span].into_iter().flatten();
        spans.find(|span| is_span(span)).cloned().map(Self::Span)
    }
}

/// What a `traceparent` says (W3C Trace Context, section 3.2.2).
struct Above {
    trace: String,
    span: String,
    flags: u8,
}

impl Above {
    fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().splitn(5, '-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        // A later version may say more after the flags.
        let is_known = is_hex(version, 2) && version != "ff";
        let ends = parts.next().is_none() || version != "00";
        let is_valid = is_known && ends && is_hex(trace, 32) && is_hex(flags, 2);
        (is_valid && is_one(trace) && is_span(span)).then_some(())?;
        // What else the flags say, this version does not hand on.
        let flags = u8::from_str_radix(flags, 16).ok()? & KNOWN_FLAGS;
        Some(Self { trace: trace.to_owned(), span: span.to_owned(), flags })
    }
}

/// What is handed on of a `tracestate` (section 3.3.1): nothing of a list that is none, and of one that is too long its first
/// members, without those that are long themselves.
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

/// Whether a member of a `tracestate` is a key and a value.
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

/// Whether a workflow may be called that.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_ID
}

fn is_span(text: &str) -> bool {
    is_hex(text, 16) && is_one(text)
}

/// Whether an id is not all zeros, which is none.
fn is_one(digits: &str) -> bool {
    digits.bytes().any(|digit| digit != b'0')
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

/// The 32 digits of a task's id, and the later half of them, which tells it from all others. The hub makes ids of these digits;
/// another id gives the digits of its bytes.
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
    fn a_task_is_a_span_of_its_clients_trace_and_its_children_are_spans_below() {
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
        assert_eq!(Trace::of(&child, Some(&below.members())), below, "it is read as it is written");
        // Another hub hears of it in headers, or in the message: the same.
        let elsewhere = TaskId::fresh();
        let heard = Trace::of_client(&elsewhere, None, Some(&below.context())).unwrap();
        assert_eq!(heard.parent_id(), Some(below.span_id()));
        assert_eq!((heard.trace_id(), &heard.workflow), (below.trace_id(), &trace.workflow));
        let message = Trace::of_client(&elsewhere, Some(&below.members()), None);
        assert_eq!(message, Some(heard));
        assert_eq!(super::beside(Some(&below.members())), below.context());
    }

    #[test]
    fn who_says_nothing_of_a_trace_begins_one_and_a_name_of_the_workflow_is_kept() {
        let task = TaskId::fresh();
        let of = |members: &[(&str, &str)]| Trace::of_client(&task, Some(&said(members)), None);
        assert_eq!(Trace::of_client(&task, None, None), None);
        assert_eq!(of(&[("model", "fast")]), None);
        let begun = Trace::of(&task, None);
        assert_eq!(begun, Trace::begun(&task));
        assert_eq!(begun.trace, task.as_str().replace('-', ""));
        assert!(begun.trace.ends_with(&begun.span) && begun.is_sampled());
        let named = of(&[(WORKFLOW, "release")]).unwrap();
        assert_eq!((named.workflow.as_str(), named.trace), ("release", begun.trace));
        let long = "w".repeat(MAX_ID + 1);
        assert_eq!(of(&[(WORKFLOW, &long)]), None);
    }

    #[test]
    fn a_message_counts_more_than_headers_and_what_makes_no_sense_counts_for_nothing() {
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
    fn a_tracestate_is_handed_on_within_its_limits() {
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
    fn what_is_no_traceparent_is_as_if_it_were_not_said() {
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
            assert!(Above::parse(wrong).is_none(), "{wrong}");
        }
        for (right, flags) in [
            (ABOVE.to_owned(), 1),
            (format!(" {ABOVE}\t"), 1),
            (ABOVE.replace("-01", "-ff"), 3),
            ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more".to_owned(), 0),
        ] {
            assert_eq!(Above::parse(&right).unwrap().flags, flags, "{right}");
        }
    }
}
