//! Tests of MCP's tasks on a connection: those of 2025-11-25 and of the extension of 2026-07-28.

use super::{TestDispatcher, connections::TestConnection};
use a2a_hub_core::access_control::Principal;
use a2a_hub_protocol::id::{AgentId, TenantId};
use serde_json::{Value, json};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// Client that has begun a session of this version.
async fn begun(
    stand: &TestDispatcher,
    caller: Principal,
    version: &str,
    can: Value,
) -> (TestConnection, Value) {
    let mut connection = TestConnection::mcp_of(stand, caller);
    let client = json!({ "name": "t", "version": "1" });
    let hello = json!({ "protocolVersion": version, "capabilities": can, "clientInfo": client });
    let answer = connection.ask("initialize", hello).await;
    connection.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    (connection, answer["result"].clone())
}

async fn core(stand: &TestDispatcher) -> TestConnection {
    begun(stand, Principal::Operator, "2025-11-25", json!({ "elicitation": {} })).await.0
}

fn call(message: &str) -> Value {
    json!({ "name": "claude-code", "arguments": { "message": message } })
}

/// Parameters of a call that asks for a task.
fn call_as_task(message: &str) -> Value {
    let mut call = call(message);
    call["task"] = json!({ "ttl": 60_000 });
    call
}

/// Parameters with the metadata of a request of 2026-07-28.
fn of_2026(mut params: Value, can: &Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": can,
    });
    params
}

