//! Answers questions: selects the facts of each, and streams its sections as they are ready.

mod numbers;
mod resolve;
mod scope;

use std::collections::HashSet;

use a2a_hub_sdk::{Artifact, Context, Failure, Part, PartContent, TextStream};
use jiff::ToSpan;
use jiff::civil::Date;

use crate::answer::{self, Examples};
use crate::error::QuestionError;
use crate::git::{Commit, Git, MAX_COMMITS, Repository, Selection};
use crate::markdown::{code, count, day, plain, short};
use crate::paths::PathTarget;
use crate::question::{HistoryQuestion, Rev};
use crate::span::Span;
use crate::{releases, tally};
use scope::Scope;

/// Days that "what changed?" covers without a time.
const RECENT_DAYS: i64 = 14;

/// Id of the answer's artifact.
pub(crate) const ANSWER: &str = "answer";

/// Answers a question about the repository of a directory; returns a one-sentence summary.
pub(crate) fn answer(
    ctx: &Context,
    directory: Option<&str>,
    question: &HistoryQuestion,
    today: Date,
) -> Result<String, QuestionError> {
    let git = Git::new(ctx, directory);
    let repository = git.open()?;
    let report = AnswerBuilder { ctx, stream: ctx.text_stream(ANSWER), text: String::new() };
    Historian { ctx, git, repository, today, report, cut: false }.answer(question)
}

/// Growing answer.
struct AnswerBuilder<'a> {
    ctx: &'a Context,
    stream: TextStream<'a>,
    text: String,
}

impl AnswerBuilder<'_> {
    fn add(&mut self, section: &str) -> Result<(), Failure> {
        let gap = if self.text.is_empty() { "" } else { "\n\n" };
        let piece = format!("{gap}{section}");
        self.stream.push(&piece)?;
        self.stream.flush()?;
        self.text += &piece;
        Ok(())
    }

    /// Replaces the chunks by the whole answer.
    fn finish(self) -> Result<(), Failure> {
        let part = Part {
            content: PartContent::Text(self.text),
            filename: None,
            media_type: Some("text/markdown".into()),
            metadata: None,
        };
        self.ctx.artifact(Artifact::new(ANSWER, vec![part]).named("Answer"))
    }
}

struct Historian<'a> {
    ctx: &'a Context,
    git: Git<'a>,
    repository: Repository,
    today: Date,
    report: AnswerBuilder<'a>,
    /// True if the history has more commits than were read.
    cut: bool,
}

