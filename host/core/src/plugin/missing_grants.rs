//! Requested permissions that an agent does not have, described for the operator with the setting
//! that would grant them.

use crate::{
    grant::{
        Ask, EffectiveGrant, EffectiveProgram, ProgramAsk,
        delegate::PeersAsk,
        passes,
        tools::{self, is_every},
        workspace::WorkspaceAccess,
    },
    plugin::manifest_diff::{calling, quoted},
    text::one_line::OneLine,
};

/// Permission that a manifest asks for and the grant does not include.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingGrant {
    /// Capability, by its path in the manifest, such as `process.git` or `memory`.
    pub capability: String,
    /// Action that the agent cannot do, in plain words that begin with a verb.
    pub action: String,
    /// Reason for the request, in its maker's words.
    pub reason: Option<OneLine>,
    /// Setting in `[agents.<id>.grant]` of the configuration that would grant it.
    pub setting: String,
    /// Arguments of `a2a-hub plugin grant <id>` that would grant it to a plug-in, each of plain
    /// characters; empty if no command does.
    pub arguments: Vec<String>,
}

/// Lists the permissions that `ask` requests and `effective` does not include.
pub fn lacks(ask: &Ask, effective: &EffectiveGrant) -> Vec<MissingGrant> {
    let mut found = Vec::new();
    for (name, requested) in &ask.process {
        match effective.programs.get(name) {
            None => found.push(MissingGrant {
                capability: format!("process.{name}"),
                action: format!("run `{name}`"),
                reason: requested.reason.clone(),
                setting: format!("process.{name} = {{}}"),
                arguments: plain(["--program", name]),
            }),
            Some(program) => found.extend(of_program(name, requested, program)),
        }
    }
    if let Some(requested) = &ask.memory {
        let (has, reason) = (effective.memory_bytes, &requested.reason);
        found.extend(of_bytes("memory", "remember", requested.max_bytes, has, reason.as_ref()));
    }
    if let Some(requested) = &ask.files {
        let (has, reason) = (effective.files_bytes, &requested.reason);
        found.extend(of_bytes(
            "files",
            "write files of",
            requested.max_bytes,
            has,
            reason.as_ref(),
        ));
    }
    let hosts: Vec<_> = effective.http.not_granted().collect();
    for (host, requested) in &ask.http {
        let name = String::from(host.clone());
        if hosts.contains(&name) {
            found.push(MissingGrant {
                capability: format!("http.{name}"),
                action: requested.describe(host),
                reason: requested.reason.clone(),
                setting: format!("http.\"{name}\" = {{}}"),
                arguments: plain(["--http", &name]),
            });
        }
    }
    if let Some(requested) =
        ask.workspace.as_ref().filter(|ask| effective.workspace < Some(ask.access))
    {
        let (verb, word) = match requested.access {
            WorkspaceAccess::Read => ("read", "read"),
            WorkspaceAccess::ReadWrite => ("change", "read-write"),
        };
        found.push(MissingGrant {
            capability: "workspace".to_owned(),
            action: format!("{verb} the files of its working directory"),
            reason: requested.reason.clone(),
            setting: format!("workspace = \"{word}\""),
            arguments: plain(["--workspace", word]),
        });
    }
    found.extend(of_tools(ask, effective));
    let uncallable = ask
        .delegate
        .agents
        .named()
        // An agent of which some skills are granted was narrowed by the operator.
        .filter(|it| match it.skill {
            Some(_) => effective.agents.terms(it).is_none(),
            None => !effective.agents.reaches(it.agent.as_str()),
        });
    found.extend(uncallable.map(|agent| MissingGrant {
        capability: format!("delegate.{agent}"),
        action: calling(agent),
        reason: ask.delegate.reason.clone(),
        setting: format!("delegate = [\"{agent}\"]"),
        arguments: plain(["--delegate", agent.to_string().as_str()]),
    }));
    if ask.delegate.agents == PeersAsk::Any(true) && effective.agents.is_empty() {
        found.push(MissingGrant {
            capability: "delegate".to_owned(),
            action: "know which other agents there are".to_owned(),
            reason: ask.delegate.reason.clone(),
            setting: "delegate = [\"*\"]".to_owned(),
            arguments: plain(["--delegate", "*"]),
        });
    }
    found
}

