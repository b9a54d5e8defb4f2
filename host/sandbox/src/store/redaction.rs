//! Redaction of an agent's secrets in all its output: events, questions, log lines, final status
//! and health report.

use a2a_hub_core::text::redact::{Growing, Secrets};
use a2a_hub_protocol::{
    id::{ArtifactId, MessageId, TaskId},
    message::{Content, Message, Metadata, Part},
    task::Artifact,
};
use a2a_hub_runtime::{Crash, Ended, Failure, HealthReport, port::tasks::Emitted};
use serde_json::Value;
use std::{borrow::Cow, collections::BTreeMap, mem, sync::Arc};

/// Redacts the output of one instance.
#[derive(Debug)]
pub(crate) struct Redaction {
    pub(crate) secrets: Arc<Secrets>,
    /// Artifacts whose last characters are held back, because they may be the start of a secret.
    growing: BTreeMap<ArtifactId, Growing>,
}

impl Redaction {
    pub(crate) fn new(secrets: Arc<Secrets>) -> Self {
        Self { secrets, growing: BTreeMap::new() }
    }

    pub(crate) fn emitted(&mut self, emitted: &mut Emitted) {
        match emitted {
            Emitted::Working { message, metadata } => {
                message.hide(&self.secrets);
                metadata.hide(&self.secrets);
            }
            Emitted::Artifact { artifact, append, last_chunk } => {
                self.artifact(artifact, *append, *last_chunk);
            }
        }
    }

    fn artifact(&mut self, artifact: &mut Artifact, append: bool, last_chunk: bool) {
        let secrets = &self.secrets;
        // Destructured completely, so that the compiler reports a new member.
        let Artifact { artifact_id, name, description, parts, metadata, extensions } = artifact;
        artifact_id.hide(secrets);
        name.hide(secrets);
        description.hide(secrets);
        metadata.hide(secrets);
        extensions.hide(secrets);
        let before = self.growing.remove(artifact_id).filter(|_| append);
        let mut growing = before.unwrap_or_default();
        hide_parts(parts, &mut growing, secrets);
        if last_chunk {
            append_text(parts, growing.finish());
        } else if !growing.is_flushed() {
            self.growing.insert(artifact_id.clone(), growing);
        }
    }

    /// Text still held back at the end of the run.
    pub(crate) fn flush(&mut self) -> Vec<Emitted> {
        let pending = mem::take(&mut self.growing).into_iter();
        let rest = pending.map(|(artifact_id, mut growing)| Emitted::Artifact {
            artifact: Artifact::new(artifact_id, vec![Part::text(growing.finish())]),
            append: true,
            last_chunk: false,
        });
        rest.collect()
    }
}

/// Redacts the text of all parts as one text, because clients join it.
fn hide_parts(parts: &mut [Part], growing: &mut Growing, secrets: &Secrets) {
    for Part { content, filename, media_type, metadata } in parts {
        match content {
            Content::Text(text) => *text = growing.push(secrets, text),
            Content::Url(url) => url.hide(secrets),
            Content::Data(data) => data.hide(secrets),
            Content::Raw(bytes) => {
                if let Cow::Owned(hidden) = secrets.hide_bytes(bytes) {
                    *bytes = hidden;
                }
            }
        }
        filename.hide(secrets);
        media_type.hide(secrets);
        metadata.hide(secrets);
    }
}

/// Appends the held-back end of a text to the last text part.
fn append_text(parts: &mut Vec<Part>, rest: String) {
    if rest.is_empty() {
        return;
    }
    let texts = parts.iter_mut().rev().filter_map(|part| match &mut part.content {
        Content::Text(text) => Some(text),
        Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
    });
    match { texts }.next() {
        Some(text) => text.push_str(&rest),
        None => parts.push(Part::text(rest)),
    }
}

/// Redaction of a complete value.
pub(crate) trait Hide {
    /// Redacts the secrets in the value.
    fn hide(&mut self, secrets: &Secrets);
}

impl Hide for String {
    fn hide(&mut self, secrets: &Secrets) {
        if let Cow::Owned(hidden) = secrets.hide(self) {
            *self = hidden;
        }
    }
}

macro_rules! hide_names {
    ($($name:ty),*) => {$(
        impl Hide for $name {
            fn hide(&mut self, secrets: &Secrets) {
                if let Cow::Owned(hidden) = secrets.hide(self.as_str()) {
                    *self = Self::new(hidden);
                }
            }
        }
    )*};
}
hide_names!(ArtifactId, MessageId, TaskId);

impl<T: Hide> Hide for Vec<T> {
    fn hide(&mut self, secrets: &Secrets) {
        self.iter_mut().for_each(|item| item.hide(secrets));
    }
}

impl<T: Hide> Hide for Option<T> {
    fn hide(&mut self, secrets: &Secrets) {
        if let Some(value) = self {
            value.hide(secrets);
        }
    }
}

impl Hide for Value {
    fn hide(&mut self, secrets: &Secrets) {
        match self {
            Self::Null | Self::Bool(_) | Self::Number(_) => {}
            Self::String(text) => text.hide(secrets),
            Self::Array(items) => items.hide(secrets),
            Self::Object(members) => members.hide(secrets),
        }
    }
}

