//! Runs flow files: agents that work in steps.
//!
//! The hub gives the text of the flow file as the setting `flow`. Without it, the agent checks,
//! tests or runs the flow file that its message holds. The agent only calls other agents, asks its
//! client and waits; its run is replayed after a restart of the hub.

mod card;
mod driver;
mod origin;
mod problems;
mod record;
mod request;
mod run;

use a2a_hub_coordination::flow::Definition;
use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::serde_json::Value;

use run::{begin, input_of_text, parsed};

/// Setting that holds the text of the flow file.
const DEFINITION: &str = "flow";

/// Runs flow files.
pub struct Flow;

impl Agent for Flow {
    fn card() -> Card {
        match definition_of_card() {
            Some((name, text)) => card::for_flow(&name, &text),
            None => card::of_checker(),
        }
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let Some(text) = ctx.setting(DEFINITION) else { return request::answer(ctx, task) };
        parsed(ctx, &text, |ctx, definition| {
            let is_input = |name: &str| definition.input.iter().any(|(input, _)| input == name);
            if let Some(answer) = record::answer(ctx, task, is_input) {
                return answer;
            }
            let input = input(&definition, task);
            begin(ctx, task, definition, input)
        })
    }
}
export!(Flow, manifest = "../manifest.toml");

/// Name and text of the flow whose card is asked for.
#[cfg(target_arch = "wasm32")]
fn definition_of_card() -> Option<(String, String)> {
    let ctx = Context::imported(false);
    Some((ctx.setting("flow_name")?, ctx.setting(DEFINITION)?))
}

/// Natively, the card is that of the checker.
#[cfg(not(target_arch = "wasm32"))]
fn definition_of_card() -> Option<(String, String)> {
    None
}

/// Input of a task: its data, or its text as the first input that takes one.
fn input(definition: &Definition, task: &Task) -> Result<Value, String> {
    if let Some(data) = task.message.data() {
        return Ok(data);
    }
    input_of_text(definition, &task.text())
}

#[cfg(test)]
mod tests {
    use a2a_hub_sdk::testing::ScriptedHost;
    use a2a_hub_sdk::{TaskState, Update};

    use super::*;

    const FLOW: &str = r#"
description = "Reviews"
[input]
task = { type = "string" }
[[step]]
id = "write"
agent = "writer"
prompt = "{{ input.task }}"
[[step]]
id = "ok"
needs = ["write"]
ask = "Is it right? {{ steps.write.text | data }}"
choices = ["yes", "no"]
[[step]]
id = "review"
needs = ["ok"]
agent = "reviewer"
prompt = "Review {{ steps.write.text | data }}"
output = { verdict = { enum = ["approve"] } }
"#;

    fn finished(text: &str) -> Vec<Update> {
        vec![Update::Finished(Outcome::completed(text))]
    }

    #[test]
    fn steps_call_agents_and_ask() {
        let host = ScriptedHost::new();
        host.setting("flow", FLOW);
        host.agent("writer", finished("roses"));
        host.answer("yes");
        host.agent("reviewer", finished("```json\n{\"verdict\": \"approve\"}\n```"));
        let outcome = host.run::<Flow>("a poem").unwrap();
        assert_eq!(outcome.state(), Some(TaskState::Completed));
        assert!(outcome.text().contains("approve"));
        assert_eq!(
            host.said(),
            [
                "write: writer",
                "write: done: roses",
                "ok: asks",
                "review: reviewer",
                "review: done: verdict approve"
            ]
        );
        assert!(host.artifact("output").is_some());
    }

    #[test]
    fn voters_decide_without_failed_one() {
        const VOTE: &str = "description = \"Votes\"\n[[step]]\nid = \"decide\"\nprompt = \"Well?\"\n\
            vote = { agents = [\"a\", \"b\", \"c\"], rule = { quorum = 2 }, choices = [\"yes\", \"no\"] }\n";
        let ballot = |choice: &str| {
            finished(&json!({ "choice": choice, "confidence": 1, "reason": "so" }).to_string())
        };
        let host = ScriptedHost::new();
        host.setting("flow", VOTE);
        host.agent("a", ballot("yes"));
        host.agent("b", vec![Update::Finished(Outcome::failed("quota", "no tokens left"))]);
        host.agent("c", ballot("yes"));
        let outcome = host.run::<Flow>("").unwrap();
        assert_eq!(outcome.state(), Some(TaskState::Completed));
        assert_eq!(outcome.text(), "decided: yes\nyes (2): a, c\nno ballot of b: no tokens left");
        assert!(host.artifact("output").is_some());
    }

