//! Check of the programs of the Agent Client Protocol: those that are installed, and that no agent
//! drives.

use super::finding::{Finding, ok};
use a2a_hub_config::{Config, catalogue, find_program};

/// Programs that the wrapped CLIs' own agents drive better.
const WRAPPERS: [&str; 2] = ["claude-acp", "codex-acp"];

/// Finding for each program of the catalogue that is installed and not configured.
pub(super) fn unconfigured(config: &Config) -> Vec<Finding> {
    let agents = config.agents.iter();
    let driven: Vec<_> = agents.filter_map(|(id, agent)| agent.acp_program(id)).collect();
    let entries = catalogue::entries().iter().filter(|(id, _)| !WRAPPERS.contains(&id.as_str()));
    let unused = entries.filter_map(|(id, entry)| {
        let program = entry.command.first()?;
        let path = find_program(program)?;
        let is_driven = driven.iter().any(|it| it.name == *program);
        let found = format!(
            "{} is installed, at {}; `a2a-hub agent add {id}` makes it an agent",
            entry.name,
            path.display()
        );
        (!is_driven).then(|| ok(program.as_str(), found))
    });
    unused.collect()
}
