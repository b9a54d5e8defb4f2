//! Parses a plain sentence into a [`HistoryQuestion`].

mod author;
mod count;
mod form;
mod kind;
mod sentence;

use jiff::civil::Date;

use crate::span;
use crate::words;
pub(crate) use author::is_called;
use form::path;
pub(crate) use kind::{Counted, HistoryQuestion, Rev};
use sentence::Sentence;

impl HistoryQuestion {
    /// Parses a sentence. `today` is the reference of "last week".
    pub(crate) fn parse(sentence: &str, today: Date) -> Self {
        let mut words = words::split(sentence);
        let span = span::find(&words, today).map(|(span, at)| {
            words.drain(at);
            span
        });
        let author = author::find(&words);
        // "of" precedes paths as well.
        let name = author.as_deref().and_then(|author| author.split(' ').next());
        let path = path(&words).filter(|path| name != Some(path.as_str()));
        let sentence = Sentence { path, author, words, span: span.unwrap_or_default() };
        if sentence.asks_help() {
            return Self::Help;
        }
        sentence
            .line()
            .or_else(|| sentence.count())
            .or_else(|| sentence.origin())
            .or_else(|| sentence.hot_spots())
            .or_else(|| sentence.commit())
            .or_else(|| sentence.release())
            .or_else(|| sentence.people())
            .or_else(|| sentence.history())
            .or_else(|| sentence.changes())
            .unwrap_or(Self::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    /// Question in one line; today is a Saturday.
    fn asked(sentence: &str) -> String {
        let at = |path: Option<String>| path.map(|path| format!(" in {path}")).unwrap_or_default();
        let by = |name: Option<String>| name.map(|name| format!(" by {name}")).unwrap_or_default();
        let span = |span: Span| match span {
            Span::Unsaid => String::new(),
            Span::Days { first, last } => {
                format!(" {first}..{}", last.map(|day| day.to_string()).unwrap_or_default())
            }
            Span::Revs { from, to } => format!(" {from}..{}", to.unwrap_or_default()),
            Span::Unreleased => " unreleased".into(),
        };
        match HistoryQuestion::parse(sentence, jiff::civil::date(2026, 11, 21)) {
            HistoryQuestion::Changes { span: s, path, author } => {
                format!("changes{}{}{}", span(s), at(path), by(author))
            }
            HistoryQuestion::Count { counted: what, span: s, path, author } => {
                let what = format!("{what:?}").to_lowercase();
                format!("count {what}{}{}{}", span(s), at(path), by(author))
            }
            HistoryQuestion::Release { version } => {
                format!("release {}", version.unwrap_or("latest".into()))
            }
            HistoryQuestion::People { span: s, path } => format!("people{}{}", span(s), at(path)),
            HistoryQuestion::Origin { text, path } => format!("origin `{text}`{}", at(path)),
            HistoryQuestion::Line { path, line } => format!("line {path}:{line}"),
            HistoryQuestion::History { path } => format!("history of {path}"),
            HistoryQuestion::HotSpots { span: s, path } => {
                format!("hot spots{}{}", span(s), at(path))
            }
            HistoryQuestion::Commit { rev: Rev::Named(rev) } => format!("commit {rev}"),
            HistoryQuestion::Commit { rev: Rev::Oldest } => "oldest commit".into(),
            HistoryQuestion::Help => "help".into(),
            HistoryQuestion::Unknown => "unknown".into(),
        }
    }

    #[test]
    fn sentences_are_parsed_to_questions() {
        let cases = [
            ("what changed last week?", "changes 2026-11-14..2026-11-21"),
            ("What changed since v1.1 in src/?", "changes v1.1.. in src/"),
            ("what changed in src since v1.1", "changes v1.1.. in src"),
            ("what's new?", "changes"),
            (
                "changes in the last 2 days in `my dir/a b.rs`",
                "changes 2026-11-19..2026-11-21 in my dir/a b.rs",
            ),
            ("what did Ada do yesterday", "changes 2026-11-20..2026-11-20 by Ada"),
            ("what's unreleased?", "changes unreleased"),
            ("summarise last month", "changes 2026-10-21..2026-11-21"),
            ("who knows src/x.rs best?", "people in src/x.rs"),
            ("who knows the parser best", "people in parser"),
            ("who knows Makefile best?", "people in Makefile"),
            ("who works on this repository?", "people"),
            ("who worked on src/ last month?", "people 2026-10-21..2026-11-21 in src/"),
            ("list the contributors", "people"),
            ("summarise release v1.2", "release v1.2"),
            ("what's in 1.2.0-rc.1?", "release 1.2.0-rc.1"),
            ("what changed in v1.2", "release v1.2"),
            ("summarize the latest release", "release latest"),
            ("release notes for sdk-v2.0", "release sdk-v2.0"),
            ("changelog of v2", "release v2"),
            ("when was frobnicate introduced?", "origin `frobnicate`"),
            (
                "when was the function parse_all added in src/x.rs?",
                "origin `parse_all` in src/x.rs",
            ),
            ("when was \"let x = 1;\" removed?", "origin `let x = 1;`"),
            ("who added retry_after?", "origin `retry_after`"),
            ("which commit removed `fn old()` in src/", "origin `fn old()` in src/"),
            ("why is MAX_LINE here?", "origin `MAX_LINE`"),
            ("why does backoff exist?", "origin `backoff`"),
            ("where does frobnicate come from", "origin `frobnicate`"),
            ("when was src/x.rs added?", "history of src/x.rs"),
            ("why is this line here?", "unknown"),
            ("why is src/x.rs:42 here?", "line src/x.rs:42"),
            ("src/x.rs:42:7", "line src/x.rs:42"),
            ("who wrote line 7 of src/x.rs?", "line src/x.rs:7"),
            ("history of src/x.rs", "history of src/x.rs"),
            ("history of README", "history of README"),
            ("src/x.rs", "history of src/x.rs"),
            ("what happened to .github/workflows?", "history of .github/workflows"),
            ("hot spots", "hot spots"),
            ("which files change most?", "hot spots"),
            (
                "which files changed most often in src/ this year?",
                "hot spots 2026-01-01..2026-11-21 in src/",
            ),
            ("show commit abc1234", "commit abc1234"),
            ("show HEAD~2", "commit HEAD~2"),
            ("what did 0a1b2c3d do?", "commit 0a1b2c3d"),
            ("commit main", "commit main"),
            ("help", "help"),
            ("hello", "help"),
            ("", "help"),
            ("What can you do?", "help"),
            ("how many commits are there?", "count commits"),
            ("How many commits are in src/ since v1.1?", "count commits v1.1.. in src/"),
            ("number of commits this year", "count commits 2026-01-01..2026-11-21"),
            ("count the commits", "count commits"),
            ("how many commits did Ada Moss make?", "count commits by Ada Moss"),
            ("how many commits by bo?", "count commits by bo"),
            ("how many commits of Ada Moss?", "count commits by Ada Moss"),
            ("how many commits of docs?", "count commits in docs"),
            ("changes of README", "history of README"),
            ("how many commits does Bo have?", "count commits by Bo"),
            ("how often was src/x.rs changed?", "count commits in src/x.rs"),
            ("how many times did src/x.rs change", "count commits in src/x.rs"),
            ("how many files are in src?", "count files in src"),
            ("how many releases are there?", "count releases"),
            ("how many people work on src/?", "people in src/"),
            ("how many authors are there?", "people"),
            ("who works here?", "people"),
            ("how many files changed last week?", "changes 2026-11-14..2026-11-21"),
            ("how old is this repository?", "oldest commit"),
            ("show the first commit", "oldest commit"),
            ("what is the last commit?", "commit HEAD"),
            ("changes by Ada in src/ last week", "changes 2026-11-14..2026-11-21 in src/ by Ada"),
            ("changes by month", "changes"),
            ("did anything change yesterday?", "changes 2026-11-20..2026-11-20"),
            ("src/ last week", "changes 2026-11-14..2026-11-21 in src/"),
            ("yesterday?", "changes 2026-11-20..2026-11-20"),
            ("write me a poem", "unknown"),
            ("write a new poem about last week", "unknown"),
            ("please delete all the commits", "unknown"),
            ("how many lines of code are there?", "unknown"),
            ("how old is Ada?", "unknown"),
            ("how many bugs are open?", "unknown"),
            ("is the build green?", "unknown"),
        ];
        for (sentence, expected) in cases {
            assert_eq!(asked(sentence), expected, "{sentence}");
        }
    }
}
