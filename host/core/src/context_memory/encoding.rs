//! Stage 2, encoding: normalises texts, and measures the pieces.
//!
//! Data of items, decisions and variables stays unchanged: an item arrives as it was sent.

use super::model::{Decision, Item, Thought, WorkingMemory};
use serde::Serialize;
use serde_json::Value;
use std::io;

/// Bytes for each token of a model, by the usual rule of thumb for English; no vendor's tokenizer
/// is used.
const BYTES_PER_TOKEN: usize = 4;

/// Unit of an inheritance, which is inherited or left out as a whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// The goal.
    Goal(String),
    /// A decision.
    Decision(Decision),
    /// A variable, with its name.
    Variable(String, Value),
    /// The derived summary, as an item.
    Insights(Item),
    /// An item.
    Item(Item),
    /// A thought.
    Thought(Thought),
}

impl Piece {
    /// Size of the piece as JSON, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Goal(goal) => encoded_bytes(goal),
            Self::Decision(decision) => encoded_bytes(decision),
            Self::Variable(name, value) => encoded_bytes(&(name, value)),
            Self::Insights(item) | Self::Item(item) => encoded_bytes(item),
            Self::Thought(thought) => encoded_bytes(thought),
        }
    }
}

/// Number of tokens for a number of bytes, rounded up.
pub fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Number of bytes for a number of tokens.
pub fn bytes_of_tokens(tokens: usize) -> usize {
    tokens.saturating_mul(BYTES_PER_TOKEN)
}

/// Normalises the texts of a working memory: no control characters that affect a terminal, line
/// ends as `\n`, no surrounding white space. Removes thoughts without text.
pub fn encode(mut memory: WorkingMemory) -> WorkingMemory {
    memory.goal = memory.goal.map(|goal| normal(&goal)).filter(|goal| !goal.is_empty());
    for thought in &mut memory.thoughts {
        thought.content = normal(&thought.content);
    }
    memory.thoughts.retain(|thought| !thought.content.is_empty());
    for decision in &mut memory.decisions {
        decision.reason = decision.reason.take().map(|reason| normal(&reason));
    }
    memory
}

/// Normalises a text.
pub fn normal(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let text: String = lines.chars().filter(shown).collect();
    text.trim().to_owned()
}

/// Size of a value as JSON, in bytes.
pub fn encoded_bytes(value: &(impl Serialize + ?Sized)) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Fails only for a key that is no text; no such key occurs here.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn texts_are_normalised_values_stay() {
        let memory = WorkingMemory {
            goal: Some(" \u{1b}[2Jship\r\nit \u{7}".to_owned()),
            thoughts: vec![Thought { content: " \u{0} ".to_owned(), ..Thought::default() }],
            decisions: vec![Decision {
                key: "k".to_owned(),
                value: json!("\u{1b}[31mas it is\r\n"),
                reason: Some("because\r".to_owned()),
                ..Decision::default()
            }],
            ..WorkingMemory::default()
        };
        let memory = encode(memory);
        assert_eq!(memory.goal.as_deref(), Some("[2Jship\nit"));
        assert!(memory.thoughts.is_empty());
        assert_eq!(memory.decisions[0].value, json!("\u{1b}[31mas it is\r\n"));
        assert_eq!(memory.decisions[0].reason.as_deref(), Some("because"));
    }

    proptest! {
        #[test]
        fn normalising_is_idempotent_and_sizes_match_json(text in "\\PC*|.{0,60}") {
            let once = normal(&text);
            prop_assert_eq!(&normal(&once), &once);
            prop_assert!(!once.chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
            prop_assert_eq!(encoded_bytes(&text), serde_json::to_string(&text).unwrap().len());
        }

        #[test]
        fn tokens_and_bytes_agree(tokens_of in 0usize..100_000) {
            prop_assert_eq!(tokens(bytes_of_tokens(tokens_of)), tokens_of);
        }
    }
}
