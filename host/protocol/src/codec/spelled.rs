//! JSON writer for the model's objects, in all supported forms. It serializes directly from the
//! model without an intermediate `Value`, and writes members sorted by name, like all JSON of the
//! hub.

use crate::model::{
    event::{ArtifactUpdate, SequencedEvent, StatusUpdate, TaskEvent},
    id::{ContextId, TaskId},
    message::{Content, Message, Part, Role, base64_bytes},
    task::{Artifact, Task, TaskState, TaskStatus},
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

/// JSON form of the model's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// ProtoJSON of 1.0.
    V1,
    /// JSON of 0.3 over JSON-RPC, which the hub's dialect uses as well.
    V03,
    /// ProtoJSON of the package `a2a.v1`, which 0.3 uses over REST and gRPC.
    V03Proto,
}

impl Form {
    /// All forms, in the order of their numbers.
    pub(crate) const ALL: [Self; 3] = [Self::V1, Self::V03, Self::V03Proto];

    /// Index of the form in [`Self::ALL`].
    pub(crate) fn number(self) -> usize {
        match self {
            Self::V1 => 0,
            Self::V03 => 1,
            Self::V03Proto => 2,
        }
    }

    /// Name of a state.
    pub(crate) fn state_name(self, state: TaskState) -> &'static str {
        match (state, self) {
            (_, Self::V03) => state.name(),
            (TaskState::Submitted, _) => "TASK_STATE_SUBMITTED",
            (TaskState::Working, _) => "TASK_STATE_WORKING",
            (TaskState::Completed, _) => "TASK_STATE_COMPLETED",
            (TaskState::Failed, _) => "TASK_STATE_FAILED",
            (TaskState::Canceled, Self::V1) => "TASK_STATE_CANCELED",
            (TaskState::Canceled, Self::V03Proto) => "TASK_STATE_CANCELLED",
            (TaskState::InputRequired, _) => "TASK_STATE_INPUT_REQUIRED",
            (TaskState::Rejected, _) => "TASK_STATE_REJECTED",
            (TaskState::AuthRequired, _) => "TASK_STATE_AUTH_REQUIRED",
            (TaskState::Unknown, _) => "TASK_STATE_UNSPECIFIED",
        }
    }

    /// Serializes an object to JSON text.
    pub(crate) fn text<N: Noun + ?Sized>(self, noun: &N) -> Vec<u8> {
        let mut text = Vec::with_capacity(USUAL);
        self.write(noun, &mut text);
        text
    }

    /// Appends the JSON text of an object to a buffer.
    pub(crate) fn write<N: Noun + ?Sized>(self, noun: &N, to: &mut Vec<u8>) {
        // Cannot fail: a buffer accepts every write, and the objects hold only strings and JSON
        // values.
        let _ = serde_json::to_writer(to, &Spelled(self, noun));
    }

    /// Converts an object to a `Value`, for callers that inspect it.
    pub(crate) fn value<N: Noun + ?Sized>(self, noun: &N) -> Value {
        serde_json::to_value(Spelled(self, noun)).unwrap_or_default()
    }

    /// True if the event is streamed, which excludes the client's own messages.
    pub(crate) fn tells(event: &TaskEvent) -> bool {
        !matches!(event, TaskEvent::Input(_))
    }
}

/// Initial capacity of the buffer in bytes, enough for most tasks and events.
const USUAL: usize = 1 << 10;

/// An object that can be written in each form.
pub(crate) trait Noun {
    /// Serializes the object.
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error>;
}

/// An object paired with a form.
struct Spelled<'a, N: ?Sized>(Form, &'a N);

impl<N: Noun + ?Sized> Serialize for Spelled<'_, N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.1.spell(self.0, to)
    }
}

/// Writer for the members of an object, in the order of their names.
struct Object<M> {
    form: Form,
    to: M,
}

impl<M: SerializeMap> Object<M> {
    fn begin<S: Serializer<SerializeMap = M>>(form: Form, to: S) -> Result<Self, S::Error> {
        Ok(Self { form, to: to.serialize_map(None)? })
    }

