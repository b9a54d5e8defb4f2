//! Parses questions for a number: "how many commits are there?", "how old is this repository?".

use super::kind::{Counted, HistoryQuestion, Rev};
use super::sentence::Sentence;
use crate::span::Span;

/// Adjectives of a question that starts with "how".
const MEASURES: [&str; 9] =
    ["many", "much", "often", "old", "long", "big", "large", "young", "new"];

const COMMITS: [&str; 4] = ["commit", "commits", "revisions", "changes"];
const RELEASES: [&str; 4] = ["release", "releases", "tags", "versions"];

impl Sentence {
    /// A question for a number, or [`HistoryQuestion::Unknown`] for a number that the history does
    /// not have.
    pub(super) fn count(&self) -> Option<HistoryQuestion> {
        let asks = self.has(&["count", "number"]).then_some("many");
        let asks = asks.or_else(|| self.measure())?;
        let count = |counted| {
            let (span, path) = (self.span.clone(), self.path.clone());
            Some(HistoryQuestion::Count { counted, span, path, author: self.author.clone() })
        };
        let age = self.has(&["repository", "repo", "project", "it", "this", "codebase"]);
        match asks {
            "often" => count(Counted::Commits),
            "old" | "young" if age => Some(HistoryQuestion::Commit { rev: Rev::Oldest }),
            "many" if self.has(&COMMITS) || self.has(&["times"]) => count(Counted::Commits),
            // "How many files changed last week?" is about changes, and people have their report.
            "many" | "much" if self.asks_people() || self.says_change() => None,
            "many" if self.has(&["file", "files"]) && self.span == Span::Unsaid => {
                count(Counted::Files)
            }
            "many" if self.has(&RELEASES) && self.span == Span::Unsaid => count(Counted::Releases),
            _ => Some(HistoryQuestion::Unknown),
        }
    }

    /// Adjective of a sentence that starts with "how".
    fn measure(&self) -> Option<&str> {
        let word = self.after(&["how"])?;
        MEASURES.contains(&word.lower.as_str()).then_some(word.lower.as_str())
    }
}
