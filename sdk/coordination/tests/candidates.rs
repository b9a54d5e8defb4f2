//! Steps with several agents, worktrees and `pick`: who works where, and which candidate is taken.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use a2a_hub_coordination::flow::{
    ChildChanges, ChildEnd, ChildWorktree, Definition, Finish, FlowAction, FlowEvent, FlowState, Id,
};
use serde_json::json;

const BEST: &str = r#"
description = "Lets three agents try, and picks the best"

[input]
task = { type = "string" }

[[step]]
id = "try"
agents = ["a", "b", "b"]
worktree = "new"
permissions = "edit"
allow_failures = 2
prompt = "{{ input.task }} ({{ item }}, {{ index }})"

[[step]]
id = "judge"
needs = ["try"]
run = ["cargo", "test"]
worktree = "try"
on_exit = { nonzero = "continue" }

[[step]]
id = "best"
needs = ["judge"]
pick = { from = "try", judges = ["judge"], tie = "ask" }
"#;

/// Run of a flow, with the calls and questions that are open.
struct Run {
    state: FlowState,
    calls: Vec<(Id, String, String, Option<ChildWorktree>)>,
    questions: Vec<(Id, String)>,
    finish: Option<Finish>,
}

fn begin(text: &str) -> Run {
    let definition = Definition::parse(text).unwrap_or_else(|why| panic!("{why:#?}"));
    let state = FlowState::new(definition, json!({ "task": "sort" }), "task-1");
    let mut run = Run { state, calls: Vec::new(), questions: Vec::new(), finish: None };
    run.step(FlowEvent::Begun);
    run
}

impl Run {
    fn step(&mut self, event: FlowEvent) {
        for action in self.state.step(event) {
            match action {
                FlowAction::Call { id, agent, text, worktree, .. } => {
                    self.calls.push((id, agent, text, worktree));
                }
                FlowAction::Ask { id, text } => self.questions.push((id, text)),
                FlowAction::Cancel(id) => self.calls.retain(|(other, ..)| *other != id),
                FlowAction::Finish(finish) => self.finish = Some(finish),
                FlowAction::Wait { .. } | FlowAction::Say(_) | FlowAction::Send { .. } => {}
            }
        }
    }

    /// Ends the open call of this item.
    fn end(&mut self, item: usize, end: ChildEnd) -> Id {
        let at = self.calls.iter().position(|(id, ..)| id.item == item);
        let (id, ..) = self.calls.remove(at.unwrap_or_else(|| panic!("{item}: {:?}", self.calls)));
        self.step(FlowEvent::Ended(id, end));
        id
    }

    /// Ends the three open calls of the judge with exit code 0.
    fn pass_all(&mut self) {
        for item in 0..3 {
            self.end(item, exit(0));
        }
    }

    fn finish(&self) -> &Finish {
        self.finish.as_ref().unwrap()
    }
}

fn changed(lines: u64) -> ChildEnd {
    let changes = ChildChanges { files: 1, insertions: lines, deletions: 0, diff: "+".into() };
    ChildEnd { worktree: Some(changes), ..done(&format!("{lines} lines")) }
}

fn done(text: &str) -> ChildEnd {
    ChildEnd { completed: true, text: text.to_owned(), ..ChildEnd::default() }
}

fn exit(code: i32) -> ChildEnd {
    ChildEnd { data: Some(json!({ "exit": code })), ..done("") }
}

fn failed(text: &str) -> ChildEnd {
    ChildEnd { text: text.to_owned(), reason: "agent_error".to_owned(), ..ChildEnd::default() }
}

#[test]
fn smallest_change_that_passes_is_picked() {
    let mut run = begin(BEST);
    let agents: Vec<_> = run.calls.iter().map(|(_, agent, ..)| agent.as_str()).collect();
    assert_eq!(agents, ["a", "b", "b"]);
    let second = &run.calls[1].2;
    assert!(second.contains('b') && second.contains('1'), "{second}");
    assert!(run.calls.iter().all(|(.., worktree)| *worktree == Some(ChildWorktree::New)));
    run.end(0, changed(3));
    let second = run.end(1, ChildEnd { cost_usd: Some(0.25), ..changed(9) });
    let third = run.end(2, changed(20));
    let places: Vec<_> = run.calls.iter().map(|(.., worktree)| *worktree).collect();
    assert!(places.contains(&Some(ChildWorktree::Of(second))), "{places:?}");
    assert!(places.contains(&Some(ChildWorktree::Of(third))), "{places:?}");
    run.end(0, ChildEnd { text: "1 of 9\n`x` failed\n\n".into(), ..exit(101) });
    run.end(1, exit(0));
    run.end(2, exit(0));
    let finish = run.finish();
    assert!(finish.completed, "{finish:?}");
    assert_eq!(finish.worktree, Some(second));
    assert_eq!(finish.output, None, "the result is the worktree");
    let report = "Picked: 2 b (+9 -0, $0.25)\n\n- 1 a (+3 -0): `judge` exited with 101: `1 of 9 / 'x' failed`\n\
        - 3 b (+20 -0): passed, larger\n";
    assert!(finish.text.starts_with(report), "{}", finish.text);
}

