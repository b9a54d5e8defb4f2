//! Parameters of the methods for the questions of all tasks.

use crate::{
    hub::params::{MAX_LISTED, within},
    model::{
        error::A2aError,
        id::{AgentId, MAX_ID, QuestionId},
        operation::{AlwaysAnswer, Operation, QuestionQuery, QuestionRequest},
        question::QuestionKind,
    },
    v03::params::read,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Default number of listed questions.
const DEFAULT_LISTED: usize = 100;

/// Largest number of questions that are answered by one request.
const MAX_ANSWERED: usize = 100;

/// Longest answer, in bytes: 64 kB.
const MAX_ANSWER: usize = 65_536;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListParams {
    /// Only questions of this kind: `input`, `permission` or `auth`.
    #[schemars(with = "Option<String>")]
    kind: Option<QuestionKind>,
    /// Only questions that this agent asks.
    agent_id: Option<String>,
    /// Maximum number of questions, up to 1,000; 100 by default.
    limit: Option<usize>,
    /// Number of questions to skip; 0 by default.
    #[serde(default)]
    offset: usize,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HistoryParams {
    /// Maximum number of questions, up to 1,000; 100 by default.
    limit: Option<usize>,
    /// Only questions before the one with this number, for the next page.
    before: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AnswerParams {
    /// Ids of the questions, at most 100.
    ids: Vec<String>,
    /// The answer to each of them: `allow` or `deny` for a permission. Another text denies it, and
    /// is the reason; for other questions the text is the answer.
    answer: String,
    /// Makes a rule of each permission that is allowed: the same request of the same agent in the
    /// same repository is allowed without a question from then on.
    always: Option<AlwaysParams>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AlwaysParams {
    /// True to accept that the program may run code from the repository, which the agent may
    /// change, outside of the hub's sandbox.
    #[serde(default)]
    trusts_workspace: bool,
    /// Time until the rules expire, in milliseconds: 30 days by default, 0 for never.
    for_ms: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LaterParams {
    /// Id of the question.
    id: String,
    /// New time until the deadline, in milliseconds from now; at most the `answer_timeout_ms` of
    /// the agent.
    for_ms: u64,
}

fn limit(limit: Option<usize>) -> Result<usize, A2aError> {
    within("limit", limit.unwrap_or(DEFAULT_LISTED), 1, MAX_LISTED)
}

fn question_id(at: &str, id: &str) -> Result<QuestionId, A2aError> {
    if id.is_empty() || id.len() > MAX_ID {
        let why = "must be the id of a question, as `hub/questions/list` shows it";
        return Err(A2aError::invalid(at, why));
    }
    Ok(QuestionId::new(id))
}

/// Reads the parameters of `hub/questions/list`.
pub(crate) fn list(params: Value) -> Result<Operation, A2aError> {
    let ListParams { kind, agent_id, limit: at_most, offset } = read(params)?;
    let agent = agent_id.map(|id| {
        AgentId::parse(id.as_str()).map_err(|why| A2aError::invalid("agentId", why.to_string()))
    });
    let query = QuestionQuery { kind, agent: agent.transpose()?, limit: limit(at_most)?, offset };
    Ok(Operation::Question(QuestionRequest::List(query)))
}

/// Reads the parameters of `hub/questions/history`.
pub(crate) fn history(params: Value) -> Result<Operation, A2aError> {
    let HistoryParams { limit: at_most, before } = read(params)?;
    let limit = limit(at_most)?;
    Ok(Operation::Question(QuestionRequest::History { limit, before }))
}

/// Reads the parameters of `hub/questions/answer`.
pub(crate) fn answer(params: Value) -> Result<Operation, A2aError> {
    let AnswerParams { ids, answer, always } = read(params)?;
    if ids.is_empty() || ids.len() > MAX_ANSWERED {
        let why = format!("must name between 1 and {MAX_ANSWERED} questions");
        return Err(A2aError::invalid("ids", why));
    }
    if answer.trim().is_empty() || answer.len() > MAX_ANSWER {
        let why =
            format!("must be a text of at most {MAX_ANSWER} bytes, such as `allow` or `deny`");
        return Err(A2aError::invalid("answer", why));
    }
    if always.is_some() && answer.trim() != "allow" {
        return Err(A2aError::invalid("always", "goes with the answer `allow` only"));
    }
    let always = always
        .map(|AlwaysParams { trusts_workspace, for_ms }| AlwaysAnswer { trusts_workspace, for_ms });
    let numbered = ids.iter().enumerate();
    let ids = numbered.map(|(at, id)| question_id(&format!("ids[{at}]"), id));
    let mut ids = ids.collect::<Result<Vec<_>, _>>()?;
    let mut known = std::collections::HashSet::new();
    ids.retain(|id| known.insert(id.clone()));
    Ok(Operation::Question(QuestionRequest::Answer { ids, answer, always }))
}

/// Reads the parameters of `hub/questions/later`.
pub(crate) fn later(params: Value) -> Result<Operation, A2aError> {
    let LaterParams { id, for_ms } = read(params)?;
    if for_ms == 0 {
        return Err(A2aError::invalid("forMs", "must be at least 1"));
    }
    let id = question_id("id", &id)?;
    Ok(Operation::Question(QuestionRequest::Postpone { id, for_ms }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answer_names_each_question_once() {
        let read = answer(json!({ "ids": ["a", "b", "a"], "answer": "allow" })).unwrap();
        let ids = ["a", "b"].map(QuestionId::new).to_vec();
        let always = Some(AlwaysAnswer { trusts_workspace: true, for_ms: Some(5) });
        let answer_of =
            |ids, always| QuestionRequest::Answer { ids, answer: "allow".to_owned(), always };
        assert_eq!(read, Operation::Question(answer_of(ids, None)));
        let terms = json!({ "trustsWorkspace": true, "forMs": 5 });
        let read = answer(json!({ "ids": ["a"], "answer": "allow", "always": terms })).unwrap();
        assert_eq!(read, Operation::Question(answer_of(vec![QuestionId::new("a")], always)));
        for wrong in [
            json!({ "ids": [], "answer": "allow" }),
            json!({ "ids": [""], "answer": "allow" }),
            json!({ "ids": ["a"], "answer": " " }),
            json!({ "ids": vec!["a"; MAX_ANSWERED + 1], "answer": "allow" }),
            json!({ "ids": "a", "answer": "allow" }),
            json!({ "ids": ["a"] }),
            json!({ "ids": ["a"], "answer": "deny", "always": {} }),
        ] {
            assert!(answer(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bounds_of_other_methods_are_checked() {
        assert!(list(json!({ "kind": "permission", "limit": 1_000 })).is_ok());
        for wrong in [json!({ "limit": 0 }), json!({ "limit": 1_001 }), json!({ "kind": "x" })] {
            assert!(list(wrong.clone()).is_err(), "{wrong}");
        }
        assert!(history(json!({ "before": 7 })).is_ok() && history(json!({ "limit": 0 })).is_err());
        assert!(later(json!({ "id": "a", "forMs": 1 })).is_ok());
        assert!(later(json!({ "id": "a", "forMs": 0 })).is_err());
    }
}
