//! Attempts to get more from standing permissions than people gave, by class.
//!
//! The rules of [`rules`] are in force. Each attempt is a request of a program, with the outcome:
//! the hub allows it, denies it, or asks people.
#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it as the test itself would")]

mod scripts;

use scripts::{RUNNERS, SCRIPTS};

use a2a_hub_core::permission::request::read;
use a2a_hub_core::permission::rules::{RuleSubject, RuleVerdict, check, decide, patterns};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_protocol::permission::{
    Action, ActionPattern, PermissionRequest, PermissionRule, RuleEffect,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum AttemptOutcome {
    Allowed,
    Denied,
    /// People are asked.
    People,
}
use AttemptOutcome::{Allowed, Denied, People};

fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

fn run_of(words: &str, directory: &str) -> ActionPattern {
    let words = words.split('|').map(str::to_owned).collect();
    ActionPattern::Run { words, directory: directory.to_owned() }
}

fn edit_of(path: &str) -> ActionPattern {
    ActionPattern::Edit { path: path.to_owned() }
}

fn read_of(path: &str) -> ActionPattern {
    ActionPattern::Read { path: path.to_owned() }
}

/// Rule for Claude in the repository `/repo`, in tasks of the operator.
fn allow(id: &str, pattern: ActionPattern) -> PermissionRule {
    PermissionRule {
        id: id.to_owned(),
        effect: RuleEffect::Allow,
        pattern,
        text: None,
        agent: Some(agent("coder")),
        through: Vec::new(),
        vendor: Some("claude".to_owned()),
        outside_sandbox: false,
        repository: Some("/repo".to_owned()),
        principal: Some("operator".to_owned()),
        trusts_workspace: false,
        created_at: "2026-01-01T00:00:00Z".to_owned(),
        created_by: "operator".to_owned(),
        expires_at: Some("2026-12-31T00:00:00Z".to_owned()),
        from_question: None,
    }
}

/// Rule that denies for every agent, program, repository and principal.
fn deny(id: &str, effect: RuleEffect, pattern: ActionPattern) -> PermissionRule {
    PermissionRule {
        effect,
        text: Some("use another way".to_owned()),
        agent: None,
        vendor: None,
        repository: None,
        principal: None,
        expires_at: None,
        ..allow(id, pattern)
    }
}

fn trusting(rule: PermissionRule) -> PermissionRule {
    PermissionRule { trusts_workspace: true, ..rule }
}

/// Rules in force.
fn rules() -> Vec<PermissionRule> {
    vec![
        trusting(allow("test", run_of("cargo|test", ""))),
        trusting(allow("lint", run_of("npm|run|lint", "web"))),
        allow("list", run_of("ls|**", "**")),
        allow("word", run_of("wc|-l|*", "")),
        allow("echo", run_of("echo|**", "**")),
        allow("absolute", run_of("/usr/bin/id", "")),
        allow("source", edit_of("src/**")),
        allow("docs", read_of("docs/*.md")),
        allow("hosts", read_of("/etc/hosts")),
        deny("push", RuleEffect::Never, run_of("git|push|**", "**")),
        deny("remove", RuleEffect::Deny, run_of("rm|-rf|**", "**")),
        deny("locks", RuleEffect::Deny, edit_of("src/*.lock")),
        deny("secrets", RuleEffect::Never, read_of("docs/secret.md")),
        deny("passwords", RuleEffect::Never, read_of("/etc/shadow")),
    ]
}

fn is_sensitive(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(name, ".env" | "build.rs" | "Makefile" | "package.json")
        || path.split('/').any(|component| component == ".github")
}

/// Facts of a task of the operator in a worktree.
fn facts<'a>(request: &'a PermissionRequest, agent: &'a AgentId) -> RuleSubject<'a> {
    RuleSubject {
        request,
        agent,
        through: &[],
        root: "/trees/1",
        repository: "/repo",
        principal: Some("operator"),
        confined: false,
        is_sensitive: &is_sensitive,
        now: "2026-06-01T00:00:00Z",
    }
}

fn verdict(rules: &[PermissionRule], asked: &RuleSubject<'_>) -> AttemptOutcome {
    match decide(rules, asked) {
        Some(RuleVerdict::Allowed(rules)) => {
            assert!(!rules.is_empty());
            Allowed
        }
        Some(RuleVerdict::Denied(_)) => Denied,
        None => People,
    }
}

/// Verdict on a request of a program, under the rules in force.
fn judged(request: &Value) -> AttemptOutcome {
    let request = read(request);
    verdict(&rules(), &facts(&request, &agent("coder")))
}

fn bash(script: &str) -> Value {
    bash_in(script, "/trees/1")
}

fn bash_in(script: &str, directory: &str) -> Value {
    json!({ "vendor": "claude", "directory": directory, "request": {
        "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": script },
    } })
}

