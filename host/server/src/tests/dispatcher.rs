//! Dispatcher tests with a native agent and an in-memory store, without a socket: every method for
//! each kind of caller in each dialect.

mod people;
mod tenants;

use super::TestDispatcher;
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    dialect::{Dialect, Wire},
    error::ErrorKind,
    hub::methods::METHODS,
    id::{AgentId, TenantId},
    interface::{Binding, Version},
    operation::OpenStreams,
};
use a2a_hub_rpc::{
    dispatcher::RequestContext,
    jsonrpc::{EncodedRefusal, Enveloped},
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

/// URL of the hub for its clients.
const URL: &str = "http://127.0.0.1:8080/";

const V1: Dialect = Dialect::Official(Wire { version: Version::V1, binding: Binding::JsonRpc });
const V03: Dialect = Dialect::Official(Wire { version: Version::V03, binding: Binding::JsonRpc });

impl TestDispatcher {
    /// Context of a request to the agent's endpoint in this dialect.
    fn of(&self, spelled: Dialect) -> RequestContext<'static> {
        let agent = AgentId::parse("claude-code").unwrap();
        let endpoints = self.dispatcher.endpoints(URL, Some(&agent), false);
        let of = RequestContext::of_hub(Principal::Operator, URL, None);
        let agent = (spelled != Dialect::Hub).then_some(agent);
        RequestContext { spelled, agent, endpoints: Some(endpoints), ..of }
    }

    async fn respond(&self, of: &RequestContext<'_>, method: &str, params: &Value) -> Enveloped {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.dispatcher.respond(request.to_string().as_bytes(), of).await
    }

    /// All results without envelopes. A stream counts as ended after five silent seconds.
    async fn told(&self, of: &RequestContext<'_>, method: &str, params: &Value) -> Vec<Value> {
        let mut texts = Vec::new();
        match self.respond(of, method, params).await {
            Ok(None) => {}
            Ok(Some(Reply::One(text))) | Err(EncodedRefusal { text, .. }) => texts.push(text),
            Ok(Some(Reply::Stream(mut stream))) => {
                let patience = Duration::from_secs(5);
                while let Ok(Some(update)) = timeout(patience, stream.next()).await {
                    texts.push(update.text);
                }
            }
        }
        let texts = texts.iter().map(|text| serde_json::from_slice::<Value>(text).unwrap());
        texts.map(|mut told| told.get_mut("result").map(Value::take).unwrap_or(told)).collect()
    }
}

fn message(text: &str) -> Value {
    let part = json!({ "kind": "text", "text": text });
    let to = json!({ "targetAgent": "claude-code" });
    json!({ "message": { "messageId": "m", "role": "user", "parts": [part], "metadata": to } })
}

fn message_v1(text: &str) -> Value {
    json!({ "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": text }] } })
}

/// Kinds of results: the member `kind` in the hub's dialect and in 0.3, the only member in 1.0.
fn kinds(told: &[Value]) -> String {
    let kind = |one: &Value| {
        let kind = one["kind"].as_str().map(str::to_owned);
        let member = || one.as_object().and_then(|it| it.keys().next().cloned());
        kind.or_else(member).unwrap_or_else(|| one.to_string())
    };
    told.iter().map(kind).collect::<Vec<_>>().join(", ")
}