    fn put<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), M::Error> {
        self.to.serialize_entry(name, value)
    }

    /// Writes a member, unless it is `None`.
    fn some<T: Serialize>(&mut self, name: &str, value: Option<&T>) -> Result<(), M::Error> {
        value.map_or(Ok(()), |value| self.put(name, value))
    }

    /// Writes a list, unless it is empty.
    fn list<T: Serialize>(&mut self, name: &str, items: &[T]) -> Result<(), M::Error> {
        if items.is_empty() { Ok(()) } else { self.put(name, items) }
    }

    /// Writes a boolean, unless it is false.
    fn flag(&mut self, name: &str, flag: bool) -> Result<(), M::Error> {
        if flag { self.put(name, &true) } else { Ok(()) }
    }

    fn noun<N: Noun + ?Sized>(&mut self, name: &str, noun: &N) -> Result<(), M::Error> {
        let form = self.form;
        self.put(name, &Spelled(form, noun))
    }

    /// Writes a list of objects; ProtoJSON omits an empty one.
    fn nouns<N: Noun>(&mut self, name: &str, nouns: &[N]) -> Result<(), M::Error> {
        if nouns.is_empty() && self.form != Form::V03 { Ok(()) } else { self.noun(name, nouns) }
    }

    fn end(self) -> Result<M::Ok, M::Error> {
        self.to.end()
    }
}

impl<N: Noun> Noun for [N] {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.iter().map(|noun| Spelled(form, noun)))
    }
}

impl Noun for Task {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        let Self { id, context_id, status, artifacts, history, metadata } = self;
        let mut object = Object::begin(form, to)?;
        object.nouns("artifacts", artifacts)?;
        object.put("contextId", context_id)?;
        object.nouns("history", history)?;
        object.put("id", id)?;
        if form == Form::V03 {
            object.put("kind", "task")?;
        }
        object.some("metadata", metadata.as_ref())?;
        object.noun("status", &Of { value: status, task: id, context: context_id })?;
        object.end()
    }
}

/// An object of a task, with the ids of its task and conversation.
struct Of<'a, T> {
    value: &'a T,
    task: &'a TaskId,
    context: &'a ContextId,
}

impl Noun for Of<'_, TaskStatus> {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        let TaskStatus { state, message, timestamp } = self.value;
        let mut object = Object::begin(form, to)?;
        if let Some(message) = message {
            match form {
                // 0.3 requires the ids of task and context in the status's message.
                Form::V03 => {
                    let Self { task, context, .. } = *self;
                    object.noun("message", &Of { value: message, task, context })?;
                }
                Form::V1 | Form::V03Proto => object.noun("message", message)?,
            }
        }
        object.put("state", form.state_name(*state))?;
        if form == Form::V03 || !timestamp.is_empty() {
            object.put("timestamp", timestamp)?;
        }
        object.end()
    }
}

/// A message with the ids of its task and conversation as defaults.
impl Noun for Of<'_, Message> {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        let Self { value, task, context } = self;
        let context = value.context_id.as_ref().unwrap_or(context);
        spell_message(
            value,
            (Some(context), Some(value.task_id.as_ref().unwrap_or(task))),
            form,
            to,
        )
    }
}

impl Noun for Message {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        spell_message(self, (self.context_id.as_ref(), self.task_id.as_ref()), form, to)
    }
}

fn spell_message<S: Serializer>(
    message: &Message,
    (context, task): (Option<&ContextId>, Option<&TaskId>),
    form: Form,
    to: S,
) -> Result<S::Ok, S::Error> {
    let Message { message_id, role, parts, metadata, extensions, reference_task_ids, .. } = message;
    let is_old = form == Form::V03Proto;
    let mut object = Object::begin(form, to)?;
    if is_old {
        object.noun("content", parts.as_slice())?;
    }
    object.some("contextId", context)?;
    object.list("extensions", extensions)?;
    if form == Form::V03 {
        object.put("kind", "message")?;
    }
    object.put("messageId", message_id)?;
    object.some("metadata", metadata.as_ref())?;
    if !is_old {
        object.noun("parts", parts.as_slice())?;
        // The package of 0.3 lacks this member, and its Python client refuses unknown members.
        object.list("referenceTaskIds", reference_task_ids)?;
    }
    match (form, role) {
        (Form::V03, Role::User) => object.put("role", "user")?,
        (Form::V03, Role::Agent) => object.put("role", "agent")?,
        (Form::V1 | Form::V03Proto, role) => object.put("role", role)?,
    }
    object.some("taskId", task)?;
    object.end()
}

impl Noun for Artifact {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        let Self { artifact_id, name, description, parts, metadata, extensions } = self;
        let mut object = Object::begin(form, to)?;
        object.put("artifactId", artifact_id)?;
        object.some("description", description.as_ref())?;
        object.list("extensions", extensions)?;
        object.some("metadata", metadata.as_ref())?;
        match form {
            // The Local Hub specification requires a name; A2A does not.
            Form::V03 => object.put("name", name.as_deref().unwrap_or(artifact_id.as_str()))?,
            Form::V1 | Form::V03Proto => object.some("name", name.as_ref())?,
        }
        object.noun("parts", parts.as_slice())?;
        object.end()
    }
}

