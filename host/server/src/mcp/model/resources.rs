//! Artifacts as resources: `a2a-hub://tasks/{task}` is a task as JSON, and its artifacts are
//! below it.

use a2a_hub_core::text::plain_text;
use a2a_hub_protocol::{
    id::TaskId,
    message::{Content, Part},
    operation::{ListedTask, Operation, TaskCursor, TaskPageQuery},
    task::{Artifact, Task},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

const SCHEME: &str = "a2a-hub://tasks/";
const ARTIFACTS: &str = "/artifacts/";

/// Number of tasks on a page of resources.
const PAGE: usize = 20;

/// Maximum number of pages that one request reads to find a resource.
pub(crate) const MAX_PAGES: usize = 50;

/// Media types of text that do not say so.
const TEXTS: [&str; 5] = [
    "application/json",
    "application/xml",
    "application/yaml",
    "application/toml",
    "application/javascript",
];

/// Unreserved characters of a URI (RFC 3986, section 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Operation that lists a page of tasks with their artifacts, the latest change first. Tasks that
/// begin or change meanwhile precede all pages that follow, so none is on two of them.
pub(crate) fn list(after: Option<TaskCursor>) -> Operation {
    let (agent, context, tenant, state, since) = Default::default();
    Operation::PageTasks(TaskPageQuery {
        agent,
        context,
        tenant,
        state,
        since,
        after,
        size: PAGE,
        history_length: Some(0),
        include_artifacts: true,
    })
}

/// Target of a URI.
#[derive(Debug, PartialEq)]
pub(crate) struct ResourceTarget {
    /// Task.
    pub task: TaskId,
    /// Id of an artifact of the task; `None` for the task itself.
    pub artifact: Option<String>,
}

/// URI of a task.
pub(crate) fn task_uri(task: &TaskId) -> String {
    format!("{SCHEME}{}", utf8_percent_encode(task.as_str(), UNRESERVED))
}

/// URI of an artifact.
pub(crate) fn artifact_uri(task: &TaskId, artifact: &Artifact) -> String {
    let artifact = utf8_percent_encode(artifact.artifact_id.as_str(), UNRESERVED);
    format!("{}{ARTIFACTS}{artifact}", task_uri(task))
}

/// Parses a URI; `None` if it is not one of the hub's.
pub(crate) fn read_uri(uri: &str) -> Option<ResourceTarget> {
    let decode = |text: &str| percent_decode_str(text).decode_utf8().ok().map(|it| it.into_owned());
    let rest = uri.strip_prefix(SCHEME)?;
    let (task, artifact) = match rest.split_once(ARTIFACTS) {
        Some((task, artifact)) => (task, Some(decode(artifact)?)),
        None => (rest, None),
    };
    let is_valid = !task.is_empty() && !task.contains('/');
    is_valid.then(|| Some(ResourceTarget { task: TaskId::new(decode(task)?), artifact }))?
}

/// Resources of these tasks.
pub(crate) fn of_tasks(tasks: &[ListedTask]) -> Vec<Resource> {
    let of = |listed: &ListedTask| {
        let (agent, task) = (listed.agent.to_string(), &listed.task);
        task.artifacts
            .iter()
            .map(|artifact| of_artifact(task, artifact, Some(&agent)))
            .collect::<Vec<_>>()
    };
    tasks.iter().flat_map(of).collect()
}

/// Resource entry of an artifact.
pub(crate) fn of_artifact(task: &Task, artifact: &Artifact, agent: Option<&str>) -> Resource {
    let name = artifact
        .name
        .as_deref()
        .or_else(|| artifact.parts.iter().find_map(|part| part.filename.as_deref()));
    let name = plain_text::line(name.unwrap_or_else(|| artifact.artifact_id.as_str()), 120);
    let by = agent.map(|agent| format!(" by `{agent}`")).unwrap_or_default();
    let quoted = artifact
        .description
        .as_deref()
        .map(|text| format!(": \"{}\"", plain_text::line(text, 200)));
    let description = format!("Made{by} in task {}{}", task.id, quoted.unwrap_or_default());
    let resource =
        Resource::new(artifact_uri(&task.id, artifact), name).with_description(description);
    match &artifact.parts[..] {
        [part] => resource.with_mime_type(media(part)),
        _ => resource,
    }
}

/// Templates of all URIs.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(format!("{SCHEME}{{task_id}}"), "task")
            .with_description("A task as it stands, as JSON of A2A 1.0")
            .with_mime_type("application/json"),
        ResourceTemplate::new(format!("{SCHEME}{{task_id}}{ARTIFACTS}{{artifact_id}}"), "artifact")
            .with_description("What an agent made in a task"),
    ]
}

