//! Tests of MCP's tools for the questions of all tasks: access, answers, and confirmations by the
//! user.

use super::{TestDispatcher, connections::TestConnection, scripted::script};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::{
    error::ErrorKind,
    id::{AgentId, TaskId},
    operation::{Answer, Operation, QuestionAnswer, QuestionRequest},
};
use serde_json::{Value, json};

const TOOLS: [&str; 3] = ["list_questions", "answer_question", "postpone_question"];

/// Client of a version with a handshake.
async fn begun(stand: &TestDispatcher, caller: Principal, can: Value) -> TestConnection {
    let mut connection = TestConnection::mcp_of(stand, caller);
    let client = json!({ "name": "t", "version": "1" });
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": can, "clientInfo": client });
    connection.ask("initialize", hello).await;
    connection.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    connection
}

async fn operator(stand: &TestDispatcher) -> TestConnection {
    begun(stand, Principal::Operator, json!({})).await
}

async fn call(client: &mut TestConnection, tool: &str, arguments: Value) -> Value {
    client.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
}

/// Has the agent ask for a permission, and returns its task and its question.
async fn asked(client: &mut TestConnection) -> (Value, Value) {
    let steps = json!([{ "permission": {} }, { "end": { "state": "completed" } }]);
    let told = call(client, "claude-code", json!({ "message": script(&steps) })).await;
    let told = &told["result"]["structuredContent"];
    assert_eq!(told["question"]["kind"], "permission", "{told}");
    (told["taskId"].clone(), told["question"]["id"].clone())
}

/// Number of open questions.
async fn open(client: &mut TestConnection) -> Value {
    let told = call(client, "list_questions", json!({})).await;
    told["result"]["structuredContent"]["total"].clone()
}

/// Answer of the question that was asked last, from the history.
async fn latest_answer(stand: &TestDispatcher) -> Option<String> {
    let history = Operation::Question(QuestionRequest::History { limit: 1, before: None });
    let told = stand.dispatcher.ask(&Principal::Operator, history).await.map(|(reply, _)| reply);
    let Ok(Reply::One(Answer::Question(QuestionAnswer::History(history)))) = told else {
        panic!("no history")
    };
    history.questions.into_iter().next()?.answer
}

#[tokio::test(start_paused = true)]
async fn question_is_listed_and_answered_once() {
    let stand = TestDispatcher::new().await;
    let mut client = operator(&stand).await;
    let tools = client.ask("tools/list", json!({})).await["result"]["tools"].clone();
    let hints = |name: &str| {
        let tools = tools.as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let hints = &tool["annotations"];
        (hints["readOnlyHint"].clone(), hints["destructiveHint"].clone())
    };
    assert_eq!(hints("list_questions").0, true);
    assert_eq!(hints("answer_question"), (json!(false), json!(true)));
    assert_eq!(hints("postpone_question"), (json!(false), json!(false)));

    let (task, id) = asked(&mut client).await;
    let told = call(&mut client, "list_questions", json!({ "kind": "permission" })).await;
    let listed = &told["result"]["structuredContent"];
    let question = &listed["questions"][0];
    assert_eq!((&question["id"], &question["taskId"]), (&id, &task), "{listed}");
    assert_eq!((&question["text"], &listed["total"]), (&json!("may I?"), &json!(1)));
    let none = call(&mut client, "list_questions", json!({ "kind": "input" })).await;
    let none = &none["result"]["structuredContent"];
    assert_eq!(none, &json!({ "questions": [], "total": 0, "more": false }));

    let later = json!({ "id": id, "for_seconds": 60 });
    let told = call(&mut client, "postpone_question", later).await;
    assert_eq!(told["result"]["structuredContent"]["setAside"], true, "{told}");
    let denial = json!({ "id": id, "answer": "deny", "reason": "too broad" });
    let told = call(&mut client, "answer_question", denial).await;
    assert_eq!(told["result"]["structuredContent"]["results"][0]["answered"], true, "{told}");
    let late = json!({ "ids": [id], "answer": "allow" });
    let told = call(&mut client, "answer_question", late).await;
    let result = &told["result"]["structuredContent"]["results"][0];
    assert_eq!(result["answered"], false, "{told}");
    assert_eq!(result["earlier"]["answer"], "no, too broad", "{told}");
    assert_eq!(result["earlier"]["answeredBy"], "operator", "{told}");
    let unknown = json!({ "id": "none", "answer": "allow" });
    let told = call(&mut client, "answer_question", unknown).await;
    let result = &told["result"]["structuredContent"]["results"][0];
    assert!(result["error"].as_str().unwrap().contains("no task asks the question"), "{told}");
    let wrong = call(&mut client, "answer_question", json!({ "answer": "allow" })).await;
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");
}

