//! Reviews: comments on the lines of a task's changes, from the draft to the one message that
//! carries them to the agent.
//!
//! ```text
//!  draft ──begin_sending──► sending ──settle──► sent   the message is stored
//!    ▲                         │
//!    └──────── settle ◄────────┘   it was refused, or a kill came before it was stored
//! ```

pub mod anchor;
pub mod annotated;
pub mod message;

use crate::text::terminal::clean;
use a2a_hub_protocol::{
    id::{MessageId, TaskId},
    operation::{DiffSide, NewReviewComment},
};
use anchor::LineRange;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Longest comment, and longest text before the comments, in bytes.
pub const MAX_COMMENT: usize = 16 << 10;

/// Most comments of a draft.
pub const MAX_COMMENTS: usize = 1_000;

/// Most lines that a comment is about, and quotes.
pub const MAX_LINES: u32 = 200;

/// Longest quoted line in characters; the rest is cut.
const MAX_LINE: usize = 400;

/// Most bytes of a draft: texts, names of files and quoted lines. The message of a review is then
/// smaller than what an agent may be sent.
pub const MAX_REVIEW: usize = 512 << 10;

/// Most sent reviews of one owner that are stored for a task.
pub const MAX_SENT: usize = 8;

/// A review of one task by one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Id; later ones sort after earlier ones.
    pub id: String,
    /// Task with the worktree.
    pub task: TaskId,
    /// Identity of the caller that made it, who alone sees it.
    pub owner: String,
    /// Time of creation (RFC 3339).
    pub created_at: String,
    /// Number of the next comment: no number is used twice.
    next: u32,
    /// Comments, in the order of their numbers.
    pub comments: Vec<AnchoredComment>,
    /// State of the review.
    pub state: ReviewState,
}

/// A comment of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchoredComment {
    /// Number within the review.
    pub number: u32,
    /// File that it is about; none for a comment on the changes as a whole.
    pub anchor: Option<CommentAnchor>,
    /// The comment.
    pub text: String,
}

/// File and lines of a comment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommentAnchor {
    /// Path of the file, as the diff shows it.
    pub file: String,
    /// Commit of the snapshot in which the comment was made.
    pub commit: String,
    /// Lines; none for a comment on the whole file.
    pub lines: Option<QuotedLines>,
}

/// Lines that a comment is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotedLines {
    /// Side of the diff.
    pub side: DiffSide,
    /// Line numbers on that side.
    pub range: LineRange,
    /// The lines themselves, for people: cut, and without control characters.
    pub quoted: Vec<String>,
}

/// State of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum ReviewState {
    /// Its comments can be changed.
    Draft,
    /// Its message is on the way. After a kill, the store says whether it arrived.
    Sending(ReviewSubmission),
    /// Its message arrived.
    Sent {
        /// The message.
        submission: ReviewSubmission,
        /// Time at which it was sent (RFC 3339).
        at: String,
    },
}

/// The message of a review: it can be recognised in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewSubmission {
    /// Task that gets the message.
    pub task: TaskId,
    /// True if the message begins that task; false if it answers its question.
    pub is_new_task: bool,
    /// Id of the message.
    pub message: MessageId,
    /// Commit with the changes that were reviewed.
    pub commit: String,
}

