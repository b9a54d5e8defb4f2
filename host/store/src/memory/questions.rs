//! Questions that tasks asked, read from the logs in memory.

use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::{event::TaskEvent, id::QuestionId, question::QuestionKind};
use std::sync::Arc;

use crate::{
    ClosedQuestion, ClosedQuestionFilter, Head,
    questions::{ANSWERED, QuestionChange, REPLACED, changes},
};

/// Head of a task, its events, and the principals that requested them.
type Log<'a> = (&'a Head, &'a [Arc<TaskEvent>], &'a [(u64, Principal)]);

pub(super) fn closed<'a>(
    logs: impl Iterator<Item = Log<'a>>,
    filter: &ClosedQuestionFilter,
) -> Vec<ClosedQuestion> {
    let mut all: Vec<_> = logs
        .filter(|(head, ..)| *head.context.tenant() == filter.tenant)
        .flat_map(questions)
        .collect();
    all.sort_by(|one, other| {
        (&one.opened_at, &one.task, one.opened).cmp(&(&other.opened_at, &other.task, other.opened))
    });
    for (number, question) in (1..).zip(&mut all) {
        question.number = number;
    }
    let matches = |question: &ClosedQuestion| {
        !question.outcome.is_empty()
            && filter.id.as_ref().is_none_or(|id| question.id == *id)
            && filter.before.is_none_or(|before| question.number < before)
    };
    all.into_iter().rev().filter(matches).take(filter.limit).collect()
}

/// Questions of a task, each with its outcome; that of an open one is empty.
fn questions(log: Log<'_>) -> Vec<ClosedQuestion> {
    let (head, events, askers) = log;
    let mut questions: Vec<ClosedQuestion> = Vec::new();
    for change in changes(0, events) {
        let open = questions.iter_mut().filter(|question| question.outcome.is_empty());
        match change {
            QuestionChange::Opened { seq, id, kind, at, .. } => {
                open.filter(|question| question.id != id).for_each(|question| {
                    question.outcome = REPLACED.to_owned();
                    question.closed_at.clone_from(&at);
                });
                match questions.iter_mut().find(|question| question.id == id) {
                    Some(again) if again.answered.is_none() => again.outcome.clear(),
                    Some(_) => {}
                    None => questions.push(ClosedQuestion { kind, ..posed(head, id, seq, at) }),
                }
            }
            QuestionChange::Answered { seq } => open.for_each(|question| {
                let by = askers.iter().find(|(asker, _)| *asker == seq);
                question.by = by.map(|(_, by)| by.clone());
                (question.answered, question.outcome) = (Some(seq), ANSWERED.to_owned());
            }),
            QuestionChange::Ruled { seq, answer, at } => questions.push(ClosedQuestion {
                outcome: answer.effect.outcome().to_owned(),
                rule: Some(answer.rule),
                ..posed(head, answer.id, seq, at)
            }),
            QuestionChange::Closed { at, outcome } => open.for_each(|question| {
                question.closed_at = at.clone().unwrap_or_else(|| question.opened_at.clone());
                question.outcome = outcome.to_owned();
            }),
        }
    }
    questions
}

/// Open request for permission, posed by this event.
fn posed(head: &Head, id: QuestionId, seq: u64, at: String) -> ClosedQuestion {
    ClosedQuestion {
        number: 0,
        id,
        kind: QuestionKind::Permission,
        task: head.task.clone(),
        agent: head.agent.clone(),
        opened: seq,
        opened_at: at.clone(),
        answered: None,
        by: None,
        closed_at: at,
        outcome: String::new(),
        rule: None,
    }
}