fn claude_file(tool: &str, path: &str) -> Value {
    json!({ "vendor": "claude", "directory": "/trees/1", "request": {
        "subtype": "can_use_tool", "tool_name": tool, "input": { "file_path": path },
    } })
}

fn codex(command: &str) -> Value {
    json!({ "vendor": "codex", "method": "item/commandExecution/requestApproval",
        "request": { "command": command, "cwd": "/trees/1" } })
}

const DIRECTORIES: &[(&str, &str, AttemptOutcome)] = &[
    ("cargo test", "/trees/1", Allowed),
    ("cargo test", "/trees/1/", Allowed),
    ("cargo test", "/trees/1/sub", People),
    ("cargo test", "/trees/10", People),
    ("cargo test", "/trees", People),
    ("cargo test", "/repo", People),
    ("cargo test", "/trees/1/../2", People),
    ("cargo test", "/trees/1/.", People),
    ("cargo test", "trees/1", People),
    ("cargo test", "", People),
    ("npm run lint", "/trees/1/web", Allowed),
    ("npm run lint", "/trees/1", People),
    ("ls", "/trees/1/a/b", Allowed),
    ("ls", "/", People),
    ("git push", "/elsewhere", Denied),
];

#[test]
fn directories_are_relative_to_checkout() {
    for (script, directory, expected) in DIRECTORIES {
        assert_eq!(judged(&bash_in(script, directory)), *expected, "{script} in {directory}");
    }
    let mut unknown = bash("cargo test");
    unknown["directory"].take();
    assert_eq!(judged(&unknown), People);
}

const FILES: &[(&str, &str, AttemptOutcome)] = &[
    ("Write", "/trees/1/src/a.rs", Allowed),
    ("Edit", "/trees/1/src/a/b.rs", Allowed),
    ("MultiEdit", "/trees/1/src/a.rs", Allowed),
    ("Write", "/trees/1/src", People),
    ("Write", "/trees/1/src/", People),
    ("Write", "/trees/1/a.rs", People),
    ("Write", "/trees/1/srcs/a.rs", People),
    ("Write", "/trees/1/src/../a.rs", People),
    ("Write", "/trees/1/src/./a.rs", People),
    ("Write", "/trees/1//src/a.rs", People),
    ("Write", "/trees/1/SRC/a.rs", People),
    ("Write", "/trees/2/src/a.rs", People),
    ("Write", "/repo/src/a.rs", People),
    ("Write", "/src/a.rs", People),
    ("Write", "src/a.rs", People),
    ("Write", "~/src/a.rs", People),
    ("Write", "", People),
    ("Write", "/trees/1/src/a\n.rs", People),
    ("Write", "/trees/1/src/a\u{202e}.rs", People),
    ("Write", "/trees/1/src/a\0.rs", People),
    ("Write", "/trees/1/src/build.rs", People),
    ("Write", "/trees/1/src/.env", People),
    ("Write", "/trees/1/src/.git/config", People),
    ("Write", "/trees/1/src/.GIT/hooks/a", People),
    ("Write", "/trees/1/src/.github/a.yml", People),
    ("Write", "/trees/1/src/*", Allowed),
    ("Write", "/trees/1/src/a.lock", Denied),
    ("Write", "/trees/1/src/A.LOCK", Denied),
    ("Write", "/etc/hosts", People),
    ("Read", "/trees/1/docs/a.md", Allowed),
    ("Read", "/trees/1/docs/a/b.md", People),
    ("Read", "/trees/1/docs/a.txt", People),
    ("Read", "/trees/1/docs/secret.md", Denied),
    ("Read", "/trees/1/docs/Secret.md", Denied),
    ("Read", "/trees/1/src/a.rs", People),
    ("Read", "/etc/hosts", Allowed),
    ("Read", "/etc/hosts/", People),
    ("Read", "/etc/../etc/hosts", People),
    ("Read", "/etc/passwd", People),
    ("Read", "/etc/shadow", Denied),
    // Not defended, confine: a link of this name may lead anywhere when the program follows it.
    ("Write", "/trees/1/src/link/a.rs", Allowed),
];

#[test]
fn files_are_compared_exactly() {
    for (tool, path, expected) in FILES {
        assert_eq!(judged(&claude_file(tool, path)), *expected, "{tool} {path:?}");
    }
}

