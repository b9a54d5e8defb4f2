//! Update of a task, which is complete by itself.

use a2a_hub_core::task::progress;
use a2a_hub_protocol::{
    id::{ArtifactId, TaskId},
    message::{Message, Metadata},
    question::Question,
    task::{Artifact, Task, TaskState, TaskStatus},
    v03::json::write_artifact,
};
use serde_json::{Value, json};

/// Name of the artifact made from an agent's final message if the task has no artifacts.
const ANSWER: &str = "answer";

/// State of a task according to the events received so far.
#[derive(Debug)]
pub(crate) struct TaskSnapshot {
    task: TaskId,
    /// A2A URL for answers to the task's questions.
    answer_url: String,
    state: TaskState,
    message: Option<Message>,
    percent: Option<f64>,
    question: Option<Question>,
}

impl TaskSnapshot {
    /// State before the first event.
    pub(crate) fn new(task: TaskId, answer_url: String) -> Self {
        let state = TaskState::Submitted;
        Self { task, answer_url, state, message: None, percent: None, question: None }
    }

    /// Applies a status and its metadata.
    pub(crate) fn apply_status(&mut self, status: &TaskStatus, facts: Option<&Metadata>) {
        self.state = status.state;
        self.message.clone_from(&status.message);
        self.percent = progress::percent(facts).or(self.percent);
        if self.state == TaskState::Completed {
            self.percent = Some(100.0);
        }
        self.question = Question::from_metadata(facts).filter(|_| self.state.is_interrupted());
    }

    /// Applies a message of the agent, which ends the task.
    pub(crate) fn apply_reply(&mut self, message: &Message) {
        self.state = TaskState::Completed;
        self.message = Some(message.clone());
        self.percent = Some(100.0);
    }

    /// True if the task has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.state.is_final()
    }

    /// Creates an update with these artefacts.
    pub(crate) fn to_json(&self, artefacts: &[Artifact]) -> Value {
        let failed = match self.state {
            TaskState::Failed | TaskState::Rejected | TaskState::Canceled => true,
            TaskState::Submitted
            | TaskState::Working
            | TaskState::InputRequired
            | TaskState::AuthRequired
            | TaskState::Completed
            | TaskState::Unknown => false,
        };
        let status_message = self.status_message();
        let mut update = json!({
            "task_id": self.task,
            "status": self.state.name(),
            "status_message": status_message,
            "progress_percent": self.percent.map(round_percent),
            "artefacts": artefacts.iter().map(write_artifact).collect::<Vec<_>>(),
            "error_message": failed.then_some(status_message),
        });
        if let (true, Some(question)) = (self.state.is_interrupted(), &self.question) {
            update["question"] = json!({
                "id": question.id,
                "kind": question.kind,
                "prompt": self.text(),
                "answer_url": self.answer_url,
            });
        }
        update
    }

    /// Creates the last update with all artifacts. If a completed task has none, the agent's final
    /// message becomes its artifact.
    pub(crate) fn to_final_json(&self, mut task: Task) -> Value {
        let message = task.status.message.take().filter(|message| !message.parts.is_empty());
        if let (TaskState::Completed, true, Some(message)) =
            (self.state, task.artifacts.is_empty(), message)
        {
            task.artifacts.push(Artifact {
                artifact_id: ArtifactId::new(ANSWER),
                name: None,
                description: None,
                parts: message.parts,
                metadata: message.metadata,
                extensions: message.extensions,
            });
        }
        self.to_json(&task.artifacts)
    }

    fn text(&self) -> Option<String> {
        let text = self.message.as_ref().map(Message::joined_text);
        text.filter(|text| !text.trim().is_empty())
    }

    /// Message of the agent, or the default message of the state. For a question it includes
    /// instructions for the answer, because the protocol cannot express them.
    fn status_message(&self) -> String {
        let text =
            self.text().unwrap_or_else(|| crate::five_step::model::of_state(self.state).to_owned());
        if !self.state.is_interrupted() {
            return text;
        }
        let (task, url) = (&self.task, &self.answer_url);
        format!(
            "{text} [To answer, send an A2A message with `taskId` \"{task}\" to {url}, method `message/send`; updates go on here.]"
        )
    }
}

