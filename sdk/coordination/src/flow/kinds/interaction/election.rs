//! Steps with `election`: agents elect a leader by their scores, and the leader does the work of
//! the prompt. If it fails, the others elect another one, for the next term.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use serde_json::{Value, json};

use super::rules::{
    Course, InteractionKey, MAX_AGENTS, PastTurns, RuleBook, Rules, TurnResult, is_set, passed,
    replay, statement, with_reasons,
};
use crate::{
    election::{Election, ElectionAction, ElectionEvent, ElectionRules as Book},
    flow::{
        position::{AgentNumbers, Problems, Table},
        template::as_data,
        text::one_line,
        turn::{Turn, Verdict},
    },
};

pub(super) const RULES: InteractionKey = InteractionKey {
    name: "election",
    keys: &["scores", "terms", "work_timeout"],
    agents: (1, MAX_AGENTS),
    has_work: true,
    parse: |table, agents, problems| Some(Arc::new(parse(table, agents, problems)?)),
};

/// Most terms, and those without the key.
const MAX_TERMS: u32 = 32;
const TERMS: u32 = 3;

/// Scores of the file.
const SCORES: AgentNumbers =
    AgentNumbers { noun: "score", unknown: "is none of `agents`", max: 1_000.0 };

/// Rules of an election.
#[derive(Clone, Debug)]
struct ElectionStep {
    /// Scores of the file; none if the agents are asked.
    scores: Option<BTreeMap<String, f64>>,
    terms: u32,
}

impl Rules for ElectionStep {
    fn verb(&self) -> &'static str {
        "elect a leader"
    }

    fn course(&self, past: &PastTurns<'_>) -> Result<Course, String> {
        let PastTurns { agents, items, .. } = *past;
        let state = Election::new(Book {
            members: agents.to_vec(),
            timeout_ms: u64::MAX,
            lease_ms: u64::MAX,
            last_term: 0,
        })?;
        let campaign = Campaign {
            rules: self,
            state,
            term: 0,
            unanswered: 0,
            out: BTreeSet::new(),
            plans: BTreeMap::new(),
            without: Vec::new(),
            failed: Vec::new(),
            answer: None,
        };
        Ok(replay(campaign, items))
    }
}

/// Leader of an earlier term, whose work failed.
struct FailedLeader {
    leader: String,
    term: u64,
    why: String,
}

/// Election with what its agents said, besides their scores.
struct Campaign<'r> {
    rules: &'r ElectionStep,
    state: Election,
    /// Last term that began.
    term: u64,
    /// Agents that were asked for a score, and did not answer yet.
    unanswered: usize,
    /// Agents that failed, and are not asked again.
    out: BTreeSet<String>,
    /// Plan of each agent in this election.
    plans: BTreeMap<String, String>,
    /// Agents without a score in this election, and the reason.
    without: Vec<(String, String)>,
    failed: Vec<FailedLeader>,
    /// Text of the work.
    answer: Option<String>,
}

/// Move of an election.
enum Move {
    /// Ask an agent for its score.
    Ask(String),
    /// Give the work to the leader of this term.
    Lead(String, u64),
    /// End the election.
    Finish,
}