/// Reason why a review is not changed as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReviewRefused {
    /// A comment without a text.
    #[error("a comment is empty; say what is to change")]
    Empty,
    /// A text is too long.
    #[error(
        "a text of {0} bytes is too long: at most {MAX_COMMENT} are allowed; say it shorter, or write it to a file of the repository"
    )]
    LongText(usize),
    /// The draft has too many comments.
    #[error(
        "a review has at most {MAX_COMMENTS} comments; send this one first: `a2a-hub task review send {0}`"
    )]
    TooManyComments(TaskId),
    /// The draft is too large.
    #[error(
        "a review has at most {MAX_REVIEW} bytes of texts and quoted lines; send this one first: `a2a-hub task review send {0}`"
    )]
    Large(TaskId),
    /// The draft has no such comment.
    #[error("the draft has no comment {number}; `a2a-hub task review {task}` lists them")]
    NoComment {
        /// Task with the worktree.
        task: TaskId,
        /// Number that was named.
        number: u32,
    },
    /// A comment names lines without a file, or an end without a beginning.
    #[error("lines need a file, and a last line needs a first one; name both")]
    LinesWithoutFile,
    /// The range is no range.
    #[error(
        "`{first}-{last}` are no lines: they are counted from 1, and the first comes before the last"
    )]
    NoRange {
        /// First line.
        first: u32,
        /// Last line.
        last: u32,
    },
    /// The range is too long.
    #[error(
        "a comment is about {MAX_LINES} lines at most, and not {0}; name the most important ones, or the whole file"
    )]
    LongRange(u32),
    /// The file is shorter.
    #[error(
        "the {side} side of `{file}` has {lines} lines, and no line {line}; `a2a-hub task diff {task}` shows them"
    )]
    NoLine {
        /// Task with the worktree.
        task: TaskId,
        /// File that was named.
        file: String,
        /// Side that was named.
        side: &'static str,
        /// Number of its lines.
        lines: usize,
        /// Line that was named.
        line: u32,
    },
    /// The file has no lines.
    #[error("`{0}` is no text, and has no lines; leave the line out to comment on the whole file")]
    Binary(String),
    /// The file is not on that side of the diff.
    #[error(
        "`{file}` is not on the {side} side of the diff: the task {change} it; use the other side"
    )]
    NoSide {
        /// File that was named.
        file: String,
        /// Side that was named.
        side: &'static str,
        /// Change of the task: `added` or `removed`.
        change: &'static str,
    },
}

/// Name of a side, as JSON and the command line have it.
pub const fn side_name(side: DiffSide) -> &'static str {
    match side {
        DiffSide::Old => "old",
        DiffSide::New => "new",
    }
}

impl Review {
    /// Begins a draft.
    pub fn draft(task: TaskId, owner: String, now: String) -> Self {
        let id = MessageId::fresh().to_string();
        let (comments, state) = (Vec::new(), ReviewState::Draft);
        Self { id, task, owner, created_at: now, next: 1, comments, state }
    }

    /// True while its comments can be changed.
    pub fn is_draft(&self) -> bool {
        self.state == ReviewState::Draft
    }

    /// Adds comments: all of them, or none.
    ///
    /// # Errors
    /// The draft would become too large.
    pub fn add(
        &mut self,
        comments: Vec<(Option<CommentAnchor>, String)>,
    ) -> Result<(), ReviewRefused> {
        let mut all = self.comments.clone();
        let mut next = self.next;
        for (anchor, text) in comments {
            all.push(AnchoredComment { number: next, anchor, text: checked_text(&text)? });
            next = next.saturating_add(1);
        }
        if all.len() > MAX_COMMENTS {
            return Err(ReviewRefused::TooManyComments(self.task.clone()));
        }
        if all.iter().map(AnchoredComment::bytes).sum::<usize>() > MAX_REVIEW {
            return Err(ReviewRefused::Large(self.task.clone()));
        }
        (self.comments, self.next) = (all, next);
        Ok(())
    }

    /// Removes comments: all of them, or none.
    ///
    /// # Errors
    /// The draft lacks one of them.
    pub fn remove(&mut self, numbers: &[u32]) -> Result<(), ReviewRefused> {
        let known: BTreeSet<_> = self.comments.iter().map(|comment| comment.number).collect();
        let numbers: BTreeSet<_> = numbers.iter().copied().collect();
        if let Some(&number) = numbers.difference(&known).next() {
            return Err(ReviewRefused::NoComment { task: self.task.clone(), number });
        }
        self.comments.retain(|comment| !numbers.contains(&comment.number));
        Ok(())
    }

    /// The message of the review once it is on its way.
    pub fn submission(&self) -> Option<&ReviewSubmission> {
        match &self.state {
            ReviewState::Draft => None,
            ReviewState::Sending(submission) | ReviewState::Sent { submission, .. } => {
                Some(submission)
            }
        }
    }

    /// Notes that the message is about to be sent.
    pub fn begin_sending(&mut self, submission: ReviewSubmission) {
        self.state = ReviewState::Sending(submission);
    }

    /// Notes what became of the message, once that is known.
    pub fn settle(&mut self, arrived: bool, now: String) {
        if let ReviewState::Sending(submission) = &self.state {
            self.state = match arrived {
                true => ReviewState::Sent { submission: submission.clone(), at: now },
                false => ReviewState::Draft,
            };
        }
    }
}

