//! Five-step protocol: submissions, their answers and errors. Its members in a card are in
//! `a2a_hub_protocol::five_step`.
//!
//! ```text
//! 1 discovery   GET  /.well-known/agent.json   a card with `endpoints`
//! 2 input       as the skill's `inputSchema` requires
//! 3 delegation  POST /submit_task              {requesting_agent_id, skill_id, input_data}
//!                                              -> 202 {task_id, …, updates_url}
//! 4 updates     GET  /task_updates/{task_id}   server-sent events, `task_update` each
//! 5 result      the last update
//! ```

pub(crate) mod skill_holder;
pub(crate) mod status;

use a2a_hub_protocol::{
    card::{AgentCard, Violation},
    error::{A2aError, ErrorKind},
    id::AgentId,
    limits, member,
    message::{Message, Metadata, Part, Role},
    operation::{AgentRequirements, SendMessage, Wait},
    task::TaskState,
};
use serde_json::{Map, Value, json};

/// Name of the server-sent events.
pub(crate) const EVENT: &str = "task_update";

/// Maximum length in bytes of a requesting agent's name and of a skill's id.
const MAX_NAME: usize = 256;

/// Member with the name of the requesting agent.
const REQUESTING_AGENT: &str = "requesting_agent_id";

/// Member with the id of the skill.
const SKILL: &str = "skill_id";

/// Member with the input of the skill.
const INPUT: &str = "input_data";

/// A submitted task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Submission {
    /// Name that the requesting agent gives itself; not verified.
    pub requesting_agent: String,
    /// Id of the requested skill.
    pub skill: String,
    /// Input of the skill.
    pub input: Map<String, Value>,
}

impl Submission {
    /// Parses the body of a request; an error names each invalid member.
    pub(crate) fn read(body: &[u8]) -> Result<Self, A2aError> {
        let Value::Object(mut members) = limits::read(body)? else {
            return Err(invalid(&[wrong("", "must be an object")]));
        };
        limits::check(&members)?;
        let mut violations = Vec::new();
        let mut name = |member: &str| match members.remove(member) {
            Some(Value::String(name)) if !name.trim().is_empty() && name.len() <= MAX_NAME => name,
            Some(Value::String(_)) => {
                let why = format!("must be 1 to {MAX_NAME} bytes long, and not only white space");
                violations.push(wrong(member, &why));
                String::new()
            }
            None => {
                violations.push(wrong(member, "is missing"));
                String::new()
            }
            Some(_) => {
                violations.push(wrong(member, "must be a string"));
                String::new()
            }
        };
        let (requesting_agent, skill) = (name(REQUESTING_AGENT), name(SKILL));
        let input = match members.remove(INPUT) {
            Some(Value::Object(input)) => input,
            None => {
                violations.push(wrong(INPUT, "is missing"));
                Map::new()
            }
            Some(_) => {
                violations.push(wrong(INPUT, "must be an object"));
                Map::new()
            }
        };
        if violations.is_empty() {
            Ok(Self { requesting_agent, skill, input })
        } else {
            Err(invalid(&violations))
        }
    }

    /// Converts the submission to a message for `agent`, or for any agent with `skill`. The input
    /// is a data part, preceded by a text part if the agent of `card` does not accept JSON. The
    /// metadata holds the unverified name of the requesting agent.
    pub(crate) fn message(
        self,
        agent: Option<&AgentId>,
        card: &AgentCard,
        skill: &str,
    ) -> Result<SendMessage, A2aError> {
        let text = (!card.takes_json()).then(|| Part::text(readable(&self.input)));
        let data = Part::data(Value::Object(self.input));
        let mut message = Message::new(Role::User, text.into_iter().chain([data]).collect());
        let facts = [
            ("targetSkill".to_owned(), json!(skill)),
            (SKILL.to_owned(), json!(skill)),
            (REQUESTING_AGENT.to_owned(), json!(self.requesting_agent)),
        ];
        let target = agent.map(|agent| ("targetAgent".to_owned(), json!(agent)));
        message.metadata = Some(Metadata::from_iter(facts.into_iter().chain(target)));
        // A submission is answered at once.
        let mut send = SendMessage { wait: Wait::No, ..SendMessage::new(message, None)? };
        if agent.is_some() {
            send.requirements = AgentRequirements::default();
        }
        Ok(send)
    }
}

