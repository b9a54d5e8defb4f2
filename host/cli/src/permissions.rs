//! `permissions`: the standing permissions, by which the hub answers requests of agents' programs
//! in place of a person.

use crate::{
    Exit, Global,
    client::hub_client::ask,
    commands::{
        completion,
        tasks::{Since, since},
    },
    ui::{
        failure::CommandError,
        render::{ago, counted, list, text},
        table::{Cell, Table},
        text::{FAINT, Text},
    },
};
use a2a_hub_core::text::{
    plain_text::line,
    shell::{quoted_word, shell_word},
};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Most characters of a command to copy.
const MAX_COMMAND: usize = 4_000;

/// Length of the date of a time.
const DATE: usize = 10;

/// Most characters of a rule's action, and of a text.
const SHOWN: usize = 200;

/// Commands of `permissions`.
#[derive(Debug, Subcommand)]
pub(crate) enum PermissionsCommand {
    /// List the rules, with the number of requests that each has answered
    List,
    /// Add a rule that allows or denies what agents' programs ask for
    ///
    /// `a2a-hub allow --always` makes the rule of an open question. In the words of a command, `*`
    /// stands for any one word and a last `**` for any further words.
    Add(AddArgs),
    /// Remove rules
    Remove {
        /// Ids of the rules
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
    /// Test which rule would answer a request, and what a rule for it would have to say
    Test(TestArgs),
    /// Suggest rules by your latest answers, tested on these answers
    Suggest,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Agent whose program asks; any, for a rule that denies
    #[arg(long, value_name = "ID", add = completion::agents())]
    agent: Option<String>,
    /// Deny, with this text for the agent: "use pnpm"
    #[arg(long, value_name = "TEXT")]
    deny: Option<String>,
    /// Deny over every other rule, the agent's permissions, and every answer
    #[arg(long, conflicts_with = "deny")]
    never: bool,
    /// A directory of the repository [default: this one]
    #[arg(long, value_name = "DIRECTORY")]
    cwd: Option<PathBuf>,
    /// Any repository, for a rule that denies
    #[arg(long, conflicts_with = "cwd")]
    anywhere: bool,
    /// Any directory of the repository, not only its top; a rule that denies always holds in all
    #[arg(long = "below")]
    in_any_directory: bool,
    /// This directory, relative to the repository
    #[arg(long, value_name = "PATH", conflicts_with = "in_any_directory")]
    at: Option<String>,
    /// Changes of this file, relative to the repository
    #[arg(long, value_name = "PATH", conflicts_with_all = ["read", "words"])]
    edit: Option<String>,
    /// Reading of this file
    #[arg(long, value_name = "PATH", conflicts_with = "words")]
    read: Option<String>,
    /// Also outside of the program's own sandbox, as all that Codex asks for
    #[arg(long)]
    outside_sandbox: bool,
    /// Accept that the program may run code from the repository, which the agent may change
    #[arg(long)]
    trust_workspace: bool,
    /// Principal that began the tree of tasks, such as `automation:nightly` [default: you]
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<String>,
    /// Agents above the asking one, from the root on
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    through: Vec<String>,
    /// Time until it expires, such as 1d; `0d` for never [default: 30d, or never if it denies]
    #[arg(long = "for", value_name = "TIME", value_parser = since)]
    time: Option<Since>,
    /// Program and its arguments
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// Agent whose program would ask
    #[arg(value_name = "AGENT", add = completion::agents())]
    agent: String,
    /// Directory of the task [default: this one]
    #[arg(long, value_name = "DIRECTORY")]
    cwd: Option<PathBuf>,
    /// Change of this file
    #[arg(long, value_name = "PATH", conflicts_with_all = ["read", "words"])]
    edit: Option<String>,
    /// Reading of this file
    #[arg(long, value_name = "PATH", conflicts_with = "words")]
    read: Option<String>,
    /// Agents above the asking one, from the root on
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    through: Vec<String>,
    /// Command as its shell would get it: one text, or words
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Carries out a command.
pub(crate) fn permissions(global: &Global, command: &PermissionsCommand) -> anyhow::Result<Exit> {
    match command {
        PermissionsCommand::List => {
            let rules = ask(global, "hub/permissions/list", json!({}))?;
            let columns = global.console().columns();
            global.show(&rules, || Ok(rules_text(&rules, Timestamp::now(), columns)))?;
        }
        PermissionsCommand::Add(args) => {
            let rule = ask(global, "hub/permissions/add", added(args)?)?;
            global.show(&rule, || Ok(added_text(&global.command(), &rule)))?;
        }
        PermissionsCommand::Remove { ids } => return remove(global, ids),
        PermissionsCommand::Suggest => {
            let suggested = ask(global, "hub/permissions/suggest", json!({}))?;
            global.show(&suggested, || Ok(suggested_text(&global.command(), &suggested)))?;
        }
        PermissionsCommand::Test(args) => {
            let test = ask(global, "hub/permissions/test", tested(args)?)?;
            global.show(&test, || Ok(test_text(&global.command(), &test)))?;
        }
    }
    Ok(Exit::Done)
}

fn remove(global: &Global, typed: &[String]) -> anyhow::Result<Exit> {
    let removed = ask(global, "hub/permissions/remove", json!({ "ids": typed }))?;
    let removed_ids = list(&removed["removed"]);
    let unknown: Vec<_> =
        typed.iter().filter(|id| !removed_ids.iter().any(|it| it == *id)).collect();
    let lines: Vec<_> = removed_ids.iter().map(|id| format!("removed {}\n", text(id))).collect();
    global.show(&removed, || Ok(lines.concat().into()))?;
    let Some(first) = unknown.first() else { return Ok(Exit::Done) };
    let why = format!("no standing permission has the id `{first}`");
    Err(CommandError::new("NoSuchPermission", why).mended_by("a2a-hub permissions list").into())
}

/// Absolute path of a directory, by default the current one.
fn directory(typed: Option<&Path>) -> anyhow::Result<String> {
    let typed = typed.unwrap_or(Path::new("."));
    let path =
        typed.canonicalize().with_context(|| format!("cannot open `{}`", typed.display()))?;
    path.into_os_string().into_string().map_err(|_| anyhow::anyhow!("the path is not UTF-8"))
}

fn added(args: &AddArgs) -> anyhow::Result<Value> {
    let denies = args.never || args.deny.is_some();
    let location = match &args.at {
        Some(path) => path,
        None if args.in_any_directory || denies => "**",
        None => "",
    };
    let pattern = match (&args.edit, &args.read, &args.words[..]) {
        (Some(path), _, _) => json!({ "kind": "edit", "path": path }),
        (_, Some(path), _) => json!({ "kind": "read", "path": path }),
        (_, _, []) => bail!(
            "say what the rule is about: `-- PROGRAM ARGUMENT...`, `--edit PATH` or `--read PATH`"
        ),
        (_, _, words) => json!({ "kind": "run", "words": words, "directory": location }),
    };
    let effect = match (args.never, &args.deny) {
        (true, _) => "never",
        (false, Some(_)) => "deny",
        (false, None) => "allow",
    };
    let location = if args.anywhere { None } else { Some(directory(args.cwd.as_deref())?) };
    Ok(json!({
        "effect": effect, "pattern": pattern, "text": args.deny, "agentId": args.agent,
        "through": args.through, "outsideSandbox": args.outside_sandbox, "directory": location,
        "principal": args.principal, "trustsWorkspace": args.trust_workspace,
        "forMs": args.time.map(millis).transpose()?,
    }))
}

fn tested(args: &TestArgs) -> anyhow::Result<Value> {
    let run = match &args.words[..] {
        [] => None,
        [script] => Some(script.clone()),
        words => Some(words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")),
    };
    Ok(json!({
        "agentId": args.agent, "directory": directory(args.cwd.as_deref())?,
        "through": args.through, "run": run, "edit": args.edit, "read": args.read,
    }))
}

/// Length of a time that the user typed, in milliseconds.
pub(crate) fn millis(time: Since) -> anyhow::Result<u64> {
    match time {
        Since::Ago(time) => Ok(u64::try_from(time.as_millis())?),
        Since::At(_) => bail!("give a duration, such as 12h, 7d or 0d"),
    }
}

/// Effect and action of a rule, in one line.
fn summary(rule: &Value) -> String {
    let pattern = &rule["pattern"];
    let action = match text(&pattern["kind"]) {
        "run" => {
            let words = list(&pattern["words"]).iter().map(text).map(pattern_word);
            words.collect::<Vec<_>>().join(" ")
        }
        kind => format!("{kind} {}", text(&pattern["path"])),
    };
    line(&format!("{} {action}", text(&rule["effect"])), SHOWN)
}

/// Word of a pattern; wildcards and plain words are shown without quotes.
fn pattern_word(word: &str) -> String {
    if word == "*" || word == "**" { word.to_owned() } else { quoted_word(word, "") }
}

/// Conditions of a rule, in one line.
fn conditions(rule: &Value) -> String {
    let mut parts = Vec::new();
    let repository = rule["repository"].as_str().unwrap_or("any repository");
    parts.push(match text(&rule["pattern"]["directory"]) {
        "" => format!("in {repository}"),
        "**" => format!("anywhere in {repository}"),
        nested => format!("in {repository}/{nested}"),
    });
    if let Some(vendor) = rule["vendor"].as_str() {
        let outside = if rule["outsideSandbox"] == true { ", outside of its sandbox" } else { "" };
        parts.push(format!("asked by {vendor}{outside}"));
    }
    let through: Vec<_> = list(&rule["through"]).iter().map(text).collect();
    if !through.is_empty() {
        parts.push(format!("for {}", through.join(" > ")));
    }
    if let Some(principal) = rule["principal"].as_str() {
        parts.push(format!("in tasks of {principal}"));
    }
    line(&parts.join("; "), SHOWN)
}

/// Renders the rules, each with its conditions.
fn rules_text(rules: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let rules = list(&rules["rules"]);
    if rules.is_empty() {
        return "no standing permissions; `a2a-hub allow --always` makes one of an open question\n"
            .into();
    }
    let mut table = Table::new(["RULE", "AGENT", "USES", "LAST", "EXPIRES"]);
    for rule in rules {
        let (used, expires) = (&rule["lastUsedAt"], &rule["expiresAt"]);
        table.row([
            Cell::from(text(&rule["id"])),
            rule["agent"].as_str().unwrap_or("any").into(),
            rule["uses"].as_u64().unwrap_or_default().to_string().into(),
            if used.is_null() { "-".into() } else { ago(used, now).into() },
            expires.as_str().and_then(|time| time.get(..DATE)).unwrap_or("never").into(),
        ]);
        table.add_note(summary(rule));
        table.add_note(conditions(rule));
        if let Some(reason) = rule["text"].as_str() {
            table.add_note(format!("text: {}", line(reason, SHOWN)));
        }
        if let Some(warning) = rule["warning"].as_str() {
            table.add_note(format!("note: {}", line(warning, SHOWN)));
        }
    }
    table.text(columns)
}

fn added_text(command: &str, rule: &Value) -> Text {
    let id = text(&rule["id"]);
    let mut output = Text::from(format!("{id}: {}\n", summary(rule)));
    output.push(crate::ui::text::PLAIN, &format!("{}\n", conditions(rule)));
    let until = rule["expiresAt"].as_str().and_then(|time| time.get(..DATE));
    if let Some(until) = until {
        output.push(crate::ui::text::PLAIN, &format!("until {until}\n"));
    }
    if let Some(warning) = rule["warning"].as_str() {
        output.push(crate::ui::text::PLAIN, &format!("note: {}\n", line(warning, SHOWN)));
    }
    output.push(FAINT, &format!("{command} permissions remove {id}\n"));
    output
}

/// Renders suggested rules, each with the command that adds it.
fn suggested_text(command: &str, suggested: &Value) -> Text {
    let rules = list(&suggested["rules"]);
    let (requests, answered) = (&suggested["requests"], &suggested["answered"]);
    if rules.is_empty() {
        return format!(
            "nothing to suggest: of your last {requests} answers, none came often enough\n"
        )
        .into();
    }
    let plain = crate::ui::text::PLAIN;
    let mut output = Text::new();
    for rule in rules {
        let answers = &rule["answers"];
        let mut allowing = rule.clone();
        if let Some(members) = allowing.as_object_mut() {
            members.insert("effect".to_owned(), "allow".into());
        }
        output.push(
            plain,
            &format!("{} ({answers} times), {}\n", summary(&allowing), conditions(rule)),
        );
        if let Some(warning) = rule["warning"].as_str() {
            output.push(plain, &format!("    note: {}\n", line(warning, SHOWN)));
        }
        output.push(FAINT, &format!("    {command} permissions add {}\n", add_arguments(rule)));
    }
    output.push(
        plain,
        &format!("they would have answered {answered} of your last {requests} prompts, and none that you denied\n"),
    );
    output
}

/// Arguments of `permissions add` for a suggested rule.
fn add_arguments(rule: &Value) -> String {
    let mut words = Vec::new();
    let mut option = |name: &str, value: &str| {
        words.push(format!("{name} {}", shell_word(value)));
    };
    option("--agent", text(&rule["agent"]));
    option("--cwd", text(&rule["repository"]));
    let through: Vec<_> = list(&rule["through"]).iter().map(text).collect();
    if !through.is_empty() {
        option("--through", &through.join(","));
    }
    if let Some(principal) = rule["principal"].as_str().filter(|it| *it != "operator") {
        option("--principal", principal);
    }
    let pattern = &rule["pattern"];
    if let Some(directory) = pattern["directory"].as_str().filter(|path| !path.is_empty()) {
        option("--at", directory);
    }
    let kind = text(&pattern["kind"]);
    if kind != "run" {
        option(&format!("--{kind}"), text(&pattern["path"]));
    }
    for (member, flag) in
        [("outsideSandbox", "--outside-sandbox"), ("trustsWorkspace", "--trust-workspace")]
    {
        words.extend((rule[member] == true).then(|| flag.to_owned()));
    }
    let command: Vec<_> = list(&pattern["words"]).iter().map(text).map(pattern_word).collect();
    if !command.is_empty() {
        words.push(format!("-- {}", command.join(" ")));
    }
    line(&words.join(" "), MAX_COMMAND)
}

fn test_text(command: &str, test: &Value) -> Text {
    let rules: Vec<_> = list(&test["rules"]).iter().map(text).collect();
    let verdict = match text(&test["verdict"]) {
        "allow" => format!("allowed, by {}\n", rules.join(", ")),
        "ask" => "asked: no rule answers it\n".to_owned(),
        effect => format!("denied, by {} ({effect})\n", rules.join(", ")),
    };
    let mut output = Text::from(verdict);
    let plain = crate::ui::text::PLAIN;
    if let Some(reason) = test["reason"].as_str() {
        output.push(plain, &format!("{}\n", line(reason, SHOWN)));
    }
    let patterns = list(&test["patterns"]);
    if !patterns.is_empty() && text(&test["verdict"]) == "ask" {
        output.push(plain, &format!("{} would allow it:\n", counted(patterns.len(), "rule")));
        for pattern in patterns {
            let rule = json!({ "effect": "allow", "pattern": pattern });
            output.push(plain, &format!("  {}\n", summary(&rule)));
        }
        output.push(FAINT, &format!("{command} permissions add --help\n"));
    }
    if let Some(warning) = test["warning"].as_str() {
        output.push(plain, &format!("note: {}\n", line(warning, SHOWN)));
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule() -> Value {
        json!({ "id": "k3w9aa01", "effect": "allow", "agent": "claude-code", "vendor": "claude",
            "pattern": { "kind": "run", "words": ["git", "log", "a b", "**"], "directory": "" },
            "repository": "/src/shop", "principal": "operator", "createdAt": "2026-01-31T11:00:00Z",
            "expiresAt": "2026-03-02T12:00:00Z", "uses": 12, "lastUsedAt": "2026-01-31T11:58:00Z",
            "warning": "git runs hooks" })
    }

    #[test]
    fn rules_fit_terminal_width() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let mut denial = rule();
        denial["effect"] = json!("deny");
        denial["text"] = json!("use pnpm\u{1b}[2J");
        denial["pattern"] = json!({ "kind": "edit", "path": "package-lock.json" });
        for member in
            ["agent", "repository", "principal", "vendor", "expiresAt", "lastUsedAt", "warning"]
        {
            denial[member] = Value::Null;
        }
        denial["uses"] = json!(0);
        let rendered = rules_text(&json!({ "rules": [rule(), denial] }), now, Some(80)).words();
        insta::assert_snapshot!(rendered, @r"
        RULE      AGENT        USES  LAST       EXPIRES
        k3w9aa01  claude-code  12    2 min ago  2026-03-02
            allow git log 'a b' **
            in /src/shop; asked by claude; in tasks of operator
            note: git runs hooks
        k3w9aa01  any          0     -          never
            deny edit package-lock.json
            in any repository
            text: use pnpm[2J
        ");
        assert!(rules_text(&json!({}), now, None).words().contains("allow --always"));
    }

    #[test]
    fn suggested_rule_is_added_by_its_command() {
        let pattern = json!({ "kind": "run", "words": ["npm", "run", "a b"], "directory": "web" });
        let rule = json!({ "pattern": pattern, "agent": "codex", "vendor": "codex",
            "repository": "/src/my shop", "principal": "automation:nightly", "outsideSandbox": true,
            "trustsWorkspace": true, "answers": 9 });
        let suggested = json!({ "rules": [rule], "requests": 52, "answered": 41 });
        insta::assert_snapshot!(suggested_text("a2a-hub", &suggested).words(), @r#"
        allow npm run 'a b' (9 times), in /src/my shop/web; asked by codex, outside of its sandbox; in tasks of automation:nightly
            a2a-hub permissions add --agent codex --cwd '/src/my shop' --principal automation:nightly --at web --outside-sandbox --trust-workspace -- npm run 'a b'
        they would have answered 41 of your last 52 prompts, and none that you denied
        "#);
        assert!(
            suggested_text("a2a-hub", &json!({ "requests": 0 }))
                .words()
                .contains("nothing to suggest")
        );
    }

    #[test]
    fn test_says_what_rule_would_need() {
        let patterns = json!([{ "kind": "run", "words": ["ls", "-l"], "directory": "" }]);
        let test = json!({ "verdict": "ask", "patterns": patterns, "warning": "w" });
        insta::assert_snapshot!(test_text("a2a-hub", &test).words(), @r"
        asked: no rule answers it
        1 rule would allow it:
          allow ls -l
        a2a-hub permissions add --help
        note: w
        ");
        let allowed = json!({ "verdict": "allow", "rules": ["k3w9"] });
        assert_eq!(test_text("a2a-hub", &allowed).words(), "allowed, by k3w9\n");
        let other = json!({ "verdict": "ask", "reason": "no rule can: a pipe" });
        assert!(test_text("a2a-hub", &other).words().ends_with("\nno rule can: a pipe\n"));
    }
}