impl AnchoredComment {
    fn bytes(&self) -> usize {
        let lines = |lines: &QuotedLines| lines.quoted.iter().map(|line| line.len() + 1).sum();
        let anchor =
            |anchor: &CommentAnchor| anchor.file.len() + anchor.lines.as_ref().map_or(0, lines);
        self.text.len() + self.anchor.as_ref().map_or(0, anchor)
    }
}

/// The text of a comment, without control characters.
///
/// # Errors
/// It is empty or too long.
pub fn checked_text(text: &str) -> Result<String, ReviewRefused> {
    // First of all, so that a text of megabytes costs nothing.
    if text.len() > MAX_COMMENT {
        return Err(ReviewRefused::LongText(text.len()));
    }
    let text = clean(text.trim_end()).into_owned();
    if text.trim().is_empty() {
        return Err(ReviewRefused::Empty);
    }
    Ok(text)
}

/// Lines that a new comment names; none for a comment on a file or on the changes as a whole.
///
/// # Errors
/// The lines are no range, or are too many.
pub fn named_lines(comment: &NewReviewComment) -> Result<Option<LineRange>, ReviewRefused> {
    let (first, last) = match (comment.line, comment.end_line) {
        (None, None) => return Ok(None),
        (Some(first), last) if comment.file.is_some() => (first, last.unwrap_or(first)),
        (_, _) => return Err(ReviewRefused::LinesWithoutFile),
    };
    if first == 0 || last < first {
        return Err(ReviewRefused::NoRange { first, last });
    }
    let range = LineRange { first, last };
    match range.count() {
        count if count > MAX_LINES => Err(ReviewRefused::LongRange(count)),
        _ => Ok(Some(range)),
    }
}

/// Quotes lines of a file, for people and for the agent.
///
/// # Errors
/// The file has no such line, or is no text.
pub fn quote(
    task: &TaskId,
    file: &str,
    side: DiffSide,
    content: &[u8],
    range: LineRange,
) -> Result<QuotedLines, ReviewRefused> {
    // Git's own rule for binary files: a NUL in the first 8,000 bytes.
    if content.iter().take(8_000).any(|byte| *byte == 0) {
        return Err(ReviewRefused::Binary(clean(file).into_owned()));
    }
    let content = content.strip_suffix(b"\n").unwrap_or(content);
    let all = content.split(|byte| *byte == b'\n');
    let first = usize::try_from(range.first).unwrap_or(usize::MAX).saturating_sub(1);
    let count = usize::try_from(range.count()).unwrap_or(usize::MAX);
    let is_empty = content.is_empty();
    let quoted: Vec<_> =
        all.clone().skip(first).take(if is_empty { 0 } else { count }).map(shown_line).collect();
    if quoted.len() < count {
        return Err(ReviewRefused::NoLine {
            task: task.clone(),
            file: clean(file).into_owned(),
            side: side_name(side),
            lines: if is_empty { 0 } else { all.count() },
            line: range.last,
        });
    }
    Ok(QuotedLines { side, range, quoted })
}

