//! Progress of a task for an MCP client: one line for each status, and artifact text collected for
//! a short time, so that an agent that streams single letters does not cause a notification for
//! each.

use a2a_hub_core::{
    task::progress,
    text::{plain_text, terminal},
};
use a2a_hub_protocol::{event::TaskEvent, message::joined_text};

/// Maximum length of a line in characters.
const MAX_LINE: usize = 500;

/// Number of bytes of text after which it is sent at once.
const ENOUGH: usize = 2_000;

/// Collected progress that was not sent yet.
#[derive(Default)]
pub(crate) struct Narration {
    text: String,
    lines: Vec<String>,
}

impl Narration {
    /// Adds an event; returns true if the progress should be sent at once.
    pub(crate) fn add(&mut self, event: &TaskEvent) -> bool {
        match event {
            TaskEvent::Status(update) => {
                self.gather();
                let text = update.status.message.as_ref().map(|message| message.joined_text());
                let text = progress::status_text(update.metadata.as_ref(), text);
                let line = text.unwrap_or_else(|| update.status.state.name().to_owned());
                self.lines.push(plain_text::line(&line, MAX_LINE));
                true
            }
            TaskEvent::Artifact(update) => {
                self.text += &joined_text(&update.artifact.parts);
                self.text.len() >= ENOUGH
            }
            TaskEvent::Created(_) | TaskEvent::Input(_) | TaskEvent::Reply(_) => false,
        }
    }

    /// True if nothing is collected.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.lines.is_empty()
    }

    /// Takes the collected lines. Terminal escapes are escaped, because people may see them.
    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        self.gather();
        std::mem::take(&mut self.lines)
    }

    fn gather(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.lines.push(terminal::clean(&text).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        event::{ArtifactUpdate, StatusUpdate},
        id::ArtifactId,
        message::{Message, Part, Role},
        task::{Artifact, TaskState, TaskStatus},
    };

    fn status(said: Option<&str>) -> TaskEvent {
        let message = said.map(|said| Message::text(Role::Agent, said));
        let status = TaskStatus { state: TaskState::Working, message, timestamp: String::new() };
        TaskEvent::Status(StatusUpdate { status, metadata: None })
    }

    fn piece(text: &str) -> TaskEvent {
        let artifact = Artifact::new(ArtifactId::new("a"), vec![Part::text(text)]);
        TaskEvent::Artifact(ArtifactUpdate { artifact, append: true, last_chunk: false })
    }

    #[test]
    fn text_is_collected_and_sent_before_status() {
        let mut told = Narration::default();
        assert!(told.is_empty());
        assert!(!told.add(&piece("a")) && !told.add(&piece("b\u{1b}[2J")));
        assert!(told.add(&status(Some("thinks\nhard"))));
        assert!(told.add(&status(None)));
        assert_eq!(told.take_lines(), ["ab\\u{1b}[2J", "thinks hard", "working"]);
        assert!(told.is_empty() && told.take_lines().is_empty());
        assert!(told.add(&piece(&"x".repeat(ENOUGH))), "that is enough at once");
    }
}
