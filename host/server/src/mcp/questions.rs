//! Calls of the tools for questions, and the user's confirmation of an answer that may permit
//! something.
//!
//! A model passes on the answer of its user, and could make one up. So if the client shows forms,
//! an answer to a permission counts only after the user has confirmed it in a form with the whole
//! request. A denial needs no confirmation. A client without forms asks its user before it calls a
//! destructive tool.

use super::{call::McpCall, question, result, structured::object, tools::Answer};
use crate::mcp::model::question_tools::{are_for, cleaned, denies, of_list, of_results};
use a2a_hub_core::text::{plain_text, terminal};
use a2a_hub_protocol::{
    error::A2aError,
    id::{QuestionId, TaskId},
    operation::{
        self, OpenQuestion, OpenQuestions, Operation, QuestionAnswer, QuestionQuery,
        QuestionRequest, QuestionResult,
    },
    question::QuestionKind,
};
use a2a_hub_rpc::{begun_tasks::unexpected, question_view};
use rmcp::model::{
    CallToolResponse, CallToolResult, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputResponses,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Longest answer as a choice of a form, in characters.
const MAX_CHOICE: usize = 100;

/// Most bytes of the requests in a form: a user has to read all of them.
const MAX_SHOWN: usize = 32_000;

/// Choice of a form that denies the request.
const DENY: &str = "deny";

/// State of a repeated call: the questions of the form that the client has shown.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShownQuestions {
    confirms: Vec<QuestionId>,
}

/// Filled-in form of a repeated call. It comes from the client, which shows the forms, and is
/// trusted as far as the client is.
pub(super) struct ConfirmedByUser {
    questions: Vec<QuestionId>,
    filled: Option<ElicitResult>,
}

impl ConfirmedByUser {
    /// Reads the state and the responses of a repeated call; `None` if it is no such state.
    pub(super) fn read(state: Option<&str>, responses: Option<&InputResponses>) -> Option<Self> {
        let ShownQuestions { confirms: questions } = serde_json::from_str(state?).ok()?;
        Some(Self { questions, filled: question::brought(responses) })
    }
}

/// Decision of the user on an answer.
enum UserDecision {
    /// The answer counts: it is confirmed, or needs no confirmation.
    Confirmed,
    /// The user denies these permissions.
    Denied(Vec<QuestionId>),
    /// The user gave no answer.
    Missing,
    /// The client shows a form and repeats the call.
    Form(Box<CallToolResponse>),
}