    #[test]
    fn answers_before_due_timer_count() {
        const VOTE: &str = "description = \"Votes\"\n[[step]]\nid = \"decide\"\nprompt = \"Well?\"\ntimeout = \"1ms\"\n\
            vote = { agents = [\"a\", \"b\"], choices = [\"yes\", \"no\"] }\n";
        let host = ScriptedHost::new();
        host.setting("flow", VOTE);
        for agent in ["a", "b"] {
            let works = Update::Event(Event::Status(TaskStatus::new(TaskState::Working, "reads")));
            let ballot = json!({ "choice": "yes", "confidence": 1, "reason": "so" }).to_string();
            // It takes longer than the time limit to read them.
            host.agent(agent, [vec![works; 900], finished(&ballot)].concat());
        }
        assert_eq!(host.run::<Flow>("").unwrap().text(), "decided: yes\nyes (2): a, b");
    }

    #[test]
    fn winner_of_auction_does_work() {
        const AUCTION: &str = "description = \"Bids\"\n[[step]]\nid = \"build\"\nprompt = \"Build it.\"\n\
            auction = { agents = [\"a\", \"b\"], answer_timeout = \"5m\" }\n";
        let bid = |amount: u64| {
            finished(&json!({ "bid": amount, "pass": false, "reason": "so" }).to_string())
        };
        let host = ScriptedHost::new();
        host.setting("flow", AUCTION);
        host.agent("a", bid(20));
        host.agent("b", bid(10));
        host.agent("b", finished("It is built."));
        let outcome = host.run::<Flow>("").unwrap();
        assert_eq!(outcome.text(), "It is built.");
        assert_eq!(host.said(), ["build: a, b bid"]);
        assert!(host.artifact("output").is_some());
    }

    #[test]
    fn agents_share_board_in_rounds() {
        const BOARD: &str = "description = \"Board\"\n[[step]]\nid = \"find\"\nprompt = \"Find it.\"\n\
            blackboard = { agents = [\"a\", \"b\"], answer_timeout = \"5m\" }\n";
        let given = |all: Value| finished(&json!({ "contributions": all }).to_string());
        let host = ScriptedHost::new();
        host.setting("flow", BOARD);
        host.agent("a", given(json!([{ "do": "add", "id": "x", "text": "Find x." }])));
        host.agent("b", given(json!([])));
        host.agent("a", given(json!([])));
        let done = json!([
            { "do": "claim", "id": "x", "version": 1 },
            { "do": "finish", "id": "x", "version": 1, "text": "42" },
        ]);
        host.agent("b", given(done));
        let outcome = host.run::<Flow>("").unwrap();
        assert_eq!(outcome.text(), "1 of 1 items are done: after 2 rounds\n\nx: 42");
        let boards = [
            "find: 0 of 0 items are done, round 1",
            "find: a, b share a board",
            "find: 0 of 1 items are done, round 2",
            "find: 1 of 1 items are done, round 2",
        ];
        assert_eq!(host.said(), boards);
        assert!(host.artifact("output").is_some());
    }

