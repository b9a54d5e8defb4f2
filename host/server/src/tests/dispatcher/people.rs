//! People with keys: each operation with each role and scope, and what a narrowed key may not see,
//! in every dialect.

use super::{
    tenants::{NAMED, OFFICIAL, in_context},
    *,
};
use a2a_hub_core::{
    access_control::rule_for_people,
    identity::{
        KeyScope, PersonName, PersonRole,
        PersonRule::{Always, Initiator, May, Never},
    },
};
use a2a_hub_protocol::hub::methods::operation;

impl TestDispatcher {
    /// Result of a method for the operator.
    async fn operate(&self, method: &str, params: Value) -> Value {
        let told = self.told(&self.of(Dialect::Hub), method, &params).await;
        assert_eq!(told[0]["error"], Value::Null, "{method}: {told:?}");
        told[0].clone()
    }

    /// Adds a person; a known one gets the role.
    async fn person(&self, name: &str, role: &str) {
        let person = json!({ "name": name, "role": role });
        self.told(&self.of(Dialect::Hub), "hub/people/add", &person).await;
        self.operate("hub/people/role", person).await;
    }

    /// Principal of a person with a new key of these scopes.
    async fn key(&self, name: &str, scopes: &[&str]) -> Principal {
        let terms = json!({ "person": name, "scopes": scopes });
        let made = self.operate("hub/keys/new", terms).await;
        let key = made["key"]["id"].as_str().unwrap().to_owned();
        Principal::Person { name: PersonName::parse(name).unwrap(), key }
    }

    /// Code of the error that a caller gets; `None` for success.
    async fn code(&self, caller: &Principal, method: &str, params: &Value) -> Option<i64> {
        let of = self.by(caller.clone(), Dialect::Hub);
        let told = self.told(&of, method, params).await;
        told.iter().find_map(|told| told["error"]["code"].as_i64())
    }
}

const DENIED: i64 = -32006;
const NO_TASK: i64 = -32001;

/// Every method with every role and every scope: the table decides, and nothing else allows.
#[tokio::test(start_paused = true)]
async fn table_decides_for_each_method_role_and_scope() {
    let stand = TestDispatcher::new().await;
    for role in PersonRole::ALL {
        let scopes: Vec<Vec<&str>> = std::iter::once(Vec::new())
            .chain(KeyScope::ALL.into_iter().map(|scope| vec![scope.name()]))
            .collect();
        for scopes in scopes {
            stand.person("zoe", role.name()).await;
            let zoe = stand.key("zoe", &scopes).await;
            let has = |scope: KeyScope| match scopes.first() {
                Some(name) => *name == scope.name(),
                None => !matches!(scope, KeyScope::Apply | KeyScope::Admin | KeyScope::AdminGrant),
            };
            let role_has = |scope: KeyScope| match role {
                PersonRole::Viewer => scope == KeyScope::Read,
                PersonRole::Member => !matches!(scope, KeyScope::Admin | KeyScope::AdminGrant),
                PersonRole::Owner => true,
            };
            for method in METHODS {
                let params: Value = serde_json::from_str(method.example).unwrap();
                let rule = rule_for_people(&operation(method.name, params.clone()).unwrap());
                let may = match rule {
                    Always => true,
                    Never => false,
                    May(scope) | Initiator(scope) => has(scope) && role_has(scope),
                };
                // The task of the example is unknown, so for worktrees it is somebody else's.
                let is_of_worktree = ["hub/tasks/diff", "hub/tasks/apply", "hub/tasks/discard"]
                    .contains(&method.name);
                if may && is_of_worktree && role != PersonRole::Owner {
                    continue;
                }
                let code = stand.code(&zoe, method.name, &params).await;
                let row = format!("{} {role:?} {scopes:?}: {code:?}", method.name);
                let is_denied = code == Some(DENIED);
                assert_eq!(is_denied, !may, "{row}");
            }
            stand.operate("hub/people/remove", json!({ "name": "zoe" })).await;
        }
    }
}

