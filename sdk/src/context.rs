//! [`Context`]: access of a running agent to the world outside.

use std::time::Duration;

use crate::host::Host;
use crate::hub::Hub;
use crate::outcome::Run;
use crate::{
    Artifact, ArtifactUpdate, Event, Failure, Level, Message, Need, Outcome, TaskState, TaskStatus,
};

/// Access of one run to the hub.
pub struct Context {
    pub(crate) hub: Hub,
    live: bool,
}

impl Context {
    pub(crate) fn new(hub: Hub, live: bool) -> Self {
        Self { hub, live }
    }

    /// Creates the context of a component, for [`export!`](crate::export).
    #[doc(hidden)]
    #[cfg(target_arch = "wasm32")]
    pub fn imported(live: bool) -> Self {
        Self::new(crate::imports::Imports, live)
    }

    /// True if a client is subscribed during the run. If false, only the result counts.
    pub fn live(&self) -> bool {
        self.live
    }

    /// Sends a status text while the task works.
    pub fn say(&self, text: impl Into<String>) -> Result<(), Failure> {
        self.emit([TaskStatus::new(TaskState::Working, text)])
    }

    /// Sends the progress in per cent: [`TaskStatus::progress`]. Clients find the number in the
    /// metadata of the status. `a2a-hub send` shows it beside the text, which may be empty.
    pub fn progress(&self, percent: u8, text: impl Into<String>) -> Result<(), Failure> {
        self.emit([TaskStatus::progress(percent, text)])
    }

    /// Emits events, stored as one batch.
    pub fn emit<E: Into<Event>>(&self, events: impl IntoIterator<Item = E>) -> Result<(), Failure> {
        self.hub.emit(events.into_iter().map(Into::into).collect())
    }

    /// Emits a whole artifact, replacing any with the same id.
    pub fn artifact(&self, artifact: Artifact) -> Result<(), Failure> {
        self.emit([ArtifactUpdate { artifact, append: false, last_chunk: true }])
    }

    /// Emits the first chunk of an artifact that continues with [`append`](Self::append), replacing
    /// any with the same id.
    pub fn begin(&self, artifact: Artifact) -> Result<(), Failure> {
        self.emit([ArtifactUpdate { artifact, append: false, last_chunk: false }])
    }

    /// Emits a chunk of an artifact: its parts are appended to the artifact with the same id.
    pub fn append(&self, artifact: Artifact, last_chunk: bool) -> Result<(), Failure> {
        self.emit([ArtifactUpdate { artifact, append: true, last_chunk }])
    }

    /// Asks the client, with the task in state `input-required` until the answer arrives.
    /// [`Message::nothing`] asks without any text.
    pub fn ask(&self, prompt: impl Into<Message>) -> Result<Message, Failure> {
        self.ask_within(Need::Input, prompt, None)
    }

    /// Asks the client to authenticate, with the task in state `auth-required` until the answer
    /// arrives.
    pub fn ask_auth(&self, prompt: impl Into<Message>) -> Result<Message, Failure> {
        self.ask_within(Need::Auth, prompt, None)
    }

    /// Asks with a timeout, after which the result is [`Failure::Timeout`].
    pub fn ask_within(
        &self,
        need: Need,
        prompt: impl Into<Message>,
        timeout: Option<Duration>,
    ) -> Result<Message, Failure> {
        self.hub.ask(need, &prompt.into(), timeout)
    }

    /// Waits for the next message that the client, or the calling agent, sends to the task while
    /// the agent works. A message that no run reads starts another run after this one. While a
    /// question is open, the next message is its answer.
    ///
    /// # Errors
    ///
    /// [`Failure::Timeout`] if no message arrives in time.
    pub fn next_message(&self, timeout: Option<Duration>) -> Result<Message, Failure> {
        self.hub.next_message(timeout)
    }

    /// True if the task was cancelled. A long computation polls this. Once it has returned true,
    /// calls of programs no longer fail with [`Failure::Cancelled`] until the hub ends the run,
    /// half a second after the cancellation: the agent may end a program's turn and [park] it.
    ///
    /// [park]: crate::Child::park
    pub fn cancelled(&self) -> bool {
        self.hub.cancelled()
    }

    /// URIs of the active A2A extensions: those that the client named with its latest message and
    /// that the card lists. [`Message::extension`] reads the message's data of an extension.
    pub fn extensions(&self) -> Vec<String> {
        self.hub.extensions()
    }

    /// Media types that the client accepts as an answer to its latest message, in the client's
    /// order of preference. An empty list means any.
    pub fn accepted_output_modes(&self) -> Vec<String> {
        self.hub.output_modes()
    }

    /// True if the client accepts this media type, exactly or by a range such as `image/*`.
    pub fn accepts(&self, media_type: &str) -> bool {
        let modes = self.accepted_output_modes();
        let fits = |mode: &String| match mode.split_once('/') {
            Some(("*", "*")) => true,
            Some((kind, "*")) => media_type.split('/').next() == Some(kind),
            Some(_) | None => mode == media_type,
        };
        modes.is_empty() || modes.iter().any(fits)
    }

    /// Writes a line to the hub's log.
    pub fn log(&self, level: Level, message: impl AsRef<str>) {
        self.hub.log(level, message.as_ref());
    }

    /// Completes the task with a text for the client.
    pub fn done(&self, text: impl Into<String>) -> Run {
        Ok(Outcome::completed(text))
    }

    /// Completes the task without a text: its artifacts are the answer.
    pub fn finish(&self) -> Run {
        Ok(TaskStatus::bare(TaskState::Completed).into())
    }

    /// Answers with a message instead of a task. The hub keeps a task for its own records. The
    /// manifest declares this with `direct_message = true`; without it, a stream begins with the
    /// task at once, and this message completes it.
    pub fn reply(&self, message: impl Into<Message>) -> Run {
        Ok(Outcome::Message(message.into()))
    }

    /// Fails the task with a stable `reason` for machines and a text for people.
    /// [`fail_with_fix`](Self::fail_with_fix) adds a fix.
    pub fn fail(&self, reason: &str, text: impl Into<String>) -> Run {
        Ok(Outcome::failed(reason, text))
    }

    /// Fails the task and adds a fix, such as a command, as `metadata.fix` of the task.
    pub fn fail_with_fix(
        &self,
        reason: &str,
        text: impl Into<String>,
        fix: impl Into<String>,
    ) -> Run {
        Ok(Outcome::failed(reason, text).with_fix(fix))
    }

    /// Rejects the task: the agent does not do this for any client.
    pub fn reject(&self, text: impl Into<String>) -> Run {
        Ok(Outcome::rejected(text))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::ScriptedHost;
    use crate::{Artifact, Event, Failure, Part};

    #[test]
    fn client_accepts_declared_types_or_all() {
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
    fn artifact_begins_and_is_appended() {
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
    fn messages_at_work_are_read_in_order() {
        let host = ScriptedHost::new();
        host.message("one");
        host.message("two");
        let ctx = host.context();
        let read = [ctx.next_message(None), ctx.next_message(None)];
        assert_eq!(read.map(|message| message.unwrap().text()), ["one", "two"]);
        assert_eq!(ctx.next_message(None), Err(Failure::Timeout));
    }

    #[test]
    fn scripted_extensions_are_active() {
        let host = ScriptedHost::new();
        assert!(host.context().extensions().is_empty());
        host.extension("urn:x");
        assert_eq!(host.context().extensions(), ["urn:x"]);
    }
}
