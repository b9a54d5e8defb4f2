//! Templates of flow files, filled with the agents of this machine: implements `a2a-hub flow new`.

use a2a_hub_config::find_program;
use a2a_hub_protocol::id::AgentId;

/// Agents in the templates, in the order of their parts. Each is named in a template only where it
/// works.
const AGENTS: [&str; 3] = ["claude-code", "codex", "gemini"];

/// Agents that work with programs of other vendors, and these programs; the first ones come first.
const PROGRAMS: [(&str, &str); 4] =
    [("claude-code", "claude"), ("codex", "codex"), ("gemini", "gemini"), ("vibe", "vibe-acp")];

/// Keys of the lines that name agents.
const KEYS: [&str; 2] = ["agent = ", "fallback = "];

/// Key of the lines that name all agents, and the most that it takes without a wish.
const ALL: &str = "agents = ";
const MAX_DEFAULT_AGENTS: usize = 3;

/// Ends of the lines with the judge in the template `best-of`: its trial, and its runs.
const JUDGE: [&str; 2] = [", \"sh\", \"cargo test\"]\n", "[\"sh\", \"-c\", \"cargo test\"]\n"];

/// Begins and ends of the parts of the template `best-of` that it has with a judge only.
const JUDGE_PARTS: [(&str, &str); 3] = [
    ("# The answer: who", "[input]"),
    ("# The judge runs on the last", "# All agents begin"),
    ("# The judge runs once", "# Candidates that changed"),
];

/// Names of the candidates' steps that come after the judge.
const WITH_JUDGE: &str =
    "needs = [\"judge\"]\npick = { from = \"try\", judges = [\"judge\"], by = \"lines\"";
const WITHOUT_JUDGE: &str = "needs = [\"try\"]\npick = { from = \"try\", by = \"ask\"";

/// Names of the templates.
pub const NAMES: [&str; 6] = ["review", "plan", "research", "second-opinion", "best-of", "map"];

/// Text of a new flow file from the template of this name, with these agents or, without any, those
/// of this machine. Without a name, it is an example with two steps.
pub fn text(name: Option<&str>, agents: &[AgentId]) -> String {
    let template = match name {
        Some("review") => include_str!("flow_template/review.flow.toml"),
        Some("plan") => include_str!("flow_template/plan.flow.toml"),
        Some("research") => include_str!("flow_template/research.flow.toml"),
        Some("second-opinion") => include_str!("flow_template/second-opinion.flow.toml"),
        Some("best-of") => BEST_OF,
        Some("map") => include_str!("flow_template/map.flow.toml"),
        Some(_) | None => return include_str!("flow_template/answer.flow.toml").to_owned(),
    };
    match agents {
        [] => {
            let mut agents = default_agents();
            agents.truncate(MAX_DEFAULT_AGENTS);
            filled(template, &agents)
        }
        agents => filled(template, agents),
    }
}

/// Template of a choice among candidates.
const BEST_OF: &str = include_str!("flow_template/best-of.flow.toml");

/// Text of a flow that has these agents do the same work, and picks the best result. `judge` is a
/// shell's command that passes a candidate by exit code 0; without one, the client picks.
/// `permissions` is what the agents may do unasked: `read-only`, `ask`, `edit` or `full`.
pub fn best_of(agents: &[AgentId], judge: Option<&str>, permissions: &str) -> String {
    // Each work has its own flow: no list of agents is to have them all.
    let text = filled(BEST_OF, agents).replacen("\n\n", "\n\nlisted = false\n", 1);
    let text = text.replace("permissions = \"edit\"", &format!("permissions = \"{permissions}\""));
    match judge {
        Some(judge) => {
            let word = toml::Value::from(judge);
            let [trial, run] = JUDGE;
            text.replace(trial, &format!(", \"sh\", {word}]\n"))
                .replace(run, &format!("[\"sh\", \"-c\", {word}]\n"))
        }
        None => {
            let without = JUDGE_PARTS.iter().fold(text, |text, (begin, end)| {
                let Some((before, after)) = text.split_once(begin) else { return text };
                let Some((_, after)) = after.split_once(end) else { return text };
                format!("{before}{end}{after}")
            });
            without.replace("needs = [\"base\"]\n", "").replace(WITH_JUDGE, WITHOUT_JUDGE)
        }
    }
}

/// Most characters of all answers together. A flow's result has at most 256 KiB, and a character
/// up to four bytes.
const MAX_TOTAL_CHARS: usize = 60_000;

/// Text of a flow that asks these agents the same, and lists their answers with the
/// artifacts. Its input is the text `message`. It fails if none answers.
pub fn ask_all(agents: &[AgentId]) -> String {
    let text = filled(include_str!("flow_template/ask-all.flow.toml"), agents);
    let failures = agents.len().saturating_sub(1);
    let text = text.replace("30000", &(MAX_TOTAL_CHARS / agents.len().max(1)).to_string());
    text.replace("allow_failures = 1\n", &format!("allow_failures = {failures}\n"))
}