    #[test]
    fn change_in_status_is_answered() {
        const BOARD: &str = "description = \"Board\"\n[[step]]\nid = \"find\"\nprompt = \"Find it.\"\n\
            blackboard = { agents = [\"a\"], rounds = 1, items = [{ id = \"x\", text = \"?\" }] }\n";
        let status = |change: Value| {
            let status = TaskStatus::bare(TaskState::Working);
            let metadata = json!({ "blackboardChange": change });
            Update::Event(Event::Status(status.with_metadata(&metadata)))
        };
        let claim = json!({ "do": "claim", "id": "x", "version": 1 });
        let host = ScriptedHost::new();
        host.setting("flow", BOARD);
        let mut updates = [json!(null), json!([]), json!({ "id": 5 })].map(status).to_vec();
        updates.push(status(json!({ "id": "c1", "number": 1, "contribution": claim })));
        updates.extend(finished("{ \"contributions\": [] }"));
        host.agent("a", updates);
        host.run::<Flow>("").unwrap();
        let facts = host.events().into_iter().filter_map(|event| match event {
            Event::Status(status) => status.metadata,
            Event::Artifact(_) | Event::Other(_) => None,
        });
        let facts: Vec<Value> = facts.map(|facts| serde_json::from_str(&facts).unwrap()).collect();
        let answers: Vec<_> = facts.iter().filter_map(|it| it.get("blackboardAnswers")).collect();
        let [Value::Array(answers)] = answers[..] else { panic!("{facts:?}") };
        assert_eq!((&answers[0]["id"], &answers[0]["item"]["by"]), (&json!("c1"), &json!("a")));
        let is_answer = |it: &Value| it.get("blackboardAnswers").is_some();
        let at = facts.iter().position(is_answer).unwrap();
        let board = &facts[at - 1]["blackboard.find"];
        assert_eq!(board["items"][0]["by"], "a", "the board is reported before the answer");
    }

    #[test]
    fn second_leader_follows_failed_one() {
        const ELECTION: &str = "description = \"Leads\"\n[[step]]\nid = \"build\"\nprompt = \"Build it.\"\n\
            election = { agents = [\"a\", \"b\"], scores = { a = 2, b = 1 }, work_timeout = \"5m\" }\n";
        let host = ScriptedHost::new();
        host.setting("flow", ELECTION);
        host.agent("a", vec![Update::Finished(Outcome::failed("quota", "no tokens left"))]);
        host.agent("b", finished("It is built."));
        let outcome = host.run::<Flow>("").unwrap();
        assert_eq!(outcome.text(), "It is built.");
        let said = ["build: a, b elect a leader", "build: a: no tokens left"];
        assert_eq!(host.said(), said);
    }

    #[test]
    fn failed_child_fails_flow_with_its_reason() {
        let host = ScriptedHost::new();
        host.setting("flow", FLOW);
        let failed = Outcome::failed("quota", "no tokens left");
        host.agent("writer", vec![Update::Finished(failed)]);
        let outcome = host.run::<Flow>("a poem").unwrap();
        assert_eq!(outcome.state(), Some(TaskState::Failed));
        assert_eq!(outcome.text(), "write: writer: no tokens left");
        assert_eq!(outcome.metadata()["reason"], "quota");
    }

    #[test]
    fn message_without_definition_is_checked() {
        let host = ScriptedHost::new();
        let right = host.run::<Flow>(FLOW).unwrap();
        assert_eq!(right.text(), "The flow is right: 3 steps.");
        assert_eq!(right.metadata()["agents"], json!(["writer", "reviewer"]));
        let wrong = FLOW.replace("needs", "neds");
        let told = host.run::<Flow>(&wrong).unwrap();
        assert_eq!(told.state(), Some(TaskState::Failed));
        let first = "line 11, column 1: the step `ok` has no key `neds`; did you mean `needs`?\n";
        assert!(told.text().starts_with(first), "{}", told.text());
    }

    /// Outcome of a request with this JSON data, in a task with this metadata.
    fn request(host: &ScriptedHost, data: &Value, metadata: Option<&Value>) -> Outcome {
        let message = Message::user(vec![Part::data(data)]);
        let metadata = metadata.map(Value::to_string);
        let task = Task { message, metadata, ..a2a_hub_sdk::testing::task("") };
        Flow::run(&host.context(), &task).unwrap()
    }

    #[test]
    fn test_request_compares_expectations() {
        const FAKES: &str = "[input]\ntask = \"a poem\"\n[answers]\nwrite = \"roses\"\nok = \"yes\"\nreview = { output = { verdict = \"approve\" } }\n";
        let host = ScriptedHost::new();
        let data = json!({ "do": "test", "flow": FLOW, "fakes": FAKES });
        let passed = request(&host, &data, None);
        assert!(passed.text().ends_with("\nThe test passed."), "{}", passed.text());
        let fakes = format!("{FAKES}[expect]\nsteps = [\"write\", \"review\"]\n");
        let failed = request(&host, &json!({ "do": "test", "flow": FLOW, "fakes": fakes }), None);
        assert_eq!(failed.metadata()["reason"], "flow_test_failed");
        let why = "- `steps` is `write, ok, review`, and `write, review` was expected";
        assert!(failed.text().ends_with(why), "{}", failed.text());
    }