#[test]
fn all_paths_need_rules() {
    for (paths, expected) in [
        (vec!["/trees/1/src/a"], Allowed),
        (vec!["/trees/1/src/a", "/trees/1/src/b"], Allowed),
        (vec!["/trees/1/src/a", "/trees/1/b"], People),
        (vec!["/trees/1/src/a", "/trees/1/src/b.lock"], Denied),
        (vec!["/trees/1/b", "/trees/1/src/b.lock"], Denied),
        (vec![], People),
    ] {
        let paths: Vec<String> = paths.into_iter().map(str::to_owned).collect();
        let action = Action::Edit { paths: paths.clone() };
        let request =
            PermissionRequest { vendor: "claude".to_owned(), outside_sandbox: false, action };
        let found = verdict(&rules(), &facts(&request, &agent("coder")));
        assert_eq!(found, expected, "{paths:?}");
    }
}

/// Members that widen a request that is allowed without them, or that the hub does not know.
#[test]
fn widening_members_are_asked() {
    let input = |name: &str, value: Value| {
        let mut facts = bash("cargo test");
        facts["request"]["input"][name] = value;
        facts
    };
    let member = |name: &str, value: Value| {
        let mut facts = bash("cargo test");
        facts["request"][name] = value;
        facts
    };
    for (facts, expected) in [
        (input("description", json!("says what it likes")), Allowed),
        (input("timeout", json!(60_000)), Allowed),
        (input("run_in_background", json!(false)), Allowed),
        (input("run_in_background", json!(true)), People),
        (input("run_in_background", json!("false")), People),
        (input("dangerouslyDisableSandbox", json!(true)), People),
        (input("dangerouslyDisableSandbox", json!(null)), Allowed),
        (input("env", json!({ "PATH": "/tmp" })), People),
        (input("cwd", json!("/tmp")), People),
        (input("command", json!(["cargo", "test"])), People),
        (input("command", json!(null)), People),
        (member("blocked_path", json!(null)), Allowed),
        (member("blocked_path", json!("/etc/passwd")), People),
        (member("decision_reason_type", json!("other")), Allowed),
        (member("decision_reason_type", json!("rule")), People),
        (member("decision_reason_type", json!("mode")), People),
        (member("decision_reason_type", json!("safetyCheck")), People),
        (member("decision_reason_type", json!(["other"])), People),
        (member("agent_id", json!("a1")), People),
        (member("permission_suggestions", json!([{ "type": "setMode" }])), Allowed),
        (member("a_new_member", json!(true)), People),
        (member("subtype", json!("hook_callback")), People),
        (member("tool_name", json!("bash")), People),
        (member("tool_name", json!("mcp__shell__Bash")), People),
        (member("tool_name", json!("Monitor")), People),
        (member("input", json!("cargo test")), People),
    ] {
        assert_eq!(judged(&facts), expected, "{facts}");
    }
}

/// A permission for Claude is none for Codex, and one inside of a sandbox none for outside.
#[test]
fn other_programs_need_own_rules() {
    let script = "/bin/bash -lc 'cargo test'";
    let of_codex = |outside_sandbox| {
        let rule = trusting(allow("codex", run_of("cargo|test", "")));
        PermissionRule { vendor: Some("codex".to_owned()), outside_sandbox, ..rule }
    };
    let with = |name: &str, value: Value| {
        let mut facts = codex(script);
        facts["request"][name] = value;
        facts
    };
    let vibe = json!({ "vendor": "vibe", "directory": "/trees/1",
        "request": { "toolCall": { "toolCallId": "1" } },
        "call": { "toolCallId": "1", "kind": "execute", "rawInput": { "command": "cargo test" },
            "_meta": { "tool_name": "bash", "effect_kind": "shell" } } });
    let mut renamed = bash("cargo test");
    renamed["vendor"] = "Claude".into();
    let mut unknown = bash("cargo test");
    unknown["vendor"] = "agy".into();
    let inside = [rules(), vec![of_codex(false)]].concat();
    let outside = [rules(), vec![of_codex(true)]].concat();
    for (facts, rules, expected) in [
        (codex(script), &rules(), People),
        (codex(script), &inside, People),
        (codex(script), &outside, Allowed),
        (codex("/bin/bash -lc 'cargo test; rm a'"), &outside, People),
        (codex("/bin/bash -lc 'cargo test' x"), &outside, People),
        (codex("/tmp/bash -lc 'cargo test'"), &outside, People),
        (codex("cargo test"), &outside, People),
        (with("networkApprovalContext", json!({ "host": "a" })), &outside, People),
        (with("additionalPermissions", json!({})), &outside, People),
        (with("approvalId", json!("1")), &outside, People),
        (with("kind", json!("writeStdin")), &outside, People),
        (with("environmentId", json!("remote")), &outside, People),
        (with("cwd", json!("/")), &outside, People),
        (with("cwd", json!(null)), &outside, People),
        (with("command", json!(null)), &outside, People),
        (with("commandActions", json!([{ "command": "rm a" }])), &outside, Allowed),
        (with("proposedExecpolicyAmendment", json!(["rm"])), &outside, Allowed),
        (vibe, &outside, People),
        (renamed, &outside, People),
        (unknown, &outside, People),
        (bash("cargo test"), &outside, Allowed),
    ] {
        let request = read(&facts);
        let found = verdict(rules, &facts_of(&request));
        assert_eq!(found, expected, "{facts}");
    }
}

