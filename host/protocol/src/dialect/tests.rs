//! What one end asks the other reads, in each version and on each binding; and how a choice among them is made.

use super::*;
use crate::{
    binding::{grpc::Call, rest},
    model::{
        id::{ContextId, PushConfigId, TaskId},
        message::{Message, Part, Role},
        operation::{SendMessage, TaskPageQuery, TaskPlace, Wait},
        push::{OfferedPush, PushAuthentication, PushForm, Secret},
        task::TaskState,
        terms::Terms,
    },
    v03::UNSAID_WAIT,
};

/// Every operation that A2A has, with all that can be said of it, in the order of its methods.
fn asked(form: PushForm) -> Vec<Operation> {
    // A name that means something else in a path; 0.3 has no slash in one on gRPC.
    let id = || TaskId::new("t:1?é");
    let config = || PushConfigId::new("p q");
    let send = || {
        let message = Message::new(Role::User, vec![Part::text("hi")]);
        let output_modes = vec!["image/*".to_owned(), "text/plain".to_owned()];
        let terms = Terms { output_modes, ..Terms::default() };
        SendMessage { terms, ..SendMessage::new(message, None).unwrap() }
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
    let terms = || Terms { output_modes: vec!["image/*".to_owned()], ..Terms::default() };
    vec![
        Operation::SendMessage(SendMessage { push: Some(push(None)), terms: terms(), ..send() }),
        Operation::StreamMessage(SendMessage { history_length: Some(2), wait: Wait::No, ..send() }),
        Operation::GetTask { id: id(), history_length: Some(3) },
        Operation::PageTasks(TaskPageQuery {
            agent: None,
            context: Some(ContextId::new("c&d")),
            state: Some(TaskState::AuthRequired),
            since: Some("2026-01-01T00:00:00.500Z".to_owned()),
            after: Some(TaskPlace { updated: "2026-01-01T00:00:00.000Z".to_owned(), id: id() }),
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

/// The same as 0.3 has it, which lists no tasks.
fn asked_of_old() -> Vec<Operation> {
    let mut all = asked(PushForm::V03);
    all.retain(|asks| !matches!(asks, Operation::PageTasks(_)));
    all
}

#[test]
fn what_is_asked_over_json_rpc_is_read() {
    for (asks, method) in asked(PushForm::V1).into_iter().zip(v1::Method::ALL) {
        let (written, params) = v1::write_request(&asks).unwrap();
        assert_eq!(written, method);
        assert_eq!(v1::operation(method.name(), params).unwrap(), asks);
    }
    for (asks, name) in asked_of_old().into_iter().zip(v03::METHODS) {
        let (written, params) = v03::write_request(&asks).unwrap();
        assert_eq!((written, v03::operation(name, params)), (name, Ok(asks)));
    }
    let unnamed = Operation::GetPushConfig { task: TaskId::new("t"), id: None };
    let (name, params) = v03::write_request(&unnamed).unwrap();
    assert_eq!(v03::operation(name, params).unwrap(), unnamed, "only there it need not be named");
}

#[test]
fn what_is_asked_over_rest_is_read() {
    let mut told = String::new();
    for (version, tenant, all) in
        [(Version::V1, Some("a/b"), asked(PushForm::V1)), (Version::V03Rest, None, asked_of_old())]
    {
        for asks in all {
            let rest::Written { verb, target, body } = rest::write(version, tenant, &asks).unwrap();
            let (path, query) =
                target.split_once('?').map_or((&*target, None), |(p, q)| (p, Some(q)));
            let sent = body.map_or_else(String::new, |body| body.to_string());
            let read = rest::read(verb, path, query, sent.as_bytes());
            let tenant = tenant.map(str::to_owned);
            assert_eq!(read, rest::Request { version, tenant, operation: Ok(asks) });
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
    assert_eq!(rest::write(Version::V03Rest, None, pages), None, "0.3 lists no tasks");
    assert_eq!(rest::write(Version::V1, None, &Operation::Status), None);
}

#[test]
fn what_is_asked_over_grpc_is_read() {
    let mut told = String::new();
    for (version, tenant, all) in
        [(Version::V1, Some("a/b"), asked(PushForm::V1)), (Version::V03Rest, None, asked_of_old())]
    {
        for mut asks in all {
            let streams = asks.streams();
            let (call, sent) = Call::asking(version, tenant, &asks).unwrap().unwrap();
            let read = call.read(&sent);
            if let (Operation::StreamMessage(send), Version::V03Rest) = (&mut asks, version) {
                // What is `false` is not sent.
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
    assert!(Call::asking(Version::V1, None, &Operation::Status).unwrap().is_none());
}

#[test]
fn a_method_tells_its_dialect() {
    let official = Dialect::Official(Version::V1);
    assert_eq!(Dialect::of_method("SendMessage", Dialect::Hub), official);
    assert_eq!(Dialect::of_method("message/send", Dialect::Hub), Dialect::Hub);
    assert_eq!(Dialect::of_method("message/send", official), Dialect::Official(Version::V03));
    assert_eq!(Dialect::of_method("no such", official), official);
}

#[test]
fn versions_are_checked() {
    for good in [None, Some(""), Some("1.0"), Some("0.3"), Some("1.0.1"), Some(" 0.3.0")] {
        assert_eq!(check_version(good), Ok(()), "{good:?}");
    }
    for bad in ["99.0", "1", "0.2", "x", "1.1"] {
        assert!(check_version(Some(bad)).is_err(), "{bad}");
    }
}