impl Noun for Part {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        let Self { content, filename, media_type, metadata } = self;
        let metadata = metadata.as_ref();
        let mut object = Object::begin(form, to)?;
        match (form, content) {
            (Form::V1, content) => {
                // `null` is valid data, so `some` would be wrong here.
                if let Content::Data(data) = content {
                    object.put("data", data)?;
                }
                object.some("filename", filename.as_ref())?;
                object.some("mediaType", media_type.as_ref())?;
                object.some("metadata", metadata)?;
                match content {
                    Content::Text(text) => object.put("text", text)?,
                    Content::Raw(bytes) => object.put("raw", &base64_bytes::encode(bytes))?,
                    Content::Url(url) => object.put("url", url)?,
                    Content::Data(_) => {}
                }
            }
            (Form::V03, Content::Text(text)) => {
                object.put("kind", "text")?;
                object.some("metadata", self.old_metadata().as_deref())?;
                object.put("text", text)?;
            }
            (Form::V03, Content::Data(data)) => {
                object.put("data", &InObject(data))?;
                object.put("kind", "data")?;
                object.some("metadata", self.old_metadata().as_deref())?;
            }
            (Form::V03, Content::Raw(_) | Content::Url(_)) => {
                object.noun("file", &OldFile(self))?;
                object.put("kind", "file")?;
                object.some("metadata", metadata)?;
            }
            (Form::V03Proto, Content::Text(text)) => {
                object.some("metadata", self.old_metadata().as_deref())?;
                object.put("text", text)?;
            }
            (Form::V03Proto, Content::Data(data)) => {
                object.noun("data", &InObject(data))?;
                object.some("metadata", self.old_metadata().as_deref())?;
            }
            (Form::V03Proto, Content::Raw(_) | Content::Url(_)) => {
                object.noun("file", &OldFile(self))?;
                object.some("metadata", metadata)?;
            }
        }
        object.end()
    }
}

/// Data as 0.3 requires it: an object. Any other value is wrapped in one.
struct InObject<'a>(&'a Value);

impl Serialize for InObject<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.is_object() {
            return self.0.serialize(to);
        }
        to.collect_map([("value", self.0)])
    }
}

/// The package of 0.3 wraps the data in a further object.
impl Noun for InObject<'_> {
    fn spell<S: Serializer>(&self, _: Form, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map([("data", self)])
    }
}

/// File of a 0.3 part.
struct OldFile<'a>(&'a Part);

impl Noun for OldFile<'_> {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        let Part { content, filename, media_type, metadata: _ } = self.0;
        let (bytes, uri) = match form {
            Form::V1 | Form::V03 => ("bytes", "uri"),
            Form::V03Proto => ("fileWithBytes", "fileWithUri"),
        };
        let mut object = Object::begin(form, to)?;
        if let Content::Raw(raw) = content {
            object.put(bytes, &base64_bytes::encode(raw))?;
        }
        if let (Content::Url(url), Form::V03Proto) = (content, form) {
            object.put(uri, url)?;
        }
        object.some("mimeType", media_type.as_ref())?;
        object.some("name", filename.as_ref())?;
        if let (Content::Url(url), Form::V1 | Form::V03) = (content, form) {
            object.put(uri, url)?;
        }
        object.end()
    }
}

/// An object wrapped in ProtoJSON's object with one member, which names the type.
struct NamedObject<'a, N>(&'static str, &'a N);

impl<N: Noun> Noun for NamedObject<'_, N> {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        let mut object = Object::begin(form, to)?;
        object.noun(self.0, self.1)?;
        object.end()
    }
}

/// Response to a message, which 1.0 and ProtoJSON wrap by type.
pub(crate) struct Wrapped<'a, N>(pub(crate) &'static str, pub(crate) &'a N);

impl<N: Noun> Noun for Wrapped<'_, N> {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        match form {
            Form::V1 | Form::V03Proto => NamedObject(self.0, self.1).spell(form, to),
            Form::V03 => self.1.spell(form, to),
        }
    }
}

/// Stream item of an event.
impl Noun for SequencedEvent {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        let Self { task, context, event, seq: _ } = self;
        match event {
            TaskEvent::Created(created) => Wrapped("task", &created.task).spell(form, to),
            TaskEvent::Reply(message) => Wrapped("message", message).spell(form, to),
            TaskEvent::Status(update) => {
                Wrapped("statusUpdate", &Of { value: update, task, context }).spell(form, to)
            }
            TaskEvent::Artifact(update) => {
                Wrapped("artifactUpdate", &Of { value: update, task, context }).spell(form, to)
            }
            TaskEvent::Input(_) => to.serialize_unit(),
        }
    }
}

