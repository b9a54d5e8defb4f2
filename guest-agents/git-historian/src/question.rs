//! Parses a plain sentence into a [`HistoryQuestion`].

mod author;
mod count;

use jiff::civil::Date;

use crate::span::{self, Span};
use crate::words::{self, Word};
pub(crate) use author::is_called;
pub(crate) use count::Counted;

/// Supported question. Paths and revisions are as the user wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HistoryQuestion {
    /// Changes in a span and path, by all people or one.
    Changes { span: Span, path: Option<String>, author: Option<String> },
    /// A number of commits, files or releases.
    Count { counted: Counted, span: Span, path: Option<String>, author: Option<String> },
    /// Changes of a release: this one, or the latest.
    Release { version: Option<String> },
    /// People who work on a path, or know it best.
    People { span: Span, path: Option<String> },
    /// Commits that added or removed this text.
    Origin { text: String, path: Option<String> },
    /// Reason for a line.
    Line { path: String, line: u32 },
    /// History of a file or folder from its beginning.
    History { path: String },
    /// Most changed files.
    HotSpots { span: Span, path: Option<String> },
    /// Changes of one commit.
    Commit { rev: Rev },
    /// Request for help.
    Help,
    /// Sentence that was not understood.
    Unknown,
}

/// Revision of a question about one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rev {
    Named(String),
    Oldest,
}

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

/// Verbs whose object was added to the code or removed.
const ORIGIN_VERBS: [&str; 13] = [
    "introduced",
    "introduce",
    "added",
    "add",
    "created",
    "create",
    "removed",
    "remove",
    "deleted",
    "delete",
    "dropped",
    "appear",
    "appeared",
];

/// Words that precede a path.
const BEFORE_PATH: [&str; 14] = [
    "in",
    "under",
    "of",
    "to",
    "inside",
    "within",
    "file",
    "folder",
    "directory",
    "know",
    "knows",
    "about",
    "on",
    "touched",
];