impl McpCall<'_> {
    /// Lists, answers or postpones questions.
    pub(super) async fn question(
        &self,
        request: QuestionRequest,
        confirmed: Option<ConfirmedByUser>,
    ) -> Result<CallToolResponse, A2aError> {
        let value = match request {
            QuestionRequest::List(query) => {
                let offset = query.offset;
                of_list(&self.open_questions(query).await?, offset)
            }
            QuestionRequest::Answer { ids, answer, .. } => {
                let denied = match self.confirm(&ids, &answer, confirmed).await? {
                    UserDecision::Confirmed => Vec::new(),
                    UserDecision::Denied(denied) => denied,
                    UserDecision::Missing => return Ok(unconfirmed().into()),
                    UserDecision::Form(form) => return Ok(*form),
                };
                let (denied, others): (Vec<_>, Vec<_>) =
                    ids.into_iter().partition(|id| denied.contains(id));
                let mut results = self.answer_questions(others, answer).await?;
                results.extend(self.answer_questions(denied, DENY.to_owned()).await?);
                of_results(&results)
            }
            request @ (QuestionRequest::Postpone { .. } | QuestionRequest::History { .. }) => {
                cleaned(json!(self.on_questions(request).await?))
            }
        };
        Ok(CallToolResult::structured(value).into())
    }

    /// Answers a task's question, a permission only as the user confirms it.
    pub(super) async fn answer_if_confirmed(
        &self,
        answer: Answer,
        confirmed: Option<ConfirmedByUser>,
    ) -> Result<CallToolResponse, A2aError> {
        let Some(id) = self.question_to_confirm(&answer).await? else {
            return self.answer(&answer).await;
        };
        let (task, message) = (answer.task_id.clone(), answer.message.clone());
        let message = match self.confirm(std::slice::from_ref(&id), &message, confirmed).await? {
            UserDecision::Confirmed => message,
            UserDecision::Denied(_) => DENY.to_owned(),
            UserDecision::Missing => return Ok(unconfirmed().into()),
            UserDecision::Form(form) => return Ok(*form),
        };
        // Not for another question that the task may ask by now.
        let question = Some(id.as_str().to_owned());
        self.answer(&answer.instead(&task, message, question)).await
    }

    /// Question that an answer is for, if the user may have to confirm it.
    async fn question_to_confirm(&self, answer: &Answer) -> Result<Option<QuestionId>, A2aError> {
        if !self.needs_confirmation(&answer.message) {
            return Ok(None);
        }
        let id = match &answer.question_id {
            Some(id) => Some(id.clone()),
            None => {
                let task = self.task(&TaskId::new(&*answer.task_id)).await?;
                let is_open = task.status.state.is_interrupted();
                question_view::id(&task).filter(|_| is_open)
            }
        };
        Ok(id.map(QuestionId::new))
    }

    /// True if an answer may permit something, and the client can have its user confirm it.
    /// Programs of agents answer no permissions at all.
    fn needs_confirmation(&self, answer: &str) -> bool {
        !denies(answer) && are_for(&self.caller) && self.shows_forms()
    }

    /// Has the user confirm an answer to those of the questions that ask for a permission.
    async fn confirm(
        &self,
        ids: &[QuestionId],
        answer: &str,
        confirmed: Option<ConfirmedByUser>,
    ) -> Result<UserDecision, A2aError> {
        if !self.needs_confirmation(answer) {
            return Ok(UserDecision::Confirmed);
        }
        let permissions = self.open_permissions(ids).await?;
        if permissions.is_empty() {
            return Ok(UserDecision::Confirmed);
        }
        let form_ids: Vec<_> = permissions.iter().map(|question| question.id.clone()).collect();
        let covers = |confirmed: &ConfirmedByUser| {
            form_ids.iter().all(|id| confirmed.questions.contains(id))
        };
        let filled = match confirmed.filter(covers) {
            Some(confirmed) => confirmed.filled,
            None => {
                let form = form(&permissions, answer)?;
                if self.repeats_calls() {
                    let state = json!(ShownQuestions { confirms: form_ids }).to_string();
                    let form = result::asks_with(form, state).into();
                    return Ok(UserDecision::Form(Box::new(form)));
                }
                self.elicit(form).await
            }
        };
        Ok(decision(filled.as_ref(), form_ids, answer))
    }

    /// Open questions among these that ask for a permission.
    async fn open_permissions(&self, ids: &[QuestionId]) -> Result<Vec<OpenQuestion>, A2aError> {
        let kind = Some(QuestionKind::Permission);
        let query = QuestionQuery { kind, agent: None, limit: usize::MAX, offset: 0 };
        let mut list = self.open_questions(query).await?;
        list.questions.retain(|question| ids.contains(&question.id));
        Ok(list.questions)
    }

    async fn open_questions(&self, query: QuestionQuery) -> Result<OpenQuestions, A2aError> {
        let list = QuestionRequest::List(query);
        let QuestionAnswer::List(list) = self.on_questions(list).await? else {
            return Err(unexpected());
        };
        Ok(list)
    }

    async fn answer_questions(
        &self,
        ids: Vec<QuestionId>,
        answer: String,
    ) -> Result<Vec<QuestionResult>, A2aError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let request = QuestionRequest::Answer { ids, answer, always: None };
        let QuestionAnswer::Answered(results) = self.on_questions(request).await? else {
            return Err(unexpected());
        };
        Ok(results)
    }

    async fn on_questions(&self, request: QuestionRequest) -> Result<QuestionAnswer, A2aError> {
        let operation = Operation::Question(request);
        let operation::Answer::Question(answer) = self.answer_of(operation).await? else {
            return Err(unexpected());
        };
        Ok(answer)
    }
}

/// Result for an answer that the user did not confirm.
fn unconfirmed() -> CallToolResult {
    let why = "the user has not confirmed the answer, so nothing was answered, and the question stays open; they can answer it \
               in the form of another call, or with `a2a-hub inbox` in a terminal";
    result::refused(why)
}

/// Answer as a choice of the form.
fn choice(answer: &str) -> String {
    plain_text::line(answer, MAX_CHOICE)
}