impl Historian<'_> {
    fn answer(mut self, question: &HistoryQuestion) -> Result<String, QuestionError> {
        let summary = match question {
            HistoryQuestion::Changes { span, path, author } => {
                self.changes(span, path.as_deref(), author.as_deref())
            }
            HistoryQuestion::Count { counted, span, path, author } => {
                let scope = self.scope(span, path.as_deref())?;
                self.count(*counted, &scope, author.as_deref())
            }
            HistoryQuestion::Release { version } => self.release(version.as_deref()),
            HistoryQuestion::People { span, path } => self.people(span, path.as_deref()),
            HistoryQuestion::Origin { text, path } => self.origin(text, path.as_deref()),
            HistoryQuestion::Line { path, line } => self.line(path, *line),
            HistoryQuestion::History { path } => self.history(path),
            HistoryQuestion::HotSpots { span, path } => self.hot_spots(span, path.as_deref()),
            HistoryQuestion::Commit { rev: Rev::Named(rev) } => {
                self.revision(rev).and_then(|hash| self.commit(&hash))
            }
            HistoryQuestion::Commit { rev: Rev::Oldest } => self.oldest(),
            HistoryQuestion::Help => self.help(),
            HistoryQuestion::Unknown => Err(QuestionError::UnknownQuestion),
        }?;
        if self.cut {
            let limit = count(MAX_COMMITS, "commit");
            self.report
                .add(&format!("> Only the newest {limit} were read; ask about a shorter time."))?;
        }
        if self.repository.shallow {
            self.report.add(
                "> This is a shallow clone: what is older is not here, and the oldest commit seems to have made \
                 everything. `git fetch --unshallow` brings the rest.",
            )?;
        }
        self.report.finish()?;
        Ok(summary)
    }

    fn changes(
        &mut self,
        span: &Span,
        path: Option<&str>,
        author: Option<&str>,
    ) -> Result<String, QuestionError> {
        let recent = Span::Days { first: self.days_ago(RECENT_DAYS), last: None };
        let span = if *span == Span::Unsaid { &recent } else { span };
        let scope = self.scope(span, path)?;
        let (commits, by) = self.read_of(&scope, author)?;
        self.report.add(&format!("## What changed{}{by}", scope.label))?;
        if commits.is_empty() {
            return self.nothing(&scope, author);
        }
        self.tell_commits(&commits)?;
        Ok(format!("{} Most of it: {}.", answer::overview(&commits), main_thing(&commits)))
    }

    fn release(&mut self, version: Option<&str>) -> Result<String, QuestionError> {
        let tags = self.git.tags(None)?;
        let release = match version {
            Some(version) => {
                releases::find(&tags, version).ok_or_else(|| self.unknown_tag(version, &tags))
            }
            None => releases::latest(&tags).ok_or(QuestionError::NoReleases),
        }?;
        let merged = self.git.tags(Some(&release.commit))?;
        let previous = releases::previous(&merged, release);
        let range = match previous {
            Some(previous) => format!("{}..{}", previous.commit, release.commit),
            None => release.commit.clone(),
        };
        let commits = self.read(&Scope { range, ..Scope::default() })?;
        let after = match previous {
            Some(previous) => format!("after {} of {}", code(&previous.name), day(previous.time)),
            None => "the first release I know".into(),
        };
        let name = code(&release.name);
        self.report
            .add(&format!("## Release {name}\n\nMade on {}, {after}.", day(release.time)))?;
        if commits.is_empty() {
            return Ok(format!("{name} has no commits of its own, {after}."));
        }
        self.tell_commits(&commits)?;
        Ok(format!("{name}, {after}: {}", answer::overview(&commits)))
    }

    /// Adds the sections about a range of commits.
    fn tell_commits(&mut self, commits: &[Commit]) -> Result<(), Failure> {
        self.report.add(&answer::overview(commits))?;
        self.report.add(&answer::groups(commits))?;
        self.report.add(&answer::people_line(commits))?;
        if let Some(table) = answer::files(commits, |_| true) {
            self.report.add(&format!("### Files most changed\n\n{table}"))?;
        }
        Ok(())
    }

    fn people(&mut self, span: &Span, path: Option<&str>) -> Result<String, QuestionError> {
        let scope = self.scope(span, path)?;
        if scope.is_file && *span == Span::Unsaid {
            return self.experts(&scope);
        }
        let commits = self.read(&scope)?;
        self.report.add(&format!("## Who works here{}", scope.label))?;
        if commits.is_empty() {
            return self.nothing(&scope, None);
        }
        let people = tally::people(&commits);
        let since = self.days_ago(90);
        let active = people.iter().filter(|person| day(person.last) >= since).count();
        let summary = answer::people_summary(&people, commits.len(), active);
        self.report.add(&summary)?;
        self.report.add(&answer::people(&people))?;
        let ranked = people.iter().map(|person| (person.name.as_str(), person.last));
        let advice = answer::whom_to_ask(ranked, self.today);
        self.report.add(&advice)?;
        Ok(format!("{summary} {advice}"))
    }

    fn experts(&mut self, scope: &Scope) -> Result<String, QuestionError> {
        let path = scope.path.as_deref().unwrap_or_default();
        self.ctx.say(format!("reading who wrote {path} …"))?;
        let commits = self.git.follow(&scope.selection())?;
        let blamed = self.git.blame(&self.repository, path, None)?;
        let people = tally::people(&commits);
        let owners = answer::owners(&blamed, &people);
        self.report.add(&format!("## Who knows {}", code(path)))?;
        let ranked = owners.iter().filter_map(|owner| Some((owner.name, owner.person?.last)));
        let advice = answer::whom_to_ask(ranked, self.today);
        self.report.add(&advice)?;
        self.report.add(&answer::owners_table(&owners))?;
        Ok(format!("{}: {advice}", code(path)))
    }

    fn origin(&mut self, text: &str, path: Option<&str>) -> Result<String, QuestionError> {
        let scope = self.scope(&Span::Unsaid, path)?;
        self.ctx.say(format!("searching the history for {} …", code(text)))?;
        let commits = self.git.pickaxe(text, &scope.selection())?;
        let name = code(text);
        self.report.add(&format!("## Where {name} comes from{}", scope.label))?;
        let Some((first, later)) = commits.split_last() else {
            let answer = format!(
                "No commit{} added or removed {name}. The search is exact, upper and lower case included: quote the \
                 text as it stands in the file, without line breaks.",
                scope.label
            );
            self.report.add(&answer)?;
            return Ok(answer);
        };
        self.report.add(&format!("It was introduced by\n\n{}", answer::commit(first)))?;
        self.report.add(&answer::released(&self.git.tags_containing(&first.hash)?))?;
        if !later.is_empty() {
            self.report.add(&answer::later(later))?;
        }
        let places = self.git.grep(text, &scope.selection())?;
        self.report.add(&answer::places(&places))?;
        let now = if places.is_empty() { ", and is gone today" } else { "" };
        Ok(format!("{name} was introduced by {}{now}.", answer::commit_line(first)))
    }

    fn line(&mut self, path: &str, line: u32) -> Result<String, QuestionError> {
        let PathTarget::File(path) = self.find(path)? else {
            return Err(QuestionError::UnknownPath {
                query: format!("{path}:{line}"),
                nearest: Vec::new(),
            });
        };
        let blamed = match self.git.blame(&self.repository, &path, Some(line)) {
            Err(QuestionError::Git(complaint)) if complaint.contains("has only") => Vec::new(),
            blamed => blamed?,
        };
        let Some(blamed) = blamed.into_iter().next() else {
            return Err(QuestionError::NoSuchLine { path, line });
        };
        let commit = self.git.show(&blamed.commit)?;
        let position = code(&format!("{path}:{line}"));
        self.report.add(&format!("## Why {position} is here\n\n{}", code(blamed.text.trim())))?;
        self.report.add(&format!("It was last changed by\n\n{}", answer::commit(&commit)))?;
        self.report.add(&answer::released(&self.git.tags_containing(&commit.hash)?))?;
        Ok(format!("{position} was last changed by {}.", answer::commit_line(&commit)))
    }

    fn history(&mut self, query: &str) -> Result<String, QuestionError> {
        let (path, is_file, is_removed) = match self.find(query) {
            Ok(PathTarget::Root) => return self.changes(&Span::Unsaid, None, None),
            Ok(PathTarget::File(path)) => (path, true, false),
            Ok(PathTarget::Folder(path)) => (path, false, false),
            Err(error) => {
                let path = query.trim_start_matches("./").trim_end_matches('/').to_owned();
                let selection = Selection {
                    range: &self.repository.head,
                    path: Some(&path),
                    ..Selection::default()
                };
                self.git.newest(&selection)?.ok_or(error)?;
                (path, false, true)
            }
        };
        self.ctx.say(format!("reading the history of {path} …"))?;
        let selection =
            Selection { range: &self.repository.head, path: Some(&path), ..Selection::default() };
        let commits = if is_file { self.git.follow(&selection) } else { self.git.log(&selection) }?;
        let name = code(&path);
        self.report.add(&format!("## History of {name}"))?;
        let (Some(newest), Some(oldest)) = (commits.first(), commits.last()) else {
            self.report.add("Only merges touched it.")?;
            return Ok(format!("only merges touched {name}"));
        };
        let end = if is_removed { "removed or renamed by" } else { "last changed by" };
        let summary = format!(
            "{} by {}: first in {}, {end} {}.",
            count(commits.len(), "commit"),
            count(tally::people(&commits).len(), "person"),
            answer::commit_line(oldest),
            answer::commit_line(newest),
        );
        self.report.add(&summary)?;
        self.report.add(&answer::history(&commits, &path))?;
        self.report.add(&answer::people_line(&commits))?;
        Ok(format!("{name}: {summary}"))
    }

    fn hot_spots(&mut self, span: &Span, path: Option<&str>) -> Result<String, QuestionError> {
        let scope = self.scope(span, path)?;
        let commits = self.read(&scope)?;
        let files: HashSet<String> = self.git.files(&self.repository.head)?.into_iter().collect();
        self.report.add(&format!("## Files that change most{}", scope.label))?;
        let Some(table) = answer::files(&commits, |path| files.contains(path)) else {
            return self.nothing(&scope, None);
        };
        self.report.add(&table)?;
        self.report.add(&format!(
            "Counted over {}; files that are gone are left out.",
            count(commits.len(), "commit")
        ))?;
        let tallied = tally::files(&commits);
        let hottest = tallied.iter().find(|file| files.contains(file.path));
        let hottest = hottest
            .map(|file| format!("{} with {}", code(file.path), count(file.commits, "commit")));
        Ok(format!("Changed most: {}.", hottest.unwrap_or_default()))
    }

    fn commit(&mut self, hash: &str) -> Result<String, QuestionError> {
        let commit = self.git.show(hash)?;
        self.report.add(&format!(
            "## Commit {}\n\n{}",
            code(short(hash)),
            answer::commit(&commit)
        ))?;
        self.report.add(&answer::released(&self.git.tags_containing(hash)?))?;
        if !commit.files.is_empty() {
            self.report.add(&answer::changed_files(&commit))?;
        }
        Ok(answer::commit_line(&commit))
    }

    fn help(&mut self) -> Result<String, QuestionError> {
        let newest = self.git.show(&self.repository.head)?;
        let files = self.git.files(&self.repository.head)?;
        let touched =
            newest.files.iter().map(|change| &change.path).find(|path| files.contains(path));
        let tag = releases::latest(&self.git.tags(None)?).map(|tag| tag.name.clone());
        let examples = Examples {
            path: touched.or(files.first()).cloned(),
            tag,
            commit: short(&self.repository.head).to_owned(),
        };
        self.report.add(&answer::help(&examples))?;
        Ok("I answer questions about this repository's history; the answer has examples.".into())
    }

    /// Summary of the newest commit, for a question without results.
    fn nothing(&mut self, scope: &Scope, author: Option<&str>) -> Result<String, QuestionError> {
        let path = scope.path.as_deref();
        let everything = Selection { range: &self.repository.head, path, ..Selection::default() };
        let newest = match author {
            None => self.git.newest(&everything)?,
            Some(author) => self.newest_of(author, &everything)?,
        };
        let newest =
            newest.map(|commit| format!(" The newest one is {}.", answer::commit_line(&commit)));
        let answer =
            format!("No commits{}{}.{}", scope.label, by(author), newest.unwrap_or_default());
        self.report.add(&answer)?;
        Ok(answer)
    }

    /// Reads the commits of a scope, and sends a status with their number.
    fn read(&mut self, scope: &Scope) -> Result<Vec<Commit>, QuestionError> {
        let selection = scope.selection();
        let number = self.git.count(&selection)?;
        if number == 0 {
            return Ok(Vec::new());
        }
        self.cut = number == MAX_COMMITS;
        let newest = if self.cut { "the newest " } else { "" };
        self.ctx.say(format!("reading {newest}{} …", count(number, "commit")))?;
        self.git.log(&selection)
    }

    fn days_ago(&self, days: i64) -> Date {
        self.today.saturating_sub(days.days())
    }
}

/// Label of an author.
fn by(author: Option<&str>) -> String {
    author.map(|author| format!(" by {}", plain(author))).unwrap_or_default()
}

/// Group with the most commits.
fn main_thing(commits: &[Commit]) -> String {
    let groups = tally::groups(commits);
    let largest = groups.iter().rev().max_by_key(|(_, commits)| commits.len());
    largest
        .map(|(title, commits)| format!("{} ({})", plain(title), commits.len()))
        .unwrap_or_default()
}
