//! ProtoJSON tests: round trips in both packages, and accepted variants of the input.

use super::*;
use crate::model::{
    event::{Created, SequencedEvent, TaskEvent},
    id::AgentId,
    message::{MAX_DEPTH, Metadata, is_shallow},
};
use proptest::{collection::vec, option, prelude::*};
use serde_json::json;

const BOTH: [Proto; 2] = [Proto::V1, Proto::V03];

fn any_facts() -> impl Strategy<Value = Option<Metadata>> {
    option::of(vec(("[a-z]{1,8}", any::<i32>()), 1..3)).prop_map(|facts| {
        Some(facts?.into_iter().map(|(name, fact)| (name, fact.into())).collect())
    })
}

/// A part that both packages can represent. In 0.3, data is an object.
fn any_part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        ".*".prop_map(Content::Text),
        any::<Vec<u8>>().prop_map(Content::Raw),
        "[a-z]+:[a-z/]+".prop_map(Content::Url),
        any::<i32>().prop_map(|n| Content::Data(json!({ "n": n }))),
    ];
    (content, option::of("[a-z.]{1,9}"), option::of("[a-z]{1,4}/[a-z]{1,4}"), any_facts()).prop_map(
        |(content, filename, media_type, metadata)| Part {
            content,
            filename,
            media_type,
            metadata,
        },
    )
}

/// A message that the package can represent; 0.3 has no references to tasks.
fn any_message(proto: Proto) -> impl Strategy<Value = Message> {
    let ids = ("[a-z]{1,9}", option::of("[a-z]{1,9}"), option::of("[a-z]{1,9}"));
    (ids, any::<bool>(), vec(any_part(), 1..4), any_facts(), vec("[a-z]{1,9}", 0..3)).prop_map(
        move |((id, context, task), user, parts, metadata, names)| Message {
            message_id: MessageId::new(id),
            context_id: context.map(ContextId::new),
            task_id: task.map(TaskId::new),
            role: if user { Role::User } else { Role::Agent },
            parts,
            metadata,
            extensions: names.clone(),
            reference_task_ids: names
                .into_iter()
                .filter(|_| proto == Proto::V1)
                .map(TaskId::new)
                .collect(),
        },
    )
}

fn any_artifact() -> impl Strategy<Value = Artifact> {
    let texts = (option::of("[a-z]{1,9}"), option::of("[a-z]{1,9}"));
    ("[a-z]{1,9}", texts, vec(any_part(), 1..4), any_facts(), vec("[a-z]{1,9}", 0..2)).prop_map(
        |(id, (name, description), parts, metadata, extensions)| Artifact {
            artifact_id: ArtifactId::new(id),
            name,
            description,
            parts,
            metadata,
            extensions,
        },
    )
}

fn any_status(proto: Proto) -> impl Strategy<Value = TaskStatus> {
    // `unknown` is written as `TASK_STATE_UNSPECIFIED`, which clients may not send.
    let state = proptest::sample::select(STATES.to_vec());
    (state, option::of(any_message(proto)), "(2026-01-01T00:00:00.000Z)?")
        .prop_map(|(state, message, timestamp)| TaskStatus { state, message, timestamp })
}

/// A task that 1.0 can represent.
pub(crate) fn any_whole_task() -> impl Strategy<Value = Task> {
    any_task(Proto::V1)
}

fn any_task(proto: Proto) -> impl Strategy<Value = Task> {
    (any_status(proto), vec(any_artifact(), 0..2), vec(any_message(proto), 0..3), any_facts())
        .prop_map(|(status, artifacts, history, metadata)| Task {
            id: TaskId::new("t"),
            context_id: ContextId::new("c"),
            status,
            artifacts,
            history,
            metadata,
        })
}

/// Any event that is streamed.
pub(crate) fn any_event() -> impl Strategy<Value = SequencedEvent> {
    any_event_in(Proto::V1)
}

fn any_event_in(proto: Proto) -> impl Strategy<Value = SequencedEvent> {
    let agent = AgentId::parse("echo").unwrap();
    let event = prop_oneof![
        any_task(proto).prop_map(move |task| {
            TaskEvent::Created(Box::new(Created::new(agent.clone(), task)))
        }),
        (any_status(proto), any_facts())
            .prop_map(|(status, metadata)| TaskEvent::Status(StatusUpdate { status, metadata })),
        (any_artifact(), any::<bool>(), any::<bool>()).prop_map(
            |(artifact, append, last_chunk)| {
                TaskEvent::Artifact(ArtifactUpdate { artifact, append, last_chunk })
            }
        ),
        any_message(proto).prop_map(TaskEvent::Reply),
    ];
    let (task, context) = (TaskId::new("t"), ContextId::new("c"));
    event.prop_map(move |event| SequencedEvent {
        task: task.clone(),
        context: context.clone(),
        seq: 1,
        event,
    })
}

proptest! {
    #[test]
    fn events_round_trip_in_both_packages(
        new in any_event_in(Proto::V1),
        old in any_event_in(Proto::V03),
    ) {
        for (proto, sequenced) in [(Proto::V1, new), (Proto::V03, old)] {
            let written = proto.form().value(&sequenced);
            prop_assert!(is_shallow(&written), "nothing here comes near {} levels", MAX_DEPTH);
            prop_assert_eq!(proto.read_stream_response(written, "").unwrap(), StreamResponse::from_event(sequenced.clone()).unwrap());
        }
    }
}

