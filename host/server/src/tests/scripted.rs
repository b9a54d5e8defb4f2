//! Agent that follows a script in its prompt: a JSON list of steps.

use a2a_hub_agents::native::Stage;
use a2a_hub_protocol::{
    id::ArtifactId,
    message::{Message, Part, Role},
    task::{Artifact, TaskState},
};
use a2a_hub_runtime::{
    Ended, Failure,
    port::tasks::{Emitted, Need},
};
use serde_json::{Value, json};

/// Beginning of a prompt with a script.
pub(super) const SCRIPT: &str = "script ";

/// Prompt with these steps. Each is an object with one member: `working`, the metadata of a status;
/// `artifact`, with its `id` and `parts`; `permission` or `input`, the data of a question; `wait`,
/// until the task is cancelled; or `end`, the name of a final state, with its `message` (parts).
pub(super) fn script(steps: &Value) -> String {
    format!("{SCRIPT}{steps}")
}

/// Performs the steps.
pub(super) async fn perform(stage: &Stage, script: &str) -> Ended {
    let steps: Vec<Value> = serde_json::from_str(script).unwrap();
    for step in &steps {
        match perform_step(stage, step).await {
            Ok(None) => {}
            Ok(Some(ended)) => return ended,
            Err(why) => return Ended::Failed(why),
        }
    }
    panic!("the script has no end: {script}");
}

async fn perform_step(stage: &Stage, step: &Value) -> Result<Option<Ended>, Failure> {
    let parts = |parts: &Value| -> Vec<Part> { serde_json::from_value(parts.clone()).unwrap() };
    let (kind, value) = step.as_object().and_then(|step| step.iter().next()).unwrap();
    match kind.as_str() {
        "working" => {
            let message = Some(Message::text(Role::Agent, "for people"));
            let metadata = value.as_object().cloned();
            stage.port.emit(vec![Emitted::Working { message, metadata }]).await?;
        }
        "artifact" => {
            let id = ArtifactId::new(value["id"].as_str().unwrap());
            stage.artifact(Artifact::new(id, parts(&value["parts"]))).await?;
        }
        "permission" | "input" => {
            let text = vec![Part::text("may I?"), Part::data(value.clone())];
            let question = json!({ "question": { "kind": kind } });
            let metadata = question.as_object().cloned();
            let prompt = Message { metadata, ..Message::new(Role::Agent, text) };
            stage.port.ask(Need::Input, prompt, None).await?;
        }
        "wait" => {
            stage.cancelled.cancelled().await;
            return Err(Failure::Cancelled);
        }
        "end" => {
            let state = TaskState::from_name(value["state"].as_str().unwrap()).unwrap();
            let message = value.get("message").map(&parts);
            let message = message.map(|parts| Message::new(Role::Agent, parts));
            return Ok(Some(Ended::Status { state, message, metadata: None }));
        }
        other => panic!("unknown step {other}"),
    }
    Ok(None)
}
