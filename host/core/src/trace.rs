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
};

/// The trace and the span that whoever speaks is in (W3C Trace Context, section 3.2).
pub const TRACEPARENT: &str = "traceparent";

/// The workflow: what a client calls a piece of work of several tasks, or the id of the task at the root of the tree.
pub const WORKFLOW: &str = "x-workflow-id";

/// The span of the task.
pub const SPAN: &str = "x-span-id";

/// The span that the task is part of.
pub const PARENT_SPAN: &str = "x-parent-span-id";

/// The task whose agent gave this one.
pub const PARENT_TASK: &str = "parentTaskId";

/// The members of metadata that the hub alone writes into a task.
pub const MEMBERS: [&str; 5] = [TRACEPARENT, WORKFLOW, SPAN, PARENT_SPAN, PARENT_TASK];

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
    flags: String,
}

impl Trace {
    /// The place of a task that a client gives, if the client said anything of a trace or a workflow.
    pub fn of_client(task: &TaskId, said: Option<&Metadata>) -> Option<Self> {
        let said = said?;
        let text = |name: &str| said.get(name).and_then(|told| told.as_str());
        let workflow = text(WORKFLOW).filter(|name| !name.is_empty() && name.len() <= MAX_ID);
        let above = text(TRACEPARENT).and_then(Above::parse);
        if workflow.is_none() && above.is_none() {
            return None;
        }
        let begun = Self::begun(task);
        let parent = text(PARENT_SPAN).filter(|span| is_hex(span, 16)).map(str::to_owned);
        let workflow = workflow.map_or(begun.workflow, str::to_owned);
        Some(match above {
            Some(Above { trace, span, flags }) => {
                Self { workflow, trace, span: begun.span, parent: Some(span), flags }
            }
            None => Self { workflow, parent, ..begun },
        })
    }

    /// The place of a task that begins a trace of its own.
    pub fn begun(task: &TaskId) -> Self {
        let (trace, span) = digits(task);
        Self { workflow: task.to_string(), trace, span, parent: None, flags: "01".to_owned() }
    }

    /// The place of a task, as the task's metadata has it, or one of its own.
    pub fn of(task: &TaskId, facts: Option<&Metadata>) -> Self {
        let begun = Self::begun(task);
        let Some(facts) = facts else { return begun };
        let text = |name: &str| facts.get(name).and_then(|told| told.as_str()).map(str::to_owned);
        let Some(Above { trace, span, flags }) =
            text(TRACEPARENT).as_deref().and_then(Above::parse)
        else {
            return begun;
        };
        let workflow = text(WORKFLOW).unwrap_or(begun.workflow);
        Self { workflow, trace, span, parent: text(PARENT_SPAN), flags }
    }

    /// The place of a child of that task.
    pub fn child(&self, task: &TaskId) -> Self {
        let (_, span) = digits(task);
        Self { span, parent: Some(self.span.clone()), ..self.clone() }
    }

    /// The value of a `traceparent` header that says whose turn it is.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{}", self.trace, self.span, self.flags)
    }

    /// The same as members of metadata.
    pub fn members(&self) -> Metadata {
        let parent = self.parent.clone().map(|span| (PARENT_SPAN.to_owned(), span.into()));
        let all = [
            (TRACEPARENT.to_owned(), self.traceparent().into()),
            (WORKFLOW.to_owned(), self.workflow.clone().into()),
            (SPAN.to_owned(), self.span.clone().into()),
        ];
        all.into_iter().chain(parent).collect()
    }
}

/// The facts of a child, as its task's metadata has them from the beginning: its place in the trace, as its message has it, and
/// its parent.
pub fn facts_of_child(message: &Message, parent: &TaskId) -> Metadata {
    let told = message.metadata.as_ref();
    let known = MEMBERS.iter().filter_map(|name| {
        let value = told?.get(*name)?.clone();
        Some(((*name).to_owned(), value))
    });
    known.chain([(PARENT_TASK.to_owned(), parent.as_str().into())]).collect()
}

/// The workflow that a task belongs to from its beginning, if it belongs to one.
pub fn workflow(created: &Created) -> Option<String> {
    created.task.metadata.as_ref()?.get(WORKFLOW)?.as_str().map(str::to_owned)
}

/// What a `traceparent` says (W3C Trace Context, section 3.2.2).
struct Above {
    trace: String,
    span: String,
    flags: String,
}

impl Above {
    fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().splitn(5, '-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        // A later version may say more after the flags.
        let is_known = is_hex(version, 2) && version != "ff";
        let ends = parts.next().is_none() || version != "00";
        let is_one = |digits: &str| digits.bytes().any(|digit| digit != b'0');
        let is_valid =
            is_known && ends && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
        (is_valid && is_one(trace) && is_one(span)).then(|| Self {
            trace: trace.to_owned(),
            span: span.to_owned(),
            flags: flags.to_owned(),
        })
    }
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

    #[test]
    fn a_task_is_a_span_of_its_clients_trace_and_its_children_are_spans_below() {
        let [root, child] = ["0199-root", "0199-child"].map(TaskId::new);
        let trace = Trace::of_client(&root, Some(&said(&[(TRACEPARENT, ABOVE)]))).unwrap();
        assert_eq!(trace.parent.as_deref(), Some("b7ad6b7169203331"));
        assert_eq!(trace.trace, "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(trace.workflow, "0199-root");
        let below = trace.child(&child);
        assert_eq!(below.parent.as_deref(), Some(trace.span.as_str()));
        assert_eq!((&below.trace, &below.workflow), (&trace.trace, &trace.workflow));
        assert_ne!(below.span, trace.span);
        assert_eq!(Trace::of(&child, Some(&below.members())), below, "it is read as it is written");
    }

    #[test]
    fn who_says_nothing_of_a_trace_begins_one_and_a_name_of_the_workflow_is_kept() {
        let task = TaskId::fresh();
        assert_eq!(Trace::of_client(&task, None), None);
        assert_eq!(Trace::of_client(&task, Some(&said(&[("model", "fast")]))), None);
        let begun = Trace::of(&task, None);
        assert_eq!(begun, Trace::begun(&task));
        assert_eq!(begun.trace, task.as_str().replace('-', ""));
        assert!(begun.trace.ends_with(&begun.span));
        let named = Trace::of_client(&task, Some(&said(&[(WORKFLOW, "release")]))).unwrap();
        assert_eq!((named.workflow.as_str(), named.trace), ("release", begun.trace));
        let long = "w".repeat(MAX_ID + 1);
        assert_eq!(Trace::of_client(&task, Some(&said(&[(WORKFLOW, &long)]))), None);
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
        for right in [ABOVE, "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more"] {
            assert!(Above::parse(right).is_some(), "{right}");
        }
    }
}