#[tokio::test(start_paused = true)]
async fn program_of_agent_has_no_question_tools() {
    let stand = TestDispatcher::new().await;
    let mut client = operator(&stand).await;
    let (task, id) = asked(&mut client).await;
    let agent = AgentId::parse("claude-code").unwrap();
    let task = TaskId::new(task.as_str().unwrap());
    let caller = Principal::AgentTask { agent, task };
    // It has forms, which change nothing.
    let mut program = begun(&stand, caller.clone(), json!({ "elicitation": {} })).await;
    let listed = program.ask("tools/list", json!({})).await["result"]["tools"].clone();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.iter().any(|name| **name == "list_topics"), "{names:?}");
    assert!(!names.iter().any(|name| TOOLS.iter().any(|tool| **name == **tool)), "{names:?}");
    for (tool, arguments) in [
        ("list_questions", json!({})),
        ("answer_question", json!({ "id": id, "answer": "allow" })),
        ("answer_question", json!({ "ids": [id], "answer": "deny" })),
        ("postpone_question", json!({ "id": id, "for_seconds": 60 })),
        // Wrong arguments tell no more.
        ("answer_question", json!({ "id": 5 })),
        ("list_questions", json!({ "kind": "x" })),
    ] {
        let told = call(&mut program, tool, arguments.clone()).await;
        assert_eq!(told["error"]["code"], -32602, "{tool} {arguments}: {told}");
        let why = told["error"]["message"].as_str().unwrap();
        assert!(why.starts_with(&format!("no tool is called `{tool}`")), "{why}");
    }
    let list = Operation::Question(QuestionRequest::History { limit: 1, before: None });
    let refused = stand.dispatcher.ask(&caller, list).await.err().map(|why| why.kind);
    assert_eq!(refused, Some(ErrorKind::PermissionDenied), "the gate refuses it as well");
    assert_eq!(open(&mut client).await, 1, "nothing was answered");
}

/// Fills in the form that a call shows, and returns the form and the result of the call.
async fn filled(client: &mut TestConnection, id: u64, result: Value) -> (Value, Value) {
    let form = client.until_method("elicitation/create").await.pop().unwrap();
    let line = json!({ "jsonrpc": "2.0", "id": form["id"], "result": result });
    client.say(&line.to_string()).await;
    let told = client.until(id).await.pop().unwrap();
    (form["params"].clone(), told["result"].clone())
}

