//! Artifacts: what a task produces, whole or growing.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::json::json;
use crate::message::joined_text;
use crate::{Artifact, ArtifactUpdate, Context, Failure, Part};

/// A chunk this long is worth an event of its own; shorter ones wait for company.
const WORTH_SENDING: usize = 512;

/// What waited this long goes out: a model writes steadily, and its reader wants to read along.
const LONG_ENOUGH: Duration = Duration::from_millis(100);

#[expect(
    clippy::disallowed_methods,
    reason = "a guest has no other clock, and no test that pauses it"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

impl Artifact {
    /// An artifact of these parts.
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

    /// A text artifact.
    pub fn text(id: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(id, vec![Part::text(text)])
    }

    /// Names it for people.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Describes it for people.
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

    /// Names an extension of A2A that shaped it.
    #[must_use]
    pub fn with_extension(mut self, uri: impl Into<String>) -> Self {
        self.extensions.push(uri.into());
        self
    }

    /// The text parts, one a line.
    pub fn joined_text(&self) -> String {
        joined_text(&self.parts)
    }
}

impl Context {
    /// A text artifact that grows while it is written.
    pub fn text_stream(&self, artifact_id: impl Into<String>) -> TextStream<'_> {
        TextStream::new(self, artifact_id.into())
    }
}

/// A text artifact that grows while it is written.
///
/// The first delta goes out at once, so that the listener sees a beginning; later ones are gathered until they are
/// worth an event, or the first of them has waited for a tenth of a second, or the writer calls
/// [`flush`](Self::flush), best done when it has nothing more to read for a moment.
/// The chunks are provisional: [`finish`](Self::finish) replaces them by the whole text, so that a retry inside the
/// stream leaves no trace. Nothing but that goes out when nobody listens.
pub struct TextStream<'a> {
    ctx: &'a Context,
    id: String,
    unsent: String,
    /// Since when the oldest of it waits.
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

    /// Whether text waits for company.
    pub fn is_waiting(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Whether text has waited for so long that it is to go out.
    pub(crate) fn is_due(&self) -> bool {
        self.waits_since.is_some_and(|since| since.elapsed() >= LONG_ENOUGH)
    }

    /// Sends what waits.
    pub fn flush(&mut self) -> Result<(), Failure> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        self.waits_since = None;
        let artifact = Artifact::text(&self.id, std::mem::take(&mut self.unsent));
        let append = std::mem::replace(&mut self.begun, true);
        self.ctx.emit([ArtifactUpdate { artifact, append, last_chunk: false }])
    }

    /// Begins anew: the next delta replaces what was sent so far.
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
