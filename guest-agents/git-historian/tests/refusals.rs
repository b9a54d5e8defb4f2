//! Tests of refusals by the hub or git, and of the operator's view of them.

use a2a_hub_sdk::testing::{ScriptedHost, task};
use a2a_hub_sdk::{Agent, Failure, HealthStatus, TaskState, serde_json};
use git_historian::GitHistorian;

#[test]
fn foreign_repository_fails_with_fix() {
    let host = ScriptedHost::new();
    let complaint = "fatal: detected dubious ownership in repository at '/srv/repo'\n\
                     To add an exception for this directory, call:\n\n\tgit config …\n";
    host.program("git").stderr(complaint).exit(128);
    let outcome = host.run::<GitHistorian>("what changed?").unwrap();
    assert_eq!(outcome.state(), Some(TaskState::Failed));
    let fix = "sudo git config --system --add safe.directory /srv/repo";
    assert!(outcome.text().contains(fix), "{}", outcome.text());
}

#[test]
fn missing_grant_keeps_hubs_refusal() {
    let host = ScriptedHost::new();
    host.program("git").refused(Failure::Denied("grant `git` first".into()));
    let failure = host.run::<GitHistorian>("what changed?").unwrap_err();
    assert!(matches!(failure, Failure::Denied(text) if text == "grant `git` first"));
}

#[test]
fn cancelled_task_starts_no_more_programs() {
    let host = ScriptedHost::new();
    host.program("git").stdout("false\n\n");
    host.program("git").stdout("0123456789abcdef\n");
    host.program("git").stdout("7\n");
    host.cancel_after(1);
    assert!(matches!(host.run::<GitHistorian>("who works here?"), Err(Failure::Cancelled)));
    assert_eq!((host.said(), host.spawned().len()), (vec!["reading 7 commits …".to_owned()], 3));
}

#[test]
fn commit_limit_is_mentioned_in_answer() {
    let host = ScriptedHost::new();
    host.program("git").stdout("false\n\n");
    host.program("git").stdout("0123456789abcdef\n");
    host.program("git").stdout("5000\n");
    host.program("git").stdout("abcdef0123\0Ada\x001767225600\0\0\0begin\0\0\n1\t0\ta.rs\0");
    host.run::<GitHistorian>("who works here?").unwrap();
    assert_eq!(host.said(), ["reading the newest 5,000 commits …"]);
    let answer = host.artifact("answer").unwrap();
    assert!(
        answer.ends_with("> Only the newest 5,000 commits were read; ask about a shorter time."),
        "{answer}"
    );
}

#[test]
fn git_runs_in_task_or_default_directory() {
    let host = ScriptedHost::new();
    let mut work = task("help");
    work.working_directory = Some("/srv/repo".into());
    for work in [work, task("help")] {
        host.program("git").stderr("fatal: not a git repository").exit(128);
        GitHistorian::run(&host.context(), &work).unwrap();
    }
    let directories: Vec<_> = host.spawned().into_iter().map(|command| command.cwd).collect();
    assert_eq!(directories, [Some("/srv/repo".to_owned()), None]);
}

#[test]
fn health_reports_git_version() {
    let host = ScriptedHost::new();
    host.program("git").stdout("git version 2.47.3\n");
    let health = host.health::<GitHistorian>();
    assert_eq!((health.status, health.version.as_deref()), (HealthStatus::Healthy, Some("2.47.3")));
    let missing = host.health::<GitHistorian>();
    assert_eq!(missing.status, HealthStatus::Unhealthy);
    assert!(missing.fix.unwrap().contains("grant it to git-historian"));
}

#[test]
fn every_skill_has_examples() {
    let card: serde_json::Value = serde_json::from_str(&GitHistorian::card().to_json()).unwrap();
    let skills = card["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 5);
    assert!(skills.iter().all(|skill| skill["examples"].as_array().is_some_and(|e| !e.is_empty())));
}