#[tokio::test(start_paused = true)]
async fn permission_counts_only_as_user_confirms() {
    let stand = TestDispatcher::new().await;
    let mut plain = operator(&stand).await;
    let mut client = begun(&stand, Principal::Operator, json!({ "elicitation": {} })).await;
    let accepted =
        |decision: &str| json!({ "action": "accept", "content": { "decision": decision } });
    for by_task in [false, true] {
        let (task, id) = asked(&mut plain).await;
        let allow = if by_task {
            json!({ "name": "answer_task", "arguments": { "task_id": task, "message": "allow" } })
        } else {
            json!({ "name": "answer_question", "arguments": { "id": id, "answer": "allow" } })
        };
        let call = client.begin("tools/call", allow.clone()).await;
        let (form, told) = filled(&mut client, call, json!({ "action": "cancel" })).await;
        let message = form["message"].as_str().unwrap();
        assert!(message.starts_with("The agent `claude-code` asks: may I?"), "{message}");
        assert!(message.contains("Your answer `allow`"), "{message}");
        assert_eq!(told["isError"], true, "{told}");
        assert_eq!(open(&mut client).await, 1, "it stays open");

        let call = client.begin("tools/call", allow).await;
        let (_, told) = filled(&mut client, call, accepted("deny")).await;
        assert_eq!(told["isError"], false, "{told}");
        assert_eq!(latest_answer(&stand).await.as_deref(), Some("deny"), "{told}");
        assert_eq!(open(&mut client).await, 0);
    }
    let (_, id) = asked(&mut plain).await;
    let allow = json!({ "name": "answer_question", "arguments": { "id": id, "answer": "allow" } });
    let call = client.begin("tools/call", allow).await;
    let (_, told) = filled(&mut client, call, accepted("allow")).await;
    assert_eq!(told["structuredContent"]["results"][0]["answered"], true, "{told}");
    assert_eq!(latest_answer(&stand).await.as_deref(), Some("allow"));
    // A denial is sent as it is, and so is the answer to a question that is no permission.
    let (_, id) = asked(&mut plain).await;
    let told = self::call(&mut client, "answer_question", json!({ "id": id, "answer": "deny" }));
    let told = told.await;
    assert_eq!(told["result"]["structuredContent"]["results"][0]["answered"], true, "{told}");
    let input = self::call(&mut plain, "claude-code", json!({ "message": "ask" })).await;
    let id = &input["result"]["structuredContent"]["question"]["id"];
    let told = self::call(&mut client, "answer_question", json!({ "id": id, "answer": "blue" }));
    assert_eq!(told.await["result"]["structuredContent"]["results"][0]["answered"], true);
}

#[tokio::test(start_paused = true)]
async fn confirmation_of_2026_repeats_call() {
    let stand = TestDispatcher::new().await;
    let mut plain = operator(&stand).await;
    let (_, id) = asked(&mut plain).await;
    let (_, other) = asked(&mut plain).await;
    let mut client = TestConnection::silent_mcp(&stand);
    let of = |ids: Value, state: &Value, filled: Value| {
        let mut params =
            json!({ "name": "answer_question", "arguments": { "ids": ids, "answer": "allow" } });
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
        });
        if !state.is_null() {
            params["requestState"] = state.clone();
            params["inputResponses"] = json!({ "answer": filled });
        }
        params
    };
    let accepted = || json!({ "action": "accept", "content": { "decision": "allow" } });
    let first = client.ask("tools/call", of(json!([id]), &json!(null), json!(null))).await;
    let first = &first["result"];
    assert_eq!(first["resultType"], "input_required", "{first}");
    let form = &first["inputRequests"]["answer"]["params"]["message"];
    assert!(form.as_str().unwrap().contains("may I?"), "{first}");
    let state = first["requestState"].clone();

    // The form has shown one question only.
    let both = of(json!([id, other]), &state, accepted());
    let told = client.ask("tools/call", both).await;
    assert_eq!(told["result"]["resultType"], "input_required", "{told}");
    let cancelled = of(json!([id]), &state, json!({ "action": "cancel" }));
    let told = client.ask("tools/call", cancelled).await;
    assert_eq!(told["result"]["isError"], true, "{told}");
    let odd = of(json!([id]), &json!("odd"), accepted());
    let told = client.ask("tools/call", odd).await;
    assert_eq!(told["result"]["isError"], true, "{told}");
    assert_eq!(open(&mut plain).await, 2, "nothing was answered");

    let told = client.ask("tools/call", of(json!([id]), &state, accepted())).await;
    let results = &told["result"]["structuredContent"]["results"];
    assert_eq!(results[0]["answered"], true, "{told}");
    assert_eq!(open(&mut plain).await, 1);
}
