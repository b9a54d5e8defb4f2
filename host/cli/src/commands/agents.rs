//! `agents`: lists the hub's agents, or those that match search criteria.

use super::status;
use crate::{
    Exit, Global, ask,
    ui::{
        render::{list, text},
        table::Table,
        text::{PLAIN, Text},
    },
};
use a2a_hub_core::{discovery::did_you_mean, text::plain_text::line};
use clap::Args;
use serde_json::{Map, Value, json};

/// Maximum length, in characters, of a description in the table.
const MAX_DESCRIPTION: usize = 200;

/// Help heading of the search criteria.
const SEARCH: &str = "Search";

#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    /// Check the health of each agent first
    #[arg(long, conflicts_with_all = CRITERIA)]
    health: bool,
    /// List also agents that work for other commands, such as those of `best`
    #[arg(long, short, conflicts_with_all = CRITERIA)]
    all: bool,
    /// Task that the agent should do, in your words; the best match comes first
    #[arg(long, value_name = "TEXT", help_heading = SEARCH)]
    find: Option<String>,
    /// Only the agent with this id, alias or name, or with the most similar one
    #[arg(long, help_heading = SEARCH)]
    name: Option<String>,
    /// Only agents with the skill of this id
    #[arg(long, value_name = "ID", help_heading = SEARCH)]
    skill: Option<String>,
    /// Only agents whose skills have these tags, separated by commas
    #[arg(long, value_delimiter = ',', help_heading = SEARCH)]
    tags: Vec<String>,
    /// Only agents of a matching version, such as 2, '>=1.4' or 1.*
    #[arg(long, value_name = "VERSION", help_heading = SEARCH)]
    version: Option<String>,
    /// Accept older versions if no agent matches `--version`
    #[arg(long, requires = "version", help_heading = SEARCH)]
    allow_older: bool,
    /// Only agents that accept these media types, separated by commas
    #[arg(long, value_name = "TYPE", value_delimiter = ',', help_heading = SEARCH)]
    input: Vec<String>,
    /// Only agents that produce these media types, separated by commas
    #[arg(long, value_name = "TYPE", value_delimiter = ',', help_heading = SEARCH)]
    output: Vec<String>,
    /// Maximum number of results
    #[arg(long, help_heading = SEARCH)]
    limit: Option<usize>,
}

/// Arguments that select agents.
const CRITERIA: [&str; 8] =
    ["find", "name", "skill", "tags", "version", "input", "output", "limit"];

impl AgentsArgs {
    /// Parameters of the `hub/agents/find` request; `None` without a criterion.
    fn query(&self) -> Option<Value> {
        let Self { find, name, skill, tags, version, input, output, limit, .. } = self;
        let criteria = json!({ "query": find, "name": name, "skill": skill, "version": version, "limit": limit });
        let lists = json!({ "tags": tags, "inputModes": input, "outputModes": output });
        let criteria =
            criteria.as_object().into_iter().flatten().filter(|(_, said)| !said.is_null());
        let lists =
            lists.as_object().into_iter().flatten().filter(|(_, all)| !list(all).is_empty());
        let mut query: Map<_, _> =
            criteria.chain(lists).map(|(name, value)| (name.clone(), value.clone())).collect();
        if self.allow_older {
            query.insert("allowOlder".to_owned(), json!(true));
        }
        (!query.is_empty()).then_some(Value::Object(query))
    }
}

pub(crate) fn agents(global: &Global, args: &AgentsArgs) -> anyhow::Result<Exit> {
    let Some(query) = args.query() else { return status::agents(global, args.health, args.all) };
    let found = ask(global, "hub/agents/find", query)?;
    global.show(&found, || Ok(found_text(&found, global.console().columns())))?;
    Ok(Exit::Done)
}

fn found_text(found: &Value, columns: Option<usize>) -> Text {
    let mut out = Text::new();
    let mut say = |sentence: &str| out.push(PLAIN, &format!("{sentence}\n"));
    if let Some(note) = found["note"].as_str() {
        say(note);
    }
    if found["older"] == true {
        say("No agent has a matching version; these are older:");
    }
    if let Some(meant) = found["didYouMean"].as_str() {
        say(&format!("No agent has that name; {}", did_you_mean::question(meant)));
    }
    for registry in list(&found["unasked"]) {
        say(&format!(
            "The registry {} could not be searched: {}",
            text(&registry["registry"]),
            text(&registry["why"])
        ));
    }
    let (agents, elsewhere) = (list(&found["agents"]), list(&found["elsewhere"]));
    if agents.is_empty() && elsewhere.is_empty() {
        say("No agent matches. `a2a-hub agents` lists all agents.");
        return out;
    }
    let mut table = Table::new(["AGENT", "SCORE", "VERSION", "WHY"]);
    for agent in agents {
        let score = format!("{:.2}", agent["score"].as_f64().unwrap_or_default());
        let version = line(text(&agent["card"]["version"]), 20);
        let why: Vec<_> = list(&agent["why"]).iter().map(because).collect();
        table.row([text(&agent["id"]).into(), score.into(), version.into(), why.join(", ").into()]);
        table.add_note(line(text(&agent["card"]["description"]), MAX_DESCRIPTION));
    }
    for agent in elsewhere {
        let score = format!("{:.2}", agent["score"].as_f64().unwrap_or_default());
        let version = line(text(&agent["card"]["version"]), 20);
        let why: Vec<_> = list(&agent["why"]).iter().map(because).collect();
        let (name, registry) = (line(text(&agent["card"]["name"]), 60), text(&agent["registry"]));
        let name = format!("{name} ({registry})");
        table.row([name.into(), score.into(), version.into(), why.join(", ").into()]);
        table.add_note(match agent["agent"].as_str() {
            Some(id) => format!("remote; its id here is `{id}`"),
            None => format!(
                "remote; to add it, set `remote.<id>.url = \"{}\"` in the configuration",
                line(text(&agent["url"]), 200)
            ),
        });
    }
    out.append(table.text(columns));
    out
}

/// Describes one reason for a match in a few words.
fn because(why: &Value) -> String {
    let matched = text(&why["what"]);
    match text(&why["by"]) {
        "id" => "its id".to_owned(),
        "alias" => format!("alias {matched}"),
        "name" => "its name".to_owned(),
        "nearName" => format!("nearly {matched}"),
        "inputMode" => format!("takes {matched}"),
        "outputMode" => format!("answers {matched}"),
        "olderVersion" => format!("older: {matched}"),
        "word" => {
            let parts: Vec<_> = list(&why["in"]).iter().map(text).collect();
            format!("\"{matched}\" in {}", parts.join("+"))
        }
        by => format!("{by} {matched}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_agents_are_listed_with_reasons() {
        let found = json!({ "older": true, "didYouMean": "codex", "note": "by words", "agents": [
            { "id": "codex", "score": 3.25159, "card": { "version": "0.9\u{1b}[2J", "description": "Writes\ncode" },
              "why": [{ "by": "word", "what": "bug", "in": ["tags", "examples"] }, { "by": "tag", "what": "git" }] },
        ] });
        insta::assert_snapshot!(found_text(&found, None).words().replace('\t', " → "), @r#"
        by words
        No agent has a matching version; these are older:
        No agent has that name; did you mean `codex`?
        codex → 3.25 → 0.9[2J → "bug" in tags+examples, tag git
         → Writes code
        "#);
        let nobody = found_text(&json!({ "agents": [] }), Some(80)).words();
        assert_eq!(nobody, "No agent matches. `a2a-hub agents` lists all agents.\n");
    }
}
