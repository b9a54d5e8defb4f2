//! Which agents fit a question: by name, by what their cards say that they can do, by version, and by any words (BM25F) or their
//! meaning (cosine similarity of embeddings). Each is told with why it was found.
//!
//! An [`Index`] is made once of the agents' [`Description`]s and asked as often as one likes: it is searched by the words of a
//! question, not by going through the cards. What a card says is data by whoever wrote it: no card makes it read more than a bounded part,
//! and no word counts for more because it is said more often than anybody would (keyword stuffing).

mod bm25;
mod description;
mod requirement;
mod words;

pub use description::Description;
use description::is_same;

use crate::{nearest::nearest, plain_text};
use a2a_hub_protocol::{
    error::A2aError,
    operation::{AgentQuery, CardPart, Why, WhyBy},
};
use bm25::Bm25;
use requirement::{Fit, Requirement};
use std::{cmp::Ordering, collections::BTreeMap};

/// How many agents a refusal names with their versions.
const MAX_NAMED: usize = 20;

/// Agents that can be searched.
pub struct Index {
    agents: Vec<Description>,
    words: Bm25,
}

/// The agents that fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Those that fit, the best first; of those that fit as well as one another, by id.
    pub hits: Vec<Hit>,
    /// Whether their versions are older than what was asked for.
    pub older: bool,
    /// The name that was probably meant, where nobody has the one that was asked for.
    pub did_you_mean: Option<String>,
}

/// An agent that fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its place among the descriptions that the index was made of.
    pub place: usize,
    /// How well it fits; more is better.
    pub score: f64,
    /// Why it was found.
    pub why: Vec<Why>,
}