/// Tools that the agent may not call. For a wildcard, the operator must choose the names.
fn of_tools(ask: &Ask, effective: &EffectiveGrant) -> Vec<MissingGrant> {
    let lack = |(server, tool, requested): (&str, &str, &tools::ToolsAsk)| {
        let is_named = !is_every(server) && !is_every(tool);
        let arguments = match is_named {
            true => plain(["--tool", &format!("{server}:{tool}")]),
            false => Vec::new(),
        };
        let capability =
            if is_every(server) { "tools".to_owned() } else { format!("tools.{server}") };
        let (of, name) = (named_or(server, "SERVER"), named_or(tool, "TOOL"));
        MissingGrant {
            capability,
            action: tools::describe(server, tool),
            reason: requested.reason.clone(),
            setting: format!("tools.{of} = [\"{name}\"]"),
            arguments,
        }
    };
    tools::lacking(&ask.tools, &effective.tools).map(lack).collect()
}

fn named_or<'a>(word: &'a str, otherwise: &'a str) -> &'a str {
    if is_every(word) { otherwise } else { word }
}

/// Missing permissions for a program that the agent may run.
fn of_program(
    name: &str,
    requested: &ProgramAsk,
    effective: &EffectiveProgram,
) -> Vec<MissingGrant> {
    let lack = |capability: &str, action: String, variable: Option<&str>| MissingGrant {
        capability: format!("process.{name}.{capability}"),
        action,
        reason: requested.reason.clone(),
        setting: format!("process.{name}.{capability}"),
        arguments: variable.map_or_else(Vec::new, |variable| {
            plain([&format!("--{capability}"), &format!("{name}:{variable}")])
        }),
    };
    let is_allowed =
        |form: &Vec<String>| effective.forms.iter().all(|forms| forms.written().contains(form));
    let forms = requested
        .args
        .written()
        .iter()
        .filter(|form| !is_allowed(form))
        .map(|form| lack("args", format!("run `{name}` with {}", quoted(form)), None));
    let is_passed = |word: &String| {
        effective.pass.contains(word) || effective.pass.iter().any(|held| passes(held, word))
    };
    let passed = requested
        .pass
        .iter()
        .filter(|word| !is_passed(word))
        .map(|word| lack("pass", format!("have `{word}` passed to `{name}`"), Some(word)));
    let set = effective
        .withheld
        .iter()
        .map(|variable| lack("set", format!("set `{variable}` for `{name}`"), Some(variable)));
    forms.chain(passed).chain(set).collect()
}

fn of_bytes(
    capability: &str,
    verb: &str,
    requested: u64,
    granted: Option<u64>,
    reason: Option<&OneLine>,
) -> Option<MissingGrant> {
    let action = match granted {
        Some(granted) if granted >= requested => return None,
        Some(granted) => format!("{verb} {requested} bytes, of which {granted} are granted"),
        None => format!("{verb} {requested} bytes"),
    };
    let setting = format!("{capability} = {requested}");
    let (capability, reason) = (capability.to_owned(), reason.cloned());
    let arguments = plain([&format!("--{capability}={requested}")]);
    Some(MissingGrant { capability, action, reason, setting, arguments })
}