/// Line of a flow file that first names this agent in quotes, for messages.
pub fn line_of(text: &str, agent: &AgentId) -> String {
    let quoted = [format!("\"{agent}\""), format!("'{agent}'")];
    let is_named = |line: &str| {
        let line = line.split_once('#').map_or(line, |(before, _)| before);
        quoted.iter().any(|it| line.contains(it))
    };
    match text.lines().position(is_named) {
        Some(index) => format!("line {}", index + 1),
        None => "in the flow".to_owned(),
    }
}

/// Text of a template whose parts are taken by these agents, in turn.
fn filled(template: &str, agents: &[AgentId]) -> String {
    let named = |word: &str| {
        let part = AGENTS.iter().position(|it| *it == word)?;
        agents.get(part % agents.len().max(1)).map(AgentId::as_str)
    };
    let mut text = String::new();
    for line in template.split_inclusive('\n') {
        if line.starts_with(ALL) {
            let named: Vec<_> = agents.iter().map(|agent| format!("\"{agent}\"")).collect();
            text.push_str(&format!("{ALL}[{}]\n", named.join(", ")));
            continue;
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(names: &[&str]) -> Vec<AgentId> {
        names.iter().map(|name| AgentId::parse(*name).unwrap()).collect()
    }

    #[test]
    fn line_of_agent_skips_comments() {
        let text = "# \"gust\" works\nagent = \"guest\"\nfallback = ['gust']\n";
        let line = |name: &str| line_of(text, &AgentId::parse(name).unwrap());
        assert_eq!([line("gust"), line("guest"), line("x")], ["line 3", "line 2", "in the flow"]);
    }

    #[test]
    fn agents_take_parts_in_turn() {
        let review = text(Some("review"), &ids(&["codex", "claude-code"]));
        let agents: Vec<_> = review.lines().filter(|line| line.starts_with("agent")).collect();
        assert_eq!(agents, ["agent = \"codex\"", "agent = \"claude-code\""], "both are exchanged");
        let research = text(Some("research"), &ids(&["vibe"]));
        let named = research.contains("fallback = [\"vibe\"]");
        assert!(named && !research.contains("gemini"), "{research}");
        let opinion = text(Some("second-opinion"), &ids(&["a", "b", "c", "d"]));
        let agents: Vec<_> = opinion.lines().filter(|line| line.starts_with("agent")).collect();
        assert_eq!(agents, ["agent = \"a\"", "agent = \"b\"", "agent = \"c\"", "agent = \"a\""]);
    }

    #[test]
    fn best_of_has_agents_and_judge() {
        let agents = ids(&["codex", "codex"]);
        let text = best_of(&agents, Some("grep -q \"x\" a && cargo test"), "ask");
        assert!(text.contains("agents = [\"codex\", \"codex\"]\n"), "{text}");
        assert!(text.contains("&& cargo test") && !text.contains("\"cargo test\""), "{text}");
        assert!(text.contains("permissions = \"ask\"\n"), "{text}");
        let parsed: toml::Table = text.parse().unwrap();
        let judge = Some("grep -q \"x\" a && cargo test");
        assert_eq!(parsed["step"][2]["run"][2].as_str(), judge);
        let trial = parsed["step"][0]["run"].as_array().unwrap();
        assert_eq!(trial.last().and_then(toml::Value::as_str), judge);
        assert_eq!(parsed["listed"].as_bool(), Some(false));
        let without = best_of(&agents, None, "edit");
        let parsed: toml::Table = without.parse().unwrap();
        assert_eq!(parsed["step"].as_array().map(Vec::len), Some(2), "{without}");
        assert!(!without.contains("id = \"base\"") && !without.contains("\nresult"), "{without}");
        assert_eq!(parsed["step"][1]["pick"]["by"].as_str(), Some("ask"));
        assert!(parsed["step"][1]["pick"].get("judges").is_none(), "{without}");
    }

    #[test]
    fn all_agents_are_asked() {
        let parsed: toml::Table = ask_all(&ids(&["a", "b", "c"])).parse().unwrap();
        let step = &parsed["step"][0];
        assert_eq!(step["agents"].as_array().map(Vec::len), Some(3));
        assert_eq!(step["allow_failures"].as_integer(), Some(2));
        let result = parsed["result"].as_str().unwrap();
        assert!(result.contains("[:20000]") && !result.contains("30000"), "{result}");
    }

    #[test]
    fn installed_agents_come_first() {
        assert_eq!(ordered(|_| false), ids(&["claude-code", "codex", "gemini", "vibe"]));
        let some = ordered(|program| ["gemini", "vibe-acp"].contains(&program));
        assert_eq!(some, ids(&["gemini", "vibe", "claude-code", "codex"]));
    }
}