/// Why agents are not looked for, or none is found although some would fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotFound {
    /// The question cannot be followed.
    #[error(transparent)]
    Unclear(#[from] A2aError),
    /// There are other versions only.
    #[error(transparent)]
    OtherVersions(#[from] OtherVersions),
}

/// Agents that fit but for their versions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.told())]
pub struct OtherVersions {
    /// What was asked for.
    pub asked: String,
    /// The agents and their versions, by id.
    pub agents: Vec<(String, String)>,
    /// How many more there are.
    pub more: usize,
    /// Whether some are older, so that `allowOlder` finds them.
    pub some_are_older: bool,
}

impl OtherVersions {
    fn told(&self) -> String {
        let list: Vec<_> =
            self.agents.iter().map(|(id, version)| format!("{id} {version}")).collect();
        let more = if self.more == 0 { String::new() } else { format!(" and {} more", self.more) };
        let way_out = if self.some_are_older {
            "ask for one of these versions, or take an older one with `allowOlder`"
        } else {
            "ask for one of these versions"
        };
        let (asked, list) = (&self.asked, list.join(", "));
        format!("no agent that fits is of version `{asked}`; there are {list}{more}: {way_out}")
    }
}

impl Index {
    /// An index of these agents.
    pub fn new(agents: Vec<Description>) -> Self {
        let words = Bm25::new(&agents);
        Self { agents, words }
    }

    /// The agents that it was made of.
    pub fn agents(&self) -> &[Description] {
        &self.agents
    }

    /// The agents that fit what is asked, of all that it was made of; `similar` says how similar each agent is in meaning to
    /// the text of the question, from -1 to 1, where that is known. It is refused if nobody fits but agents of other versions.
    pub fn find(&self, query: &AgentQuery, similar: Option<&[f64]>) -> Result<Found, NotFound> {
        let requirement = query.version.as_deref().map(Requirement::parse).transpose()?;
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

    /// Those that have the name, the skill, the tags and the media types.
    fn fitting(&self, query: &AgentQuery) -> (Vec<Hit>, Option<String>) {
        let (named, meant) = match query.name.as_deref().map(str::trim) {
            Some(name) => self.named(name),
            None => {
                let everybody = (0..self.agents.len()).map(|place| (place, Vec::new())).collect();
                (everybody, None)
            }
        };
        let fitting = named.into_iter().filter_map(|(place, mut why)| {
            let agent = &self.agents[place];
            why.extend(self.skilled(agent, query)?);
            why.extend(fit(WhyBy::InputMode, &query.input_modes, |mode| agent.takes(mode))?);
            why.extend(fit(WhyBy::OutputMode, &query.output_modes, |mode| agent.answers(mode))?);
            Some(Hit { place, score: 1.0, why })
        });
        (fitting.collect(), meant)
    }

    /// Those that have the skill and the tags. Where a skill is named, the tags are asked of that one.
    fn skilled(&self, agent: &Description, query: &AgentQuery) -> Option<Vec<Why>> {
        let asked = query.skill.as_deref().map(str::trim).filter(|skill| *skill != "*");
        let skills: Vec<_> = match asked {
            Some(id) => agent.skills.iter().filter(|skill| agent.is_skill(skill, id)).collect(),
            None => agent.skills.iter().collect(),
        };
        if skills.is_empty() && query.skill.is_some() {
            return None;
        }
        let mut why: Vec<_> = asked.map(|id| because(WhyBy::Skill, id)).into_iter().collect();
        why.extend(fit(WhyBy::Tag, &query.tags, |tag| {
            skills.iter().any(|skill| skill.tags.iter().any(|its| is_same(its, tag)))
        })?);
        Some(why)
    }

    /// Those that are called so: by id, by an alias, by the name of their card, or by the nearest of all these.
    fn named(&self, name: &str) -> (Vec<(usize, Vec<Why>)>, Option<String>) {
        let agents = || self.agents.iter().enumerate();
        let those = |by: WhyBy, is_it: &dyn Fn(&Description) -> bool| -> Vec<_> {
            let those = agents().filter(|(_, agent)| is_it(agent));
            those.map(|(place, _)| (place, vec![because(by, name)])).collect()
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
        let why = |(place, _)| (place, vec![because(WhyBy::NearName, near)]);
        (near_ones.map(why).collect(), Some(plain_text::line(near, 64)))
    }

    fn by_words(&self, hits: Vec<Hit>, text: &str) -> Vec<Hit> {
        let mut scored = self.words.score(text);
        let scored = |mut hit: Hit| {
            let found = scored.remove(&hit.place)?;
            hit.score = found.score;
            hit.why.extend(found.words.into_iter().map(|(what, parts)| word(what, parts)));
            Some(hit)
        };
        hits.into_iter().filter_map(scored).collect()
    }

    fn by_meaning(&self, hits: Vec<Hit>, text: &str, similar: &[f64]) -> Vec<Hit> {
        let mut words = self.words.score(text);
        let scored = |mut hit: Hit| {
            let similarity = similar.get(hit.place).copied().filter(|it| *it > 0.0)?;
            hit.score = similarity;
            hit.why.push(because(WhyBy::Meaning, &format!("{similarity:.3}")));
            let words = words.remove(&hit.place).into_iter().flat_map(|found| found.words);
            hit.why.extend(words.map(|(what, parts)| word(what, parts)));
            Some(hit)
        };
        hits.into_iter().filter_map(scored).collect()
    }

    /// Those whose version will do; else, if it is allowed, those of an older one.
    fn of_version(
        &self,
        hits: Vec<Hit>,
        requirement: &Requirement,
        allow_older: bool,
    ) -> Result<(Vec<Hit>, bool), OtherVersions> {
        let (mut fitting, mut older, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for mut hit in hits {
            let agent = &self.agents[hit.place];
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

    fn other_versions(&self, asked: &Requirement, older: &[Hit], others: &[Hit]) -> OtherVersions {
        let there = older.iter().chain(others).map(|hit| &self.agents[hit.place]);
        let mut agents: Vec<_> =
            there.map(|agent| (agent.id.clone(), plain_text::line(&agent.version, 64))).collect();
        agents.sort();
        let more = agents.len().saturating_sub(MAX_NAMED);
        agents.truncate(MAX_NAMED);
        OtherVersions { asked: asked.to_string(), agents, more, some_are_older: !older.is_empty() }
    }

    fn best(&self, mut hits: Vec<Hit>, limit: usize) -> Vec<Hit> {
        let id = |hit: &Hit| &self.agents[hit.place].id;
        hits.sort_by(|one, two| match two.score.total_cmp(&one.score) {
            Ordering::Equal => id(one).cmp(id(two)),
            unequal @ (Ordering::Less | Ordering::Greater) => unequal,
        });
        hits.truncate(limit);
        hits
    }
}

/// One reason for each of `asked`, if all of it fits.
fn fit(by: WhyBy, asked: &[String], fits: impl Fn(&str) -> bool) -> Option<Vec<Why>> {
    asked.iter().map(|one| fits(one).then(|| because(by, one))).collect()
}

fn because(by: WhyBy, what: &str) -> Why {
    Why { by, what: plain_text::line(what, 64), r#in: Vec::new() }
}

fn word(what: String, parts: Vec<CardPart>) -> Why {
    Why { by: WhyBy::Word, what, r#in: parts }
}

#[cfg(test)]
mod tests;