/// A line without control characters, and cut if it is long.
fn shown_line(line: &[u8]) -> String {
    // A character has four bytes at most.
    let cut = &line[..line.len().min(4 * (MAX_LINE + 1))];
    let text = String::from_utf8_lossy(cut.strip_suffix(b"\r").unwrap_or(cut));
    let mut short: String = text.chars().take(MAX_LINE).collect();
    if text.chars().nth(MAX_LINE).is_some() {
        short.push('…');
    }
    clean(&short).replace('\n', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> TaskId {
        TaskId::new("t1")
    }

    fn draft() -> Review {
        Review::draft(task(), "operator".to_owned(), "2026-01-01T00:00:00Z".to_owned())
    }

    fn general(text: &str) -> (Option<CommentAnchor>, String) {
        (None, text.to_owned())
    }

    #[test]
    fn numbers_of_comments_are_never_reused() {
        let mut review = draft();
        review.add(vec![general("one"), general("two")]).unwrap();
        review.remove(&[2]).unwrap();
        review.add(vec![general("three")]).unwrap();
        let numbers: Vec<_> = review.comments.iter().map(|comment| comment.number).collect();
        assert_eq!(numbers, [1, 3]);
        let refused = review.remove(&[1, 2]);
        assert_eq!(refused, Err(ReviewRefused::NoComment { task: task(), number: 2 }));
        assert_eq!(review.comments.len(), 2, "all or none");
    }

    #[test]
    fn draft_is_limited_as_a_whole() {
        let mut review = draft();
        let long = "x".repeat(MAX_COMMENT);
        for _ in 0..MAX_REVIEW / MAX_COMMENT {
            review.add(vec![general(&long)]).unwrap();
        }
        let before = review.clone();
        assert_eq!(review.add(vec![general("more")]), Err(ReviewRefused::Large(task())));
        let many = vec![general("x"); MAX_COMMENTS + 1];
        assert_eq!(review.add(many.clone()), Err(ReviewRefused::TooManyComments(task())));
        let huge = "y".repeat(1 << 20);
        assert_eq!(review.add(vec![general(&huge)]), Err(ReviewRefused::LongText(1 << 20)));
        assert_eq!(review.add(vec![general(" \n")]), Err(ReviewRefused::Empty));
        assert_eq!(review, before, "a refused comment changes nothing");
        draft().add(many[..MAX_COMMENTS].to_vec()).unwrap();
    }

    #[test]
    fn unsettled_message_returns_to_draft_or_is_sent() {
        let submission = ReviewSubmission {
            task: TaskId::new("t2"),
            is_new_task: true,
            message: MessageId::new("m"),
            commit: "c".to_owned(),
        };
        let mut review = draft();
        review.settle(true, String::new());
        assert!(review.is_draft(), "nothing was on the way");
        review.begin_sending(submission.clone());
        let stored = serde_json::to_string(&review).unwrap();
        let mut found: Review = serde_json::from_str(&stored).unwrap();
        assert_eq!(found, review);
        found.settle(false, "later".to_owned());
        assert!(found.is_draft());
        review.settle(true, "later".to_owned());
        assert_eq!(review.submission(), Some(&submission));
        review.settle(false, "again".to_owned());
        assert!(matches!(&review.state, ReviewState::Sent { at, .. } if at == "later"));
    }

    #[test]
    fn lines_are_quoted_or_refused() {
        let range = |first, last| LineRange { first, last };
        let quoted = |content: &[u8], range| {
            quote(&task(), "a", DiffSide::New, content, range).map(|lines| lines.quoted)
        };
        assert_eq!(quoted(b"one\r\ntwo\nthree", range(1, 2)).unwrap(), ["one", "two"]);
        assert_eq!(quoted(b"one\n\x1b[2J\xff\n", range(2, 2)).unwrap(), ["\\u{1b}[2J\u{fffd}"]);
        let long = "ä".repeat(MAX_LINE + 1);
        let cut = quoted(long.as_bytes(), range(1, 1)).unwrap();
        assert_eq!((cut[0].chars().count(), cut[0].ends_with('…')), (MAX_LINE + 1, true));
        for (content, wanted, lines) in
            [(&b""[..], range(1, 1), 0), (b"a\n", range(2, 2), 1), (b"a\nb", range(2, 3), 2)]
        {
            let why = quoted(content, wanted).unwrap_err().to_string();
            assert!(why.contains(&format!("has {lines} lines")), "{why}");
        }
        assert_eq!(quoted(b"\0\n", range(1, 1)), Err(ReviewRefused::Binary("a".to_owned())));
    }

    #[test]
    fn named_lines_are_checked() {
        let comment = |file: Option<&str>, line, end_line| NewReviewComment {
            file: file.map(str::to_owned),
            line,
            end_line,
            ..NewReviewComment::default()
        };
        let lines = |first, last| Ok(Some(LineRange { first, last }));
        for (comment, expected) in [
            (comment(None, None, None), Ok(None)),
            (comment(Some("a"), None, None), Ok(None)),
            (comment(Some("a"), Some(3), None), lines(3, 3)),
            (comment(Some("a"), Some(3), Some(5)), lines(3, 5)),
            (comment(None, Some(3), None), Err(ReviewRefused::LinesWithoutFile)),
            (comment(Some("a"), None, Some(3)), Err(ReviewRefused::LinesWithoutFile)),
            (comment(Some("a"), Some(0), None), Err(ReviewRefused::NoRange { first: 0, last: 0 })),
            (
                comment(Some("a"), Some(5), Some(4)),
                Err(ReviewRefused::NoRange { first: 5, last: 4 }),
            ),
            (comment(Some("a"), Some(1), Some(u32::MAX)), Err(ReviewRefused::LongRange(u32::MAX))),
        ] {
            assert_eq!(named_lines(&comment), expected, "{comment:?}");
        }
    }
}
