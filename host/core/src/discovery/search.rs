//! Search for agents: by name, by the contents of their cards, by version, and by free text, which
//! matches words (BM25F) or meaning (cosine similarity of embeddings). Each result lists the
//! reasons for its match.
//!
//! An [`Index`] is built once from the agents' [`Description`]s, and can be queried any number of
//! times. A query looks up its words, and does not scan the cards. Cards are untrusted: only a
//! bounded part of each is read, and frequent repetition of a word does not raise its weight
//! (keyword stuffing).

mod card_index;
mod description;
mod requirement;
mod tokenizer;

pub use description::Description;
use description::is_same;

use crate::{discovery::did_you_mean::nearest, text::plain_text};
use a2a_hub_protocol::{
    error::A2aError,
    operation::{AgentQuery, CardPart, Why, WhyBy},
};
use card_index::CardIndex;
use requirement::{Fit, VersionRequirement};
use std::{cmp::Ordering, collections::BTreeMap};

/// Maximum number of agents, with their versions, that a refusal lists.
const MAX_NAMED: usize = 20;

/// Search index of agents.
pub struct Index {
    agents: Vec<Description>,
    words: CardIndex,
}

/// Result of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Matching agents, best first; equal scores are ordered by id.
    pub hits: Vec<Hit>,
    /// True if their versions are older than requested.
    pub older: bool,
    /// Existing name that the caller probably meant, if no agent has the requested name.
    pub did_you_mean: Option<String>,
}

/// Matching agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Index of the agent in the descriptions that the search index was built from.
    pub index: usize,
    /// Score; higher is better.
    pub score: f64,
    /// Reasons for the match.
    pub why: Vec<Why>,
}

/// Error of a search: invalid query, or matching agents with other versions only.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotFound {
    /// The query is invalid.
    #[error(transparent)]
    Unclear(#[from] A2aError),
    /// Only other versions are available.
    #[error(transparent)]
    OtherVersions(#[from] OtherVersions),
}

/// Agents that match except for their version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct OtherVersions {
    /// Requested version.
    pub requested: String,
    /// Agents with their versions, by id.
    pub agents: Vec<(String, String)>,
    /// Number of further agents.
    pub more: usize,
    /// True if some are older, so that `allowOlder` finds them.
    pub some_are_older: bool,
}

impl OtherVersions {
    fn message(&self) -> String {
        let list: Vec<_> =
            self.agents.iter().map(|(id, version)| format!("{id} {version}")).collect();
        let more = if self.more == 0 { String::new() } else { format!(" and {} more", self.more) };
        let way_out = if self.some_are_older {
            "ask for one of these versions, or take an older one with `allowOlder`"
        } else {
            "ask for one of these versions"
        };
        let (requested, list) = (&self.requested, list.join(", "));
        format!("no agent that fits is of version `{requested}`; there are {list}{more}: {way_out}")
    }
}

impl Index {
    /// Builds an index of these agents.
    pub fn new(agents: Vec<Description>) -> Self {
        let words = CardIndex::new(&agents);
        Self { agents, words }
    }

    /// Agents in the index.
    pub fn agents(&self) -> &[Description] {
        &self.agents
    }

    /// Finds the agents that match a query. `similar` is the similarity in meaning of each agent to
    /// the text of the query, from -1 to 1, if known.
    ///
    /// # Errors
    ///
    /// The query is invalid, or only agents of other versions match.
    pub fn find(&self, query: &AgentQuery, similar: Option<&[f64]>) -> Result<Found, NotFound> {
        let requirement = query.version.as_deref().map(VersionRequirement::parse).transpose()?;
        let (mut hits, did_you_mean) = self.fitting(query);
        if let Some(text) = &query.text {
            hits = match similar {
                Some(similar) => self.by_meaning(hits, text, similar),
                None => self.by_words(hits, text),
            };
        }
        let (hits, older) = match &requirement {
            Some(requirement) => self.of_version(hits, requirement, query.allow_older)?,
            None => (hits, false),
        };
        Ok(Found { hits: self.best(hits, query.limit), older, did_you_mean })
    }

    /// Agents that match by name, skill, tags and media types.
    fn fitting(&self, query: &AgentQuery) -> (Vec<Hit>, Option<String>) {
        let (named, meant) = match query.name.as_deref().map(str::trim) {
            Some(name) => self.named(name),
            None => {
                let everybody = (0..self.agents.len()).map(|index| (index, Vec::new())).collect();
                (everybody, None)
            }
        };
        let fitting = named.into_iter().filter_map(|(index, mut why)| {
            let agent = &self.agents[index];
            why.extend(self.skilled(agent, query)?);
            why.extend(fit(WhyBy::InputMode, &query.input_modes, |mode| agent.takes(mode))?);
            why.extend(fit(WhyBy::OutputMode, &query.output_modes, |mode| agent.answers(mode))?);
            Some(Hit { index, score: 1.0, why })
        });
        (fitting.collect(), meant)
    }

    /// Reasons if an agent has the skill and the tags. If the query names a skill, that skill must
    /// have the tags.
    fn skilled(&self, agent: &Description, query: &AgentQuery) -> Option<Vec<Why>> {
        let skill_id = query.skill.as_deref().map(str::trim).filter(|skill| *skill != "*");
        let skills: Vec<_> = match skill_id {
            Some(id) => agent.skills.iter().filter(|skill| agent.is_skill(skill, id)).collect(),
            None => agent.skills.iter().collect(),
        };
        if skills.is_empty() && query.skill.is_some() {
            return None;
        }
        let mut why: Vec<_> = skill_id.map(|id| because(WhyBy::Skill, id)).into_iter().collect();
        why.extend(fit(WhyBy::Tag, &query.tags, |tag| {
            skills.iter().any(|skill| skill.tags.iter().any(|its| is_same(its, tag)))
        })?);
        Some(why)
    }