/// Tasks that a narrowed key may not read look unknown, in every method and dialect.
#[tokio::test(start_paused = true)]
async fn unreadable_tasks_look_unknown() {
    let stand = TestDispatcher::new().await;
    stand.person("ada", "owner").await;
    stand.person("bob", "member").await;
    let bob = stand.key("bob", &[]).await;
    let task = stand.asks(bob).await;
    let rest = ["send", "answer", "approve", "cancel", "push", "apply"];
    let with = |read: &[&'static str]| [read, &rest].concat();
    stand.person("eve", "member").await;
    for (name, scopes) in [
        ("ada", with(&["read:own"])),
        ("ada", with(&["read:other"])),
        ("ada", with(&["read:claude-code/sum"])),
        ("eve", with(&[])),
    ] {
        let caller = stand.key(name, &scopes).await;
        let of = stand.by(caller.clone(), Dialect::Hub);
        for method in METHODS.iter().filter(|it| NAMED.iter().any(|id| it.example.contains(id))) {
            // A message in a foreign conversation is refused; in a new one, it begins a task.
            if method.name.starts_with("message/") {
                continue;
            }
            stand.differ(&of, method.name, method.example, &task, None).await;
        }
        for (v1, v03, params) in OFFICIAL {
            let v1_params = params.replace("ROLE", "ROLE_USER").replace(r#""kind": "text", "#, "");
            let of = stand.by(caller.clone(), V1);
            stand.differ(&of, v1, &v1_params, &task, None).await;
            let of = stand.by(caller.clone(), V03);
            stand.differ(&of, v03, &params.replace("ROLE", "user"), &task, None).await;
        }
        let joined = in_context("c", "what did bob say?");
        assert!(stand.code(&caller, "message/send", &joined).await.is_some(), "{scopes:?}");
        let question = stand.operate("hub/questions/list", json!({})).await;
        let id = question["questions"][0]["id"].clone();
        let answer = json!({ "ids": [id.clone()], "answer": "x" });
        let told = stand.told(&of, "hub/questions/answer", &answer).await;
        assert_eq!(told[0][0]["answered"], false, "{told:?}");
        assert!(told[0].to_string().contains("no task asks"), "{told:?}");
        let later = json!({ "id": id, "forMs": 1000 });
        assert_eq!(stand.code(&caller, "hub/questions/later", &later).await, Some(-32005));
    }
    // The lists and streams of a key that reads own tasks only.
    let narrow = stand.key("ada", &["read:own", "send"]).await;
    let of = stand.by(narrow.clone(), Dialect::Hub);
    let Ok(Some(Reply::Stream(mut events))) = stand.respond(&of, "hub/events", &json!({})).await
    else {
        panic!("a stream")
    };
    for (method, list) in [
        ("hub/tasks/list", ""),
        ("hub/contexts/list", ""),
        ("hub/questions/list", "/questions"),
        ("hub/questions/history", "/questions"),
        ("hub/notices/list", "/notices"),
        ("hub/deliveries/list", ""),
    ] {
        let told = stand.told(&of, method, &json!({})).await;
        let list = told[0].pointer(list).and_then(Value::as_array);
        assert_eq!(list.map(Vec::len), Some(0), "{method}: {told:?}");
        assert!(!told[0].to_string().contains(&task), "{told:?}");
    }
    let page = stand.told(&stand.by(narrow.clone(), V1), "ListTasks", &json!({})).await;
    assert_eq!((&page[0]["totalSize"], &page[0]["tasks"]), (&json!(0), &json!([])), "{page:?}");
    for method in ["hub/topics/list", "hub/permissions/list", "hub/permissions/suggest"] {
        assert_eq!(stand.code(&narrow, method, &json!({})).await, Some(DENIED), "{method}");
    }
    // The own task is there, beside those of others.
    let params = in_context("own", "echo");
    let own = stand.told(&of, "message/send", &params).await[0]["id"].clone();
    for (dialect, method, at) in
        [(Dialect::Hub, "hub/tasks/list", "/0/id"), (V1, "ListTasks", "/tasks/0/id")]
    {
        let told = stand.told(&stand.by(narrow.clone(), dialect), method, &json!({})).await;
        assert_eq!(told[0].pointer(at), Some(&own), "{told:?}");
        assert!(!told[0].to_string().contains(&task), "{told:?}");
    }
    let contexts = stand.told(&of, "hub/contexts/list", &json!({})).await;
    assert_eq!(contexts[0][0]["id"], "own", "{contexts:?}");
    let mut seen = Vec::new();
    while let Ok(Some(event)) = timeout(Duration::from_secs(5), events.next()).await {
        seen.extend(event.text);
    }
    let seen = String::from_utf8(seen).unwrap();
    assert!(seen.contains(own.as_str().unwrap()) && !seen.contains(&task), "{seen}");
}

/// Pages of a narrowed key have as many tasks as they should, in order, and count only these.
#[tokio::test(start_paused = true)]
async fn pages_of_narrowed_key_are_whole() {
    let stand = TestDispatcher::new().await;
    stand.person("ada", "member").await;
    let ada = stand.key("ada", &["read:own", "send"]).await;
    let mut own = Vec::new();
    for number in 0..7 {
        let params = in_context(&format!("c{number}"), "echo");
        let (ours, theirs) = (stand.by(ada.clone(), Dialect::Hub), stand.of(Dialect::Hub));
        own.push(stand.told(&ours, "message/send", &params).await[0]["id"].clone());
        let params = in_context(&format!("d{number}"), "echo");
        stand.told(&theirs, "message/send", &params).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    own.sort_by_key(Value::to_string);
    let of = stand.by(ada.clone(), V1);
    let (mut found, mut token) = (Vec::new(), json!(""));
    for _ in 0..4 {
        let params = json!({ "pageSize": 3, "pageToken": token });
        let page = stand.told(&of, "ListTasks", &params).await;
        assert_eq!(page[0]["totalSize"], 7, "{page:?}");
        let tasks = page[0]["tasks"].as_array().unwrap().clone();
        assert!(tasks.len() == 3 || page[0]["nextPageToken"] == "", "{page:?}");
        found.extend(tasks.iter().map(|task| task["id"].clone()));
        token = page[0]["nextPageToken"].clone();
        if token == "" {
            break;
        }
    }
    found.sort_by_key(Value::to_string);
    assert_eq!(found, own);
    let of = stand.by(ada, Dialect::Hub);
    let all = stand.told(&of, "hub/tasks/list", &json!({ "limit": 100 })).await;
    for (limit, offset) in [(3, 0), (3, 3), (3, 6), (3, 9)] {
        let params = json!({ "limit": limit, "offset": offset });
        let told = stand.told(&of, "hub/tasks/list", &params).await;
        let expected: Vec<_> =
            all[0].as_array().unwrap().iter().skip(offset).take(limit).cloned().collect();
        assert_eq!(told[0], json!(expected), "{params}");
    }
}

/// Rows: scopes of an owner's key, and what it may do with a task that bob began.
#[tokio::test(start_paused = true)]
async fn narrowed_scopes_change_their_tasks_only() {
    let stand = TestDispatcher::new().await;
    stand.person("ada", "owner").await;
    stand.person("bob", "member").await;
    let bob = stand.key("bob", &[]).await;
    let push = |task: &str| json!({ "taskId": task, "id": task });
    for (scopes, cancels, answers, pushes) in [
        (&["read", "cancel:own", "answer:own", "push:own", "approve:own"][..], false, false, false),
        (&["read", "cancel:other", "answer:other", "push:other"], false, false, false),
        (&["read", "cancel:claude-code", "approve"], true, false, false),
        (&["read", "answer:claude-code", "approve"], false, true, false),
        (&["read", "answer", "push:claude-code"], false, false, true),
        (&["read", "answer", "approve:claude-code"], false, false, false),
    ] {
        let ada = stand.key("ada", scopes).await;
        let task = stand.asks(bob.clone()).await;
        let listed = stand.code(&ada, "hub/tasks/tree", &json!({ "id": task })).await;
        assert_eq!(listed, None, "{scopes:?}");
        let code = stand.code(&ada, "tasks/pushNotificationConfig/list", &push(&task)).await;
        assert_eq!(code != Some(DENIED), pushes, "{scopes:?}: {code:?}");
        // A message that names no question may answer a request for permission.
        let mut further = message("blue");
        further["message"]["taskId"] = json!(task);
        let code = stand.code(&ada, "message/send", &further).await;
        assert_eq!(code != Some(DENIED), answers, "{scopes:?}: {code:?}");
        let code = stand.code(&ada, "tasks/cancel", &json!({ "id": task })).await;
        assert_eq!(code != Some(DENIED), cancels, "{scopes:?}: {code:?}");
        let apply = json!({ "taskId": task });
        assert_eq!(stand.code(&ada, "hub/tasks/apply", &apply).await, Some(DENIED));
        stand.told(&stand.of(Dialect::Hub), "tasks/cancel", &json!({ "id": task })).await;
    }
    // Reading is no answer, and a question of a narrowed key is named by its id.
    let task = stand.asks(bob).await;
    let ada = stand.key("ada", &["read", "answer:claude-code"]).await;
    let open = stand.operate("hub/questions/list", json!({})).await;
    let answer = json!({ "ids": [open["questions"][0]["id"]], "answer": "blue" });
    let of = stand.by(ada.clone(), Dialect::Hub);
    let told = stand.told(&of, "hub/questions/answer", &answer).await;
    assert_eq!(told[0][0]["answered"], true, "{told:?}");
    let unknown = json!({ "id": "01890000-0000-7000-8000-000000000000" });
    assert_eq!(stand.code(&ada, "tasks/get", &unknown).await, Some(NO_TASK));
    assert_eq!(stand.code(&ada, "tasks/get", &json!({ "id": task })).await, None);
}
