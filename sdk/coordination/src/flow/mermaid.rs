//! Flowchart of a flow, in the language of Mermaid.

use super::definition::{Definition, Go, Items, Step, Undo};

/// Longest text of a node, in characters.
const MAX_TEXT: usize = 60;

impl Definition {
    /// Flowchart for Mermaid: steps, their needs, and the ways back.
    pub fn mermaid(&self) -> String {
        let mut lines = vec!["flowchart TD".to_owned()];
        for (index, step) in self.steps.iter().enumerate() {
            let (open, close) = step.work.kind().brackets();
            lines.push(format!("    s{index}{open}\"{}\"{close}", label(step)));
        }
        for (index, step) in self.steps.iter().enumerate() {
            let is_all = step.at_least == step.needs.len();
            for need in &step.needs {
                let arrow = if is_all { "-->".to_owned() } else { joined(step.at_least) };
                lines.push(format!("    s{need} {arrow} s{index}"));
            }
            for next in &step.next {
                let when = next.when.as_ref().map(|when| text(when.source())).unwrap_or_default();
                match next.go {
                    Go::To { step: target, max, .. } => {
                        let when = if when.is_empty() { when } else { format!("{when}, ") };
                        lines
                            .push(format!("    s{index} -. \"{when}at most {max}\" .-> s{target}"));
                    }
                    Go::End { completed } => {
                        let end = if completed { "completed" } else { "failed" };
                        let when = if when.is_empty() { "always".to_owned() } else { when };
                        lines.push(format!("    s{index} -. \"{when}\" .-> {end}([\"{end}\"])"));
                    }
                }
            }
            if let Some(undo) = &step.compensate {
                let name = match undo {
                    Undo::Agent { agent, .. } => text(agent),
                    Undo::Run(script) => text(&format!("runs {}", script.command.join(" "))),
                };
                lines.push(format!("    s{index} -. \"undo\" .-> u{index}[\"{name}\"]"));
            }
        }
        lines.join("\n") + "\n"
    }
}

/// Arrow of a step that needs some of several.
fn joined(at_least: usize) -> String {
    match at_least {
        1 => "-- any -->".to_owned(),
        count => format!("-- at least {count} -->"),
    }
}

fn label(step: &Step) -> String {
    let work = step.work.kind().label();
    let each = match step.each.as_ref().map(|each| &each.items) {
        Some(Items::List(_) | Items::Worktrees(_)) => ", for each",
        Some(Items::Agents(_)) | None => "",
    };
    text(&format!("{}: {work}{each}", step.id))
}

/// Text between quotation marks: Mermaid reads `"` as their end, and `#` as an entity.
fn text(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = line.chars().take(MAX_TEXT).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    let mut quoted = String::new();
    for it in shown.chars() {
        match it {
            '"' => quoted.push_str("#quot;"),
            '#' => quoted.push_str("#35;"),
            '<' => quoted.push_str("#lt;"),
            '>' => quoted.push_str("#gt;"),
            '`' => quoted.push('\''),
            it if it.is_control() => {}
            it => quoted.push(it),
        }
    }
    quoted
}