/// Rounds a percentage to an integer.
fn round_percent(percent: f64) -> Value {
    // The value is from 0 to 100, so its digits parse as an integer.
    serde_json::from_str(&format!("{percent:.0}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::ContextId,
        message::{Part, Role},
        question::QuestionKind,
    };

    fn standing() -> TaskSnapshot {
        TaskSnapshot::new(TaskId::new("t"), "http://hub/a2a".to_owned())
    }

    fn status(state: TaskState, said: Option<&str>) -> TaskStatus {
        let message = said.map(|said| Message::text(Role::Agent, said));
        TaskStatus { state, message, timestamp: String::new() }
    }

    #[test]
    fn update_describes_each_state() {
        let told = |state, said| {
            let mut standing = standing();
            standing.apply_status(
                &status(state, said),
                json!({"progress": {"percent": 40.4}}).as_object(),
            );
            let told = standing.to_json(&[]);
            let member = |name: &str| told[name].to_string();
            ["status", "status_message", "progress_percent", "error_message"].map(member).join(" ")
        };
        let all: Vec<_> = TaskState::ALL.map(|state| told(state, None)).into();
        insta::assert_snapshot!(all.join("\n"), @r#"
        "submitted" "The task was accepted, and waits for its turn." 40 null
        "working" "The agent is at work." 40 null
        "input-required" "The agent waits for an answer. [To answer, send an A2A message with `taskId` \"t\" to http://hub/a2a, method `message/send`; updates go on here.]" 40 null
        "auth-required" "The agent waits for a login. [To answer, send an A2A message with `taskId` \"t\" to http://hub/a2a, method `message/send`; updates go on here.]" 40 null
        "completed" "The task is done." 100 null
        "failed" "The task failed." 40 "The task failed."
        "canceled" "The task was cancelled." 40 "The task was cancelled."
        "rejected" "The agent did not take the task." 40 "The agent did not take the task."
        "unknown" "Nobody says how the task is." 40 null
        "#);
        insta::assert_snapshot!(told(TaskState::Working, Some("Searching…")), @r#""working" "Searching…" 40 null"#);
        insta::assert_snapshot!(told(TaskState::Failed, Some("no such source")), @r#""failed" "no such source" 40 "no such source""#);
    }

    #[test]
    fn progress_is_kept_until_next_report() {
        let mut standing = standing();
        assert_eq!(standing.to_json(&[])["progress_percent"], Value::Null);
        let facts = json!({"progress": {"percent": 40}});
        standing.apply_status(&status(TaskState::Working, Some("a")), facts.as_object());
        standing.apply_status(&status(TaskState::Working, Some("b")), None);
        assert_eq!(standing.to_json(&[])["progress_percent"], 40);
        standing.apply_status(&status(TaskState::Completed, None), None);
        assert_eq!(standing.to_json(&[])["progress_percent"], 100);
    }

    #[test]
    fn question_update_names_answer_url() {
        let mut standing = standing();
        let question = Question::fresh(QuestionKind::Input);
        let facts = Metadata::from_iter([question.member()]);
        standing.apply_status(&status(TaskState::InputRequired, Some("Which one?")), Some(&facts));
        let told = standing.to_json(&[]);
        let asked = json!({ "id": question.id, "kind": "input", "prompt": "Which one?", "answer_url": "http://hub/a2a" });
        assert_eq!(told["question"], asked);
        let message = told["status_message"].as_str().unwrap();
        assert!(
            message.starts_with("Which one? [To answer, send") && message.contains("\"t\""),
            "{message}"
        );
        standing.apply_status(&status(TaskState::Working, None), None);
        assert_eq!(standing.to_json(&[]).get("question"), None);
    }

    #[test]
    fn final_message_replaces_missing_artifacts() {
        let task = |artifacts: Vec<Artifact>, state| Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status: status(state, Some("hello")),
            artifacts,
            history: Vec::new(),
            metadata: None,
        };
        let told = |task: Task| {
            let mut standing = standing();
            standing.apply_status(&task.status, None);
            standing.to_final_json(task)["artefacts"].clone()
        };
        let answer = json!([{ "artifactId": "answer", "name": "answer", "parts": [{ "kind": "text", "text": "hello" }] }]);
        assert_eq!(told(task(Vec::new(), TaskState::Completed)), answer);
        assert_eq!(told(task(Vec::new(), TaskState::Failed)), json!([]));
        let made = Artifact::new(ArtifactId::new("report"), vec![Part::data(json!({ "n": 1 }))]);
        assert_eq!(told(task(vec![made], TaskState::Completed))[0]["artifactId"], "report");
    }
}