#[tokio::test(start_paused = true)]
async fn method_access_depends_on_caller() {
    let stand = TestDispatcher::new().await;
    let mut rows = Vec::new();
    for method in METHODS {
        let params: Value = serde_json::from_str(method.example).unwrap();
        let mut row = format!("{:<36}", method.name);
        for caller in
            [Principal::Operator, Principal::Client("ci".to_owned()), Principal::Anonymous]
        {
            let of = RequestContext { caller, ..stand.of(Dialect::Hub) };
            let told = stand.told(&of, method.name, &params).await;
            let refused = told.iter().find_map(|told| told["error"]["code"].as_i64());
            row.push_str(&refused.map_or("      ok".to_owned(), |code| format!("{code:>8}")));
        }
        rows.push(row);
    }
    insta::assert_snapshot!(rows.join("\n"), @"
    hub/ping                                  ok      ok  -32006
    hub/status                                ok  -32006  -32006
    hub/events                                ok      ok  -32006
    hub/reload                            -32005  -32006  -32006
    hub/agents/list                           ok      ok  -32006
    hub/agents/find                           ok      ok  -32006
    hub/agents/get                            ok      ok  -32006
    hub/agents/health                         ok      ok  -32006
    hub/agents/register                   -32602  -32006  -32006
    hub/agents/deregister                 -32003  -32006  -32006
    hub/agents/reload                     -32003  -32006  -32006
    hub/schedules/list                    -32005  -32006  -32006
    hub/schedules/run                     -32005  -32006  -32006
    hub/schedules/pause                   -32005  -32006  -32006
    hub/schedules/resume                  -32005  -32006  -32006
    hub/schedules/accept                  -32005  -32006  -32006
    hub/search                                ok      ok  -32006
    hub/usage                                 ok      ok  -32006
    hub/questions/list                        ok      ok  -32006
    hub/questions/answer                      ok      ok  -32006
    hub/questions/later                   -32005  -32005  -32006
    hub/questions/history                     ok      ok  -32006
    hub/notices/list                          ok      ok  -32006
    hub/notices/read                          ok      ok  -32006
    hub/notifiers/list                    -32005  -32006  -32006
    hub/notifiers/test                    -32005  -32006  -32006
    hub/permissions/list                      ok      ok  -32006
    hub/permissions/add                   -32602  -32006  -32006
    hub/permissions/remove                    ok  -32006  -32006
    hub/permissions/test                      ok  -32006  -32006
    hub/permissions/suggest                   ok      ok  -32006
    hub/devices/list                          ok  -32006  -32006
    hub/devices/remove                    -32602  -32006  -32006
    hub/devices/pair                      -32005  -32006  -32006
    hub/devices/pairing                       ok  -32006  -32006
    hub/devices/confirm                   -32602  -32006  -32006
    hub/people/list                           ok  -32006  -32006
    hub/people/add                            ok  -32006  -32006
    hub/people/role                           ok  -32006  -32006
    hub/people/remove                         ok  -32006  -32006
    hub/people/invite                     -32602  -32006  -32006
    hub/people/me                             ok      ok  -32006
    hub/keys/new                          -32602  -32006  -32006
    hub/keys/revoke                       -32602  -32006  -32006
    hub/triggers/list                     -32005  -32006  -32006
    hub/triggers/run                      -32005  -32006  -32006
    hub/triggers/pause                    -32005  -32006  -32006
    hub/triggers/resume                   -32005  -32006  -32006
    hub/triggers/accept                   -32005  -32006  -32006
    hub/topics/publish                    -32005  -32005  -32006
    hub/topics/read                       -32005  -32005  -32006
    hub/topics/list                       -32005  -32005  -32006
    hub/topics/delete                     -32005  -32006  -32006
    hub/plugins/list                          ok  -32006  -32006
    hub/plugins/refresh                       ok  -32006  -32006
    hub/plugins/add                       -32602  -32006  -32006
    hub/grants/grant                      -32602  -32006  -32006
    hub/grants/deny                       -32602  -32006  -32006
    hub/grants/revoke                     -32602  -32006  -32006
    hub/grants/remove                     -32602  -32006  -32006
    hub/backup                            -32005  -32006  -32006
    hub/tasks/list                            ok      ok  -32006
    hub/tasks/tree                        -32001  -32001  -32006
    hub/tasks/timeline                    -32001  -32001  -32006
    hub/contexts/list                         ok      ok  -32006
    hub/contexts/get                      -32008  -32008  -32006
    hub/contexts/delete                   -32008  -32006  -32006
    hub/tasks/handoff                     -32003  -32006  -32006
    hub/tasks/retryNow                    -32001  -32006  -32006
    hub/tasks/diff                        -32005  -32006  -32006
    hub/tasks/apply                       -32005  -32006  -32006
    hub/tasks/discard                     -32005  -32006  -32006
    hub/reviews/get                       -32005  -32006  -32006
    hub/reviews/comment                   -32005  -32006  -32006
    hub/reviews/remove                    -32005  -32006  -32006
    hub/reviews/discard                   -32005  -32006  -32006
    hub/reviews/send                      -32005  -32006  -32006
    hub/worktrees/list                    -32005  -32006  -32006
    hub/worktrees/prune                   -32005  -32006  -32006
    hub/deliveries/list                       ok      ok  -32006
    hub/deliveries/retry                  -32001  -32001  -32006
    message/send                              ok      ok  -32006
    message/stream                            ok      ok  -32006
    tasks/get                             -32001  -32001  -32006
    tasks/cancel                          -32001  -32001  -32006
    tasks/resubscribe                     -32001  -32001  -32006
    tasks/pushNotificationConfig/set      -32001  -32001  -32006
    tasks/pushNotificationConfig/get      -32001  -32001  -32006
    tasks/pushNotificationConfig/list     -32001  -32001  -32006
    tasks/pushNotificationConfig/delete   -32001  -32001  -32006
    rpc.discover                              ok      ok  -32006
    ");
}

#[tokio::test(start_paused = true)]
async fn refused_request_has_no_effect() {
    let stand = TestDispatcher::new().await;
    let operator = stand.of(Dialect::Hub);
    let agent = json!({ "agentId": "claude-code" });
    for (caller, method, params) in [
        (Principal::Client("ci".to_owned()), "hub/agents/deregister", &agent),
        (Principal::Anonymous, "hub/agents/deregister", &agent),
        (Principal::Anonymous, "message/send", &message("echo")),
    ] {
        let of = RequestContext { caller, ..stand.of(Dialect::Hub) };
        let told = stand.told(&of, method, params).await;
        assert_eq!(told[0]["error"]["code"], -32006, "{method}: {told:?}");
    }
    let there = stand.told(&operator, "hub/agents/get", &agent).await;
    assert_eq!(there[0]["error"], Value::Null, "it is there still: {there:?}");
    assert_eq!(stand.told(&operator, "hub/tasks/list", &json!({})).await, [json!([])]);
    let gone = stand.told(&operator, "hub/agents/deregister", &agent).await;
    assert_eq!(gone[0]["error"], Value::Null, "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn answer_uses_dialect_of_request() {
    let stand = TestDispatcher::new().await;
    let mut rows = Vec::new();
    for text in ["echo", "reply", "late", "ask"] {
        for (name, dialect, send, stream, params) in [
            ("hub", Dialect::Hub, "message/send", "message/stream", message(text)),
            ("0.3", V03, "message/send", "message/stream", message(text)),
            ("1.0", V1, "SendMessage", "SendStreamingMessage", message_v1(text)),
        ] {
            let of = stand.of(dialect);
            let sent = kinds(&stand.told(&of, send, &params).await);
            let streamed = kinds(&stand.told(&of, stream, &params).await);
            rows.push(format!("{text:<5} {name}: {sent} | {streamed}"));
        }
    }
    insta::assert_snapshot!(rows.join("\n"), @"
    echo  hub: task | task, status-update, status-update
    echo  0.3: task | task, status-update, status-update
    echo  1.0: task | task, statusUpdate, statusUpdate
    reply hub: message | task, status-update, message
    reply 0.3: message | message
    reply 1.0: message | message
    late  hub: message | task, status-update, message
    late  0.3: message | task, status-update, status-update
    late  1.0: message | task, statusUpdate, statusUpdate
    ask   hub: task | task, status-update, status-update
    ask   0.3: task | task, status-update, status-update
    ask   1.0: task | task, statusUpdate, statusUpdate
    ");
}

/// Only an agent that declares direct messages delays the beginning of a stream.
#[tokio::test(start_paused = true)]
async fn stream_begins_at_once() {
    let (tasks_only, declared) =
        (TestDispatcher::with_tasks_only().await, TestDispatcher::new().await);
    for (stand, dialect, expected) in [
        (&tasks_only, V03, 0),
        (&tasks_only, V1, 0),
        (&declared, Dialect::Hub, 0),
        (&declared, V03, 250),
        (&declared, V1, 250),
    ] {
        let (method, params) = match dialect == V1 {
            true => ("SendStreamingMessage", message_v1("work")),
            false => ("message/stream", message("work")),
        };
        let begun = tokio::time::Instant::now();
        let Ok(Some(Reply::Stream(mut stream))) =
            stand.respond(&stand.of(dialect), method, &params).await
        else {
            panic!("{dialect:?}: no stream");
        };
        let first = stream.next().await.unwrap().text;
        let first: Value = serde_json::from_slice(&first).unwrap();
        assert!(kinds(&[first["result"].clone()]) == "task", "{dialect:?}: {first}");
        let waited = begun.elapsed().as_millis();
        assert!((expected..expected + 20).contains(&waited), "{dialect:?}: {waited} ms");
    }
}

#[tokio::test]
async fn connection_limit_is_twice_stream_limit() {
    for (streams, connections) in [(1, 4_000), (2_000, 4_000), (10_000, 20_000)] {
        let stand = TestDispatcher::with_streams(streams).await;
        assert_eq!(stand.dispatcher.connection_budget().http, connections, "{streams}");
    }
    let stand = TestDispatcher::with_streams(2_000).await;
    let budget = stand.dispatcher.clone().with_open_files(256).connection_budget();
    assert_eq!((budget.http, budget.socket), (70, 35), "as far as there are descriptors");
}

#[tokio::test(start_paused = true)]
async fn agents_streams_leave_places_to_the_operator() {
    let stand = TestDispatcher::with_streams(8).await;
    let agent = || Principal::of_tree(AgentId::parse("codex").unwrap(), "1.1");
    let own = stand.dispatcher.admit(&agent()).ok();
    let why = stand.dispatcher.admit(&agent()).err().unwrap();
    assert!(
        why.is_busy && why.why.message.contains("the programs of the agent `codex`"),
        "{:?}",
        why.why
    );
    let operators: Vec<_> =
        (0..7).map(|_| stand.dispatcher.admit(&Principal::Operator).ok().unwrap()).collect();
    assert_eq!(stand.dispatcher.streams(), OpenStreams { open: 8, max: 8 });
    drop((own, operators));
    assert_eq!(stand.dispatcher.streams(), OpenStreams { open: 0, max: 8 });
}

#[tokio::test(start_paused = true)]
async fn stream_limit_applies_to_streams_only() {
    let stand = TestDispatcher::with_streams(1).await;
    let of = stand.of(Dialect::Hub);
    let first = stand.respond(&of, "message/stream", &message("work")).await;
    assert!(matches!(first, Ok(Some(Reply::Stream(_)))));
    assert_eq!(stand.dispatcher.streams(), OpenStreams { open: 1, max: 1 });
    let second = stand.respond(&of, "message/stream", &message("work")).await;
    let Err(EncodedRefusal { text, is_busy: true }) = second else { panic!("there is no room") };
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("serves 1 streams already; try again soon"), "{text}");
    assert_eq!(kinds(&stand.told(&of, "message/send", &message("echo")).await), "task");
    drop(first);
    assert_eq!(stand.dispatcher.streams(), OpenStreams { open: 0, max: 1 });
    let third = stand.respond(&of, "message/stream", &message("work")).await;
    assert!(matches!(third, Ok(Some(Reply::Stream(_)))), "who left makes room");
}

#[tokio::test(start_paused = true)]
async fn batch_omits_notifications_and_refuses_streams() {
    let stand = TestDispatcher::new().await;
    let (of, call) = (stand.of(Dialect::Hub), |id: Value, method: &str, params: Value| {
        let mut call = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if !id.is_null() {
            call["id"] = id;
        }
        call
    });
    let batch = async |calls: &[Value]| {
        let sent = serde_json::to_vec(calls).unwrap();
        stand.dispatcher.respond(&sent, &of).await
    };
    let ping = |id| call(id, "hub/ping", json!({}));
    let all = [
        ping(json!(1)),
        ping(Value::Null),
        call(json!("two"), "message/stream", message("echo")),
        call(json!(3), "message/send", message("echo")),
        json!(7),
    ];
    let Ok(Some(Reply::One(text))) = batch(&all).await else { panic!("one answer") };
    let answers: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let mut told: Vec<_> =
        answers.iter().map(|it| (it["id"].to_string(), it["error"]["code"].as_i64())).collect();
    told.sort();
    let (refused, no_request) = (Some(-32005), Some(-32600));
    assert_eq!(
        told,
        [
            ("\"two\"".to_owned(), refused),
            ("1".to_owned(), None),
            ("3".to_owned(), None),
            ("null".to_owned(), no_request)
        ]
    );
    assert!(matches!(batch(&[ping(Value::Null)]).await, Ok(None)), "nobody waits for an answer");
    let Err(EncodedRefusal { text, is_busy: false }) = batch(&[]).await else { panic!("no batch") };
    let told: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!((&told["error"]["code"], &told["id"]), (&json!(-32600), &Value::Null));
}

#[tokio::test(start_paused = true)]
async fn stream_resumes_after_last_event() {
    let stand = TestDispatcher::new().await;
    let of = stand.of(Dialect::Hub);
    let told = stand.told(&of, "message/stream", &message("echo")).await;
    let task = json!({ "id": told[0]["id"] });
    let after = async |last: Option<u64>| {
        let last_event_id = last.map(|last| last.to_string());
        let of = RequestContext { last_event_id, ..stand.of(Dialect::Hub) };
        kinds(&stand.told(&of, "tasks/resubscribe", &task).await)
    };
    assert_eq!(after(None).await, "task");
    assert_eq!(after(Some(0)).await, kinds(&told), "from the beginning");
    assert_eq!(after(Some(2)).await, kinds(&told[2..]));
    let beyond = RequestContext { last_event_id: Some("99".to_owned()), ..stand.of(Dialect::Hub) };
    let refused = stand.told(&beyond, "tasks/resubscribe", &task).await;
    assert_eq!(refused[0]["error"]["code"], -32602, "{refused:?}");
}

#[tokio::test]
async fn unknown_tenant_is_refused() {
    let stand = TestDispatcher::new().await;
    let of = |tenant: Option<&str>| {
        stand.dispatcher.of_tenant(tenant).map(|(agent, _)| agent).map_err(|why| why.kind)
    };
    assert_eq!((of(None), of(Some(""))), (Ok(None), Ok(None)));
    assert_eq!(of(Some("claude-code")), Ok(AgentId::parse("claude-code").ok()));
    for unknown in ["codex", "../claude-code", "CLAUDE-CODE"] {
        assert_eq!(of(Some(unknown)), Err(ErrorKind::AgentNotFound), "{unknown}");
    }
}

#[tokio::test]
async fn extended_card_requires_token_endpoint() {
    let stand = TestDispatcher::new().await;
    let ask = async |needs_token| {
        let endpoints = stand.dispatcher.endpoints(URL, None, needs_token);
        let of = RequestContext { endpoints: Some(endpoints), ..stand.of(V1) };
        let told = stand.told(&of, "GetExtendedAgentCard", &json!({})).await.remove(0);
        (told["name"].as_str().map(str::to_owned), told["error"]["code"].as_i64())
    };
    assert_eq!(ask(true).await, (Some("Fake".to_owned()), None));
    assert_eq!(ask(false).await, (None, Some(-32004)));
}

#[tokio::test]
async fn unsupported_version_is_refused_in_official_dialects() {
    let stand = TestDispatcher::new().await;
    let with = |spelled| RequestContext {
        version: a2a_hub_protocol::interface::check_version(Some("7.0")),
        ..stand.of(spelled)
    };
    let refused = stand.told(&with(V1), "SendMessage", &message_v1("echo")).await;
    assert_eq!(refused[0]["error"]["code"], -32009, "{refused:?}");
    let told = stand.told(&with(Dialect::Hub), "hub/ping", &json!({})).await;
    assert!(told[0]["version"].is_string(), "{told:?}");
}

/// A request is processed by the semantics of the version that the client names (A2A 1.0, section
/// 3.6.2). A client that names none is served by the method's name.
#[tokio::test]
async fn version_contradicting_method_is_refused() {
    let stand = TestDispatcher::new().await;
    let code = async |spelled, version: Option<&str>, method: &str, params: &Value| {
        let version = a2a_hub_protocol::interface::check_version(version);
        let of = RequestContext { version, ..stand.of(spelled) };
        stand.told(&of, method, params).await[0]["error"]["code"].as_i64()
    };
    let (old, new, wrong) = (json!({ "id": "t" }), json!({ "id": "t" }), json!({ "id": 1 }));
    for spelled in [V1, Dialect::Hub] {
        for (version, method, params, expected) in [
            (Some("1.0"), "tasks/get", &old, -32009),
            (Some("1.0"), "message/stream", &wrong, -32009),
            (Some("0.3"), "GetTask", &new, -32009),
            (Some("0.3"), "SendMessage", &wrong, -32009),
            (Some("1.0"), "GetTask", &new, -32001),
            (Some("0.3"), "tasks/get", &old, -32001),
            (Some(""), "GetTask", &new, -32001),
            (None, "GetTask", &new, -32001),
            (None, "tasks/get", &old, -32001),
            (Some("1.0"), "no/method", &old, -32601),
        ] {
            let expected = match (spelled, params == &wrong, method) {
                // The hub's own dialect has its own methods, whose parameters have no version.
                (Dialect::Hub, true, "message/stream") => -32602,
                (Dialect::Hub, false, "tasks/get") if expected == -32009 => -32014,
                _ => expected,
            };
            let got = code(spelled, version, method, params).await;
            assert_eq!(got, Some(expected), "{spelled:?} {version:?} {method}");
        }
    }
    assert_eq!(code(Dialect::Hub, Some("1.0"), "hub/ping", &json!({})).await, None);
}

#[tokio::test]
async fn tenant_contradicting_url_is_refused() {
    let stand = TestDispatcher::new().await;
    let (here, other) = ("claude-code", "CLAUDE-CODE");
    let [agent, another] = [here, "another"].map(|id| AgentId::parse(id).unwrap());
    let place = |said: &str, at| stand.dispatcher.resolve_target(Some(said), at).map(|it| it.agent);
    for opaque in ["", other, "anything at all", "a/b"] {
        assert_eq!(place(opaque, None), Ok(None), "{opaque}");
        assert_eq!(place(opaque, Some(&agent)), Ok(Some(agent.clone())), "{opaque}");
    }
    for named in [here, "acme/claude-code"] {
        assert_eq!(place(named, None), Ok(Some(agent.clone())), "the URL names none");
        assert_eq!(place(named, Some(&agent)), Ok(Some(agent.clone())));
        let refused = place(named, Some(&another)).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::InvalidParams);
        let why = refused.to_string();
        assert!(why.contains("`claude-code`") && why.contains("/agents/claude-code"), "{why}");
    }
}