/// Words that are never paths, even in the position of one.
const NOT_A_PATH: [&str; 34] = [
    "a",
    "an",
    "the",
    "this",
    "that",
    "these",
    "it",
    "its",
    "here",
    "there",
    "repo",
    "repository",
    "project",
    "code",
    "codebase",
    "history",
    "commit",
    "commits",
    "release",
    "version",
    "general",
    "total",
    "all",
    "most",
    "best",
    "change",
    "changes",
    "file",
    "files",
    "folder",
    "directory",
    "line",
    "me",
    "what",
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

/// Sentence without its span. Each kind of question has a method that looks for itself.
struct Sentence {
    words: Vec<Word>,
    span: Span,
    path: Option<String>,
    author: Option<String>,
}

impl Sentence {
    fn asks_help(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(|word| word.lower.as_str()).collect();
        self.span == Span::Unsaid && HELP.contains(&words.join(" ").as_str())
    }

    fn has(&self, any: &[&str]) -> bool {
        self.words.iter().any(|word| !word.quoted && any.contains(&word.lower.as_str()))
    }

    /// Word after one of these.
    fn after(&self, any: &[&str]) -> Option<&Word> {
        let at = self.words.iter().position(|word| any.contains(&word.lower.as_str()))?;
        self.words.get(at + 1)
    }

    /// Parses "why is src/x.rs:42 here?", "who wrote line 42 of src/x.rs?".
    fn line(&self) -> Option<HistoryQuestion> {
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

    fn origin(&self) -> Option<HistoryQuestion> {
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
    fn reason_or_source(&self) -> Option<usize> {
        let (tails, first): (&[&str], _) = match self.words.first()?.lower.as_str() {
            "why" | "why's" => (&["here", "there", "exist", "exists", "needed"], 1),
            "where" => (&["come", "comes", "from"], 1),
            _ => return None,
        };
        let mut tail = self.words.iter().skip(first);
        tail.position(|word| tails.contains(&word.lower.as_str())).map(|at| at + first)
    }

    fn quoted_text(&self) -> Option<String> {
        let word =
            self.words.iter().find(|word| word.quoted && Some(&word.text) != self.path.as_ref());
        word.map(|word| word.text.clone())
    }

    /// Object of "when was OBJECT added", "who added OBJECT", "which commit removed OBJECT in
    /// src/".
    fn object(&self, verb: Option<usize>, end: usize) -> Option<String> {
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

    fn hot_spots(&self) -> Option<HistoryQuestion> {
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

    fn commit(&self) -> Option<HistoryQuestion> {
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
    fn commit_after(&self, any: &[&str]) -> bool {
        let everything = self.path.is_none() && self.author.is_none();
        everything && self.after(any).is_some_and(|word| word.lower == "commit")
    }

    fn release(&self) -> Option<HistoryQuestion> {
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

    fn people(&self) -> Option<HistoryQuestion> {
        let (span, path) = (self.span.clone(), self.path.clone());
        self.asks_people().then_some(HistoryQuestion::People { span, path })
    }

    fn asks_people(&self) -> bool {
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

    fn history(&self) -> Option<HistoryQuestion> {
        let path = self.path.clone().filter(|_| self.span == Span::Unsaid)?;
        let words = ["history", "log", "story", "evolution", "evolve", "happened", "about"];
        let alone = self.words.len() == 1;
        (alone || self.has(&words) || self.says_change())
            .then_some(HistoryQuestion::History { path })
    }

    fn changes(&self) -> Option<HistoryQuestion> {
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

    fn says_change(&self) -> bool {
        self.words.iter().any(Self::is_change)
    }

    fn is_change(word: &Word) -> bool {
        !word.quoted && CHANGE.contains(&word.lower.as_str())
    }
}

/// Path in a sentence: a word that looks like one, or else the word in the position of one.
fn path(words: &[Word]) -> Option<String> {
    let looks = words.iter().find(|word| !word.text.contains("..") && looks_like_path(&word.text));
    let placed = || {
        let mut places = (0..words.len())
            .rev()
            .filter(|&at| !words[at].quoted && BEFORE_PATH.contains(&words[at].lower.as_str()));
        places.find_map(|at| {
            let after = words.get(at + 1)?;
            let the = usize::from(["the", "our", "my"].contains(&after.lower.as_str()));
            words.get(at + 1 + the).filter(|word| word.quoted || is_name(word))
        })
    };
    looks.or_else(placed).map(|word| word.text.clone())
}

fn is_name(word: &Word) -> bool {
    let allowed = |c: char| c.is_alphanumeric() || "._-+@".contains(c);
    let name = word.text.chars().all(allowed) && !is_small(word);
    name && !is_version(&word.text)
        && !is_revision(&word.text)
        && !ORIGIN_VERBS.contains(&word.lower.as_str())
        && !BEFORE_PATH.contains(&word.lower.as_str())
}

fn is_small(word: &Word) -> bool {
    NOT_A_PATH.contains(&word.lower.as_str())
}

fn looks_like_path(text: &str) -> bool {
    let extension = |text: &str| {
        text.rsplit_once('.').is_some_and(|(stem, extension)| {
            let short = (1..=8).contains(&extension.len());
            let plain = extension.chars().all(|c| c.is_ascii_alphanumeric());
            !stem.is_empty() && short && plain && extension.contains(|c: char| c.is_alphabetic())
        })
    };
    let dotted = text.len() > 1 && text.starts_with('.');
    !text.contains([' ', ':', '('])
        && !is_version(text)
        && (text.contains('/') || dotted || extension(text))
}

/// True for versions such as `v1`, `1.2`, `v1.2.0-rc.1`, `sdk-v2.0`.
fn is_version(text: &str) -> bool {
    if let Some((name, version)) = text.split_once('-')
        && name.chars().all(char::is_alphabetic)
        && name != "v"
    {
        return is_version(version);
    }
    let number = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let tail = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let marked = number.len() < text.len() || tail.starts_with('.');
    let plain = number.chars().all(|c| c.is_ascii_alphanumeric() || ".-+".contains(c));
    number.starts_with(|c: char| c.is_ascii_digit())
        && marked
        && plain
        && (tail.is_empty() || tail.starts_with(['.', '-', '+']))
}

/// True for revisions such as `abc1234`, `HEAD`, `HEAD~2`.
fn is_revision(text: &str) -> bool {
    let hex = text.len() >= 7 && text.len() <= 64 && text.chars().all(|c| c.is_ascii_hexdigit());
    let head = text
        .strip_prefix("HEAD")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['~', '^']));
    head || (hex && text.contains(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
