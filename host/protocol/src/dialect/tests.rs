//! Round trips of requests from client to server in each version over each binding, and the
//! selection of the dialect.

mod shapes;

use super::*;
use crate::v03;
use crate::{
    binding::{
        jsonrpc::{Frame, ParamsSource},
        rest::WrittenRequest,
    },
    model::{
        client::ClientCapabilities,
        id::{ContextId, PushConfigId, TaskId},
        message::{Message, Part, Role},
        operation::{SendMessage, TaskCursor, TaskPageQuery, Wait},
        push::{OfferedPush, PushAuthentication, PushForm, Secret},
        task::TaskState,
    },
    v03::UNSAID_WAIT,
};
use serde_json::json;

fn official(version: Version, binding: Binding) -> Dialect {
    Dialect::Official(Wire { version, binding })
}

/// Every operation of A2A with all its parameters, in the order of the methods.
fn asked(form: PushForm) -> Vec<Operation> {
    // Characters that need escapes in a path; 0.3 allows no slash in an id over gRPC.
    let id = || TaskId::new("t:1?é");
    let config = || PushConfigId::new("p q");
    let send = || {
        let message = Message::new(Role::User, vec![Part::text("hi")]);
        let output_modes = vec!["image/*".to_owned(), "text/plain".to_owned()];
        let client = ClientCapabilities { output_modes, ..ClientCapabilities::default() };
        SendMessage { client, ..SendMessage::new(message, None).unwrap() }
    };
    let push = |id: Option<PushConfigId>| OfferedPush {
        id,
        url: "https://example.com/news".to_owned(),
        token: Some(Secret::new("t")),
        authentication: Some(PushAuthentication {
            scheme: "Bearer".to_owned(),
            credentials: Some(Secret::new("s")),
        }),
        form,
    };
    let client = || ClientCapabilities {
        output_modes: vec!["image/*".to_owned()],
        ..ClientCapabilities::default()
    };
    vec![
        Operation::SendMessage(Box::new(SendMessage {
            push: Some(push(None)),
            client: client(),
            ..send()
        })),
        Operation::StreamMessage(Box::new(SendMessage {
            history_length: Some(2),
            wait: Wait::No,
            ..send()
        })),
        Operation::GetTask { id: id(), history_length: Some(3) },
        Operation::PageTasks(TaskPageQuery {
            agent: None,
            context: Some(ContextId::new("c&d")),
            tenant: None,
            state: Some(TaskState::AuthRequired),
            since: Some("2026-01-01T00:00:00.500Z".to_owned()),
            after: Some(TaskCursor { updated: "2026-01-01T00:00:00.000Z".to_owned(), id: id() }),
            size: 7,
            history_length: Some(0),
            include_artifacts: true,
        }),
        Operation::CancelTask { id: id() },
        Operation::Resubscribe { id: id(), after: None },
        Operation::SetPushConfig { task: id(), push: push(Some(config())) },
        Operation::GetPushConfig { task: id(), id: Some(config()) },
        Operation::ListPushConfigs { task: id() },
        Operation::DeletePushConfig { task: id(), id: config() },
        Operation::GetCard { agent: None },
    ]
}

/// The operations of 0.3, which has no list of tasks.
fn asked_of_old() -> Vec<Operation> {
    let mut all = asked(PushForm::V03);
    all.retain(|asks| !matches!(asks, Operation::PageTasks(_)));
    all
}

#[test]
fn jsonrpc_requests_round_trip() {
    let read = |version, name: &str, said: Value| {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": name, "params": said });
        let spelled = official(version, Binding::JsonRpc);
        let read = jsonrpc::read(request.to_string().as_bytes(), spelled, ParamsSource::Headers);
        let Frame::One(read) = read else { panic!("a batch") };
        assert_eq!(read.dialect, spelled);
        (read.operation, read.tenant)
    };
    for (asks, method) in asked(PushForm::V1).into_iter().zip(Method::ALL) {
        let (name, said) = jsonrpc::write(Version::V1, Some("me"), &asks).unwrap();
        assert_eq!(name, method.name());
        assert_eq!(read(Version::V1, name, said), (Ok(asks), Some("me".to_owned())));
    }
    for (asks, method) in asked_of_old().into_iter().zip(v03::methods::names()) {
        let (name, said) = jsonrpc::write(Version::V03, Some("me"), &asks).unwrap();
        assert_eq!(name, method);
        assert_eq!(read(Version::V03, name, said), (Ok(asks), None), "it knows no tenant");
    }
    let unnamed = Operation::GetPushConfig { task: TaskId::new("t"), id: None };
    let (name, said) = jsonrpc::write(Version::V03, None, &unnamed).unwrap();
    assert_eq!(read(Version::V03, name, said).0, Ok(unnamed), "only there it need not be named");
    assert_eq!(jsonrpc::write(Version::V1, None, &Operation::Status), None);
}