/// Text form of an input, for agents that accept only text: the text itself if it is the only
/// member, otherwise one line for each member.
pub(crate) fn readable(input: &Map<String, Value>) -> String {
    let to_text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut members = input.iter();
    if let (Some((_, Value::String(text))), 1) = (members.next(), input.len()) {
        return text.clone();
    }
    let lines: Vec<_> =
        input.iter().map(|(name, value)| format!("{name}: {}", to_text(value))).collect();
    if lines.is_empty() { "{}".to_owned() } else { lines.join("\n") }
}

/// Creates the error for an input that violates its skill's schema; it names each member.
pub(crate) fn unfit(skill: &str, violations: &[Violation]) -> A2aError {
    let within = |one: &Violation| Violation {
        pointer: format!("/{INPUT}{}", one.pointer),
        why: one.why.clone(),
    };
    let all: Vec<_> = violations.iter().map(within).collect();
    with_fields(
        &all,
        &format!("; the card has the whole under `inputSchema` of the skill `{skill}`"),
    )
}

/// Creates the error for an unknown skill; `fields` names the request's member.
pub(crate) fn no_skill(why: &str, details: Value) -> A2aError {
    let mut details = details;
    member::set(&mut details, "fields", fields(&[wrong(SKILL, why)]));
    A2aError::new(ErrorKind::InvalidParams, format!("`/{SKILL}`: {why}")).with(details)
}

fn wrong(member: &str, why: &str) -> Violation {
    let pointer = if member.is_empty() { String::new() } else { format!("/{member}") };
    Violation { pointer, why: why.to_owned() }
}

fn invalid(violations: &[Violation]) -> A2aError {
    with_fields(
        violations,
        "; a task is submitted as {\"requesting_agent_id\": …, \"skill_id\": …, \"input_data\": {…}}",
    )
}

fn with_fields(violations: &[Violation], hint: &str) -> A2aError {
    let describe = |Violation { pointer, why }: &Violation| match pointer.as_str() {
        "" => format!("the request {why}"),
        pointer => format!("`{pointer}` {why}"),
    };
    let all: Vec<_> = violations.iter().map(describe).collect();
    A2aError::new(ErrorKind::InvalidParams, format!("{}{hint}", all.join("; ")))
        .with(json!({ "fields": fields(violations) }))
}

fn fields(violations: &[Violation]) -> Value {
    violations
        .iter()
        .map(|Violation { pointer, why }| json!({ "pointer": pointer, "message": why }))
        .collect()
}

/// HTTP status and body of a refusal.
pub(crate) fn refusal(why: &A2aError) -> (u16, Value) {
    let http = why.kind.official().http;
    let mut error = json!({ "code": http, "reason": why.kind.reason(), "message": why.message });
    if let (Value::Object(error), Some(Value::Object(details))) = (&mut error, &why.details) {
        error.extend(
            details
                .iter()
                .filter(|(name, _)| *name != "reason")
                .map(|(name, fact)| (name.clone(), fact.clone())),
        );
    }
    (http, json!({ "error": error }))
}

