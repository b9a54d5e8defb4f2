//! Text about the problems of a flow file.

use a2a_hub_coordination::flow::Problem;

/// Most problems that are listed.
const MAX_PROBLEMS: usize = 16;

/// Problems, one a line.
pub(crate) fn list(problems: &[Problem]) -> String {
    let line = |problem: &Problem| match problem.is_warning {
        true => format!("{problem} (warning)"),
        false => problem.to_string(),
    };
    problems.iter().take(MAX_PROBLEMS).map(line).collect::<Vec<_>>().join("\n")
}
