//! Tenant isolation: in every operation and dialect, another tenant's data looks like unknown data.

use super::*;

/// Ids in the methods' examples, to be replaced by a tenant's or unknown ids.
pub(super) const NAMED: [&str; 3] = ["task-456", "ctx-789", "optional-context-id"];

/// Official methods on tasks and conversations: the names in 1.0 and 0.3, and parameters.
pub(super) const OFFICIAL: [(&str, &str, &str); 8] = [
    ("GetTask", "tasks/get", r#"{"id": "task-456"}"#),
    ("CancelTask", "tasks/cancel", r#"{"id": "task-456"}"#),
    ("SubscribeToTask", "tasks/resubscribe", r#"{"id": "task-456"}"#),
    (
        "ListTaskPushNotificationConfigs",
        "tasks/pushNotificationConfig/list",
        r#"{"taskId": "task-456", "id": "task-456"}"#,
    ),
    (
        "GetTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/get",
        r#"{"taskId": "task-456", "id": "task-456"}"#,
    ),
    (
        "DeleteTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/delete",
        r#"{"taskId": "task-456", "id": "task-456", "pushNotificationConfigId": "x"}"#,
    ),
    (
        "SendMessage",
        "message/send",
        r#"{"message": {"messageId": "m", "role": "ROLE", "taskId": "task-456", "parts": [{"kind": "text", "text": "a"}]}}"#,
    ),
    (
        "SendStreamingMessage",
        "message/stream",
        r#"{"message": {"messageId": "m", "role": "ROLE", "taskId": "task-456", "parts": [{"kind": "text", "text": "a"}]}}"#,
    ),
];

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

fn client(of: &str) -> Principal {
    Principal::Client(of.to_owned())
}

pub(super) fn in_context(context: &str, text: &str) -> Value {
    let mut params = message(text);
    params["message"]["contextId"] = json!(context);
    params["message"]["messageId"] = json!(format!("{context} {text}"));
    params
}

/// Parameters with these ids of a task and a conversation, and a `tenant` if given.
fn about(params: &str, task: &str, context: &str, tenant: Option<&str>) -> Value {
    let [a_task, a_context, another] = NAMED;
    let params = params.replace(a_task, task).replace(a_context, context).replace(another, context);
    let mut params: Value = serde_json::from_str(&params).unwrap();
    if let Some(tenant) = tenant {
        params["tenant"] = json!(tenant);
    }
    params
}

impl TestDispatcher {
    async fn shared() -> Self {
        Self::of_tenants(8, ["acme", "other"].map(tenant).into()).await
    }

    pub(super) fn by(&self, caller: Principal, spelled: Dialect) -> RequestContext<'static> {
        RequestContext { caller, ..self.of(spelled) }
    }

    /// Creates a task of this caller in the conversation `c` that asks a question.
    pub(super) async fn asks(&self, caller: Principal) -> String {
        let of = self.by(caller, Dialect::Hub);
        let told = self.told(&of, "message/send", &in_context("c", "ask")).await;
        assert_eq!(told[0]["status"]["state"], "input-required", "{told:?}");
        told[0]["id"].as_str().unwrap().to_owned()
    }

    /// Asserts that answers about another tenant's ids equal answers about unknown ids, apart from
    /// the ids themselves.
    pub(super) async fn differ(
        &self,
        of: &RequestContext<'_>,
        method: &str,
        params: &str,
        task: &str,
        named: Option<&str>,
    ) {
        let nobodys = "01890000-0000-7000-8000-000000000000";
        let ask = async |task: &str, context: &str| {
            let told = self.told(of, method, &about(params, task, context, named)).await;
            let told = told.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
            told.replace(task, "TASK").replace(&format!("`{context}`"), "`CONTEXT`")
        };
        let (others, unknown) = (ask(task, "c").await, ask(nobodys, "nobodys").await);
        let told_apart = |text: &str| {
            // Results are dropped, because their times and numbers differ in each answer.
            let mut value: Vec<Value> =
                text.lines().map(|it| serde_json::from_str(it).unwrap_or_default()).collect();
            value.retain(|it| it["error"] != Value::Null || it.is_array());
            value
        };
        assert_eq!(told_apart(&others), told_apart(&unknown), "{method}");
        assert!(!others.contains(task), "{method}: {others}");
    }
}

/// Callers outside the tenant, identified by a token or by the operator's choice, get the answer
/// for unknown ids.
#[tokio::test(start_paused = true)]
async fn other_tenants_ids_look_unknown() {
    let stand = TestDispatcher::shared().await;
    let task = stand.asks(client("acme")).await;
    let whose = [
        (client("other"), None),
        (Principal::Operator, None),
        (Principal::Operator, Some("other")),
    ];
    for (caller, named) in whose {
        let of = stand.by(caller.clone(), Dialect::Hub);
        for method in METHODS.iter().filter(|it| NAMED.iter().any(|id| it.example.contains(id))) {
            stand.differ(&of, method.name, method.example, &task, named).await;
        }
        for (v1, v03, params) in OFFICIAL {
            let v1_params = params.replace("ROLE", "ROLE_USER").replace(r#""kind": "text", "#, "");
            let of = stand.by(caller.clone(), V1);
            stand.differ(&of, v1, &v1_params, &task, named).await;
            let of = stand.by(caller.clone(), V03);
            stand.differ(&of, v03, &params.replace("ROLE", "user"), &task, named).await;
        }
    }
    // The task is unchanged, and its own tenant finds it.
    for (caller, named) in [
        (client("acme"), None),
        (client("acme"), Some("acme")),
        (Principal::Operator, Some("acme")),
    ] {
        let of = stand.by(caller, Dialect::Hub);
        let told =
            stand.told(&of, "tasks/get", &about(r#"{"id": "task-456"}"#, &task, "c", named)).await;
        assert_eq!(told[0]["status"]["state"], "input-required", "{told:?}");
        assert_eq!(told[0]["contextId"], "c", "a conversation is called as its tenant calls it");
    }
}

#[tokio::test(start_paused = true)]
async fn same_context_name_is_separate_per_tenant() {
    let stand = TestDispatcher::shared().await;
    for (caller, said) in
        [(client("acme"), "one"), (client("other"), "two"), (Principal::Operator, "three")]
    {
        let of = stand.by(caller, Dialect::Hub);
        let told = stand.told(&of, "message/send", &in_context("c", said)).await;
        assert_eq!(told[0]["contextId"], "c", "{told:?}");
    }
    for (caller, said) in
        [(client("acme"), "one"), (client("other"), "two"), (Principal::Operator, "three")]
    {
        let of = stand.by(caller.clone(), Dialect::Hub);
        let told = stand.told(&of, "hub/contexts/get", &json!({ "contextId": "c" })).await;
        let text = told[0].to_string();
        let heard: Vec<_> =
            ["one", "two", "three"].into_iter().filter(|it| text.contains(it)).collect();
        assert_eq!(heard, [said], "{text}");
        let listed = stand.told(&of, "hub/contexts/list", &json!({})).await;
        assert_eq!(
            (&listed[0][0]["id"], &listed[0][0]["taskCount"]),
            (&json!("c"), &json!(1)),
            "{listed:?}"
        );
        assert_eq!(listed[0].as_array().unwrap().len(), 1);
        let tasks = stand.told(&of, "hub/tasks/list", &json!({})).await;
        assert_eq!(tasks[0].as_array().unwrap().len(), 1, "{tasks:?}");
        let of = stand.by(caller, V1);
        let page = stand.told(&of, "ListTasks", &json!({})).await;
        assert_eq!(
            (&page[0]["totalSize"], page[0]["tasks"].as_array().unwrap().len()),
            (&json!(1), 1),
            "{page:?}"
        );
    }
    let operator = stand.of(Dialect::Hub);
    let forget = |tenant: &str| json!({ "contextId": "c", "tenant": tenant });
    let gone = stand.told(&operator, "hub/contexts/delete", &forget("acme")).await;
    assert_eq!(gone[0]["deletedTasks"], 1, "{gone:?}");
    let gone = stand.told(&operator, "hub/contexts/delete", &forget("acme")).await;
    assert_eq!(gone[0]["error"]["code"], -32008, "{gone:?}");
    let of = stand.by(client("other"), Dialect::Hub);
    assert_eq!(
        stand.told(&of, "hub/contexts/list", &json!({})).await[0].as_array().unwrap().len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn same_message_creates_task_per_tenant() {
    let stand = TestDispatcher::shared().await;
    let mut ids = Vec::new();
    for tenant in [None, Some("acme"), Some("other"), Some("acme")] {
        let of = stand.of(Dialect::Hub);
        let mut params = message("echo");
        params["tenant"] = json!(tenant);
        ids.push(stand.told(&of, "message/send", &params).await[0]["id"].clone());
    }
    ids.dedup();
    assert_eq!(ids.len(), 4, "without a window each request is a new one: {ids:?}");
}

#[tokio::test(start_paused = true)]
async fn naming_another_tenant_is_refused() {
    let stand = TestDispatcher::shared().await;
    let list = |tenant: &str| json!({ "tenant": tenant });
    let told = async |caller: Principal, tenant: &str| {
        let of = stand.by(caller, Dialect::Hub);
        let told = stand.told(&of, "hub/tasks/list", &list(tenant)).await;
        told[0]["error"]["message"].as_str().map(str::to_owned)
    };
    let (others, nobodys) =
        (told(client("acme"), "other").await, told(client("acme"), "nobody").await);
    assert_eq!(others.unwrap().replace("other", "X"), nobodys.unwrap().replace("nobody", "X"));
    assert_eq!(told(client("acme"), "acme").await, None);
    let slip = told(Principal::Operator, "acmee").await.unwrap();
    assert!(slip.contains("did you mean `acme`?"), "{slip}");
    let unknown = told(Principal::Operator, "zebra").await.unwrap();
    assert!(unknown.contains("`[tenants.zebra]` in the configuration"), "{unknown}");
    let crooked = told(Principal::Operator, "../x").await.unwrap();
    assert!(crooked.contains("cannot name a tenant") || crooked.contains("is no"), "{crooked}");
}

/// Without paths, the tenant names an agent, a tenant or both.
#[tokio::test(start_paused = true)]
async fn tenant_parameter_names_agent_or_tenant() {
    let stand = TestDispatcher::shared().await;
    let agent = AgentId::parse("claude-code").unwrap();
    let place = |said| stand.dispatcher.of_tenant(Some(said));
    assert_eq!(place("claude-code").unwrap(), (Some(agent.clone()), TenantId::default()));
    assert_eq!(place("acme").unwrap(), (None, tenant("acme")));
    assert_eq!(place("acme/claude-code").unwrap(), (Some(agent), tenant("acme")));
    assert!(
        place("acme/nobody").is_err()
            && place("nobody").is_err()
            && place("A/claude-code").is_err()
    );
    assert_eq!(stand.dispatcher.tenant(Some("claude-code")).unwrap(), TenantId::default());
    assert_eq!(stand.dispatcher.tenant(Some("acme/claude-code")).unwrap(), tenant("acme"));
    let alone = TestDispatcher::new().await;
    let opaque = |said| alone.dispatcher.opaque_tenant(Some(said)).unwrap();
    assert_eq!(opaque("anything at all"), TenantId::default());
    assert_eq!(opaque("acme"), TenantId::default());
}

/// A name that silently meant the default tenant would show, and change, the wrong data.
#[tokio::test(start_paused = true)]
async fn hub_without_tenants_refuses_tenant_names() {
    let alone = TestDispatcher::new().await;
    let list = async |tenant: &str| {
        let of = alone.by(Principal::Operator, Dialect::Hub);
        let params = json!({ "tenant": tenant });
        alone.told(&of, "hub/tasks/list", &params).await[0]["error"].clone()
    };
    for default in ["", "claude-code"] {
        assert_eq!(list(default).await, Value::Null, "`{default}` is the default tenant");
    }
    let unknown = list("acme").await;
    assert_eq!(unknown["code"], -32602, "{unknown}");
    let why = unknown["message"].as_str().unwrap();
    assert!(why.contains("`[tenants.acme]`") && why.contains("restart"), "{why}");
    let crooked = list("no tenant").await;
    assert!(crooked["message"].as_str().unwrap().contains("cannot name a tenant"), "{crooked}");
    // A connection that another protocol opens is no exception.
    let why = alone.dispatcher.narrowed(Principal::Operator, tenant("acme")).unwrap_err();
    assert!(why.to_string().contains("`[tenants.acme]`"), "{why}");
}

/// The hub's events show a tenant its own tasks and the shared agents.
#[tokio::test(start_paused = true)]
async fn hub_events_show_own_tasks_only() {
    let stand = TestDispatcher::shared().await;
    let of = stand.by(client("acme"), Dialect::Hub);
    let Ok(Some(Reply::Stream(mut heard))) = stand.respond(&of, "hub/events", &json!({})).await
    else {
        panic!("a stream")
    };
    let other = stand.by(client("other"), Dialect::Hub);
    stand.told(&other, "message/send", &in_context("theirs", "echo")).await;
    stand.told(&of, "message/send", &in_context("own", "echo")).await;
    let mut told = Vec::new();
    while let Ok(Some(event)) = timeout(Duration::from_secs(5), heard.next()).await {
        told.extend(event.text);
    }
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains("\"own\"") && !told.contains("theirs"), "{told}");
}

/// A connection that another protocol opens for a tenant has only that tenant's rights.
#[tokio::test]
async fn operator_narrowed_to_tenant_becomes_client() {
    let stand = TestDispatcher::shared().await;
    let narrowed = |caller, name: &str| stand.dispatcher.narrowed(caller, tenant(name)).ok();
    assert_eq!(narrowed(Principal::Operator, "acme"), Some(client("acme")));
    assert_eq!(narrowed(client("acme"), "acme"), Some(client("acme")));
    assert_eq!(narrowed(client("acme"), "other"), None);
    assert_eq!(narrowed(Principal::Operator, "nobody"), None);
    assert_eq!(narrowed(Principal::Anonymous, "acme"), None);
}