#[test]
fn rest_requests_round_trip() {
    let mut told = String::new();
    for (version, tenant, all) in
        [(Version::V1, Some("a/b"), asked(PushForm::V1)), (Version::V03, None, asked_of_old())]
    {
        for asks in all {
            let WrittenRequest { verb, target, body } =
                rest::write(version, tenant, &asks).unwrap();
            let (path, query) =
                target.split_once('?').map_or((&*target, None), |(p, q)| (p, Some(q)));
            let sent = body.map_or_else(String::new, |body| body.to_string());
            let read = rest::read(verb, path, query, sent.as_bytes());
            let tenant = tenant.map(str::to_owned);
            let wire = Wire { version, binding: Binding::Rest };
            assert_eq!(read, rest::Request { wire, tenant, operation: Ok(asks) });
            told.push_str(&format!("{} {target}\n", verb.name()));
        }
    }
    insta::assert_snapshot!(told, @"
    POST a%2Fb/message:send
    POST a%2Fb/message:stream
    GET a%2Fb/tasks/t%3A1%3F%C3%A9?historyLength=3
    GET a%2Fb/tasks?contextId=c%26d&historyLength=0&includeArtifacts=true&pageSize=7&pageToken=MjAyNi0wMS0wMVQwMDowMDowMC4wMDBaIHQ6MT_DqQ&status=TASK_STATE_AUTH_REQUIRED&statusTimestampAfter=2026-01-01T00%3A00%3A00.500Z
    POST a%2Fb/tasks/t%3A1%3F%C3%A9:cancel
    POST a%2Fb/tasks/t%3A1%3F%C3%A9:subscribe
    POST a%2Fb/tasks/t%3A1%3F%C3%A9/pushNotificationConfigs
    GET a%2Fb/tasks/t%3A1%3F%C3%A9/pushNotificationConfigs/p%20q
    GET a%2Fb/tasks/t%3A1%3F%C3%A9/pushNotificationConfigs
    DELETE a%2Fb/tasks/t%3A1%3F%C3%A9/pushNotificationConfigs/p%20q
    GET a%2Fb/extendedAgentCard
    POST v1/message:send
    POST v1/message:stream
    GET v1/tasks/t%3A1%3F%C3%A9?historyLength=3
    POST v1/tasks/t%3A1%3F%C3%A9:cancel
    GET v1/tasks/t%3A1%3F%C3%A9:subscribe
    POST v1/tasks/t%3A1%3F%C3%A9/pushNotificationConfigs
    GET v1/tasks/t%3A1%3F%C3%A9/pushNotificationConfigs/p%20q
    GET v1/tasks/t%3A1%3F%C3%A9/pushNotificationConfigs
    DELETE v1/tasks/t%3A1%3F%C3%A9/pushNotificationConfigs/p%20q
    GET v1/card
    ");
    let pages = &asked(PushForm::V03)[3];
    assert_eq!(rest::write(Version::V03, None, pages), None, "0.3 lists no tasks");
    assert_eq!(rest::write(Version::V1, None, &Operation::Status), None);
}

#[test]
fn grpc_requests_round_trip() {
    let mut told = String::new();
    for (version, tenant, all) in
        [(Version::V1, Some("a/b"), asked(PushForm::V1)), (Version::V03, None, asked_of_old())]
    {
        for mut asks in all {
            let streams = asks.streams();
            let (call, sent) = grpc::write(version, tenant, &asks).unwrap().unwrap();
            let read = grpc::read(&call, &sent);
            if let (Operation::StreamMessage(send), Version::V03) = (&mut asks, version) {
                // gRPC does not transmit `false`.
                send.wait = Wait::AtMost(UNSAID_WAIT);
            }
            assert_eq!((call.streams(), read.operation), (streams, Ok(asks)));
            assert_eq!(read.tenant.as_deref(), tenant);
            told.push_str(&format!("{}\n", call.path()));
        }
    }
    insta::assert_snapshot!(told, @"
    /lf.a2a.v1.A2AService/SendMessage
    /lf.a2a.v1.A2AService/SendStreamingMessage
    /lf.a2a.v1.A2AService/GetTask
    /lf.a2a.v1.A2AService/ListTasks
    /lf.a2a.v1.A2AService/CancelTask
    /lf.a2a.v1.A2AService/SubscribeToTask
    /lf.a2a.v1.A2AService/CreateTaskPushNotificationConfig
    /lf.a2a.v1.A2AService/GetTaskPushNotificationConfig
    /lf.a2a.v1.A2AService/ListTaskPushNotificationConfigs
    /lf.a2a.v1.A2AService/DeleteTaskPushNotificationConfig
    /lf.a2a.v1.A2AService/GetExtendedAgentCard
    /a2a.v1.A2AService/SendMessage
    /a2a.v1.A2AService/SendStreamingMessage
    /a2a.v1.A2AService/GetTask
    /a2a.v1.A2AService/CancelTask
    /a2a.v1.A2AService/TaskSubscription
    /a2a.v1.A2AService/CreateTaskPushNotificationConfig
    /a2a.v1.A2AService/GetTaskPushNotificationConfig
    /a2a.v1.A2AService/ListTaskPushNotificationConfig
    /a2a.v1.A2AService/DeleteTaskPushNotificationConfig
    /a2a.v1.A2AService/GetAgentCard
    ");
    assert!(grpc::write(Version::V1, None, &Operation::Status).unwrap().is_none());
}

#[test]
fn method_name_selects_dialect() {
    let [new, old] = Version::ALL.map(|version| official(version, Binding::JsonRpc));
    assert_eq!(Dialect::of_method("SendMessage", Dialect::Hub), new);
    assert_eq!(Dialect::of_method("message/send", Dialect::Hub), Dialect::Hub);
    assert_eq!(Dialect::of_method("message/send", new), old);
    assert_eq!(Dialect::of_method("no such", new), new);
}
