//! A sentence, and what it asks for.

use super::form::{BEFORE_PATH, ORIGIN_VERBS, is_revision, is_small, is_version, looks_like_path};
use super::kind::{HistoryQuestion, Rev};
use crate::span::Span;
use crate::words::Word;

/// Sentences that ask for help, without their punctuation.
const HELP: [&str; 13] = [
    "",
    "help",
    "help me",
    "usage",
    "examples",
    "hello",
    "hi",
    "hey",
    "what can you do",
    "what can i ask",
    "what can i ask you",
    "what do you do",
    "how does this work",
];

/// First words of a sentence that asks for changes. Others, such as "write a new poem", contain the
/// same words and ask for something else.
const STARTERS: [&str; 26] = [
    "what",
    "what's",
    "whats",
    "which",
    "how",
    "when",
    "did",
    "has",
    "have",
    "is",
    "are",
    "any",
    "anything",
    "show",
    "list",
    "tell",
    "give",
    "describe",
    "explain",
    "summarise",
    "summarize",
    "summary",
    "recent",
    "latest",
    "all",
    "the",
];

/// Words between "the" and the searched text.
const NOUNS: [&str; 19] = [
    "a", "an", "the", "function", "fn", "method", "constant", "const", "type", "struct", "enum",
    "trait", "class", "variable", "option", "flag", "setting", "text", "string",
];

/// Words about changes.
const CHANGE: [&str; 20] = [
    "change",
    "changes",
    "changed",
    "changing",
    "new",
    "news",
    "what's",
    "happened",
    "happening",
    "commits",
    "did",
    "done",
    "diff",
    "activity",
    "added",
    "removed",
    "progress",
    "summarise",
    "summarize",
    "summary",
];

/// Sentence without its span. Each kind of question has a method that looks for itself.
pub(super) struct Sentence {
    pub(super) words: Vec<Word>,
    pub(super) span: Span,
    pub(super) path: Option<String>,
    pub(super) author: Option<String>,
}

impl Sentence {
    pub(super) fn asks_help(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(|word| word.lower.as_str()).collect();
        self.span == Span::Unsaid && HELP.contains(&words.join(" ").as_str())
    }

    pub(super) fn has(&self, any: &[&str]) -> bool {
        self.words.iter().any(|word| !word.quoted && any.contains(&word.lower.as_str()))
    }

    /// Word after one of these.
    pub(super) fn after(&self, any: &[&str]) -> Option<&Word> {
        let at = self.words.iter().position(|word| any.contains(&word.lower.as_str()))?;
        self.words.get(at + 1)
    }

    /// Parses "why is src/x.rs:42 here?", "who wrote line 42 of src/x.rs?".
    pub(super) fn line(&self) -> Option<HistoryQuestion> {
        let joined = self.words.iter().find_map(|word| {
            let (path, line) = word.text.split_once(':')?;
            // Editors write `path:line:column`.
            let line = line.split(':').next()?.parse().ok()?;
            Some(HistoryQuestion::Line { path: path.to_owned(), line })
        });
        joined.or_else(|| {
            let line = self.after(&["line"])?.text.parse().ok()?;
            Some(HistoryQuestion::Line { path: self.path.clone()?, line })
        })
    }

    pub(super) fn origin(&self) -> Option<HistoryQuestion> {
        let first = self.words.first()?.lower.as_str();
        let asks = ["when", "who", "why", "which", "where", "what", "how"].contains(&first);
        let verb = self.words.iter().rposition(|word| ORIGIN_VERBS.contains(&word.lower.as_str()));
        let end = verb.or_else(|| self.reason_or_source())?;
        let text = match (asks, self.quoted_text()) {
            (_, Some(text)) => text,
            // "Files were added" and "lines were removed" are about changes, not about a text.
            (false, None) => return None,
            (true, None) => self.object(verb, end)?,
        };
        let text = text.trim().to_owned();
        let vague = ["this", "it", "that", "this line", "that line", "files", "commits"];
        if text.is_empty() || vague.contains(&text.to_lowercase().as_str()) {
            return None;
        }
        if looks_like_path(&text) {
            return Some(HistoryQuestion::History { path: text });
        }
        let path = self.path.clone().filter(|path| *path != text);
        Some(HistoryQuestion::Origin { text, path })
    }

    /// End of "why is X here", "why does X exist" or "where does X come from".
    pub(super) fn reason_or_source(&self) -> Option<usize> {
        let (tails, first): (&[&str], _) = match self.words.first()?.lower.as_str() {
            "why" | "why's" => (&["here", "there", "exist", "exists", "needed"], 1),
            "where" => (&["come", "comes", "from"], 1),
            _ => return None,
        };
        let mut tail = self.words.iter().skip(first);
        tail.position(|word| tails.contains(&word.lower.as_str())).map(|at| at + first)
    }

    pub(super) fn quoted_text(&self) -> Option<String> {
        let word =
            self.words.iter().find(|word| word.quoted && Some(&word.text) != self.path.as_ref());
        word.map(|word| word.text.clone())
    }