#[tokio::test(start_paused = true)]
async fn core_task_is_polled_listed_and_cancelled() {
    let stand = TestDispatcher::new().await;
    let can = json!({ "elicitation": {} });
    let (mut first, hello) = begun(&stand, Principal::Operator, "2025-11-25", can).await;
    let announced = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(hello["capabilities"]["tasks"], announced);
    assert_eq!(hello["capabilities"].get("extensions"), None, "{hello}");
    let tools = first.ask("tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().unwrap();
    for tool in tools {
        let is_agent = tool["name"] == "claude-code";
        assert_eq!(tool.get("execution").is_some(), is_agent, "{tool}");
    }

    let created = first.ask("tools/call", call_as_task("work")).await["result"].clone();
    let of = json!({ "taskId": created["task"]["taskId"] });
    assert_eq!(created["task"]["status"], "working", "{created}");
    drop(first);

    let mut client = core(&stand).await;
    let told = client.ask("tasks/get", of.clone()).await["result"].clone();
    assert_eq!((&told["status"], &told["ttl"]), (&json!("working"), &json!(null)), "{told}");
    assert!(told["createdAt"].is_string() && told["lastUpdatedAt"].is_string(), "{told}");
    let listed = client.ask("tasks/list", json!({})).await["result"].clone();
    assert_eq!(listed["tasks"][0]["taskId"], of["taskId"], "{listed}");
    let result = client.begin("tasks/result", of.clone()).await;
    let told = client.ask("tasks/cancel", of.clone()).await;
    let told = if told["id"] == result { client.hear().await } else { told };
    assert_eq!(told["result"]["status"], "cancelled", "{told}");
    let told = client.ask("tasks/result", of.clone()).await["result"].clone();
    assert_eq!(told["isError"], true, "{told}");
    assert_eq!(told["_meta"][RELATED], of);
    assert_eq!(client.ask("tasks/cancel", of).await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn core_result_equals_result_of_call() {
    let stand = TestDispatcher::new().await;
    for message in ["hello", "reply", "stream", "use tools"] {
        let mut client = core(&stand).await;
        let created = client.ask("tools/call", call_as_task(message)).await["result"].clone();
        let of = json!({ "taskId": created["task"]["taskId"] });
        let told = client.ask("tasks/result", of.clone()).await["result"].clone();
        let plain = client.ask("tools/call", call(message)).await["result"].clone();
        assert_eq!(told["structuredContent"]["text"], plain["structuredContent"]["text"]);
        assert_eq!((&told["isError"], told.get("resultType")), (&json!(false), None), "{told}");
        assert_eq!(client.ask("tasks/get", of).await["result"]["status"], "completed", "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn core_question_is_form_of_its_task() {
    let stand = TestDispatcher::new().await;
    let mut client = core(&stand).await;
    let created = client.ask("tools/call", call_as_task("ask")).await["result"].clone();
    let of = json!({ "taskId": created["task"]["taskId"] });
    let result = client.begin("tasks/result", of.clone()).await;
    let form = client.until_method("elicitation/create").await.pop().unwrap();
    assert_eq!(form["params"]["_meta"][RELATED], of, "{form}");
    assert_eq!(form["params"]["message"], "The agent asks: which one?");
    let status = client.ask("tasks/get", of).await;
    assert_eq!(status["result"]["status"], "input_required");
    let filled = json!({ "action": "accept", "content": { "answer": "blue" } });
    let filled = json!({ "jsonrpc": "2.0", "id": form["id"], "result": filled });
    client.say(&filled.to_string()).await;
    let told = client.until(result).await.pop().unwrap();
    assert_eq!(told["result"]["structuredContent"]["text"], "blue", "{told}");
}

/// A user who gives no answer is not asked again; an answer of another client ends the wait.
#[tokio::test(start_paused = true)]
async fn declined_core_question_waits_for_other_answer() {
    let stand = TestDispatcher::new().await;
    let mut client = core(&stand).await;
    let created = client.ask("tools/call", call_as_task("ask")).await["result"].clone();
    let of = json!({ "taskId": created["task"]["taskId"] });
    let result = client.begin("tasks/result", of.clone()).await;
    let form = client.until_method("elicitation/create").await.pop().unwrap();
    let filled = json!({ "jsonrpc": "2.0", "id": form["id"], "result": { "action": "cancel" } });
    client.say(&filled.to_string()).await;
    let mut other = core(&stand).await;
    let answer = json!({ "name": "answer_task",
        "arguments": { "task_id": of["taskId"], "message": "green" } });
    let told = other.ask("tools/call", answer).await;
    assert_eq!(told["result"]["isError"], false, "{told}");
    let told = client.until(result).await;
    assert!(told.iter().all(|line| line["method"] != "elicitation/create"), "{told:?}");
    assert_eq!(told.last().unwrap()["result"]["structuredContent"]["text"], "green");
}

#[tokio::test(start_paused = true)]
async fn odd_requests_of_core_tasks_are_refused() {
    let stand = TestDispatcher::new().await;
    let mut client = core(&stand).await;
    let long = "x".repeat(100_000);
    for (method, params, code) in [
        ("tasks/get", json!({}), -32602),
        ("tasks/get", json!({ "taskId": 7 }), -32602),
        ("tasks/get", json!({ "taskId": long }), -32602),
        ("tasks/get", json!({ "taskId": "../x\u{0}" }), -32602),
        ("tasks/get", json!([]), -32602),
        ("tasks/result", json!({ "taskId": null }), -32602),
        ("tasks/result", json!({ "taskId": "none" }), -32602),
        ("tasks/cancel", json!({ "taskId": {} }), -32602),
        ("tasks/cancel", json!({ "taskId": "none" }), -32602),
        ("tasks/list", json!({ "cursor": 5 }), -32602),
        ("tasks/list", json!({ "cursor": "x" }), -32602),
        ("tasks/update", json!({ "taskId": "t", "inputResponses": {} }), -32601),
        ("tasks/unheard", json!({}), -32601),
        ("tools/call", json!({ "name": "list_agents", "task": {} }), -32601),
        (
            "tools/call",
            json!({ "name": "nobody", "arguments": { "message": "m" }, "task": {} }),
            -32602,
        ),
        ("tools/call", json!({ "name": "claude-code", "arguments": {}, "task": {} }), -32602),
        ("tools/call", json!({ "name": 5, "task": {} }), -32602),
        ("tools/call", json!({ "name": "claude-code", "task": 5 }), -32602),
    ] {
        let told = client.ask(method, params).await;
        assert_eq!(told["error"]["code"], code, "{method}: {told}");
        assert!(told.to_string().len() < 2_000, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn earlier_version_and_program_have_no_tasks() {
    let stand = TestDispatcher::new().await;
    let program = Principal::of_tree(AgentId::parse("claude-code").unwrap(), "1");
    for (caller, version) in [(Principal::Operator, "2025-06-18"), (program, "2025-11-25")] {
        let (mut client, hello) = begun(&stand, caller.clone(), version, json!({})).await;
        assert_eq!(hello["capabilities"].get("tasks"), None, "{hello}");
        assert_eq!(hello["capabilities"].get("extensions"), None, "{hello}");
        for method in ["tasks/get", "tasks/cancel", "tasks/result", "tasks/list", "tasks/update"] {
            let of = json!({ "taskId": "t", "inputResponses": {} });
            assert_eq!(client.ask(method, of).await["error"]["code"], -32601, "{method}");
        }
        if caller == Principal::Operator {
            let told = client.ask("tools/call", call_as_task("hello")).await;
            assert_eq!(told["result"]["structuredContent"]["text"], "hello", "{told}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_of_other_tenant_are_not_found() {
    let tenants = ["acme", "other"].map(|name| TenantId::parse(name).unwrap());
    let stand = TestDispatcher::of_tenants(8, tenants.into_iter().collect()).await;
    let client = |name: &str| Principal::Client(name.to_owned());
    let (mut acme, _) = begun(&stand, client("acme"), "2025-11-25", json!({})).await;
    let created = acme.ask("tools/call", call_as_task("work")).await;
    let of = json!({ "taskId": created["result"]["task"]["taskId"] });
    assert!(of["taskId"].is_string(), "{created}");
    let (mut other, _) = begun(&stand, client("other"), "2025-11-25", json!({})).await;
    for method in ["tasks/get", "tasks/cancel", "tasks/result"] {
        let told = other.ask(method, of.clone()).await;
        assert_eq!(told["error"]["code"], -32602, "{method}: {told}");
    }
    assert_eq!(other.ask("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    let tasks = json!({ "extensions": { EXTENSION: {} } });
    let update = of_2026(json!({ "taskId": of["taskId"], "inputResponses": {} }), &tasks);
    assert_eq!(other.ask("tasks/update", update).await["error"]["code"], -32602);
    assert_eq!(acme.ask("tasks/get", of).await["result"]["status"], "working");
}

#[tokio::test(start_paused = true)]
async fn long_call_becomes_task_of_extension() {
    let stand = TestDispatcher::new().await;
    let can = json!({ "extensions": { EXTENSION: {} }, "elicitation": {} });
    let mut client = TestConnection::silent_mcp(&stand);
    let hello = client.ask("server/discover", of_2026(json!({}), &can)).await;
    assert_eq!(hello["result"]["capabilities"]["extensions"], json!({ EXTENSION: {} }), "{hello}");
    let told = client.ask("tools/call", of_2026(call("hello"), &can)).await;
    assert_eq!(told["result"]["resultType"], "complete", "a quick answer needs no task: {told}");

    let told = client.ask("tools/call", of_2026(call("work"), &can)).await["result"].clone();
    assert_eq!((&told["resultType"], &told["status"]), (&json!("task"), &json!("working")));
    let of = of_2026(json!({ "taskId": told["taskId"] }), &can);
    let told = client.ask("tasks/get", of.clone()).await["result"].clone();
    assert_eq!((&told["resultType"], &told["status"]), (&json!("complete"), &json!("working")));
    assert_eq!(client.ask("tasks/cancel", of.clone()).await["result"]["resultType"], "complete");
    let told = client.ask("tasks/get", of.clone()).await;
    assert_eq!(told["result"]["status"], "cancelled", "{told}");
    let told = client.ask("tasks/cancel", of.clone()).await;
    assert_eq!(told["result"]["resultType"], "complete", "the wish is acknowledged: {told}");
    for method in ["tasks/result", "tasks/list"] {
        assert_eq!(client.ask(method, of.clone()).await["error"]["code"], -32601, "{method}");
    }
    let unknown = of_2026(json!({ "taskId": "none" }), &can);
    for method in ["tasks/get", "tasks/cancel"] {
        assert_eq!(client.ask(method, unknown.clone()).await["error"]["code"], -32602, "{method}");
    }
    for params in [json!({}), json!({ "taskId": 7 }), json!({ "taskId": "t", "inputResponses": 7 })]
    {
        let told = client.ask("tasks/update", of_2026(params, &can)).await;
        assert_eq!(told["error"]["code"], -32602, "{told}");
    }
    let silent = of_2026(json!({ "taskId": "t" }), &json!({}));
    assert_eq!(client.ask("tasks/get", silent).await["error"]["code"], -32021);
    let mut unasked = call("work");
    unasked["arguments"]["wait_seconds"] = json!(1);
    unasked["task"] = json!({});
    let told = client.ask("tools/call", of_2026(unasked, &json!({}))).await;
    assert_eq!(told["result"]["resultType"], "complete", "it did not declare tasks: {told}");
}

#[tokio::test(start_paused = true)]
async fn question_of_extension_is_answered_by_update() {
    let stand = TestDispatcher::new().await;
    let can = json!({ "extensions": { EXTENSION: {} }, "elicitation": {} });
    let mut client = TestConnection::silent_mcp(&stand);
    // The question comes within the call, so the call itself has it.
    let told = client.ask("tools/call", of_2026(call("ask"), &can)).await["result"].clone();
    assert_eq!(told["resultType"], "input_required", "{told}");
    let state: Value = serde_json::from_str(told["requestState"].as_str().unwrap()).unwrap();
    let of = json!({ "taskId": state["task"] });
    let told = client.ask("tasks/get", of_2026(of.clone(), &can)).await["result"].clone();
    assert_eq!(told["status"], "input_required");
    let (key, asked) = told["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    let filled = json!({ "action": "accept", "content": { "answer": "blue" } });
    for (key, filled, status) in [
        ("other", filled.clone(), "input_required"),
        (key.as_str(), json!("odd"), "input_required"),
        (key.as_str(), filled, "completed"),
    ] {
        let mut update = of.clone();
        update["inputResponses"] = json!({ key: filled });
        let told = client.ask("tasks/update", of_2026(update, &can)).await;
        assert_eq!(told["result"]["resultType"], "complete", "{told}");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let told = client.ask("tasks/get", of_2026(of.clone(), &can)).await;
        assert_eq!(told["result"]["status"], status, "{told}");
    }
    let told = client.ask("tasks/get", of_2026(of, &can)).await["result"].clone();
    assert_eq!(told["result"]["structuredContent"]["text"], "blue", "{told}");
}
