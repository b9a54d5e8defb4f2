//! MCP servers of the program, in the protocol's form.

use serde_json::{Value, json};

use crate::cli::Choices;

/// Servers to hand over, and the names of those that the program cannot use.
pub(super) fn select(choices: &Choices, takes_http: bool) -> (Vec<Value>, Option<String>) {
    let pairs = |of: &Value| -> Vec<Value> {
        let each = of.as_object().into_iter().flatten();
        each.map(|(name, value)| json!({ "name": name, "value": value })).collect()
    };
    let (mut servers, mut unsupported) = (Vec::new(), Vec::new());
    for (name, of) in choices.servers() {
        match of["url"].as_str() {
            Some(_) if !takes_http => unsupported.push(format!("`{name}`")),
            Some(url) => servers.push(
                json!({ "type": "http", "name": name, "url": url, "headers": pairs(&of["headers"]) }),
            ),
            None => servers.push(json!({
                "name": name,
                "command": of["command"],
                "args": of["args"].as_array().cloned().unwrap_or_default(),
                "env": pairs(&of["env"]),
            })),
        }
    }
    (servers, (!unsupported.is_empty()).then(|| unsupported.join(", ")))
}