#[test]
fn failed_and_idle_candidates_do_not_count() {
    let mut run = begin(BEST);
    run.end(0, failed("no tokens left"));
    run.end(1, done("nothing to do"));
    run.end(2, changed(5));
    let judged: Vec<_> = run.calls.iter().map(|(id, ..)| id.item).collect();
    assert_eq!(judged, [1, 2], "a failed candidate has no result to judge");
    run.end(1, exit(0));
    run.end(2, exit(1));
    let finish = run.finish();
    assert_eq!((finish.completed, finish.reason.as_str()), (false, "no_candidate"));
    let judged = "3 b (+5 -0): `judge` exited with 1";
    for why in ["1 a: no tokens left", "2 b: it changed nothing", judged] {
        assert!(finish.text.contains(why), "{why}: {}", finish.text);
    }
}

#[test]
fn outcome_of_pick_is_output_of_step() {
    let text = format!(
        "{BEST}[[step]]\nid = \"tell\"\nneeds = [\"best\"]\nagent = \"c\"\nprompt = \"{{{{ steps.best.output }}}}\"\n"
    );
    let mut run = begin(&text);
    (0..3).for_each(|item| assert_eq!(run.end(item, changed(5 - item as u64)).item, item));
    run.end(0, exit(0));
    run.end(1, exit(0));
    run.end(2, exit(1));
    let told = &run.calls[0].2;
    for part in ["\"index\": 1", "\"agent\": \"b\"", "`judge` exited with 1", "\"lines\": 4"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn client_decides_tie_by_number() {
    let mut run = begin(BEST);
    let ends: Vec<_> = (0..3).map(|item| run.end(item, changed(4 + item as u64 / 2))).collect();
    run.pass_all();
    let (id, text) = run.questions.pop().unwrap();
    assert!(text.contains("1 a (+4 -0) / 2 b (+4 -0)") && !text.contains("3 b"), "{text}");
    run.step(FlowEvent::Answered(id, "3".to_owned()));
    let (id, _) = run.questions.pop().unwrap();
    assert!(run.finish.is_none(), "the third one is no best candidate");
    run.step(FlowEvent::Answered(id, " 2 ".to_owned()));
    assert_eq!(run.finish().worktree, Some(ends[1]));
}

#[test]
fn first_of_tied_candidates_is_named() {
    let mut run = begin(&BEST.replace("tie = \"ask\"", "tie = \"first\""));
    (0..3).for_each(|item| assert_eq!(run.end(item, changed(4)).item, item));
    run.pass_all();
    let text = &run.finish().text;
    let picked = "Picked: 1 a (+4 -0), the first of 3 that passed with the same size\n";
    assert!(text.starts_with(picked) && text.contains("3 b (+4 -0): passed, same size"), "{text}");
}

#[test]
fn unlisted_flow_needs_no_list() {
    let definition = |text: &str| Definition::parse(text);
    let unlisted = BEST.replacen("[input]", "listed = false\n[input]", 1);
    assert!(definition(&unlisted).unwrap().needs().unlisted);
    assert!(!definition(BEST).unwrap().needs().unlisted);
    let wrong = definition(&unlisted.replace("false", "\"no\"")).unwrap_err();
    assert!(wrong[0].to_string().contains("`listed` is true or false"), "{wrong:?}");
}

#[test]
fn client_decides_among_all_that_pass() {
    let text = BEST.replace("tie = \"ask\"", "by = \"ask\"");
    let mut run = begin(&text);
    let ends: Vec<_> = (0..3).map(|item| run.end(item, changed(4 + item as u64))).collect();
    run.pass_all();
    let (id, text) = run.questions.pop().unwrap();
    assert!(text.contains("1 a (+4 -0) / 2 b (+5 -0) / 3 b (+6 -0)"), "{text}");
    run.step(FlowEvent::Answered(id, "3 B".to_owned()));
    assert_eq!(run.finish().worktree, Some(ends[2]));
}

#[test]
fn retried_candidate_is_judged_in_last_worktree() {
    let text = BEST.replace("allow_failures = 2", "retry = { times = 1 }");
    let mut run = begin(&text);
    run.end(0, failed("gone"));
    let again = run.end(0, changed(1));
    assert_eq!(again.attempt, 2);
    run.end(1, changed(2));
    run.end(2, changed(3));
    assert!(run.calls.iter().any(|(.., it)| *it == Some(ChildWorktree::Of(again))));
    run.pass_all();
    assert_eq!(run.finish().worktree, Some(again));
}

#[test]
fn only_worktree_has_result_of_flow() {
    let text = "description = \"d\"\n[[step]]\nid = \"write\"\nagent = \"a\"\nprompt = \"p\"\nworktree = \"new\"\n\
        [[step]]\nid = \"look\"\nneeds = [\"write\"]\nagent = \"b\"\nworktree = \"write\"\n\
        prompt = \"{{ steps.write.worktree.diff }} {{ steps.write.worktree.files }}\"\n";
    let mut run = begin(text);
    let write = run.end(0, changed(1));
    let (_, _, prompt, place) = &run.calls[0];
    assert_eq!(*place, Some(ChildWorktree::Of(write)));
    assert!(prompt.contains('+') && prompt.contains('1'), "{prompt}");
    run.end(0, done("fine"));
    assert_eq!(run.finish().worktree, Some(write));
    let whole = text.replacen("[[step]]", "[worktree]\nbase = \"main\"\n[[step]]", 1);
    let definition = Definition::parse(&whole).unwrap();
    assert_eq!(definition.needs().worktree.as_deref(), Some("main"));
}

#[test]
fn simulation_counts_changed_lines() {
    let definition = Definition::parse(BEST).unwrap();
    let fakes = "[input]\ntask = \"x\"\n[answers]\n\
        try = [{ text = \"one\", lines = 3 }, { failed = \"agent_error\" }, { text = \"three\", lines = 2 }]\n\
        judge = [{ exit = 1 }, { exit = 0 }]\n\
        [expect]\nsteps = [\"try\", \"judge\"]\ntext = \"Picked: 3 b\"\n";
    let simulation = definition.simulate(fakes).unwrap();
    assert_eq!(simulation.failures, Vec::<String>::new(), "{:#?}", simulation.transitions);
}

#[test]
fn texts_of_several_agents_are_no_output() {
    let text =
        "description = \"d\"\n[[step]]\nid = \"all\"\nagents = [\"a\", \"b\"]\nprompt = \"p\"\n";
    let mut run = begin(text);
    run.end(0, done("one"));
    run.end(1, done("two"));
    assert_eq!((run.finish().text.as_str(), &run.finish().output), ("one\ntwo", &None));
    let mut run = begin(text);
    run.end(0, done("one"));
    run.end(1, ChildEnd { data: Some(json!({ "x": 1 })), ..done("two") });
    assert_eq!(run.finish().output, Some(json!([null, { "x": 1 }])));
}

#[test]
fn thousand_agents_work_64_at_once() {
    let agents = vec!["\"a\""; 1_000].join(", ");
    let text = format!(
        "description = \"x\"\n[[step]]\nid = \"all\"\nagents = [{agents}]\nprompt = \"hi\"\n"
    );
    let mut run = begin(&text);
    assert_eq!(run.calls.len(), 64);
    for ended in 0..1_000 {
        assert!(run.calls.len() <= 64, "{}", run.calls.len());
        run.end(ended, done("heard"));
    }
    assert_eq!(run.finish().text.lines().count(), 1_000);
}

#[test]
fn wrong_keys_are_refused_with_way_out() {
    let wrong = [
        (("[\"a\", \"b\", \"b\"]", "[\"a\"]"), "`agents` is a list of 2 to 1000 agents"),
        (("[\"a\", \"b\", \"b\"]", "[\"a\", \"script\"]"), "works for `run` only"),
        (("\"new\"", "\"trial\""), "there is no step `trial`"),
        (("worktree = \"try\"", "worktree = \"best\""), "may not be over by then"),
        (("worktree = \"new\"\n", ""), "has no worktree; give it one"),
        (("judges = [\"judge\"]", "judges = [\"try\"]"), "has no `run` with `worktree = \"try\"`"),
        (("judges = [\"judge\"]", "judges = [\"jugde\"]"), "did you mean `judge`?"),
        (("from = \"try\"", "from = \"judge\""), "has no candidates"),
        (("from = \"try\", ", ""), "`pick` has a `from`"),
        (("tie = \"ask\"", "tie = \"coin\""), "`tie` is one of first, ask"),
        (("worktree = \"try\"", "worktree = \"try\"\nfor_each = \"[1]\""), "is done once in each"),
        (
            ("agents = [\"a\", \"b\", \"b\"]", "agents = [\"a\", \"b\"]\nfor_each = \"[1]\""),
            "`for_each` is a key of a step without `agents`",
        ),
        (("pick = {", "worktree = \"try\"\npick = {"), "a key of a step that calls an agent"),
        (("[input]", "[worktree]\nbase = \"--upload-pack=x\"\n[input]"), "`base` is a branch"),
    ];
    for ((from, to), want) in wrong {
        let text = BEST.replacen(from, to, 1);
        let problems = Definition::parse(&text).expect_err(want);
        let found: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|problem| problem.contains(want)), "{want}: {found:?}");
    }
}
