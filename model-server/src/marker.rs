//! The markers in a prompt, by which a test says what is answered; `lib.rs` lists them.

use std::time::Duration;

/// The HTTP error `status`, always or the first few times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) times: Option<u32>,
    /// Seconds until the quota resets, which the error names.
    pub(super) resets_in: Option<u32>,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ending {
    /// As it should.
    Complete,
    /// With an error event after a few words.
    Fault,
    /// With the connection cut after a few words.
    Cut,
}

/// One marker.
pub(super) enum Marker<'a> {
    /// So many words are the answer.
    Words(usize),
    /// A pause after each word.
    Slow(Duration),
    /// Reasoning before the answer.
    Think,
    /// No answer but an HTTP error.
    Error(Refusal),
    /// The error 429 in place of the answer after the tools, with the seconds until the reset.
    UsedUp(u32),
    /// The answer breaks off.
    Ending(Ending),
    /// No answer at all.
    Hang,
    /// The agent is asked to use a tool: which, and what for.
    Tool(&'a str),
}

/// The markers of `text`, in order. What only looks like one is none.
pub(super) fn markers(text: &str) -> impl Iterator<Item = Marker<'_>> {
    text.split("[[").skip(1).filter_map(|rest| Marker::parse(rest.split_once("]]")?.0))
}

/// `text` without its markers.
pub(super) fn without_markers(text: &str) -> String {
    let mut parts = text.split("[[");
    let mut output = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once("]]") {
            Some((inside, rest)) if Marker::parse(inside).is_some() => output.push_str(rest),
            _ => {
                output.push_str("[[");
                output.push_str(part);
            }
        }
    }
    output
}

impl<'a> Marker<'a> {
    fn parse(inside: &'a str) -> Option<Self> {
        let (name, value) = match inside.split_once(':') {
            Some((name, value)) => (name, Some(value)),
            None => (inside, None),
        };
        Some(match (name, value) {
            ("words", Some(count)) => Self::Words(count.parse().ok()?),
            ("slow", Some(millis)) => Self::Slow(Duration::from_millis(millis.parse().ok()?)),
            ("think", None) => Self::Think,
            ("error", Some(value)) => Self::Error(match value.split_once(':') {
                Some((status, times)) => Refusal {
                    status: status.parse().ok()?,
                    times: Some(times.parse().ok()?),
                    resets_in: None,
                },
                None => Refusal { status: value.parse().ok()?, times: None, resets_in: None },
            }),
            ("usedup", Some(seconds)) => Self::UsedUp(seconds.parse().ok()?),
            ("errstream", None) => Self::Ending(Ending::Fault),
            ("drop", None) => Self::Ending(Ending::Cut),
            ("hang", None) => Self::Hang,
            ("tool", Some(spec)) => Self::Tool(spec),
            _ => return None,
        })
    }
}

/// Whether `text` has a marker.
pub(super) fn is_marked(text: &str) -> bool {
    markers(text).next().is_some()
}