fn read(proto: Proto, value: Value) -> Message {
    proto.read_message(value, "message".to_owned()).unwrap()
}

#[test]
fn protojson_input_variants_are_accepted() {
    let plain = read(
        Proto::V1,
        json!({"messageId": "m", "taskId": "t", "role": "ROLE_USER", "parts": [{"raw": "+/8="}]}),
    );
    let snake = json!({"message_id": "m", "task_id": "t", "role": 1, "context_id": null, "x": {},
        "parts": [{"raw": "-_8", "text": null, "data": null, "filename": ""}]});
    assert_eq!(read(Proto::V1, snake), plain);
    let null = json!({"messageId": "m", "role": 2, "parts": [{"data": null}]});
    assert_eq!(read(Proto::V1, null).parts, [Part::data(Value::Null)]);
    for (state, is) in [
        (json!(8), Some(TaskState::AuthRequired)),
        (json!(5), Some(TaskState::Canceled)),
        (json!("TASK_STATE_CANCELLED"), Some(TaskState::Canceled)),
        (json!("TASK_STATE_CANCELED"), Some(TaskState::Canceled)),
        (json!(0), Some(TaskState::Unknown)),
        (json!(9), None),
        (json!("TASK_STATE_UNSPECIFIED"), Some(TaskState::Unknown)),
        (json!("working"), None),
    ] {
        assert_eq!(Proto::read_state(&state), is, "{state}");
    }
}

#[test]
fn packages_write_their_own_forms() {
    let message = Message {
        message_id: MessageId::new("m"),
        ..Message::new(
            Role::Agent,
            vec![
                Part::text("hi"),
                Part {
                    filename: Some("a".into()),
                    media_type: Some("x/y".into()),
                    ..Part::new(Content::Raw(vec![255]))
                },
                Part::new(Content::Url("file:///x".into())),
                Part::data(json!([1])),
            ],
        )
    };
    let status =
        TaskStatus { state: TaskState::Canceled, message: Some(message), timestamp: String::new() };
    let sequenced = SequencedEvent {
        task: TaskId::new("t"),
        context: ContextId::new("c"),
        seq: 1,
        event: TaskEvent::Status(StatusUpdate { status, metadata: None }),
    };
    let written = BOTH.map(|proto| proto.form().value(&sequenced).to_string()).join("\n");
    insta::assert_snapshot!(written, @r#"
    {"statusUpdate":{"contextId":"c","status":{"message":{"messageId":"m","parts":[{"text":"hi"},{"filename":"a","mediaType":"x/y","raw":"/w=="},{"url":"file:///x"},{"data":[1]}],"role":"ROLE_AGENT"},"state":"TASK_STATE_CANCELED"},"taskId":"t"}}
    {"statusUpdate":{"contextId":"c","final":true,"status":{"message":{"content":[{"text":"hi"},{"file":{"fileWithBytes":"/w==","mimeType":"x/y","name":"a"}},{"file":{"fileWithUri":"file:///x"}},{"data":{"data":{"value":[1]}}}],"messageId":"m","role":"ROLE_AGENT"},"state":"TASK_STATE_CANCELLED"},"taskId":"t"}}
    "#);
}

#[test]
fn invalid_message_error_names_its_path() {
    let refuse = |proto: Proto, value: Value| {
        proto.read_message(value, "message".to_owned()).unwrap_err().to_string()
    };
    let part = |proto: Proto, part: Value| {
        refuse(proto, json!({"messageId": "m", "role": 1, proto.parts(): [part]}))
    };
    let refused = [
        refuse(Proto::V1, json!("hi")),
        refuse(Proto::V1, json!({"role": 1})),
        refuse(Proto::V1, json!({"messageId": "m"})),
        refuse(Proto::V1, json!({"messageId": "m", "role": "ROLE_UNSPECIFIED"})),
        refuse(Proto::V1, json!({"messageId": "m", "role": 1, "metadata": []})),
        part(Proto::V1, json!({})),
        part(Proto::V1, json!({"text": "a", "url": "b"})),
        part(Proto::V1, json!({"raw": "?"})),
        part(Proto::V1, json!({"text": 1})),
        part(Proto::V03, json!({})),
        part(Proto::V03, json!({"file": {}})),
        part(Proto::V03, json!({"text": "a", "data": {}})),
    ];
    insta::assert_snapshot!(refused.join("\n"), @"
    `message`: must be an object
    `message.messageId`: is missing, or empty
    `message.role`: is missing
    `message.role`: must be ROLE_USER or ROLE_AGENT, or its number
    `message.metadata`: must be an object
    `message.parts[0]`: must have exactly one of `text`, `raw`, `url` and `data`
    `message.parts[0]`: must have exactly one of `text`, `raw`, `url` and `data`
    `message.parts[0].raw`: is not base64: Invalid symbol 63, offset 0.
    `message.parts[0].text`: must be a string
    `message.content[0]`: must have exactly one of `text`, `file` and `data`
    `message.content[0].file`: must have exactly one of `fileWithBytes` and `fileWithUri`
    `message.content[0]`: must have exactly one of `text`, `file` and `data`
    ");
}
