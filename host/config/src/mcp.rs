//! MCP servers that the operator configures for an agent, whose tools the agent may be granted.

use a2a_hub_core::plugin::manifest::is_program_name;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, path::PathBuf};

/// `[agents.<id>.mcp.<name>]`: a program that speaks MCP on standard input and output, or a URL. It
/// is started, or connected, at the agent's first use of its tools. It is confined as the agent's
/// other programs and requests are, and serves no other agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct McpServer {
    /// Absolute path of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<PathBuf>,
    /// URL of a server by Streamable HTTP, in place of a program. The agent's grant must allow the
    /// requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables of the hub's environment passed to it, in the syntax of `agents.<id>.env`.
    #[serde(default)]
    pub env: BTreeSet<String>,
}

impl McpServer {
    /// Error in the server's settings under this name, with the way out.
    pub(super) fn wrong(&self, name: &str) -> Option<String> {
        if !is_program_name(name) {
            return Some(
                "call it by a-z, 0-9, `.`, `_` and `-`, beginning with a letter or digit"
                    .to_owned(),
            );
        }
        let why = match (&self.command, &self.url) {
            (Some(command), None) if command.is_absolute() => None,
            (Some(_), None) => Some("give its `command` as an absolute path"),
            (None, Some(_)) if !(self.args.is_empty() && self.env.is_empty()) => {
                Some("leave out `args` and `env`, which are for a `command`")
            }
            (None, Some(url)) if url.starts_with("https://") || url.starts_with("http://") => None,
            (None, Some(_)) => Some("give its `url` with `https://` or `http://`"),
            (None, None) | (Some(_), Some(_)) => {
                Some("say where it is: by a `command` that starts it, or by its `url`")
            }
        };
        if let Some(why) = why {
            return Some(why.to_owned());
        }
        let ours = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let is_word = |word: &&String| {
            let name = word.strip_suffix('*').unwrap_or(word);
            !name.is_empty() && name.bytes().all(ours)
        };
        let wrong = self.env.iter().find(|word| !is_word(word))?;
        Some(format!("`{wrong}` in its `env` names no variable; write `NAME` or `PREFIX_*`"))
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn told(server: &str) -> String {
        let text = format!("[agents.any.mcp.{server}");
        let config: Result<Config, _> = toml::from_str(&text);
        match config.map_err(|why| why.message().to_owned()).map(|config| config.check()) {
            Err(why) => why,
            Ok(Err(why)) => why.to_string(),
            Ok(Ok(_)) => "right".to_owned(),
        }
    }

    #[test]
    fn invalid_server_settings_are_explained() {
        assert_eq!(
            told("files]\ncommand = '/bin/mcp'\nargs = ['-v']\nenv = ['KEY', 'A_*']"),
            "right"
        );
        insta::assert_snapshot!(told("files]\ncommand = 'mcp'"), @"set `agents.any.mcp.files`: give its `command` as an absolute path");
        insta::assert_snapshot!(told("'my files']\ncommand = '/bin/mcp'"), @"set `agents.any.mcp.my files`: call it by a-z, 0-9, `.`, `_` and `-`, beginning with a letter or digit");
        insta::assert_snapshot!(told("files]\ncommand = '/bin/mcp'\nenv = ['*']"), @"set `agents.any.mcp.files`: `*` in its `env` names no variable; write `NAME` or `PREFIX_*`");
        insta::assert_snapshot!(told("files]\nargs = []"), @"set `agents.any.mcp.files`: say where it is: by a `command` that starts it, or by its `url`");
        insta::assert_snapshot!(told("files]\nurl = 'ftp://x'"), @"set `agents.any.mcp.files`: give its `url` with `https://` or `http://`");
        insta::assert_snapshot!(told("files]\nurl = 'https://x/mcp'\nenv = ['A']"), @"set `agents.any.mcp.files`: leave out `args` and `env`, which are for a `command`");
        assert_eq!(told("files]\nurl = 'https://x/mcp'"), "right");
    }
}
