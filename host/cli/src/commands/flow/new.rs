//! `flow new`: creates a flow file from a template, with the agents of this machine.

use a2a_hub_config::find_program;
use a2a_hub_protocol::id::{AgentId, InvalidAgentId};
use clap::ValueEnum;
use std::{
    fs::{DirBuilder, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

/// Agents in the templates, in the order of their parts. Each is named in a template only where it
/// works.
const AGENTS: [&str; 3] = ["claude-code", "codex", "gemini"];

/// Agents that work with programs of other vendors, and these programs; the first ones come first.
const PROGRAMS: [(&str, &str); 4] =
    [("claude-code", "claude"), ("codex", "codex"), ("gemini", "gemini"), ("vibe", "vibe-acp")];

/// Keys of the lines that name agents.
const KEYS: [&str; 2] = ["agent = ", "fallback = "];

/// File of a flow without a template.
const ANSWER: &str = include_str!("templates/answer.flow.toml");

/// Template of a flow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// Write, and have another agent review it until it is approved
    Review,
    /// Plan, ask for approval, execute and verify
    Plan,
    /// Research three parts of a question at the same time
    Research,
    /// Have three agents judge a text at the same time
    SecondOpinion,
}

impl Template {
    fn text(self) -> &'static str {
        match self {
            Self::Review => include_str!("templates/review.flow.toml"),
            Self::Plan => include_str!("templates/plan.flow.toml"),
            Self::Research => include_str!("templates/research.flow.toml"),
            Self::SecondOpinion => include_str!("templates/second-opinion.flow.toml"),
        }
    }

    /// Text of a flow file whose parts are taken by these agents, in turn.
    fn filled(self, agents: &[AgentId]) -> String {
        let named = |word: &str| {
            let part = AGENTS.iter().position(|it| *it == word)?;
            agents.get(part % agents.len().max(1)).map(AgentId::as_str)
        };
        let mut text = String::new();
        for line in self.text().split_inclusive('\n') {
            if !KEYS.iter().any(|key| line.starts_with(key)) {
                text.push_str(line);
                continue;
            }
            for (index, word) in line.split('"').enumerate() {
                if index > 0 {
                    text.push('"');
                }
                text.push_str(named(word).unwrap_or(word));
            }
        }
        text
    }
}

/// Text of a new flow file, with these agents or, without any, those of this machine.
pub(super) fn text(from: Option<Template>, agents: &[AgentId]) -> String {
    match (from, agents) {
        (None, _) => ANSWER.to_owned(),
        (Some(from), []) => from.filled(&default_agents()),
        (Some(from), agents) => from.filled(agents),
    }
}

/// Agent of an argument.
pub(super) fn agent(name: &str) -> Result<AgentId, InvalidAgentId> {
    AgentId::parse(name)
}

/// Agents for a new flow: those whose programs are installed, and then the others.
fn default_agents() -> Vec<AgentId> {
    ordered(|program| find_program(program).is_some())
}

fn ordered(is_installed: impl Fn(&str) -> bool) -> Vec<AgentId> {
    let mut all = PROGRAMS;
    // The order among those that are installed stays.
    all.sort_by_key(|(_, program)| !is_installed(program));
    all.iter().filter_map(|(agent, _)| AgentId::parse(*agent).ok()).collect()
}

/// Creates a flow file, in a folder that is made if it is missing, for this user only.
pub(super) fn create(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<AgentId> {
        names.iter().map(|name| AgentId::parse(*name).unwrap()).collect()
    }

    #[test]
    fn agents_take_parts_in_turn() {
        let text = Template::Review.filled(&ids(&["codex", "claude-code"]));
        let agents: Vec<_> = text.lines().filter(|line| line.starts_with("agent")).collect();
        assert_eq!(agents, ["agent = \"codex\"", "agent = \"claude-code\""], "both are exchanged");
        let text = Template::Research.filled(&ids(&["vibe"]));
        assert!(text.contains("fallback = [\"vibe\"]") && !text.contains("gemini"), "{text}");
        let text = Template::SecondOpinion.filled(&ids(&["a", "b", "c", "d"]));
        let agents: Vec<_> = text.lines().filter(|line| line.starts_with("agent")).collect();
        assert_eq!(agents, ["agent = \"a\"", "agent = \"b\"", "agent = \"c\"", "agent = \"a\""]);
    }

    #[test]
    fn installed_agents_come_first() {
        assert_eq!(ordered(|_| false), ids(&["claude-code", "codex", "gemini", "vibe"]));
        let some = ordered(|program| ["gemini", "vibe-acp"].contains(&program));
        assert_eq!(some, ids(&["gemini", "vibe", "claude-code", "codex"]));
    }
}
