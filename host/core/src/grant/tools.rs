//! Permission to call tools of servers of the Model Context Protocol: requested and granted one by
//! one, by the operator's name of the server and the server's name of the tool.

use crate::text::one_line::OneLine;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Names of tools, by their server.
pub type ToolNames = BTreeMap<String, BTreeSet<String>>;

/// Wildcard of a manifest for every server, or every tool of a server. A grant has no wildcard.
const EVERY: &str = "*";

/// Maximum length of a tool's name, in bytes.
const MAX_NAME: usize = 128;

/// Request of a component to call tools of one server, in its manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolsAsk {
    /// Names; `*` is any tool that the operator grants.
    pub names: BTreeSet<String>,
    /// Reason, in the words of the component's author.
    pub reason: Option<OneLine>,
}

/// Reason why a tool may not be called.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolRefusal {
    /// The component's manifest does not ask for it, or the operator did not grant it.
    #[error(
        "call the tool `{tool}` of `{server}`: not granted; where the manifest asks for it by `[tools.{server}]`, the operator allows it \
         with `tools.{server} = [\"{tool}\"]` in `[agents.{agent}.grant]` of the hub's configuration, or to a plug-in with `a2a-hub \
         plugin grant {agent} --tool {server}:{tool}`"
    )]
    NotGranted {
        /// Server, as the operator calls it.
        server: String,
        /// Tool, as the server calls it.
        tool: String,
        /// Agent that asked to call it.
        agent: String,
    },
}

impl ToolsAsk {
    fn asks(&self, tool: &str) -> bool {
        self.names.contains(EVERY) || self.names.contains(tool)
    }

    /// Requests for this server, one line each.
    pub fn describe(&self, server: &str) -> BTreeSet<String> {
        let of = |name: &String| describe(server, name);
        self.names.iter().map(of).collect()
    }
}

/// Description of a call of a tool, in plain words that begin with a verb.
pub fn describe(server: &str, tool: &str) -> String {
    match (server, tool) {
        (EVERY, EVERY) => "call tools of servers that you name".to_owned(),
        (EVERY, tool) => format!("call the tool `{tool}` of servers that you name"),
        (server, EVERY) => format!("call tools of the server `{server}`"),
        (server, tool) => format!("call the tool `{tool}` of the server `{server}`"),
    }
}

/// True if a component asks for that tool.
pub fn is_requested(ask: &BTreeMap<String, ToolsAsk>, server: &str, tool: &str) -> bool {
    let asks = [server, EVERY].into_iter().filter_map(|server| ask.get(server));
    asks.into_iter().any(|ask| ask.asks(tool))
}

/// Effective tools: requested, and granted by name.
pub fn effective(ask: &BTreeMap<String, ToolsAsk>, granted: &ToolNames) -> ToolNames {
    let of_server = granted.iter().map(|(server, tools)| {
        let allowed =
            tools.iter().filter(|tool| is_tool_name(tool) && is_requested(ask, server, tool));
        (server.clone(), allowed.cloned().collect::<BTreeSet<_>>())
    });
    of_server.filter(|(_, tools)| !tools.is_empty()).collect()
}

/// True if a tool is among the effective ones.
pub fn holds(effective: &ToolNames, server: &str, tool: &str) -> bool {
    effective.get(server).is_some_and(|tools| tools.contains(tool))
}

/// Requested tools that are not granted.
pub fn lacking<'a>(
    ask: &'a BTreeMap<String, ToolsAsk>,
    effective: &'a ToolNames,
) -> impl Iterator<Item = (&'a str, &'a str, &'a ToolsAsk)> {
    ask.iter().flat_map(move |(server, requested)| {
        let is_lacking = move |tool: &&String| match (server.as_str(), tool.as_str()) {
            (EVERY, EVERY) => effective.is_empty(),
            (EVERY, tool) => !effective.values().any(|tools| tools.contains(tool)),
            (server, EVERY) => !effective.contains_key(server),
            (server, tool) => !holds(effective, server, tool),
        };
        let lacking = requested.names.iter().filter(is_lacking);
        lacking.map(move |tool| (server.as_str(), tool.as_str(), requested))
    })
}

/// True for the wildcard, which a grant cannot contain.
pub fn is_every(word: &str) -> bool {
    word == EVERY
}

/// True for a valid name of a tool: letters, digits, `_`, `-`, `.` and `/`.
pub fn is_tool_name(name: &str) -> bool {
    let ours = |b: u8| b.is_ascii_alphanumeric() || b"_-./".contains(&b);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of tools in a test.
    type Written<'a> = &'a [(&'a str, &'a [&'a str])];

    fn names(of: Written<'_>) -> ToolNames {
        let set = |tools: &[&str]| tools.iter().map(|&tool| tool.to_owned()).collect();
        of.iter().map(|(server, tools)| ((*server).to_owned(), set(tools))).collect()
    }

    fn ask(of: Written<'_>) -> BTreeMap<String, ToolsAsk> {
        let asks = names(of).into_iter();
        asks.map(|(server, names)| (server, ToolsAsk { names, reason: None })).collect()
    }

    #[test]
    fn tool_needs_request_and_named_grant() {
        let cases: [(Written<'_>, Written<'_>, Written<'_>); 7] = [
            (&[], &[("files", &["read"])], &[]),
            (&[("files", &["read", "write"])], &[], &[]),
            (
                &[("files", &["read", "write"])],
                &[("files", &["read", "stat"])],
                &[("files", &["read"])],
            ),
            (
                &[("files", &["*"])],
                &[("files", &["read"]), ("web", &["get"])],
                &[("files", &["read"])],
            ),
            (&[("*", &["read"])], &[("files", &["read", "write"])], &[("files", &["read"])]),
            (
                &[("*", &["*"])],
                &[("files", &["read"]), ("web", &["get"])],
                &[("files", &["read"]), ("web", &["get"])],
            ),
            // A wildcard grants nothing: tools are granted one by one.
            (&[("files", &["*"])], &[("files", &["*"])], &[]),
        ];
        for (asked, granted, expected) in cases {
            assert_eq!(
                effective(&ask(asked), &names(granted)),
                names(expected),
                "{asked:?} {granted:?}"
            );
        }
    }

    #[test]
    fn missing_tools_are_listed_by_name() {
        let told = |asked: Written<'_>, held: Written<'_>| {
            let (asked, held) = (ask(asked), names(held));
            let lacking = lacking(&asked, &held);
            lacking.map(|(server, tool, _)| describe(server, tool)).collect::<Vec<_>>()
        };
        assert_eq!(
            told(&[("files", &["read", "write"])], &[("files", &["read"])]),
            ["call the tool `write` of the server `files`"]
        );
        assert_eq!(told(&[("files", &["*"])], &[]), ["call tools of the server `files`"]);
        assert_eq!(told(&[("*", &["*"])], &[]), ["call tools of servers that you name"]);
        assert_eq!(told(&[("*", &["*"]), ("files", &["*"])], &[("files", &["x"])]), [""; 0]);
    }

    #[test]
    fn tool_name_must_be_plain() {
        for name in ["read_file", "a.b/c-d", "X"] {
            assert!(is_tool_name(name), "{name}");
        }
        let long = "x".repeat(MAX_NAME + 1);
        for name in ["", "*", "a b", "a\n", "a`b", "é", &long] {
            assert!(!is_tool_name(name), "{name}");
        }
    }
}
