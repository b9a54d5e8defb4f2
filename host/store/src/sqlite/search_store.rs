//! Search for tasks and their usage in SQL, as the store offers them.

use super::{
    SqliteStorage,
    db::{failure::SqliteFailure, schema::integer},
    search::{
        facets::{self, PrefixWords},
        stored, task_reader, usage_query,
    },
};
use crate::{
    FoundPage, SearchIndexState, StorageError, TaskSearch, UsageStore, search_filter, usage,
};
use a2a_hub_core::search::SearchTerms;
use a2a_hub_protocol::operation::{SearchQuery, UsageQuery, UsageReport};
use std::{collections::HashMap, sync::Arc};

/// Tasks that one page of a search examines: some milliseconds. A filter that few tasks match
/// leaves the rest to the next page.
pub(in crate::sqlite) const MAX_EXAMINED: usize = 2_000;

/// Tasks that a search examines together, after the first ones.
const EXAMINED_BATCH: usize = 500;

#[async_trait::async_trait]
impl TaskSearch for SqliteStorage {
    async fn search_tasks(
        &self,
        terms: &SearchTerms,
        query: &SearchQuery,
    ) -> Result<FoundPage, StorageError> {
        let index = self.search.readers()?;
        let of_words = terms.clone();
        let read = move |db: &_| stored::judged(stored::prefix_words(db, &of_words));
        let words = self.search.checked(index.read(read).await)?;
        let matching: Arc<str> = facets::match_expression(terms, &words, query).into();
        let mut before = query.after.map_or(i64::MAX, integer);
        let (mut examined, mut together) = (0, query.limit.saturating_add(1).min(EXAMINED_BATCH));
        if has_long_prefix(terms, &words) {
            together = MAX_EXAMINED;
        }
        let mut found = Vec::new();
        let more = loop {
            let (of_batch, end) = (Arc::clone(&matching), before);
            let read =
                move |db: &_| stored::judged(stored::candidates(db, &of_batch, end, together));
            let candidates = self.search.checked(index.read(read).await)?;
            let is_last = candidates.len() < together;
            examined += candidates.len();
            let read = move |db: &_| {
                let heads = candidates.into_iter().map(|candidate| {
                    Ok((task_reader::readable_head(db, &candidate.task)?, candidate))
                });
                heads.collect::<Result<Vec<_>, SqliteFailure>>()
            };
            let heads = self.readers.read(read).await?;
            let mut rest = heads.into_iter();
            for (head, candidate) in rest.by_ref() {
                before = candidate.number;
                let admitted = head
                    .filter(|head| search_filter::admits(query, head, &candidate.origin.person));
                found.extend(admitted.map(|head| (candidate.number, head)));
                if found.len() == query.limit {
                    break;
                }
            }
            if found.len() == query.limit {
                break rest.next().is_some() || !is_last;
            }
            if is_last || examined >= MAX_EXAMINED {
                break !is_last;
            }
            together = EXAMINED_BATCH;
        };
        let numbers: Vec<_> = found.iter().map(|(number, _)| *number).collect();
        let read = move |db: &_| stored::judged(stored::excerpts(db, &matching, &numbers));
        let excerpts = self.search.checked(index.read(read).await)?;
        let tasks = found.into_iter().zip(excerpts);
        let tasks = tasks.map(|((_, head), excerpt)| search_filter::hit(head, excerpt)).collect();
        Ok(FoundPage { tasks, next: more.then_some(before.unsigned_abs()) })
    }

    fn search_index(&self) -> SearchIndexState {
        self.search.state()
    }
}

/// True if a prefix of the search has too many words: each query of it merges their lists anew, so
/// one examines all tasks of the page.
fn has_long_prefix(terms: &SearchTerms, words: &PrefixWords) -> bool {
    terms.terms().iter().any(|term| {
        let is_short = facets::plain_prefix(term).is_some_and(|prefix| words.contains_key(&prefix));
        term.is_prefix && !is_short
    })
}

#[async_trait::async_trait]
impl UsageStore for SqliteStorage {
    async fn usage(&self, query: &UsageQuery) -> Result<UsageReport, StorageError> {
        // Without the index, the logs are read, as far as they are few.
        let known = match self.search.readers() {
            Ok(index) => {
                let (since, of_filter) = (usage::since_day(query), query.clone());
                let filtered = move |db: &_| usage_query::filtered(db, &of_filter);
                let filtered = self.readers.read(filtered).await?;
                let read = move |db: &_| {
                    stored::judged(stored::usage(db, since.as_deref(), filtered.as_deref()))
                };
                self.search.checked(index.read(read).await).unwrap_or_default()
            }
            Err(_) => HashMap::new(),
        };
        let query = query.clone();
        self.readers.read(move |db| usage_query::report(db, &query, known)).await
    }
}