impl Hide for Metadata {
    fn hide(&mut self, secrets: &Secrets) {
        let names: Vec<_> = self
            .keys()
            .filter_map(|name| match secrets.hide(name) {
                Cow::Owned(hidden) => Some((name.clone(), hidden)),
                Cow::Borrowed(_) => None,
            })
            .collect();
        for (name, hidden) in names {
            if let Some(value) = self.remove(&name) {
                self.insert(hidden, value);
            }
        }
        self.values_mut().for_each(|value| value.hide(secrets));
    }
}

impl Hide for Message {
    fn hide(&mut self, secrets: &Secrets) {
        let Self {
            message_id,
            context_id: _, // set by the hub
            task_id: _,
            role: _,
            parts,
            metadata,
            extensions,
            reference_task_ids,
        } = self;
        let mut growing = Growing::default();
        hide_parts(parts, &mut growing, secrets);
        append_text(parts, growing.finish());
        message_id.hide(secrets);
        metadata.hide(secrets);
        extensions.hide(secrets);
        reference_task_ids.hide(secrets);
    }
}

impl Hide for Ended {
    fn hide(&mut self, secrets: &Secrets) {
        match self {
            Self::Reply(message) => message.hide(secrets),
            Self::Status { state: _, message, metadata } => {
                message.hide(secrets);
                metadata.hide(secrets);
            }
            Self::Failed(failure) => failure.hide(secrets),
        }
    }
}

impl Hide for HealthReport {
    fn hide(&mut self, secrets: &Secrets) {
        let Self { status: _, version, detail, fix } = self;
        for text in [version, detail, fix] {
            text.hide(secrets);
        }
    }
}

impl Hide for Failure {
    fn hide(&mut self, secrets: &Secrets) {
        match self {
            Self::Invalid(why)
            | Self::Unsupported(why)
            | Self::Denied(why)
            | Self::Unavailable(why)
            | Self::HubNotUp(why)
            | Self::Exhausted(why)
            | Self::Internal(why)
            | Self::Diverged(why) => why.hide(secrets),
            Self::Trapped(Crash { what: cause, panic }) => {
                cause.hide(secrets);
                panic.hide(secrets);
            }
            Self::Cancelled | Self::Timeout | Self::HubFull => {}
        }
    }
}

impl<T: Hide> Hide for Result<T, Failure> {
    fn hide(&mut self, secrets: &Secrets) {
        match self {
            Ok(value) => value.hide(secrets),
            Err(failure) => failure.hide(secrets),
        }
    }
}

impl Hide for () {
    fn hide(&mut self, _: &Secrets) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn redaction() -> Redaction {
        let key = ("A_KEY".to_owned(), "abcdefgh".to_owned());
        Redaction::new(Arc::new(Secrets::among([key])))
    }

    fn piece(parts: Vec<Part>) -> Artifact {
        Artifact::new(ArtifactId::new("a"), parts)
    }

    /// Texts after each of these pieces: text, append flag, last flag.
    fn told(redaction: &mut Redaction, pieces: &[(&str, bool, bool)]) -> Vec<String> {
        let told = pieces.iter().map(|&(text, append, last)| {
            let mut artifact = piece(vec![Part::text(text)]);
            redaction.artifact(&mut artifact, append, last);
            a2a_hub_protocol::message::joined_text(&artifact.parts)
        });
        told.collect()
    }

    #[test]
    fn held_back_text_is_emitted_at_end() {
        let (more, new) = (true, false);
        let mut one = redaction();
        let pieces = [("x abcd", new, false), ("efgh abc", more, false), ("d.", more, false)];
        assert_eq!(told(&mut one, &pieces), ["x ", "[redacted A_KEY] ", "abcd."]);
        assert_eq!(one.flush(), []);

        assert_eq!(told(&mut one, &[("abcd", new, false), ("e", more, true)]), ["", "abcde"]);
        assert_eq!(one.flush(), []);

        let replaced = [("abcd", new, false), ("efgh", new, false)];
        assert_eq!(told(&mut one, &replaced), ["", "efgh"], "what was replaced is gone");

        told(&mut one, &[("abcd", new, false)]);
        let [Emitted::Artifact { artifact, append: true, .. }] = &one.flush()[..] else { panic!() };
        assert_eq!(artifact.parts, [Part::text("abcd")]);
    }

    #[test]
    fn final_chunk_includes_held_back_text() {
        let mut one = redaction();
        told(&mut one, &[("abcd", false, false)]);
        let mut artifact = piece(vec![Part::data(json!(1))]);
        one.artifact(&mut artifact, true, true);
        assert_eq!(artifact.parts, [Part::data(json!(1)), Part::text("abcd")]);
    }

    #[test]
    fn secret_across_message_parts_is_redacted() {
        let parts = vec![
            Part::text("abcd"),
            Part::data(json!({ "abcdefgh": ["abcdefgh", 1] })),
            Part::text("efgh ab"),
        ];
        let mut message = Message::new(a2a_hub_protocol::message::Role::Agent, parts);
        message.hide(&redaction().secrets);
        let data = Part::data(json!({ "[redacted A_KEY]": ["[redacted A_KEY]", 1] }));
        assert_eq!(message.parts, [Part::text(""), data, Part::text("[redacted A_KEY] ab")]);
    }
}
