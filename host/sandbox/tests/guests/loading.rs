//! Files that are not agents of this contract are refused with a reason.

use crate::stage::{ENGINE, agent, component};
use a2a_hub_protocol::operation::HealthStatus;
use a2a_hub_runtime::{Call, Failure, Limits};
use a2a_hub_sandbox::{LoadError, Plugin, run::guest};
use std::time::Duration;

fn refused(bytes: &[u8]) -> String {
    Plugin::compile(&ENGINE, bytes).expect_err("it is no agent").to_string()
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

#[test]
fn non_component_is_refused() {
    assert_eq!(refused(b""), "it is not WebAssembly");
    assert_eq!(refused(b"#!/bin/sh\n"), "it is not WebAssembly");
    assert!(refused(&wat("(module)")).contains("build it for the target wasm32-wasip2"));
}

#[test]
fn oversized_component_is_refused() {
    let parts = |part: &str, count| {
        let one = "(core instance (instantiate $m))".repeat(count);
        refused(&wat(&format!("(component (core module $m {part}) {one})")))
    };
    for (part, fit, what) in [
        ("(memory 1)", 2, "linear memories"),
        ("(table 1 funcref)", 4, "tables"),
        ("", 64, "core module instances"),
    ] {
        let why = parts(part, fit);
        assert!(why.starts_with("it does not fit the contract"), "{fit} {what}: {why}");
        let why = parts(part, fit + 1);
        assert!(why.starts_with("it needs more than one agent may have"), "{why}");
        assert!(why.contains(&format!("{} ", fit + 1)) && why.contains(what), "{why}");
    }
}

#[test]
fn truncated_component_is_refused() {
    let whole = component("echo");
    for part in [8, 9, 100, whole.len() / 2, whole.len() - 1] {
        let why = refused(&whole[..part]);
        let invalid = why.starts_with("it is not a valid component");
        assert!(invalid || why.contains("does not fit the contract"), "{part} bytes: {why}");
    }
}

#[test]
fn component_of_other_contract_is_refused() {
    let nothing = refused(&wat("(component)"));
    assert!(nothing.starts_with("it does not fit the contract a2a:hub@0.1.0"), "{nothing}");
    assert!(nothing.contains("a2a:hub/agent@0.1.0"), "{nothing}");
    let foreign = refused(&wat(r#"(component (import "other:host/door" (func)))"#));
    assert!(foreign.contains("other:host/door"), "{foreign}");
}

/// An incomplete agent: it exports the interface with only one of its five functions.
#[test]
fn agent_with_missing_functions_is_refused() {
    let why = refused(&wat(r#"(component
          (core module $m (func (export "f") (result i32) i32.const 0) (memory (export "memory") 1))
          (core instance $i (instantiate $m))
          (alias core export $i "f" (core func $f))
          (alias core export $i "memory" (core memory $memory))
          (func $card (result string) (canon lift (core func $f) (memory $memory)))
          (instance $agent (export "card" (func $card)))
          (export "a2a:hub/agent@0.1.0" (instance $agent)))"#));
    assert!(why.starts_with("it does not fit the contract"), "{why}");
}

/// An agent whose five functions all have the type of `card`. A task checks only the type of the
/// function that it calls, so the others are checked before the agent joins.
#[tokio::test]
async fn agent_with_mistyped_functions_does_not_join() {
    let names = ["card", "health", "execute", "stream", "cancel"];
    let exports: String =
        names.iter().map(|name| format!(r#"(export "{name}" (func $card))"#)).collect();
    let agent_of_strings = format!(
        r#"(component
          (core module $m (func (export "f") (result i32) i32.const 0) (memory (export "memory") 1))
          (core instance $i (instantiate $m))
          (alias core export $i "f" (core func $f))
          (alias core export $i "memory" (core memory $memory))
          (func $card (result string) (canon lift (core func $f) (memory $memory)))
          (instance $agent {exports})
          (export "a2a:hub/agent@0.1.0" (instance $agent)))"#
    );
    let plugin = Plugin::compile(&ENGINE, &wat(&agent_of_strings)).unwrap();
    let why = plugin.card(&agent()).await.unwrap_err();
    assert!(matches!(why, LoadError::Silent(_)), "{why}");
}

#[tokio::test]
async fn card_is_read_without_capabilities() {
    let card = Plugin::compile(&ENGINE, &component("git-historian")).unwrap().card(&agent()).await;
    let card = card.unwrap();
    assert!(!card.skills.is_empty());
    assert_eq!(card.name, "git-historian");
}

#[test]
fn manifest_is_read_from_component() {
    let plugin = Plugin::compile(&ENGINE, &component("claude-code")).unwrap();
    assert!(plugin.ask().process.contains_key("claude"));
    assert_eq!(plugin.digest().len(), 64);
    assert!(Plugin::compile(&ENGINE, &component("echo")).unwrap().ask().process.is_empty());
}

#[tokio::test]
async fn missing_program_is_reported_unhealthy() {
    let plugin = Plugin::compile(&ENGINE, &component("git-historian")).unwrap();
    let limits = Limits { cpu: Duration::from_secs(2), ..Limits::default() };
    let report = guest::health(&plugin, Call::bare(agent(), limits)).await.unwrap();
    assert_eq!(report.status, HealthStatus::Unhealthy);
}

#[test]
fn errors_fit_in_a_sentence() {
    let why =
        LoadError::Silent(Failure::Unavailable("it took longer than 2s".to_owned())).to_string();
    assert_eq!(why, "it returned no card: it took longer than 2s");
}
