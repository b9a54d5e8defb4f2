//! Long proofs: tests that run for minutes here, of which the whole suite runs a small part.

use clap::ValueEnum;

/// A proof, by the name that one types.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Proof {
    /// 500 kills at random moments lose no event that a client was told of
    Kills,
    /// 200 kills with replayed agents over 5,000 stored tasks: no journal holds an answer of a
    /// starting hub
    Restarts,
    /// 100 kills between requests for permission and their answers: nothing is allowed without a
    /// record
    Permissions,
    /// 200 questions that the web page and a terminal answer at the same moment: each is answered
    /// once
    Page,
    /// Ten minutes of growing task trees: each ends its children first, and no budget is exceeded
    Forest,
    /// 200 kills while flows of all kinds run: each ends by its rules, and does no step twice
    Patterns,
    /// 100 kills while the work of a task is applied: the checkout has all of it, or is as before
    Applies,
    /// 100,000 tasks in the store: a search takes less than 50 ms
    Search,
    /// 200 worktrees with edits by chance: each result is what the checkout gets
    Edits,
}

impl Proof {
    /// Test that carries the proof out.
    pub(crate) fn test(self) -> &'static str {
        match self {
            Self::Kills => "random_kills_lose_no_reported_event",
            Self::Restarts => "journals_never_record_shutdown_refusals",
            Self::Patterns => "killed_hub_does_no_step_twice",
            Self::Permissions => "killed_hub_allows_nothing_without_record",
            Self::Page => "every_story_holds_in_chromium",
            Self::Forest => "every_tree_ends_children_before_parents",
            Self::Applies => "killed_apply_is_whole_or_nothing",
            Self::Edits => "any_edits_arrive_in_clean_checkout",
            Self::Search => "search_of_many_tasks_is_fast",
        }
    }

    /// Environment variable that makes it long, with its value.
    pub(crate) fn length(self) -> (&'static str, &'static str) {
        match self {
            Self::Kills => ("A2A_HUB_FAULTS", "500"),
            Self::Restarts => ("A2A_HUB_RESTARTS", "200"),
            Self::Patterns => ("A2A_HUB_PATTERN_KILLS", "200"),
            Self::Permissions => ("A2A_HUB_PERMISSION_KILLS", "100"),
            Self::Page => ("A2A_HUB_PAGE_ROUNDS", "200"),
            Self::Forest => ("A2A_HUB_FOREST_SECONDS", "600"),
            Self::Applies => ("A2A_HUB_APPLY_KILLS", "100"),
            Self::Edits => ("A2A_HUB_EDIT_ROUNDS", "200"),
            Self::Search => ("A2A_HUB_SEARCH_TASKS", "100000"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    #[test]
    fn each_proof_names_existing_test_and_variable() {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/cli/tests/e2e");
        let files = [
            "lifecycle/faults.rs",
            "lifecycle/restarts.rs",
            "lifecycle/permission_kills.rs",
            "web_page.rs",
            "coordination/forest.rs",
            "coordination/patterns.rs",
            "../../../worktrees/tests/worktrees/apply.rs",
            "../../../worktrees/tests/worktrees/results.rs",
            "../../../store/src/sqlite/search/tests.rs",
        ];
        let text: String =
            files.iter().map(|file| fs::read_to_string(tests.join(file)).unwrap()).collect();
        for proof in Proof::value_variants() {
            assert!(text.contains(&format!("fn {}(", proof.test())), "{proof:?}");
            assert!(text.contains(&format!("\"{}\"", proof.length().0)), "{proof:?}");
        }
    }
}
