//! [`Context`]: everything a running agent can do outside itself.

use std::time::Duration;

use crate::host::Host;
use crate::hub::Hub;
use crate::outcome::Run;
use crate::{
    Artifact, ArtifactUpdate, Event, Failure, Level, Message, Need, Outcome, TaskState, TaskStatus,
};

/// The hub, as one run of an agent sees it.
pub struct Context {
    pub(crate) hub: Hub,
    live: bool,
}

impl Context {
    pub(crate) fn new(hub: Hub, live: bool) -> Self {
        Self { hub, live }
    }

    /// The context of a component, for [`export!`](crate::export).
    #[doc(hidden)]
    #[cfg(target_arch = "wasm32")]
    pub fn imported(live: bool) -> Self {
        Self::new(crate::imports::Imports, live)
    }

    /// Whether somebody listens while the run goes on. If not, only the result counts.
    pub fn live(&self) -> bool {
        self.live
    }

    /// Tells the listeners what is being done.
    pub fn say(&self, text: impl Into<String>) -> Result<(), Failure> {
        self.emit([TaskStatus::new(TaskState::Working, text)])
    }

    /// Tells the listeners how far the work is, in per cent: [`TaskStatus::progress`]. Clients find the number in the metadata of the
    /// status, and `a2a-hub send` shows it beside the text, which may be empty.
    pub fn progress(&self, percent: u8, text: impl Into<String>) -> Result<(), Failure> {
        self.emit([TaskStatus::progress(percent, text)])
    }

    /// Emits events, stored together.
    pub fn emit<E: Into<Event>>(&self, events: impl IntoIterator<Item = E>) -> Result<(), Failure> {
        self.hub.emit(events.into_iter().map(Into::into).collect())
    }

    /// Emits a whole artifact, replacing any of the same id.
    pub fn artifact(&self, artifact: Artifact) -> Result<(), Failure> {
        self.emit([ArtifactUpdate { artifact, append: false, last_chunk: true }])
    }

    /// Emits the first piece of an artifact that goes on with [`append`](Self::append): it replaces any of the same id.
    pub fn begin(&self, artifact: Artifact) -> Result<(), Failure> {
        self.emit([ArtifactUpdate { artifact, append: false, last_chunk: false }])
    }

    /// Emits a piece of an artifact: its parts go to the end of the artifact of that id.
    pub fn append(&self, artifact: Artifact, last_chunk: bool) -> Result<(), Failure> {
        self.emit([ArtifactUpdate { artifact, append: true, last_chunk }])
    }

    /// Leaves the task in input-required until the client answers. [`Message::nothing`] waits without a word.
    pub fn ask(&self, prompt: impl Into<Message>) -> Result<Message, Failure> {
        self.ask_within(Need::Input, prompt, None)
    }

    /// Leaves the task in auth-required until the client answers.
    pub fn ask_auth(&self, prompt: impl Into<Message>) -> Result<Message, Failure> {
        self.ask_within(Need::Auth, prompt, None)
    }

    /// Asks with a deadline, after which it is [`Failure::Timeout`].
    pub fn ask_within(
        &self,
        need: Need,
        prompt: impl Into<Message>,
        timeout: Option<Duration>,
    ) -> Result<Message, Failure> {
        self.hub.ask(need, &prompt.into(), timeout)
    }

    /// Whether the task was cancelled; an agent that computes for long looks now and then.
    pub fn cancelled(&self) -> bool {
        self.hub.cancelled()
    }

    /// URIs of the A2A extensions that are active: those which the client named with its latest message, and the card
    /// knows. What it says in their terms stands in the message: [`Message::extension`].
    pub fn extensions(&self) -> Vec<String> {
        self.hub.extensions()
    }

    /// Media types that the client takes in answer to its latest message, as it ranks them; any, if empty.
    pub fn accepted_output_modes(&self) -> Vec<String> {
        self.hub.output_modes()
    }

    /// Whether the client takes this media type, be it by a range such as `image/*`.
    pub fn accepts(&self, media_type: &str) -> bool {
        let modes = self.accepted_output_modes();
        let fits = |mode: &String| match mode.split_once('/') {
            Some(("*", "*")) => true,
            Some((kind, "*")) => media_type.split('/').next() == Some(kind),
            Some(_) | None => mode == media_type,
        };
        modes.is_empty() || modes.iter().any(fits)
    }

    /// Tells the operator something.
    pub fn log(&self, level: Level, message: impl AsRef<str>) {
        self.hub.log(level, message.as_ref());
    }

    /// The task is completed, and this is what to tell the client.
    pub fn done(&self, text: impl Into<String>) -> Run {
        Ok(Outcome::completed(text))
    }

    /// The task is completed, and there is nothing to tell: what it made says it all.
    pub fn finish(&self) -> Run {
        Ok(TaskStatus::bare(TaskState::Completed).into())
    }

    /// A direct answer: the client gets the message and no task. The hub keeps one for its own records.
    pub fn reply(&self, message: impl Into<Message>) -> Run {
        Ok(Outcome::Message(message.into()))
    }

    /// The task failed: a stable `reason` for machines, a text for people. [`fail_with_fix`](Self::fail_with_fix) also says what
    /// mends it.
    pub fn fail(&self, reason: &str, text: impl Into<String>) -> Run {
        Ok(Outcome::failed(reason, text))
    }

    /// The same with what mends it, such as a command: `metadata.fix` of the task.
    pub fn fail_with_fix(
        &self,
        reason: &str,
        text: impl Into<String>,
        fix: impl Into<String>,
    ) -> Run {
        Ok(Outcome::failed(reason, text).with_fix(fix))
    }

    /// The agent will not do this task, whoever asks.
    pub fn reject(&self, text: impl Into<String>) -> Run {
        Ok(Outcome::rejected(text))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::ScriptedHost;
    use crate::{Artifact, Event, Part};

    #[test]
    fn a_client_takes_what_it_says_or_else_all() {
        let host = ScriptedHost::new();
        assert!(host.context().accepts("image/png"));
        host.accepts("text/plain");
        host.accepts("image/*");
        let ctx = host.context();
        assert_eq!(ctx.accepted_output_modes(), ["text/plain", "image/*"]);
        let taken = ["text/plain", "image/png", "text/html"].map(|media| ctx.accepts(media));
        assert_eq!(taken, [true, true, false]);
    }

    #[test]
    fn an_artifact_begins_and_goes_on() {
        let host = ScriptedHost::new();
        let ctx = host.context();
        ctx.begin(Artifact::text("log", "old")).unwrap();
        ctx.begin(Artifact::text("log", "one ")).unwrap();
        ctx.append(Artifact::new("log", vec![Part::text("two")]), true).unwrap();
        assert_eq!(host.artifact("log").unwrap(), "one two");
        let told = host.events().into_iter().filter_map(|event| match event {
            Event::Artifact(update) => Some((update.append, update.last_chunk)),
            Event::Status(_) | Event::Other(_) => None,
        });
        assert_eq!(told.collect::<Vec<_>>(), [(false, false), (false, false), (true, true)]);
    }

    #[test]
    fn extensions_are_scripted() {
        let host = ScriptedHost::new();
        assert!(host.context().extensions().is_empty());
        host.extension("urn:x");
        assert_eq!(host.context().extensions(), ["urn:x"]);
    }
}
