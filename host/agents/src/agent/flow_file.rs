//! Flow file of an agent, and the rights that the file needs beyond those of every flow.

use a2a_hub_config::{AgentConfig, Permissions};
use a2a_hub_core::{
    grant::{Ask, Grant, argument_patterns::Forms, byte_limit::Allowance, delegate::DelegateTerms},
    text::plain_text::line,
};
use a2a_hub_protocol::card::AgentCard;
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Extension of a card by which the component `flow` states the needs of a file.
const NEEDS: &str = "https://a2a-hub.invalid/extensions/flow-needs";

/// Longest command in a message, in characters.
const MAX_SHOWN: usize = 120;

/// Most commands in a message.
const MAX_LISTED: usize = 5;

/// Flow file of an agent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FlowFile {
    /// Path below the data directory.
    pub file: String,
    /// Content of the file.
    pub text: Arc<str>,
    /// Rights that it needs.
    pub needs: FlowNeeds,
}

/// Rights that a flow needs beyond calls of agents, and its budget.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct FlowNeeds {
    run: Vec<RunNeed>,
    permissions: BTreeMap<String, Permissions>,
    budget: TreeNeed,
    /// True if the flow passes on the memory that its caller passes to it, or keeps a record of its
    /// voters.
    memory: bool,
    /// Commit from which the worktree of each of its tasks starts; none without one.
    worktree: Option<String>,
    /// True if lists of agents leave the flow out.
    unlisted: bool,
}

/// Program with its arguments, and the variables that it gets.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunNeed {
    command: Vec<String>,
    variables: BTreeSet<String>,
}

/// Limits of the tasks below the flow's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TreeNeed {
    depth: Option<u32>,
    tokens: Option<u64>,
    cost_usd: Option<f64>,
}

impl FlowNeeds {
    /// Takes the needs off a card: clients do not see the commands.
    pub(crate) fn extract(card: &mut AgentCard) -> Result<Self, serde_json::Error> {
        let all = card.other.get_mut("capabilities").and_then(|it| it.get_mut("extensions"));
        let Some(all) = all.and_then(Value::as_array_mut) else { return Ok(Self::default()) };
        let Some(at) = all.iter().position(|extension| extension["uri"] == NEEDS) else {
            return Ok(Self::default());
        };
        let needs = all.remove(at).get_mut("params").map(Value::take);
        serde_json::from_value(needs.unwrap_or_default())
    }

    /// True if the operator has to trust the file.
    pub(crate) fn wants_trust(&self) -> bool {
        self.runs_programs() || !self.permissions.is_empty()
    }

    /// True if lists of agents leave the flow out.
    pub(crate) fn is_unlisted(&self) -> bool {
        self.unlisted
    }

    /// True if steps of the flow run programs.
    pub(crate) fn runs_programs(&self) -> bool {
        !self.run.is_empty()
    }

    /// True if a step of the flow runs exactly this command.
    pub(crate) fn runs(&self, command: &[&str]) -> bool {
        self.run.iter().any(|need| need.command == command)
    }

    /// Rights that the operator has to trust, for a message.
    pub(crate) fn summary(&self) -> String {
        let shown = |need: &RunNeed| {
            let command = line(&need.command.join(" "), MAX_SHOWN);
            format!("it runs `{command}`")
        };
        let runs = self.run.iter().map(shown);
        let edits = self.permissions.iter().map(|(agent, permissions)| {
            format!("`{agent}` works with the permissions `{}`", permissions.word())
        });
        let all: Vec<_> = runs.chain(edits).collect();
        let more = all.len().saturating_sub(MAX_LISTED);
        let listed = all.into_iter().take(MAX_LISTED).collect::<Vec<_>>().join(", ");
        if more == 0 { listed } else { format!("{listed}, and {more} more") }
    }

    /// Commit from which the worktree of each of the flow's tasks starts; none without one.
    pub(crate) fn worktree(&self) -> Option<&str> {
        self.worktree.as_deref()
    }

    /// Adds the programs of this flow to the requests of the agent that runs them.
    pub(crate) fn add_to(&self, ask: &mut Ask) {
        for RunNeed { command, variables } in &self.run {
            let Some((program, args)) = command.split_first() else { continue };
            let program_ask = ask.process.entry(program.clone()).or_default();
            let mut forms = program_ask.args.written().to_vec();
            if !forms.contains(&args.to_vec()) {
                forms.push(args.to_vec());
            }
            // Commands beyond the limit of patterns cannot be run; the others can.
            if let Ok(forms) = Forms::try_from(forms) {
                program_ask.args = forms;
            }
            program_ask.set.extend(variables.iter().cloned());
        }
    }