fn facts_of(request: &PermissionRequest) -> RuleSubject<'_> {
    static CODER: std::sync::OnceLock<AgentId> = std::sync::OnceLock::new();
    facts(request, CODER.get_or_init(|| agent("coder")))
}

#[test]
fn grantroot_of_codex_is_asked() {
    let rules = [PermissionRule {
        vendor: Some("codex".to_owned()),
        outside_sandbox: true,
        ..allow("codex", edit_of("src/**"))
    }];
    let path = json!(["/trees/1/src/a.rs"]);
    for (paths, member, value, expected) in [
        (path.clone(), "reason", json!("needed"), Allowed),
        (path.clone(), "grantRoot", json!(null), Allowed),
        (path.clone(), "grantRoot", json!("/"), People),
        (json!([]), "reason", json!(null), People),
        (json!(["/trees/1/src/a.rs", "/etc/passwd"]), "reason", json!(null), People),
        (json!(["/trees/1/src/a.rs", 1]), "reason", json!(null), People),
        (json!("/trees/1/src/a.rs"), "reason", json!(null), People),
    ] {
        let facts = json!({ "vendor": "codex", "method": "item/fileChange/requestApproval",
            "request": { member: value }, "paths": paths });
        assert_eq!(verdict(&rules, &facts_of(&read(&facts))), expected, "{facts}");
    }
}

/// The same request in a task of somebody else, by another agent, in another place, or later.
#[test]
fn other_tasks_need_own_rules() {
    let request = read(&bash("cargo test"));
    let same = facts_of(&request);
    let (reviewer, lead) = (agent("reviewer"), [agent("lead")]);
    let with = |change: &dyn Fn(&mut PermissionRule)| {
        let mut rules = rules();
        change(&mut rules[0]);
        verdict(&rules, &same)
    };
    for (asked, expected) in [
        (same, Allowed),
        (RuleSubject { agent: &reviewer, ..same }, People),
        (RuleSubject { through: &lead, ..same }, People),
        (RuleSubject { principal: Some("webhook:github"), ..same }, People),
        (RuleSubject { principal: Some("Operator"), ..same }, People),
        (RuleSubject { principal: None, ..same }, People),
        (RuleSubject { repository: "/other", ..same }, People),
        (RuleSubject { repository: "/repo/", ..same }, People),
        (RuleSubject { root: "/trees/2", ..same }, People),
        (RuleSubject { root: "/", ..same }, People),
        (RuleSubject { root: "", ..same }, People),
        (RuleSubject { now: "2026-12-30T23:59:59.999Z", ..same }, Allowed),
        (RuleSubject { now: "2026-12-31T00:00:00Z", ..same }, People),
        (RuleSubject { now: "2027-01-01T00:00:00Z", ..same }, People),
        (RuleSubject { now: "", ..same }, People),
        (RuleSubject { now: "now", ..same }, People),
    ] {
        assert_eq!(verdict(&rules(), &asked), expected);
    }
    assert_eq!(with(&|rule| rule.agent = None), People);
    assert_eq!(with(&|rule| rule.vendor = None), People);
    assert_eq!(with(&|rule| rule.repository = None), People);
    assert_eq!(with(&|rule| rule.principal = None), People);
    assert_eq!(with(&|rule| rule.through = lead.to_vec()), People);
    assert_eq!(with(&|rule| rule.expires_at = None), Allowed);
    assert_eq!(with(&|rule| rule.expires_at = Some("never".to_owned())), People);
    assert_eq!(with(&|rule| rule.trusts_workspace = false), People);
    assert_eq!(with(&|rule| rule.effect = RuleEffect::Deny), Denied);
}