    #[test]
    fn run_request_of_another_agent_is_rejected() {
        let host = ScriptedHost::new();
        host.agent("writer", finished("roses"));
        host.answer("yes");
        host.agent("reviewer", finished("{\"verdict\": \"approve\"}"));
        let data = json!({ "do": "run", "flow": FLOW, "text": "a poem" });
        let outcome = request(&host, &data, None);
        assert_eq!(outcome.state(), Some(TaskState::Completed), "{}", outcome.text());
        let of_agent = json!({ "parentTaskId": "task-of-an-agent" });
        let outcome = request(&host, &data, Some(&of_agent));
        assert_eq!(outcome.state(), Some(TaskState::Rejected));
    }

    const BY_RECORD: &str = "description = \"Votes\"\n[[step]]\nid = \"decide\"\nprompt = \"Well?\"\n\
        vote = { agents = [\"a\", \"b\"], choices = [\"yes\", \"no\"], rule = \"record\" }\n";

    /// Runs the vote of two agents that never agree, as the task with this id.
    fn vote_as(host: &ScriptedHost, id: &str) -> Outcome {
        for (agent, choice) in [("a", "yes"), ("b", "no")] {
            let ballot = json!({ "choice": choice, "confidence": 1, "reason": "so" });
            host.agent(agent, finished(&ballot.to_string()));
        }
        let task = Task { id: id.to_owned(), ..a2a_hub_sdk::testing::task("") };
        Flow::run(&host.context(), &task).unwrap()
    }

    #[test]
    fn confirmed_choices_weigh_later_votes() {
        let host = ScriptedHost::new();
        host.setting("flow", BY_RECORD);
        assert!(vote_as(&host, "1").text().starts_with("tie: "), "nobody has a record");
        let confirm = |choice: &str| json!({ "confirm": { "task": "1", "choice": choice } });
        let confirmed = request(&host, &confirm("no"), None);
        assert_eq!(confirmed.text(), "`no` was right. Right: b. Wrong: a.");
        assert_eq!(vote_as(&host, "2").text(), "decided: no\nyes (0.67): a\nno (1.33): b");
        // The other way round: a later confirmation counts.
        request(&host, &confirm("yes"), None);
        let shown = request(&host, &json!({ "record": true }), None);
        let record = "a: 1 right, 0 wrong, weight 1.33\nb: 0 right, 1 wrong, weight 0.67";
        assert_eq!(shown.text(), record);
    }

    #[test]
    fn wrong_confirmations_say_what_is_right() {
        let host = ScriptedHost::new();
        host.setting("flow", BY_RECORD);
        vote_as(&host, "1");
        let of_agent = json!({ "parentTaskId": "task-of-an-agent" });
        for (data, metadata, why) in [
            (json!({ "task": "1", "choice": "yes" }), Some(&of_agent), "only a client may"),
            (json!({ "task": "1" }), None, "name `task` and `choice`"),
            (json!({ "task": "2", "choice": "yes" }), None, "no ballots of it are kept"),
            (json!({ "task": "1", "choice": "maybe" }), None, "the choices were yes, no"),
            (json!({ "task": "1", "choice": "yes", "step": "x" }), None, "its votes: decide"),
        ] {
            let outcome = request(&host, &json!({ "confirm": data }), metadata);
            assert_eq!(outcome.state(), Some(TaskState::Rejected), "{data}");
            assert!(outcome.text().contains(why), "{}", outcome.text());
        }
        let none = request(&host, &json!({ "record": true }), None);
        assert!(none.text().starts_with("No result counts yet"), "{}", none.text());
    }

    #[test]
    fn oldest_runs_are_forgotten() {
        let host = ScriptedHost::new();
        host.setting("flow", BY_RECORD);
        for run in 0..202 {
            vote_as(&host, &format!("{run:03}"));
        }
        let confirm = |task: &str| {
            let data = json!({ "confirm": { "task": task, "choice": "yes" } });
            request(&host, &data, None).state()
        };
        assert_eq!(confirm("001"), Some(TaskState::Rejected));
        assert_eq!(confirm("002"), Some(TaskState::Completed));
    }
}
