//! Snapshot of the words of `core` that clients and operators read in answers and logs: a change
//! breaks a program that depends on them.

use crate::{failure_reason::FailureReason, grant::permissions::Permissions, task::metadata};
use a2a_hub_protocol::scheduled::{SCHEDULE, TRIGGER};
use std::fmt::Write as _;

#[test]
fn public_words_are_stable() {
    let mut out = String::new();
    for reason in FailureReason::ALL {
        writeln!(out, "reason {}", reason.name()).unwrap();
    }
    for permissions in Permissions::ALL {
        writeln!(out, "permissions {}", permissions.word()).unwrap();
    }
    let of_tasks = [
        metadata::QUEUED,
        metadata::REASON,
        metadata::RECOVERY,
        metadata::PENDING_MESSAGES,
        metadata::RECEIVED,
        metadata::GRANTED_PERMISSIONS,
        metadata::REACHABLE_AGENTS,
        metadata::CARD_SCOPES,
        metadata::FLOW_FILE,
        SCHEDULE,
        TRIGGER,
        metadata::WORKTREE,
        metadata::HANDOFF,
        metadata::HANDOFF_FROM,
        metadata::WAITS_UNTIL,
        metadata::QUOTA_WAITS,
        metadata::QUOTA_RESETS_AT,
    ];
    for name in of_tasks {
        writeln!(out, "task {name}").unwrap();
    }
    insta::assert_snapshot!("words", out);
}