/// Default status message of a state.
pub(crate) fn of_state(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "The task was accepted, and waits for its turn.",
        TaskState::Working => "The agent is at work.",
        TaskState::InputRequired => "The agent waits for an answer.",
        TaskState::AuthRequired => "The agent waits for a login.",
        TaskState::Completed => "The task is done.",
        TaskState::Failed => "The task failed.",
        TaskState::Canceled => "The task was cancelled.",
        TaskState::Rejected => "The agent did not take the task.",
        TaskState::Unknown => "Nobody says how the task is.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::json_shapes::{reshaped, shapes};

    fn read(body: &Value) -> Result<Submission, A2aError> {
        Submission::read(body.to_string().as_bytes())
    }

    fn card(modes: &[&str]) -> AgentCard {
        let card =
            json!({"name": "n", "description": "d", "version": "1", "defaultInputModes": modes});
        serde_json::from_value(card).unwrap()
    }

    #[test]
    fn invalid_submission_names_each_member() {
        let right = json!({"requesting_agent_id": "requesting-agent-01", "skill_id": "browse_extract",
            "input_data": {"search_topic": "why", "extraction_instruction": "sum up"}, "more": 1});
        let read_right = read(&right).unwrap();
        assert_eq!(read_right.requesting_agent, "requesting-agent-01");
        assert_eq!(read_right.input["search_topic"], "why");
        let told =
            |body: Value| refusal(&read(&body).unwrap_err()).1["error"]["fields"].to_string();
        let wrong = [
            told(json!({})),
            told(json!([])),
            told(json!({"requesting_agent_id": 1, "skill_id": " ", "input_data": []})),
            told(
                json!({"requesting_agent_id": "x".repeat(300), "skill_id": null, "input_data": {}}),
            ),
        ];
        insta::assert_snapshot!(wrong.join("\n"), @r#"
        [{"message":"is missing","pointer":"/requesting_agent_id"},{"message":"is missing","pointer":"/skill_id"},{"message":"is missing","pointer":"/input_data"}]
        [{"message":"must be an object","pointer":""}]
        [{"message":"must be a string","pointer":"/requesting_agent_id"},{"message":"must be 1 to 256 bytes long, and not only white space","pointer":"/skill_id"},{"message":"must be an object","pointer":"/input_data"}]
        [{"message":"must be 1 to 256 bytes long, and not only white space","pointer":"/requesting_agent_id"},{"message":"must be a string","pointer":"/skill_id"}]
        "#);
        for (body, kind) in [
            (&b"{"[..], ErrorKind::Parse),
            (br#"{"skill_id":"a","skill_id":"b"}"#, ErrorKind::InvalidRequest),
        ] {
            assert_eq!(Submission::read(body).unwrap_err().kind, kind);
        }
        let deep = (0..80).fold(json!({}), |inner, _| json!({ "x": inner }));
        assert_eq!(
            read(&json!({ "input_data": deep })).unwrap_err().kind,
            ErrorKind::InvalidRequest
        );
    }

    #[test]
    fn text_only_agent_gets_input_as_text() {
        let agent = AgentId::parse("echo").unwrap();
        let send = |modes: &[&str], input: Value| {
            let body = json!({"requesting_agent_id": "r", "skill_id": "s", "input_data": input});
            read(&body).unwrap().message(Some(&agent), &card(modes), "s").unwrap()
        };
        let input = json!({"search_topic": "why", "depth": 2});
        let both = send(&["text/plain"], input.clone());
        assert_eq!(both.message.joined_text(), "depth: 2\nsearch_topic: why");
        assert_eq!(both.message.parts[1], Part::data(input.clone()));
        assert_eq!((both.agent, both.wait), (Some(agent.clone()), Wait::No));
        let facts = both.message.metadata.unwrap();
        assert_eq!((&facts["skill_id"], &facts["requesting_agent_id"]), (&json!("s"), &json!("r")));
        assert_eq!(send(&["text/plain"], json!({"text": "hello"})).message.joined_text(), "hello");
        for modes in [&["*/*"][..], &["text/plain", "application/json"], &[]] {
            assert_eq!(send(modes, input.clone()).message.parts, [Part::data(input.clone())]);
        }
        // The hub does not interpret members of the input.
        let sly = send(&[], json!({"metadata": {"resume": "x", "targetAgent": "other"}}));
        assert!(!sly.resumes_a_session() && sly.agent == Some(agent.clone()));
    }

    #[test]
    fn submission_refusal_names_members_and_status() {
        let violation = Violation { pointer: "/search_topic".into(), why: "is missing".into() };
        let (status, body) = refusal(&unfit("browse_extract", &[violation]));
        assert_eq!(status, 400);
        insta::assert_snapshot!(body, @r#"{"error":{"code":400,"fields":[{"message":"is missing","pointer":"/input_data/search_topic"}],"message":"`/input_data/search_topic` is missing; the card has the whole under `inputSchema` of the skill `browse_extract`","reason":"INVALID_PARAMS"}}"#);
        assert_eq!(refusal(&A2aError::no_task("t")).0, 404);
    }

    #[test]
    fn mutated_submissions_never_panic() {
        let submitted = json!({ "requesting_agent_id": "a", "skill_id": "s", "input_data": { "a": 1 },
            "callback_url": "http://a/", "metadata": { "a": 1 }, "idempotency_key": "k" });
        for other in reshaped(&submitted) {
            let _ = read(&other);
        }
        // Details may come from a remote server.
        for details in shapes() {
            let error = A2aError::new(ErrorKind::InvalidParams, "no").with(details.clone());
            assert_eq!(refusal(&error).1["error"]["message"], "no");
            assert_eq!(no_skill("is not there", details).kind, ErrorKind::InvalidParams);
        }
    }
}