impl Campaign<'_> {
    /// Takes an event. Agents whose score is known without a question are not asked.
    fn drive(&mut self, event: ElectionEvent) -> Vec<Move> {
        let mut actions = VecDeque::from(self.state.step(0, event));
        let mut moves = Vec::new();
        while let Some(action) = actions.pop_front() {
            match action {
                ElectionAction::Call(member) if self.out.contains(&member) => {
                    actions.extend(self.state.step(0, ElectionEvent::Failed(member)));
                }
                ElectionAction::Call(member) => match &self.rules.scores {
                    Some(scores) => {
                        let score = scores.get(&member).copied().unwrap_or_default();
                        actions.extend(
                            self.state.step(0, ElectionEvent::Reported(member, score, true)),
                        );
                    }
                    None => {
                        self.unanswered += 1;
                        moves.push(Move::Ask(member));
                    }
                },
                ElectionAction::Elect(member, term) => {
                    self.term = term;
                    moves.push(Move::Lead(member, term));
                }
                ElectionAction::Admit(..) => moves.push(Move::Finish),
                // The lists of plans are those of one election.
                ElectionAction::Depose(..) => {
                    self.plans.clear();
                    self.without.retain(|(member, _)| self.out.contains(member));
                }
                ElectionAction::Wait(_) | ElectionAction::Refuse(..) => {}
            }
        }
        // All answered, and nobody can lead.
        if moves.is_empty() && self.unanswered == 0 && self.state.leader().is_none() {
            moves.push(Move::Finish);
        }
        moves
    }

    fn ask(&self, member: String) -> Turn {
        let mut request = "This is the election of a leader for the task above. Do not begin with it. Say how well \
             you can do it (`score`, from 0 to 1), and how you would do it (`plan`). The agent with the highest \
             score becomes the leader, and does the task alone. If you cannot do the task, set `pass` to true, \
             `score` to 0, and give the reason as `plan`."
            .to_owned();
        request.push_str(&self.earlier());
        let members = [
            ("score", json!({ "type": "number", "minimum": 0, "maximum": 1 })),
            ("plan", json!({ "type": "string" })),
            ("pass", json!({ "type": "boolean" })),
        ];
        Turn::answer(member, members, request)
    }

    fn lead(&self, member: String, term: u64) -> Turn {
        let mut request = format!(
            "You are the leader of term {term}: your score is the highest one. Do the task now.{}",
            self.earlier()
        );
        if let Some(plan) = self.plans.get(&member).filter(|plan| !plan.is_empty()) {
            request.push_str(&format!(" Your plan was:{}", as_data(plan)));
        }
        Turn::work(member, request)
    }

    /// Leaders of earlier terms: what they left may be there.
    fn earlier(&self) -> String {
        if self.failed.is_empty() {
            return String::new();
        }
        let lines = self.failed.iter().map(|FailedLeader { leader, term, why }| {
            format!("term {term}, {leader}: {}", one_line(why))
        });
        let lines = as_data(&lines.collect::<Vec<_>>().join("\n"));
        format!(" Earlier leaders failed, and part of their work may be there:{lines}")
    }

    fn verdict(&self) -> Verdict {
        let plan = |member: &str| self.plans.get(member).map_or("", String::as_str);
        let ranking = self.state.ranking().into_iter();
        let ranking: Vec<_> = ranking
            .map(|(member, score)| json!({ "agent": member, "score": score, "plan": plan(member) }))
            .collect();
        let failed = self.failed.iter().map(
            |FailedLeader { leader, term, why }| json!({ "agent": leader, "term": term, "reason": why }),
        );
        let leader = self.state.leader().filter(|_| self.answer.is_some());
        let output = json!({
            "leader": leader.map(|(who, _)| who),
            "term": self.term,
            "ranking": ranking,
            "without": with_reasons(&self.without),
            "failed": failed.collect::<Vec<_>>(),
        });
        if let Some(answer) = &self.answer {
            return Verdict { failure: None, text: answer.clone(), output };
        }
        let mut text = match self.failed.len() {
            0 => "no agent can lead".to_owned(),
            count => format!(
                "no leader did the work: {count} of at most {} terms failed",
                self.rules.terms
            ),
        };
        for FailedLeader { leader, term, why } in &self.failed {
            text.push_str(&format!("\nterm {term}, {leader}: {}", one_line(why)));
        }
        for (member, why) in &self.without {
            text.push_str(&format!("\n{member}: {}", one_line(why)));
        }
        Verdict { failure: Some("no_leader"), text, output }
    }
}

impl RuleBook for Campaign<'_> {
    type Action = Move;

    fn begin(&mut self) -> Vec<Move> {
        self.drive(ElectionEvent::Begun)
    }

    fn on_result(&mut self, turn: &Turn, result: TurnResult<'_>) -> Vec<Move> {
        let member = turn.agent.clone();
        if turn.schema().is_some() {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        match result {
            TurnResult::Answer(answer) if is_set(answer, "pass") => {
                self.without.push((member.clone(), passed(answer, "plan")));
                self.drive(ElectionEvent::Reported(member, 0.0, false))
            }
            TurnResult::Answer(answer) => {
                self.plans.insert(member.clone(), statement(answer, "plan"));
                let score = answer.get("score").and_then(Value::as_f64).unwrap_or_default();
                self.drive(ElectionEvent::Reported(member, score, true))
            }
            TurnResult::Done(text) => {
                self.answer = Some(text.to_owned());
                self.drive(ElectionEvent::Acted(member, self.term))
            }
            TurnResult::Failed(why) if turn.schema().is_some() => {
                self.out.insert(member.clone());
                self.without.push((member.clone(), why));
                self.drive(ElectionEvent::Failed(member))
            }
            TurnResult::Failed(why) => {
                self.out.insert(member.clone());
                self.failed.push(FailedLeader { leader: member.clone(), term: self.term, why });
                if self.term >= u64::from(self.rules.terms) {
                    return vec![Move::Finish];
                }
                self.drive(ElectionEvent::Failed(member))
            }
        }
    }

    fn act(&mut self, action: Move, course: &mut Course) {
        match action {
            Move::Ask(member) => course.add(|| self.ask(member)),
            Move::Lead(member, term) => course.add(|| self.lead(member, term)),
            Move::Finish => course.verdict = Some(self.verdict()),
        }
    }
}

fn parse(
    table: &Table<'_, '_>,
    agents: &[String],
    problems: &mut Problems<'_>,
) -> Option<ElectionStep> {
    let terms = table.number("terms", (1, MAX_TERMS), problems).unwrap_or(TERMS);
    let Some(value) = table.get("scores") else {
        return Some(ElectionStep { scores: None, terms });
    };
    let inner = Table::from_value(value, "scores", problems)?;
    let scores = inner.agent_numbers(&SCORES, agents, problems);
    for name in agents.iter().filter(|name| !scores.contains_key(*name)) {
        problems.error(&inner.at, format!("`scores` has a score of each agent; `{name}` has none"));
    }
    if table.get("answer_timeout").is_some() {
        let rule = "with `scores`, nobody is asked; remove `answer_timeout`, or use `work_timeout`";
        problems.error(&inner.at, rule);
    }
    Some(ElectionStep { scores: Some(scores), terms })
}
