//! Pieces of the text of a step with `stream`, for its readers.

use serde_json::{Value, json};

use super::{answer, template::as_data};

/// Part of a step's text, for a reader.
pub(super) enum Piece<'a> {
    /// The beginning, which is in the prompt.
    Begin,
    /// The text goes on.
    More(&'a str),
    /// The step has ended; with the rest of its text.
    Rest(&'a str),
    /// The step has ended with another text than it wrote.
    Other(&'a str),
    /// The step has failed.
    Failed { reason: &'a str, text: &'a str },
}

impl Piece<'_> {
    /// Text for the reader; `output` is the schema of its answer.
    pub(super) fn text(&self, step: &str, output: Option<&Value>) -> String {
        let mut text = match self {
            Self::Begin => {
                return format!(
                    "\n\nThe step `{step}` is still at work: what you have of its text is the beginning. Further messages bring the \
                     rest, and the last one says so. Begin now, and give your final answer after the last one.\n"
                );
            }
            Self::More(more) => {
                return format!("The step `{step}` has written more:\n{}", as_data(more));
            }
            Self::Failed { reason, text } => {
                return format!(
                    "The step `{step}` has failed ({reason}), and nothing more follows. Stop here.\n{}",
                    as_data(text)
                );
            }
            Self::Rest("") => format!("The step `{step}` has ended; you have all of its text."),
            Self::Rest(rest) => {
                format!(
                    "The step `{step}` has ended. This is the rest of its text:\n{}",
                    as_data(rest)
                )
            }
            Self::Other(full_text) => format!(
                "The step `{step}` has ended, with another text than it wrote before. Only this one counts:\n{}",
                as_data(full_text)
            ),
        };
        text.push_str("\nThis is the last message. Give your final answer now.\n");
        if let Some(schema) = output {
            text.push_str(&answer::request(schema));
        }
        text
    }

    /// Member `stream` of the message's metadata.
    pub(super) fn facts(&self, step: &str, number: u32) -> Value {
        let last = self.is_last();
        match self {
            Self::Failed { reason, .. } => {
                json!({ "step": step, "piece": number, "last": last, "failed": reason })
            }
            Self::Begin | Self::More(_) | Self::Rest(_) | Self::Other(_) => {
                json!({ "step": step, "piece": number, "last": last })
            }
        }
    }

    pub(super) fn is_last(&self) -> bool {
        match self {
            Self::Begin | Self::More(_) => false,
            Self::Rest(_) | Self::Other(_) | Self::Failed { .. } => true,
        }
    }
}