/// Contents of a URI's target in this task; `None` if the artifact does not exist.
pub(crate) fn read(
    task: &Task,
    target: &ResourceTarget,
    uri: &str,
) -> Option<Vec<ResourceContents>> {
    let Some(wanted) = &target.artifact else {
        let resource = ResourceContents::text(json!(task).to_string(), uri);
        return Some(vec![resource.with_mime_type("application/json")]);
    };
    let artifact =
        task.artifacts.iter().find(|artifact| artifact.artifact_id.as_str() == wanted)?;
    Some(artifact.parts.iter().map(|part| contents(part, uri)).collect())
}

/// Text of a file; `None` if its media type or its bytes are those of no text.
pub(crate) fn text_file(part: &Part) -> Option<&str> {
    let (Content::Raw(bytes), Some(media)) = (&part.content, &part.media_type) else { return None };
    let essence = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = essence.starts_with("text/")
        || TEXTS.contains(&&*essence)
        || essence.ends_with("+json")
        || essence.ends_with("+xml");
    std::str::from_utf8(bytes).ok().filter(|_| is_text)
}

fn contents(part: &Part, uri: &str) -> ResourceContents {
    let contents = match &part.content {
        Content::Text(text) | Content::Url(text) => ResourceContents::text(text, uri),
        Content::Data(data) => ResourceContents::text(data.to_string(), uri),
        Content::Raw(bytes) => ResourceContents::blob(STANDARD.encode(bytes), uri),
    };
    contents.with_mime_type(media(part))
}

/// Media type of a part's contents. For a link, the contents are the link itself.
fn media(part: &Part) -> String {
    match &part.content {
        Content::Url(_) => "text/uri-list".to_owned(),
        Content::Data(_) => "application/json".to_owned(),
        Content::Text(_) => part.media_type.clone().unwrap_or_else(|| "text/plain".to_owned()),
        Content::Raw(_) => {
            part.media_type.clone().unwrap_or_else(|| "application/octet-stream".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{ArtifactId, ContextId},
        task::{TaskState, TaskStatus},
    };

    fn made(id: &str, parts: Vec<Part>) -> Artifact {
        Artifact::new(ArtifactId::new(id), parts)
    }

    fn task(artifacts: Vec<Artifact>) -> Task {
        let status =
            TaskStatus { state: TaskState::Completed, message: None, timestamp: String::new() };
        let (id, context_id) = (TaskId::new("t-1"), ContextId::new("c"));
        Task { id, context_id, status, artifacts, history: Vec::new(), metadata: None }
    }

    #[test]
    fn artifact_uri_round_trips_any_id() {
        for id in ["a", "../x", "a/artifacts/b", "ä ö?#%"] {
            let made = made(id, Vec::new());
            let uri = artifact_uri(&TaskId::new("t-1"), &made);
            assert!(url::Url::parse(&uri).is_ok(), "{uri}");
            let place = ResourceTarget { task: TaskId::new("t-1"), artifact: Some(id.to_owned()) };
            assert_eq!(read_uri(&uri), Some(place), "{uri}");
        }
        let whole = ResourceTarget { task: TaskId::new("t-1"), artifact: None };
        assert_eq!(read_uri("a2a-hub://tasks/t-1"), Some(whole));
        for other in
            ["file:///etc/passwd", "a2a-hub://tasks/", "a2a-hub://tasks/a/b", "a2a-hub://agents/a"]
        {
            assert_eq!(read_uri(other), None, "{other}");
        }
    }

    #[test]
    fn part_contents_have_media_type() {
        let parts = vec![
            Part::text("text"),
            Part::new(Content::Raw(vec![255, 254])),
            Part::data(json!({ "n": 1 })),
            Part::new(Content::Url("https://example.com/x".to_owned())),
        ];
        let task = task(vec![made("all", parts)]);
        let uri = artifact_uri(&task.id, &task.artifacts[0]);
        let read = read(&task, &read_uri(&uri).unwrap(), &uri).unwrap();
        let told = json!(read);
        assert_eq!(told[0], json!({ "uri": uri, "mimeType": "text/plain", "text": "text" }));
        assert_eq!(
            told[1],
            json!({ "uri": uri, "mimeType": "application/octet-stream", "blob": "//4=" })
        );
        assert_eq!(
            told[2],
            json!({ "uri": uri, "mimeType": "application/json", "text": "{\"n\":1}" })
        );
        assert_eq!(told[3]["text"], "https://example.com/x");
    }

    #[test]
    fn missing_artifact_has_no_contents() {
        let task = task(Vec::new());
        let place = |artifact: Option<&str>| ResourceTarget {
            task: task.id.clone(),
            artifact: artifact.map(str::to_owned),
        };
        assert_eq!(read(&task, &place(Some("none")), "u"), None);
        let whole = json!(read(&task, &place(None), "u").unwrap());
        assert!(whole[0]["text"].as_str().unwrap().contains("TASK_STATE_COMPLETED"), "{whole}");
    }
}
