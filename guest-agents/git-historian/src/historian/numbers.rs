//! Answers questions for a number, and about one author's commits.

use super::{Historian, by};
use crate::answer;
use crate::error::QuestionError;
use crate::git::{Commit, Selection};
use crate::historian::scope::Scope;
use crate::markdown::{code, count, day};
use crate::question::{Counted, is_called};
use crate::tally;

/// Words of a user about themselves. A commit has a name, but a task does not.
const SELF: [&str; 4] = ["i", "me", "myself", "we"];

impl Historian<'_> {
    pub(super) fn count(
        &mut self,
        counted: Counted,
        scope: &Scope,
        author: Option<&str>,
    ) -> Result<String, QuestionError> {
        let label = format!("{}{}", scope.label, by(author));
        let number = match counted {
            Counted::Files => self.count_files(scope)?,
            Counted::Releases => self.count_releases()?,
            Counted::Commits => match self.count_commits(scope, author)? {
                Some(number) => number,
                None => return self.nothing(scope, author),
            },
        };
        let answer = format!("{number}{label}.");
        self.report.add(&answer)?;
        Ok(answer)
    }

    /// Number of commits in words, or `None` for zero.
    fn count_commits(
        &mut self,
        scope: &Scope,
        author: Option<&str>,
    ) -> Result<Option<String>, QuestionError> {
        if author.is_some() {
            let (commits, _) = self.read_of(scope, author)?;
            return Ok((!commits.is_empty()).then(|| count(commits.len(), "commit")));
        }
        let (all, merges) = self.git.count_all(&scope.selection())?;
        let merged = match merges {
            0 => String::new(),
            1 => " (1 is a merge)".to_owned(),
            merges => format!(" ({merges} are merges)"),
        };
        Ok((all > 0).then(|| format!("{}{merged}", count(all, "commit"))))
    }

    fn count_files(&self, scope: &Scope) -> Result<String, QuestionError> {
        let mut files = self.git.files(&self.repository.head)?;
        if let Some(path) = &scope.path {
            let folder = format!("{path}/");
            files.retain(|file| file == path || file.starts_with(&folder));
        }
        Ok(count(files.len(), "file"))
    }

    fn count_releases(&self) -> Result<String, QuestionError> {
        let tags = self.git.tags(None)?;
        let newest = tags.first().ok_or(QuestionError::NoReleases)?;
        let newest = format!("; the newest is {} of {}", code(&newest.name), day(newest.time));
        Ok(format!("{}{newest}", count(tags.len(), "tag")))
    }

    pub(super) fn oldest(&mut self) -> Result<String, QuestionError> {
        let head = self.repository.head.clone();
        let everything = Selection { range: &head, ..Selection::default() };
        let all = self.git.total(&everything)?;
        let oldest = self.git.oldest(&head, all)?.ok_or(QuestionError::NoCommits)?;
        let line = self.commit(&oldest.hash)?;
        Ok(format!("The first of {} is {line}.", count(all, "commit")))
    }

    /// Commits of a scope, by all people or one, and a label of the author.
    pub(super) fn read_of(
        &mut self,
        scope: &Scope,
        author: Option<&str>,
    ) -> Result<(Vec<Commit>, String), QuestionError> {
        let Some(author) = author else { return Ok((self.read(scope)?, String::new())) };
        if SELF.contains(&author.to_lowercase().as_str()) {
            return Err(self.unknown_person(author)?);
        }
        let mut commits = self.read(scope)?;
        commits.retain(|commit| is_called(&commit.author, author));
        Ok((commits, by(Some(author))))
    }

    /// Newest commit of one author; fails if nobody has that name.
    pub(super) fn newest_of(
        &self,
        author: &str,
        everything: &Selection<'_>,
    ) -> Result<Option<Commit>, QuestionError> {
        let commits = self.git.log(everything)?;
        match commits.into_iter().find(|commit| is_called(&commit.author, author)) {
            Some(newest) => Ok(Some(newest)),
            None if everything.path.is_some() => Ok(None),
            None => Err(self.unknown_person(author)?),
        }
    }

    fn unknown_person(&self, query: &str) -> Result<QuestionError, QuestionError> {
        let everything = Selection { range: &self.repository.head, ..Selection::default() };
        let people = tally::people(&self.git.log(&everything)?);
        let names = people.iter().take(answer::NAMED).map(|person| person.name.clone());
        Ok(QuestionError::UnknownPerson { query: query.to_owned(), people: names.collect() })
    }
}
