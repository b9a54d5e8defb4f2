//! Resolves a question's times, revisions and paths in this repository.

use super::Historian;
use super::scope::Scope;
use crate::error::QuestionError;
use crate::git::Tag;
use crate::markdown::code;
use crate::paths::{self, PathTarget};
use crate::releases;
use crate::span::Span;

/// Number of newest tags suggested for an unknown revision.
const TAGS_NAMED: usize = 3;

impl Historian<'_> {
    pub(super) fn scope(&self, span: &Span, path: Option<&str>) -> Result<Scope, QuestionError> {
        let mut scope = Scope { range: self.repository.head.clone(), ..Scope::default() };
        match span {
            Span::Unsaid => {}
            Span::Days { first, last } => {
                (scope.since, scope.until) =
                    (Some(*first), last.filter(|last| *last != self.today));
                scope.label = match scope.until {
                    None => format!(" since {first}"),
                    Some(last) if last == *first => format!(" on {first}"),
                    Some(last) => format!(" from {first} to {last}"),
                };
            }
            Span::Revs { from, to } => {
                scope.range = format!("{}..", self.revision(from)?);
                scope.range += &to
                    .as_deref()
                    .map_or(Ok(self.repository.head.clone()), |to| self.revision(to))?;
                let to = to.as_deref().map(|to| format!(" until {}", code(to)));
                scope.label = format!(" since {}{}", code(from), to.unwrap_or_default());
            }
            Span::Unreleased => {
                let tags = self.git.tags(Some(&self.repository.head))?;
                let latest = releases::latest(&tags).ok_or(QuestionError::NoReleases)?;
                scope.range = format!("{}..{}", latest.commit, self.repository.head);
                scope.label = format!(" since {}", code(&latest.name));
            }
        }
        match path.map(|path| self.find(path)).transpose()? {
            None | Some(PathTarget::Root) => {}
            Some(PathTarget::File(path)) => (scope.path, scope.is_file) = (Some(path), true),
            Some(PathTarget::Folder(path)) => scope.path = Some(path),
        }
        if let Some(path) = &scope.path {
            scope.label += &format!(" in {}", code(path));
        }
        Ok(scope)
    }

    pub(super) fn find(&self, query: &str) -> Result<PathTarget, QuestionError> {
        let files = self.git.files(&self.repository.head)?;
        paths::find(query, &files)
            .map_err(|nearest| QuestionError::UnknownPath { query: query.to_owned(), nearest })
    }

    /// Commit that a revision names, or a version that has a tag.
    pub(super) fn revision(&self, query: &str) -> Result<String, QuestionError> {
        if let Some(hash) = self.git.commit_id(query)? {
            return Ok(hash);
        }
        let tags = self.git.tags(None)?;
        let tag =
            releases::find(&tags, query).ok_or_else(|| self.unknown_revision(query, &tags))?;
        Ok(tag.commit.clone())
    }

    pub(super) fn unknown_tag(&self, query: &str, tags: &[Tag]) -> QuestionError {
        if tags.is_empty() { QuestionError::NoReleases } else { self.unknown_revision(query, tags) }
    }

    fn unknown_revision(&self, query: &str, tags: &[Tag]) -> QuestionError {
        let names = || tags.iter().map(|tag| tag.name.as_str());
        let mut nearest = paths::nearest(query, names());
        if nearest.is_empty() {
            nearest = names().take(TAGS_NAMED).map(str::to_owned).collect();
        }
        QuestionError::UnknownRevision { query: query.to_owned(), tags: nearest }
    }
}