impl Noun for Of<'_, StatusUpdate> {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        let Self { value: StatusUpdate { status, metadata }, task, context } = *self;
        let mut object = Object::begin(form, to)?;
        object.put("contextId", context)?;
        if form != Form::V1 {
            object.put("final", &(status.state.is_final() || status.state.is_interrupted()))?;
        }
        if form == Form::V03 {
            object.put("kind", "status-update")?;
        }
        object.some("metadata", metadata.as_ref())?;
        object.noun("status", &Of { value: status, task, context })?;
        object.put("taskId", task)?;
        object.end()
    }
}

impl Noun for Of<'_, ArtifactUpdate> {
    fn spell<S: Serializer>(&self, form: Form, to: S) -> Result<S::Ok, S::Error> {
        let Self { value: ArtifactUpdate { artifact, append, last_chunk }, task, context } = *self;
        let mut object = Object::begin(form, to)?;
        match form {
            Form::V03 => object.put("append", append)?,
            Form::V1 | Form::V03Proto => object.flag("append", *append)?,
        }
        object.noun("artifact", artifact)?;
        object.put("contextId", context)?;
        match form {
            Form::V03 => {
                object.put("kind", "artifact-update")?;
                object.put("lastChunk", last_chunk)?;
            }
            Form::V1 | Form::V03Proto => object.flag("lastChunk", *last_chunk)?,
        }
        object.put("taskId", task)?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::protojson::tests::{any_event, any_whole_task};
    use proptest::prelude::*;

    /// The text has the same member order as a `Value`.
    fn same(form: Form, noun: &(impl Noun + ?Sized)) -> Result<(), TestCaseError> {
        let text = String::from_utf8(form.text(noun)).unwrap();
        prop_assert_eq!(form.value(noun).to_string(), text);
        Ok(())
    }

    proptest! {
        #[test]
        fn written_members_are_sorted_by_name(event in any_event(), task in any_whole_task()) {
            for form in Form::ALL {
                same(form, &event)?;
                same(form, &task)?;
                same(form, &Wrapped("task", &task))?;
            }
        }
    }

    /// Parts that clients do not send, and those that differ between the packages.
    #[test]
    fn members_of_rare_parts_are_sorted() {
        let part = |content| Part {
            filename: Some("f".to_owned()),
            media_type: Some("a/b".to_owned()),
            metadata: Some([("k".to_owned(), Value::Null)].into_iter().collect()),
            ..Part::new(content)
        };
        let parts = [
            part(Content::Data(Value::Null)),
            part(Content::Data(serde_json::json!({"b": 1, "a": [null]}))),
            part(Content::Url("file:///x".to_owned())),
            part(Content::Raw(vec![255, 254])),
            part(Content::Text("hi".to_owned())),
        ];
        let told = Form::ALL.map(|form| {
            same(form, parts.as_slice()).unwrap();
            String::from_utf8(form.text(parts.as_slice())).unwrap()
        });
        insta::assert_snapshot!(told.join("\n"), @r#"
        [{"data":null,"filename":"f","mediaType":"a/b","metadata":{"k":null}},{"data":{"a":[null],"b":1},"filename":"f","mediaType":"a/b","metadata":{"k":null}},{"filename":"f","mediaType":"a/b","metadata":{"k":null},"url":"file:///x"},{"filename":"f","mediaType":"a/b","metadata":{"k":null},"raw":"//4="},{"filename":"f","mediaType":"a/b","metadata":{"k":null},"text":"hi"}]
        [{"data":{"value":null},"kind":"data","metadata":{"filename":"f","k":null,"mediaType":"a/b"}},{"data":{"a":[null],"b":1},"kind":"data","metadata":{"filename":"f","k":null,"mediaType":"a/b"}},{"file":{"mimeType":"a/b","name":"f","uri":"file:///x"},"kind":"file","metadata":{"k":null}},{"file":{"bytes":"//4=","mimeType":"a/b","name":"f"},"kind":"file","metadata":{"k":null}},{"kind":"text","metadata":{"filename":"f","k":null,"mediaType":"a/b"},"text":"hi"}]
        [{"data":{"data":{"value":null}},"metadata":{"filename":"f","k":null,"mediaType":"a/b"}},{"data":{"data":{"a":[null],"b":1}},"metadata":{"filename":"f","k":null,"mediaType":"a/b"}},{"file":{"fileWithUri":"file:///x","mimeType":"a/b","name":"f"},"metadata":{"k":null}},{"file":{"fileWithBytes":"//4=","mimeType":"a/b","name":"f"},"metadata":{"k":null}},{"metadata":{"filename":"f","k":null,"mediaType":"a/b"},"text":"hi"}]
        "#);
    }
}