/// Arguments that a shell does not interpret, or that are safe in single quotes. Empty if one of
/// them contains other characters, because they include text of the component.
fn plain<const N: usize>(arguments: [&str; N]) -> Vec<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:=/*[]".contains(c);
    if arguments.iter().any(|argument| !argument.chars().all(is_plain)) {
        return Vec::new();
    }
    arguments.map(str::to_owned).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grant::{DelegateAsk, FilesAsk, Grant, ProgramGrant, intersect, memory::MemoryAsk};

    fn asking() -> Ask {
        let program = ProgramAsk {
            args: vec![vec!["log".to_owned()], vec!["push".to_owned(), "{}".to_owned()]]
                .try_into()
                .unwrap(),
            pass: ["HOME".to_owned(), "GIT_SSH_COMMAND".to_owned()].into(),
            set: ["LC_ALL".to_owned(), "LD_PRELOAD".to_owned()].into(),
            reason: OneLine::parse("to read the history").ok(),
            ..ProgramAsk::default()
        };
        Ask {
            process: [("git".to_owned(), program)].into(),
            memory: Some(MemoryAsk { max_bytes: 4096, max_items: None, reason: None }),
            files: Some(FilesAsk { max_bytes: 10, reason: OneLine::parse("prompts").ok() }),
            delegate: DelegateAsk { agents: PeersAsk::Any(true), reason: None },
            tools: [("files", "read"), ("web", "*")]
                .map(|(server, tool)| {
                    let names = [tool.to_owned()].into();
                    (server.to_owned(), tools::ToolsAsk { names, reason: None })
                })
                .into(),
            ..Ask::default()
        }
    }

    fn told(grant: &Grant) -> String {
        let ask = asking();
        let line = |lack: MissingGrant| {
            let reason = lack.reason.map(|why| format!(" ({why})")).unwrap_or_default();
            let command = lack.arguments.join(" ");
            format!(
                "{}: {}{reason} <- {} | {command}\n",
                lack.capability, lack.action, lack.setting
            )
        };
        lacks(&ask, &intersect(&ask, grant)).into_iter().map(line).collect()
    }

    #[test]
    fn missing_grants_are_listed_with_settings() {
        insta::assert_snapshot!(told(&Grant::default()), @r#"
        process.git: run `git` (to read the history) <- process.git = {} | --program git
        memory: remember 4096 bytes <- memory = 4096 | --memory=4096
        files: write files of 10 bytes (prompts) <- files = 10 | --files=10
        tools.files: call the tool `read` of the server `files` <- tools.files = ["read"] | --tool files:read
        tools.web: call tools of the server `web` <- tools.web = ["TOOL"] | 
        delegate: know which other agents there are <- delegate = ["*"] | --delegate *
        "#);
        let only_log = vec![vec!["log".to_owned()]].try_into().unwrap();
        let git = ProgramGrant { args: Some(only_log), ..ProgramGrant::default() };
        let grant = Grant {
            process: [("git".to_owned(), git)].into(),
            memory: crate::grant::byte_limit::Allowance::Bytes(100),
            tools: [("files".to_owned(), ["read".to_owned()].into())].into(),
            ..Grant::default()
        };
        insta::assert_snapshot!(told(&grant), @r#"
        process.git.args: run `git` with `push` `{}` (to read the history) <- process.git.args | 
        process.git.pass: have `GIT_SSH_COMMAND` passed to `git` (to read the history) <- process.git.pass | --pass git:GIT_SSH_COMMAND
        process.git.set: set `LD_PRELOAD` for `git` (to read the history) <- process.git.set | --set git:LD_PRELOAD
        memory: remember 4096 bytes, of which 100 are granted <- memory = 4096 | --memory=4096
        files: write files of 10 bytes (prompts) <- files = 10 | --files=10
        tools.web: call tools of the server `web` <- tools.web = ["TOOL"] | 
        delegate: know which other agents there are <- delegate = ["*"] | --delegate *
        "#);
    }

    #[test]
    fn shell_metacharacters_yield_no_arguments() {
        for word in ["$(id)", "a b", "`id`", "a;b", "a\nb", "'", "\u{202e}"] {
            assert_eq!(plain(["--pass", word]), [""; 0], "{word}");
        }
        assert_eq!(plain(["--http", "*.example.com"]), ["--http", "*.example.com"]);
    }

    #[test]
    fn full_grant_lacks_only_tools_and_agents() {
        let told = told(&Grant::everything(&asking()));
        let told = told.lines().filter(|line| !line.starts_with("tools.")).collect::<Vec<_>>();
        assert_eq!(
            told.join("\n") + "\n",
            "delegate: know which other agents there are <- delegate = [\"*\"] | --delegate *\n"
        );
    }

    #[test]
    fn each_named_agent_is_missing_by_itself() {
        let ask: Ask = calling(&["codex", "echo"]);
        let grant =
            Grant { delegate: ["echo".to_owned()].into_iter().collect(), ..Grant::default() };
        let found = lacks(&ask, &intersect(&ask, &grant));
        let found: Vec<_> = found.iter().map(|it| it.capability.as_str()).collect();
        assert_eq!(found, ["delegate.codex"]);
    }

    fn calling(agents: &[&str]) -> Ask {
        serde_json::from_value(serde_json::json!({ "delegate": { "agents": agents } })).unwrap()
    }
}
