//! Measured record of agents: how often each was right in the latest runs of a flow.
//!
//! A run counts for an agent in two ways. A candidate of a step `pick` was right if the judges let
//! it pass, and wrong if it is out. A ballot of a vote counts once somebody confirms which choice
//! was right. The record gives the weights of votes with `rule = "record"`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Results of one run, as far as they count for the record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunResults {
    /// Candidates, and whether each passed its judges.
    pub judged: Vec<(String, bool)>,
    /// Votes, by the ids of their steps.
    pub votes: BTreeMap<String, VoteResults>,
}

/// Ballots of one vote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VoteResults {
    /// Answers among which the agents chose.
    pub choices: Vec<String>,
    /// Choice of each agent, as its index.
    pub ballots: BTreeMap<String, usize>,
    /// Choice that was right, as its index; none until somebody confirms one.
    pub right: Option<usize>,
}

/// Numbers of an agent's right and wrong results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Results that were right.
    pub right: u32,
    /// Results that were wrong.
    pub wrong: u32,
}

impl Record {
    /// Weight of the agent's ballots, above 0 and below 2: twice the expected share of right
    /// results (Laplace's rule of succession). It is 1 without any result.
    pub fn weight(self) -> f64 {
        let (right, wrong) = (f64::from(self.right), f64::from(self.wrong));
        2.0 * (right + 1.0) / (right + wrong + 2.0)
    }

    fn add(&mut self, is_right: bool) {
        let count = if is_right { &mut self.right } else { &mut self.wrong };
        *count = count.saturating_add(1);
    }
}

/// Records of all agents in these runs, by their names.
pub fn records<'r>(runs: impl IntoIterator<Item = &'r RunResults>) -> BTreeMap<String, Record> {
    let mut records = BTreeMap::<String, Record>::new();
    for run in runs {
        for (agent, passed) in &run.judged {
            records.entry(agent.clone()).or_default().add(*passed);
        }
        for VoteResults { ballots, right, .. } in run.votes.values() {
            let Some(right) = right else { continue };
            for (agent, choice) in ballots {
                records.entry(agent.clone()).or_default().add(choice == right);
            }
        }
    }
    records
}

impl RunResults {
    /// True if nothing of the run counts.
    pub fn is_empty(&self) -> bool {
        self.judged.is_empty() && self.votes.is_empty()
    }

    /// Notes which choice of a vote was right. A later note replaces an earlier one. Returns the
    /// vote.
    ///
    /// # Errors
    ///
    /// No vote counts, the step is unknown or one of several, or the choice was not to choose: a
    /// text that says what to name instead.
    pub fn confirm(&mut self, step: Option<&str>, choice: &str) -> Result<&VoteResults, String> {
        let steps: Vec<_> = self.votes.keys().cloned().collect();
        let named = match (step, steps.as_slice()) {
            (_, []) => return Err("this run had no vote whose ballots count".to_owned()),
            (Some(step), _) => step,
            (None, [only]) => only,
            (None, several) => {
                return Err(format!("it had several votes; name the step: {}", several.join(", ")));
            }
        };
        let Some(vote) = self.votes.get_mut(named) else {
            return Err(format!("it has no vote `{named}`; its votes: {}", steps.join(", ")));
        };
        let Some(index) = vote.choices.iter().position(|it| it == choice) else {
            let choices = vote.choices.join(", ");
            return Err(format!("`{choice}` was not to choose; the choices were {choices}"));
        };
        vote.right = Some(index);
        Ok(vote)
    }

    /// JSON form: `{"judged": [[agent, passed]], "votes": {step: {"choices", "ballots",
    /// "right"}}}`.
    pub fn to_json(&self) -> Value {
        let votes = self.votes.iter().map(|(step, vote)| {
            let VoteResults { choices, ballots, right } = vote;
            let vote = json!({ "choices": choices, "ballots": ballots, "right": right });
            (step.clone(), vote)
        });
        json!({ "judged": self.judged, "votes": votes.collect::<BTreeMap<_, _>>() })
    }

    /// Reads the JSON form. What does not fit is left out.
    pub fn of_json(value: &Value) -> Self {
        let judged = value["judged"].as_array().into_iter().flatten();
        let judged = judged.filter_map(|it| Some((it[0].as_str()?.to_owned(), it[1].as_bool()?)));
        let votes = value["votes"].as_object().into_iter().flatten();
        let votes = votes.map(|(step, vote)| (step.clone(), VoteResults::of_json(vote)));
        Self { judged: judged.collect(), votes: votes.collect() }
    }
}

impl VoteResults {
    fn of_json(value: &Value) -> Self {
        let choices = value["choices"].as_array().into_iter().flatten();
        let choices: Vec<_> = choices.filter_map(|it| it.as_str().map(str::to_owned)).collect();
        let index = |value: &Value| {
            let index = usize::try_from(value.as_u64()?).ok()?;
            (index < choices.len()).then_some(index)
        };
        let ballots = value["ballots"].as_object().into_iter().flatten();
        let ballots = ballots.filter_map(|(agent, choice)| Some((agent.clone(), index(choice)?)));
        let (ballots, right) = (ballots.collect(), index(&value["right"]));
        Self { choices, ballots, right }
    }

    /// Agents whose ballot is the confirmed choice, and those with another one.
    pub fn right_and_wrong(&self) -> (Vec<&str>, Vec<&str>) {
        let names = |is_right: bool| {
            let all = self.ballots.iter();
            let those = all.filter(move |(_, choice)| (Some(**choice) == self.right) == is_right);
            those.map(|(agent, _)| agent.as_str()).collect()
        };
        (names(true), names(false))
    }
}