    /// Object of "when was OBJECT added", "who added OBJECT", "which commit removed OBJECT in
    /// src/".
    pub(super) fn object(&self, verb: Option<usize>, end: usize) -> Option<String> {
        let auxiliary = |word: &Word| {
            let auxiliaries = ["was", "were", "is", "are", "did", "does", "do", "has", "have"];
            auxiliaries.contains(&word.lower.as_str())
        };
        let between = match self.words[..end].iter().position(auxiliary) {
            Some(at) => &self.words[at + 1..end],
            None => &self.words[verb? + 1..],
        };
        let path = self.path.as_deref();
        let is_not_path = |word: &&Word| between.len() == 1 || Some(word.text.as_str()) != path;
        let mut object: Vec<&str> =
            between.iter().filter(is_not_path).map(|w| w.text.as_str()).collect();
        let leading =
            object.iter().take_while(|word| NOUNS.contains(&word.to_lowercase().as_str()));
        object.drain(..leading.count());
        while object.last().is_some_and(|word| ["in", "to", "of", "from", "first"].contains(word)) {
            object.pop();
        }
        Some(object.join(" "))
    }

    pub(super) fn hot_spots(&self) -> Option<HistoryQuestion> {
        let words = ["hotspot", "hotspots", "hot-spot", "hot-spots", "churn"];
        let pair =
            |a: &str, b: &[&str]| self.after(&[a]).is_some_and(|w| b.contains(&w.lower.as_str()));
        let is_match = self.has(&words)
            || pair("hot", &["spot", "spots"])
            || (self.has(&["most", "often"])
                && self.has(&["change", "changes", "changed", "edited", "modified", "touched"])
                && !self.has(&["who"]));
        is_match
            .then(|| HistoryQuestion::HotSpots { span: self.span.clone(), path: self.path.clone() })
    }

    pub(super) fn commit(&self) -> Option<HistoryQuestion> {
        let named = self.words.iter().find(|word| is_revision(&word.text));
        let argument =
            self.after(&["commit"]).filter(|word| self.words.len() <= 4 && !is_small(word));
        if self.span != Span::Unsaid {
            return None;
        }
        if self.commit_after(&["first", "oldest", "initial", "earliest"]) {
            return Some(HistoryQuestion::Commit { rev: Rev::Oldest });
        }
        if self.commit_after(&["last", "latest", "newest"]) {
            return Some(HistoryQuestion::Commit { rev: Rev::Named("HEAD".to_owned()) });
        }
        Some(HistoryQuestion::Commit { rev: Rev::Named(named.or(argument)?.text.clone()) })
    }

    /// True for "the first commit" of the whole repository.
    pub(super) fn commit_after(&self, any: &[&str]) -> bool {
        let everything = self.path.is_none() && self.author.is_none();
        everything && self.after(any).is_some_and(|word| word.lower == "commit")
    }

    pub(super) fn release(&self) -> Option<HistoryQuestion> {
        const RELEASE: [&str; 4] = ["release", "version", "tag", "releases"];
        if self.span != Span::Unsaid {
            return None;
        }
        let version = self.words.iter().find(|word| is_version(&word.text));
        let named = self.after(&RELEASE).filter(|word| !is_small(word) && word.lower != "notes");
        let version = version.or(named).map(|word| word.text.clone());
        let latest = self.has(&RELEASE) || self.has(&["changelog"]);
        (version.is_some() || latest).then_some(HistoryQuestion::Release { version })
    }

    pub(super) fn people(&self) -> Option<HistoryQuestion> {
        let (span, path) = (self.span.clone(), self.path.clone());
        self.asks_people().then_some(HistoryQuestion::People { span, path })
    }

    pub(super) fn asks_people(&self) -> bool {
        const PEOPLE: [&str; 13] = [
            "who",
            "who's",
            "whom",
            "contributor",
            "contributors",
            "author",
            "authors",
            "people",
            "persons",
            "team",
            "maintainer",
            "maintainers",
            "owner",
        ];
        self.has(&PEOPLE)
    }

    pub(super) fn history(&self) -> Option<HistoryQuestion> {
        let path = self.path.clone().filter(|_| self.span == Span::Unsaid)?;
        let words = ["history", "log", "story", "evolution", "evolve", "happened", "about"];
        let alone = self.words.len() == 1;
        (alone || self.has(&words) || self.says_change())
            .then_some(HistoryQuestion::History { path })
    }

    pub(super) fn changes(&self) -> Option<HistoryQuestion> {
        let changes = self.says_change() || self.has(&["history", "log"]);
        let time = self.span != Span::Unsaid;
        let starts = self.words.first().is_none_or(|word| {
            STARTERS.contains(&word.lower.as_str())
                || Some(&word.text) == self.path.as_ref()
                || Self::is_change(word)
                || BEFORE_PATH.contains(&word.lower.as_str())
        });
        let (span, path, author) = (self.span.clone(), self.path.clone(), self.author.clone());
        (starts && (changes || time)).then_some(HistoryQuestion::Changes { span, path, author })
    }

    pub(super) fn says_change(&self) -> bool {
        self.words.iter().any(Self::is_change)
    }

    pub(super) fn is_change(word: &Word) -> bool {
        !word.quoted && CHANGE.contains(&word.lower.as_str())
    }
}