/// Form with the whole requests, on which the user decides.
fn form(permissions: &[OpenQuestion], answer: &str) -> Result<ElicitRequestParams, A2aError> {
    let request = |question: &OpenQuestion| {
        let path: Vec<_> = question.path.iter().map(ToString::to_string).collect();
        let at = question.directory.as_deref().map(|at| format!(" in `{}`", terminal::clean(at)));
        let (path, at) = (path.join(" > "), at.unwrap_or_default());
        format!("The agent `{path}` asks{at}: {}", terminal::clean(&question.text))
    };
    let requests: Vec<_> = permissions.iter().map(request).collect();
    let requests = requests.join("\n\n");
    if requests.len() > MAX_SHOWN {
        let why = "the user cannot read so many requests in one form; answer fewer questions";
        return Err(A2aError::invalid("ids", why));
    }
    let choice = choice(answer);
    let message = format!("{requests}\n\nYour answer `{choice}` is about to be sent. Is it yours?");
    let decision = json!({ "type": "string", "title": "Decision", "enum": [choice, DENY] });
    let schema = object(json!({
        "type": "object",
        "properties": { "decision": decision },
        "required": ["decision"],
    }));
    let requested_schema = ElicitationSchema::from_json_schema((*schema).clone());
    let requested_schema = requested_schema.map_err(|why| {
        tracing::error!(%why, "cannot write the form for a confirmation");
        unexpected()
    })?;
    Ok(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Decision in a filled-in form about these questions. Declining it counts as a denial.
fn decision(
    filled: Option<&ElicitResult>,
    form_ids: Vec<QuestionId>,
    answer: &str,
) -> UserDecision {
    let Some(filled) = filled else { return UserDecision::Missing };
    let chosen = if filled.action == ElicitationAction::Accept {
        filled.content.as_ref().and_then(|content| content["decision"].as_str())
    } else {
        (filled.action == ElicitationAction::Decline).then_some(DENY)
    };
    match chosen {
        Some(DENY) => UserDecision::Denied(form_ids),
        Some(chosen) if chosen == choice(answer) => UserDecision::Confirmed,
        Some(_) | None => UserDecision::Missing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::id::{AgentId, ContextId};
    use serde_json::Value;

    fn permission(id: &str, text: &str) -> OpenQuestion {
        let agent = |id: &str| AgentId::parse(id).unwrap();
        OpenQuestion {
            id: QuestionId::new(id),
            kind: QuestionKind::Permission,
            task_id: TaskId::new("t"),
            root_task_id: TaskId::new("t"),
            agent_id: agent("codex"),
            path: vec![agent("reviewer"), agent("codex")],
            context_id: ContextId::new("c"),
            request: String::new(),
            text: text.to_owned(),
            permission: None,
            tool: None,
            choices: Vec::new(),
            directory: Some("/w".to_owned()),
            interrupted: false,
            queued: false,
            opened_at: String::new(),
            expires_at: None,
            expiring: false,
            set_aside: false,
        }
    }

    #[test]
    fn form_shows_whole_requests_harmlessly() {
        let permissions = [permission("a", "run\u{1b}[2J rm?"), permission("b", "edit \u{202e}x")];
        let form = json!(form(&permissions, "allow\u{1b}").unwrap());
        assert_eq!(
            form["message"],
            "The agent `reviewer > codex` asks in `/w`: run\\u{1b}[2J rm?\n\nThe agent `reviewer > codex` asks in `/w`: \
             edit \\u{202e}x\n\nYour answer `allow` is about to be sent. Is it yours?"
        );
        let offered = &form["requestedSchema"]["properties"]["decision"]["enum"];
        assert_eq!(*offered, json!(["allow", "deny"]));
        let long = permission("a", &"x".repeat(8_192));
        let many = vec![long; 4];
        let why = super::form(&many, "allow").unwrap_err();
        assert!(why.message.contains("answer fewer questions"), "{why}");
    }

    #[test]
    fn only_confirmed_answer_counts() {
        use ElicitationAction::{Accept, Cancel, Decline};
        let filled = |action, content: Value| ElicitResult::new(action).with_content(content);
        let decide = |filled: Option<&ElicitResult>, answer: &str| match decision(
            filled,
            vec![QuestionId::new("a")],
            answer,
        ) {
            UserDecision::Confirmed => "given",
            UserDecision::Denied(_) => "denied",
            UserDecision::Missing => "missing",
            UserDecision::Form(_) => "form",
        };
        for (filled, answer, wanted) in [
            (filled(Accept, json!({ "decision": "allow" })), "allow", "given"),
            (filled(Accept, json!({ "decision": "allow" })), "allow-session", "missing"),
            (filled(Accept, json!({ "decision": "deny" })), "allow", "denied"),
            (filled(Accept, json!({ "decision": true })), "allow", "missing"),
            (filled(Accept, json!({})), "allow", "missing"),
            (filled(Accept, json!("allow")), "allow", "missing"),
            (ElicitResult::new(Accept), "allow", "missing"),
            (ElicitResult::new(Decline), "allow", "denied"),
            (ElicitResult::new(Cancel), "allow", "missing"),
        ] {
            assert_eq!(decide(Some(&filled), answer), wanted, "{filled:?} {answer}");
        }
        assert_eq!(decide(None, "allow"), "missing");
    }

    #[test]
    fn confirmation_state_round_trips() {
        let state = json!(ShownQuestions { confirms: vec![QuestionId::new("a")] }).to_string();
        let read = ConfirmedByUser::read(Some(&state), None).unwrap();
        assert_eq!((read.questions, read.filled), (vec![QuestionId::new("a")], None));
        let of_task = json!({ "task": "t", "question": null }).to_string();
        for other in [None, Some("else"), Some("{}"), Some(of_task.as_str())] {
            assert!(ConfirmedByUser::read(other, None).is_none(), "{other:?}");
        }
    }
}
