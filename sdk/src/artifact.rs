//! Artifacts of a task, emitted whole or streamed in chunks.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::json::json;
use crate::message::joined_text;
use crate::{Artifact, ArtifactUpdate, Context, Failure, Part};

/// Size in bytes from which buffered text is sent as an event; shorter text is batched.
const WORTH_SENDING: usize = 512;

/// Longest time that text stays buffered. A model writes steadily, and its reader reads along.
const LONG_ENOUGH: Duration = Duration::from_millis(100);

#[expect(
    clippy::disallowed_methods,
    reason = "a guest has no other clock, and no test that pauses it"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

impl Artifact {
    /// Creates an artifact from parts.
    pub fn new(id: impl Into<String>, parts: Vec<Part>) -> Self {
        Self {
            id: id.into(),
            name: None,
            description: None,
            parts,
            extensions: Vec::new(),
            metadata: None,
        }
    }

    /// Creates an artifact with one text part.
    pub fn text(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(id, vec![Part::text(text)])
    }

    /// Sets the name that people see.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the description that people see.
    #[must_use]
    pub fn described(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds a part.
    #[must_use]
    pub fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Sets the metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: &impl Serialize) -> Self {
        self.metadata = Some(json(metadata));
        self
    }

    /// Adds the URI of an A2A extension that shaped the artifact.
    #[must_use]
    pub fn with_extension(mut self, uri: impl Into<String>) -> Self {
        self.extensions.push(uri.into());
        self
    }

    /// Text parts, joined by newlines.
    pub fn joined_text(&self) -> String {
        joined_text(&self.parts)
    }
}

impl Context {
    /// Starts a text artifact that is streamed in chunks.
    pub fn text_stream(&self, artifact_id: impl Into<String>) -> TextStream<'_> {
        TextStream::new(self, artifact_id.into())
    }
}

/// Text artifact that is streamed in chunks.
///
/// The first delta is sent at once, so that the client sees a beginning. Later deltas are buffered
/// until they are large enough for an event, until the oldest has waited for a tenth of a second,
/// or until the writer calls [`flush`](Self::flush). Call it when nothing more can be read for a
/// moment. The chunks are provisional: [`finish`](Self::finish) replaces them by the whole text, so
/// a retry inside the stream leaves no trace. Without a subscriber, only the whole text is sent.
pub struct TextStream<'a> {
    ctx: &'a Context,
    id: String,
    unsent: String,
    /// Time at which the oldest buffered text was pushed.
    waits_since: Option<Instant>,
    begun: bool,
}

impl<'a> TextStream<'a> {
    pub(crate) fn new(ctx: &'a Context, id: String) -> Self {
        Self { ctx, id, unsent: String::new(), waits_since: None, begun: false }
    }

    /// Adds text.
    pub fn push(&mut self, delta: &str) -> Result<(), Failure> {
        if !self.ctx.live() {
            return Ok(());
        }
        self.unsent.push_str(delta);
        let waits_since = *self.waits_since.get_or_insert_with(now);
        let worth_sending = !self.begun
            || self.unsent.len() >= WORTH_SENDING
            || waits_since.elapsed() >= LONG_ENOUGH;
        if worth_sending { self.flush() } else { Ok(()) }
    }

    /// True if text is buffered.
    pub fn is_waiting(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// True if the oldest buffered text has waited for [`LONG_ENOUGH`].
    pub(crate) fn is_due(&self) -> bool {
        self.waits_since.is_some_and(|since| since.elapsed() >= LONG_ENOUGH)
    }

    /// Sends the buffered text.
    pub fn flush(&mut self) -> Result<(), Failure> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        self.waits_since = None;
        let artifact = Artifact::text(&self.id, std::mem::take(&mut self.unsent));
        let append = std::mem::replace(&mut self.begun, true);
        self.ctx.emit([ArtifactUpdate { artifact, append, last_chunk: false }])
    }

    /// Starts over: the next delta replaces the text sent so far.
    pub fn restart(&mut self) {
        self.unsent.clear();
        self.waits_since = None;
        self.begun = false;
    }

    /// Replaces the chunks by the whole text and ends the artifact.
    pub fn finish(self, text: impl Into<String>) -> Result<(), Failure> {
        self.ctx.artifact(Artifact::text(self.id, text))
    }
}
