//! Cards: of a flow, and of the agent that checks flow files.

use a2a_hub_coordination::flow::{Definition, Needs, RunNeed, TreeBudget};
use a2a_hub_sdk::prelude::*;
use a2a_hub_sdk::serde_json::Value;

use crate::problems::list;

/// Extension that lists the problems of a flow file. A card with it does not become an agent.
const PROBLEMS: &str = "https://a2a-hub.invalid/extensions/flow-problems";

/// Extension that states the rights of a flow beyond those of every flow, and its budget. The hub
/// reads it and takes it off the card.
const NEEDS: &str = "https://a2a-hub.invalid/extensions/flow-needs";

/// Card of a flow.
pub(crate) fn for_flow(name: &str, text: &str) -> Card {
    let version = env!("CARGO_PKG_VERSION");
    let definition = match Definition::parse(text) {
        Ok(definition) => definition,
        Err(problems) => {
            let problems = json!({ "problems": list(&problems) });
            return Card::new(name, "A flow file with errors", version)
                .skill(name, name, "Nothing: the file has errors", &["flow"])
                .extension(PROBLEMS, "Problems of the file", false)
                .params(&problems);
        }
    };
    let description = &definition.description;
    let mut card = Card::new(name, description, version)
        .inputs(&["text/plain", "application/json"])
        .skill(name, name, description, &["flow"]);
    if !definition.input.is_empty() {
        card = card.input_schema(&definition.input_schema());
    }
    let needs = definition.needs();
    if needs != Needs::default() {
        card = card.extension(NEEDS, "Rights that the flow needs", false).params(&params(&needs));
    }
    card
}

/// Needs of a flow as the hub reads them.
fn params(Needs { run, permissions, budget, memory, worktree, unlisted }: &Needs) -> Value {
    let of_run = |RunNeed { command, variables }: &RunNeed| json!({ "command": command, "variables": variables });
    let run: Vec<_> = run.iter().map(of_run).collect();
    let TreeBudget { depth, tokens, cost_usd } = budget;
    json!({
        "run": run,
        "permissions": permissions,
        "budget": { "depth": depth, "tokens": tokens, "costUsd": cost_usd },
        "memory": memory,
        "worktree": worktree,
        "unlisted": unlisted,
    })
}

/// Card of the agent that checks flow files.
pub(crate) fn of_checker() -> Card {
    let description = "Checks, tests or runs the flow file in a message, and runs the files of the folder `flows`";
    Card::new("flow", description, env!("CARGO_PKG_VERSION")).inputs(&["text/plain", "application/json"]).skill(
        "check-flow-file",
        "Check a flow file",
        "Says whether the TOML text of a flow file is right, with line and column of each error",
        &["toml"],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn card_has_input_schema_or_problems() {
        let right = "description = \"Greets\"\n[input]\nname = { type = \"string\" }\n[[step]]\nid = \"a\"\nagent = \"echo\"\nprompt = \"hi {{ input.name }}\"\n";
        let card = for_flow("greet", right).to_json();
        assert!(
            card.contains(r#""name":"greet""#) && card.contains(r#""required":["name"]"#),
            "{card}"
        );
        let card = for_flow("greet", "x = 1").to_json();
        assert!(card.contains("line 1, column 1: a flow has no key `x`"), "{card}");
    }
}