    /// Agents with this name: as id, as alias, as the name in the card, or as the nearest of all
    /// these.
    fn named(&self, name: &str) -> (Vec<(usize, Vec<Why>)>, Option<String>) {
        let agents = || self.agents.iter().enumerate();
        let those = |by: WhyBy, is_it: &dyn Fn(&Description) -> bool| -> Vec<_> {
            let those = agents().filter(|(_, agent)| is_it(agent));
            those.map(|(index, _)| (index, vec![because(by, name)])).collect()
        };
        for (by, is_it) in [
            (WhyBy::Id, &(|it: &Description| it.id == name) as &dyn Fn(&Description) -> bool),
            (WhyBy::Alias, &|it| it.aliases.iter().any(|alias| alias == name)),
            (WhyBy::Name, &|it| is_same(&it.name, name)),
        ] {
            let found = those(by, is_it);
            if !found.is_empty() {
                return (found, None);
            }
        }
        let names: BTreeMap<_, _> = agents()
            .flat_map(|(_, agent)| agent.names())
            .map(|name| (name.to_lowercase(), name))
            .collect();
        let near = nearest(&name.to_lowercase(), names.keys().map(String::as_str));
        let Some(near) = near.and_then(|near| names.get(near)) else { return (Vec::new(), None) };
        let is_it = |agent: &Description| agent.names().any(|its| is_same(its, near));
        let near_ones = agents().filter(|(_, agent)| is_it(agent));
        let why = |(index, _)| (index, vec![because(WhyBy::NearName, near)]);
        (near_ones.map(why).collect(), Some(plain_text::line(near, 64)))
    }

    fn by_words(&self, hits: Vec<Hit>, text: &str) -> Vec<Hit> {
        let mut scored = self.words.score(text);
        let scored = |mut hit: Hit| {
            let found = scored.remove(&hit.index)?;
            hit.score = found.score;
            hit.why.extend(found.words.into_iter().map(|(matched, parts)| word(matched, parts)));
            Some(hit)
        };
        hits.into_iter().filter_map(scored).collect()
    }

    fn by_meaning(&self, hits: Vec<Hit>, text: &str, similar: &[f64]) -> Vec<Hit> {
        let mut words = self.words.score(text);
        let scored = |mut hit: Hit| {
            let similarity = similar.get(hit.index).copied().filter(|it| *it > 0.0)?;
            hit.score = similarity;
            hit.why.push(because(WhyBy::Meaning, &format!("{similarity:.3}")));
            let words = words.remove(&hit.index).into_iter().flat_map(|found| found.words);
            hit.why.extend(words.map(|(matched, parts)| word(matched, parts)));
            Some(hit)
        };
        hits.into_iter().filter_map(scored).collect()
    }

    /// Agents with a matching version; if none match and older ones are allowed, those with an
    /// older version.
    fn of_version(
        &self,
        hits: Vec<Hit>,
        requirement: &VersionRequirement,
        allow_older: bool,
    ) -> Result<(Vec<Hit>, bool), OtherVersions> {
        let (mut fitting, mut older, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for mut hit in hits {
            let agent = &self.agents[hit.index];
            let fit = requirement.fit(&agent.version);
            let by = if fit == Fit::Older { WhyBy::OlderVersion } else { WhyBy::Version };
            hit.why.push(because(by, &agent.version));
            match fit {
                Fit::Fits => fitting.push(hit),
                Fit::Older => older.push(hit),
                Fit::Other => others.push(hit),
            }
        }
        if !fitting.is_empty() {
            return Ok((fitting, false));
        }
        if allow_older && !older.is_empty() {
            return Ok((older, true));
        }
        if older.is_empty() && others.is_empty() {
            return Ok((fitting, false));
        }
        Err(self.other_versions(requirement, &older, &others))
    }

    fn other_versions(
        &self,
        requirement: &VersionRequirement,
        older: &[Hit],
        others: &[Hit],
    ) -> OtherVersions {
        let there = older.iter().chain(others).map(|hit| &self.agents[hit.index]);
        let mut agents: Vec<_> =
            there.map(|agent| (agent.id.clone(), plain_text::line(&agent.version, 64))).collect();
        agents.sort();
        let more = agents.len().saturating_sub(MAX_NAMED);
        agents.truncate(MAX_NAMED);
        OtherVersions {
            requested: requirement.to_string(),
            agents,
            more,
            some_are_older: !older.is_empty(),
        }
    }

    fn best(&self, mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
        let id = |hit: &Hit| &self.agents[hit.index].id;
        hits.sort_by(|one, two| match two.score.total_cmp(&one.score) {
            Ordering::Equal => id(one).cmp(id(two)),
            unequal @ (Ordering::Less | Ordering::Greater) => unequal,
        });
        hits.truncate(limit);
        hits
    }
}

/// One reason for each element of `requested`, if all of them match.
fn fit(by: WhyBy, requested: &[String], fits: impl Fn(&str) -> bool) -> Option<Vec<Why>> {
    requested.iter().map(|one| fits(one).then(|| because(by, one))).collect()
}

fn because(by: WhyBy, text: &str) -> Why {
    Why { by, what: plain_text::line(text, 64), r#in: Vec::new() }
}

fn word(text: String, parts: Vec<CardPart>) -> Why {
    Why { by: WhyBy::Word, what: text, r#in: parts }
}

#[cfg(test)]
mod tests;
