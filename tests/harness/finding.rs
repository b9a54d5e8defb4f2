//! Support for the search for agents by name.

use crate::stage::GRANT;
use serde_json::Value;

/// Configuration of test guests that may call `echo`; two agents have aliases.
pub fn config() -> String {
    let calls = GRANT.replace("    memory = true", "    memory = true\n    delegate = ['echo']");
    format!("{calls}\n    [agents.echo]\n    aliases = ['parrot', 'mirror']\n")
}

/// Ids of the found agents, best first.
pub fn ids(found: &Value) -> Vec<&str> {
    let agents = found["agents"].as_array();
    agents.into_iter().flatten().filter_map(|agent| agent["id"].as_str()).collect()
}