    /// Needs of the agent that runs the flow files in messages of clients: it keeps the record of
    /// their voters.
    pub(crate) fn of_runner() -> Self {
        Self { memory: true, ..Self::default() }
    }

    /// Grant of a flow: calls of all agents, which ask before they act. Those that a trusted file
    /// names have its permissions.
    pub(crate) fn grant(&self) -> Grant {
        let mut grant = Grant::default();
        grant.delegate.allow("*".to_owned());
        for (agent, &permissions) in &self.permissions {
            let terms = DelegateTerms { permissions, ..DelegateTerms::default() };
            grant.delegate.allow_on(agent.clone(), terms);
        }
        if self.memory {
            grant.memory = Allowance::AsAsked;
        }
        grant
    }

    /// Narrows the operator's limits of the tasks below the flow's to the budget of the file.
    pub(crate) fn apply_budget(&self, config: &mut AgentConfig) {
        let TreeNeed { depth, tokens, cost_usd } = self.budget;
        let tree = &mut config.limits.tree;
        tree.depth = lesser(tree.depth, depth);
        tree.tokens = lesser(tree.tokens, tokens);
        tree.cost_usd = lesser(tree.cost_usd, cost_usd);
    }
}

/// The lesser of two limits, of which each may be missing.
fn lesser<T: PartialOrd>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other < one { other } else { one }),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::grant::delegate::Callee;
    use serde_json::json;

    fn needs(value: &Value) -> FlowNeeds {
        let mut card: AgentCard = serde_json::from_value(json!({
            "name": "a", "description": "", "version": "1",
            "capabilities": { "extensions": [{ "uri": "other" }, { "uri": NEEDS, "params": value }] },
        }))
        .unwrap();
        let needs = FlowNeeds::extract(&mut card).unwrap();
        let left = &card.other["capabilities"]["extensions"];
        assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
        needs
    }

    #[test]
    fn needs_leave_card_and_become_exact_grants() {
        let needs = needs(&json!({
            "run": [
                { "command": ["cargo", "test"], "variables": ["A2A_INPUT_TASK"] },
                { "command": ["cargo", "fmt", "--check"], "variables": ["A2A_STEP_A_TEXT"] },
            ],
            "permissions": { "codex": "edit" },
            "budget": { "tokens": 100 },
            "memory": true,
        }));
        assert!(needs.wants_trust() && needs.runs(&["cargo", "test"]));
        assert!(!needs.runs(&["cargo"]) && !needs.runs(&["cargo", "test", "x"]));
        let mut ask = Ask::default();
        needs.add_to(&mut ask);
        needs.add_to(&mut ask);
        let cargo = &ask.process["cargo"];
        assert_eq!(cargo.args.written().len(), 2);
        assert_eq!((cargo.set.len(), cargo.pass.len()), (2, 0));
        let grant = needs.grant();
        assert_eq!(grant.memory, Allowance::AsAsked);
        assert!(FlowNeeds::default().grant().memory.is_none());
        assert_eq!(
            grant.delegate.terms(&Callee::parse("codex").unwrap()).unwrap().permissions,
            Permissions::Edit
        );
        assert_eq!(
            grant.delegate.terms(&Callee::parse("gemini").unwrap()).unwrap().permissions,
            Permissions::Ask
        );
        let mut config = AgentConfig::default();
        config.limits.tree.tokens = Some(50);
        needs.apply_budget(&mut config);
        assert_eq!(config.limits.tree.tokens, Some(50));
        config.limits.tree.tokens = None;
        needs.apply_budget(&mut config);
        assert_eq!(config.limits.tree.tokens, Some(100));
        let told = needs.summary();
        assert_eq!(
            told,
            "it runs `cargo test`, it runs `cargo fmt --check`, `codex` works with the permissions `edit`"
        );
    }

    #[test]
    fn unknown_need_is_refused() {
        let mut card: AgentCard = serde_json::from_value(json!({
            "name": "a", "description": "", "version": "1",
            "capabilities": { "extensions": [{ "uri": NEEDS, "params": { "root": true } }] },
        }))
        .unwrap();
        assert!(FlowNeeds::extract(&mut card).is_err());
    }
}