#[test]
fn request_through_agents_needs_their_rule() {
    let request = read(&bash("cargo test"));
    let path = [agent("lead"), agent("planner")];
    let reversed = [agent("planner"), agent("lead")];
    let rule = trusting(allow("test", run_of("cargo|test", "")));
    let rules = [PermissionRule { through: path.to_vec(), ..rule }];
    for (through, expected) in [
        (&path[..], Allowed),
        (&path[..1], People),
        (&path[1..], People),
        (&[], People),
        (&reversed[..], People),
    ] {
        let asked = RuleSubject { through, ..facts_of(&request) };
        assert_eq!(verdict(&rules, &asked), expected, "{through:?}");
    }
}

/// Facts that no program sends: a component may pose requests that it made up.
#[test]
fn made_up_facts_are_asked() {
    for facts in [
        json!(null),
        json!([]),
        json!("cargo test"),
        json!({}),
        json!({ "vendor": "claude" }),
        json!({ "vendor": 1, "request": {} }),
        json!({ "vendor": "claude", "request": null, "directory": "/trees/1" }),
        json!({ "vendor": "claude", "request": [], "directory": "/trees/1" }),
        json!({ "vendor": "claude", "action": { "kind": "run", "commands": [["cargo", "test"]],
            "directory": "/trees/1" } }),
        json!({ "kind": "run", "commands": [["cargo", "test"]], "directory": "/trees/1" }),
        json!({ "vendor": "codex", "method": null, "request": { "command": "bash -lc ls" } }),
        json!({ "vendor": "gemini", "directory": "/trees/1", "request": { "toolCall": {
            "kind": "execute", "title": "ls", "rawInput": { "command": "ls" } } } }),
        json!({ "vendor": "opencode", "request": { "toolCall": { "toolCallId": "1",
            "kind": "execute", "rawInput": { "command": "ls" } } }, "call": { "toolCallId": "2",
            "kind": "execute", "rawInput": { "command": "ls", "cwd": "/trees/1" } } }),
        json!({ "vendor": "opencode", "request": { "toolCall": { "toolCallId": "1",
            "kind": "execute", "rawInput": { "command": "ls" } } }, "call": { "toolCallId": "1",
            "kind": "execute", "rawInput": { "command": "rm a", "cwd": "/trees/1" } } }),
    ] {
        let request = read(&facts);
        assert!(matches!(request.action, Action::Other { .. }), "{facts}");
        assert_eq!(verdict(&rules(), &facts_of(&request)), People, "{facts}");
    }
}

/// An "always" for a request allows the same request, and its rules pass the check.
#[test]
fn proposed_patterns_allow_their_request() {
    let mut kinds = BTreeSet::new();
    let scripts = SCRIPTS.iter().map(|(script, _)| bash(script));
    let files = FILES.iter().map(|(tool, path, _)| claude_file(tool, path));
    let runners = RUNNERS.iter().map(|(_, script, ..)| bash(script));
    for facts in scripts.chain(files).chain(runners) {
        let request = read(&facts);
        let asked = facts_of(&request);
        let Ok(patterns) = patterns(&asked) else {
            kinds.insert(None);
            continue;
        };
        let rule = |pattern| trusting(allow("always", pattern));
        let rules: Vec<_> = patterns.into_iter().map(rule).collect();
        for rule in &rules {
            assert_eq!(check(rule, false, &is_sensitive), Ok(()), "{facts}");
        }
        let found = verdict(&rules, &asked);
        assert_eq!(found, Allowed, "{facts}");
        kinds.insert(Some(found));
    }
    assert_eq!(kinds, BTreeSet::from([None, Some(Allowed)]));
}

#[test]
fn requests_without_rule_say_why() {
    for (facts, reason) in [
        (bash("ls > a"), "no rule can allow this: `>` has a meaning to shells"),
        (bash("sh -c ls"), "no rule can allow this: `sh` runs a script"),
        (bash("sudo ls"), "no rule can allow this: `sudo` runs another program with other rights"),
        (bash_in("ls", "/tmp"), "no rule can allow this: /tmp is outside of the repository"),
        (
            bash("ls '*'"),
            "no rule can allow this: one of its words is empty, `*` or `**`, which are patterns",
        ),
        (
            claude_file("Write", "/trees/1/.env"),
            "no rule can allow this: .env is a file that programs obey",
        ),
        (
            claude_file("Write", "/etc/hosts"),
            "no rule can allow this: /etc/hosts is outside of the repository",
        ),
    ] {
        assert_eq!(patterns(&facts_of(&read(&facts))), Err(reason.to_owned()), "{facts}");
    }
}
