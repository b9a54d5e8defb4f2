//! Command-line options for a plug-in's permissions, and the grant that they make.

use crate::ui::failure::CommandError;
use a2a_hub_core::grant::{
    Ask, Grant, Pin, ProgramAsk, ProgramGrant,
    byte_limit::Allowance,
    delegate::{Callee, DelegateTerms},
    host_pattern::HostPattern,
    http::HttpGrant,
    http_header::{HeaderName, HeaderTemplate},
    permissions::Permissions,
    resource_limits::{LimitName, UnknownLimit},
    tools::{is_every, is_requested, is_tool_name},
    workspace::WorkspaceAccess,
};
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};

/// Help heading of the options that decide which updates keep the grant.
pub(super) const UPDATES: &str = "Updates";

/// Permissions to add to those that a plug-in has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Permissions")]
pub(crate) struct GrantOptions {
    /// All that the plug-in asks for, except calls of other agents, requests to any host (`*`), and
    /// variables that can make a program run other code
    #[arg(long)]
    pub(super) all: bool,
    /// Program that the plug-in may run, at PATH or else found by its name. May be given several
    /// times
    #[arg(long, value_name = "NAME[=PATH]", value_parser = program)]
    pub(super) program: Vec<(String, Option<String>)>,
    /// Bind the granted programs to their present files, by digest
    #[arg(long)]
    pub(super) pin: bool,
    /// Variable of the hub's environment that a program receives; needed for those that `--all`
    /// leaves out
    #[arg(long, value_name = "PROGRAM:VARIABLE", value_parser = variable)]
    pub(super) pass: Vec<(String, String)>,
    /// Variable that the plug-in may set for a program; needed for those that `--all` leaves out
    #[arg(long, value_name = "PROGRAM:VARIABLE", value_parser = variable)]
    pub(super) set: Vec<(String, String)>,
    /// Size of the persistent memory, in bytes; without a number, as much as the plug-in asks for
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true)]
    pub(super) memory: Option<Option<u64>>,
    /// Size of the files that a task may write, in bytes; without a number, as much as the plug-in
    /// asks for
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true)]
    pub(super) files: Option<Option<u64>>,
    /// Host to which the plug-in may send requests, such as `api.example.com` or `*.example.com`.
    /// May be given several times
    #[arg(long, value_name = "HOST", value_parser = host)]
    pub(super) http: Vec<HostPattern>,
    /// Header that the hub adds to each request to a host. `secret:NAME` in the value stands for
    /// the file NAME in `secrets/` of the data directory, or else for the hub's variable NAME; the
    /// plug-in never sees it
    #[arg(long, value_name = "HOST:NAME=VALUE", value_parser = header)]
    pub(super) header: Vec<(HostPattern, HeaderName, HeaderTemplate)>,
    /// Access to the files of the task's working directory: `read` or `read-write`
    #[arg(long, value_name = "ACCESS", value_parser = access)]
    pub(super) workspace: Option<WorkspaceAccess>,
    /// Limit of each task, such as `cpu_ms=5000` or `memory_mb=32`, with the names of `limits` in
    /// the configuration. May be given several times
    #[arg(long, value_name = "LIMIT=NUMBER", value_parser = limit)]
    pub(super) limit: Vec<(LimitName, u64)>,
    /// Agent that the plug-in may call, or one skill of it; `*` stands for every other agent. With
    /// the terms `edit` or `full`, the called agent's program does as much without asking; with
    /// `approve`, the plug-in answers its permission requests; with `worktrees`, the agent may work
    /// in worktrees for it. Examples: `codex:edit,approve`, `codex/review`
    #[arg(long, value_name = "AGENT[/SKILL][:TERMS]", value_parser = delegate)]
    pub(super) delegate: Vec<(String, Option<DelegateTerms>)>,
    /// MCP tool that the plug-in may call, of a server in `agents.<id>.mcp` of the configuration.
    /// May be given several times
    #[arg(long, value_name = "SERVER:TOOL", value_parser = tool)]
    pub(super) tool: Vec<(String, String)>,
    /// Only directory in which the plug-in's programs may work. May be given several times
    #[arg(long, value_name = "PATH", value_parser = directory)]
    pub(super) directory: Vec<String>,
    /// Public key whose signature lets an update keep the grant: its name in `plugins.keys` of the
    /// configuration, or the key itself
    #[arg(long, value_name = "KEY", help_heading = UPDATES)]
    pub(super) key: Option<String>,
    /// Keep the grant for any component in the plug-in's file; for a component in development
    #[arg(long, help_heading = UPDATES)]
    pub(super) dev: bool,
}

fn program(text: &str) -> Result<(String, Option<String>), String> {
    match text.split_once('=') {
        None => Ok((text.to_owned(), None)),
        Some((name, path)) if path.starts_with('/') => Ok((name.to_owned(), Some(path.to_owned()))),
        Some((_, path)) => {
            Err(format!("`{path}` is not an absolute path; give the program's path from the root"))
        }
    }
}

fn directory(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        return Ok(text.to_owned());
    }
    Err(format!("`{text}` is not an absolute path; give the directory's path from the root"))
}

fn variable(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once(':').ok_or("write it as PROGRAM:VARIABLE, such as git:LC_ALL")?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

fn tool(text: &str) -> Result<(String, String), String> {
    let form = "write it as SERVER:TOOL, such as files:read_file; each tool is granted by its name";
    let (server, tool) = text.split_once(':').ok_or(form)?;
    if !is_tool_name(tool) {
        return Err(form.to_owned());
    }
    Ok((server.to_owned(), tool.to_owned()))
}

/// True if the first of these words is a term of a call.
fn are_terms(words: &str) -> bool {
    let first = words.split(',').next().unwrap_or_default();
    Permissions::named(first).is_some() || ["approve", "worktrees"].contains(&first)
}

fn delegate(text: &str) -> Result<(String, Option<DelegateTerms>), String> {
    // The id of a skill may have a colon; terms have none.
    let parts = match text.contains('/') {
        true => text.rsplit_once(':').filter(|(_, words)| are_terms(words)),
        false => text.split_once(':'),
    };
    let (name, words) = parts.map_or((text, None), |(name, words)| (name, Some(words)));
    if name.contains('/') {
        Callee::parse(name)?;
    }
    let Some(words) = words else { return Ok((name.to_owned(), None)) };
    let mut terms = DelegateTerms::default();
    for word in words.split(',') {
        match Permissions::named(word) {
            Some(permissions) => terms.permissions = permissions,
            None if word == "approve" => terms.approve = true,
            None if word == "worktrees" => terms.worktrees = true,
            None => {
                let known = Permissions::ALL.map(Permissions::word).join("`, `");
                return Err(format!(
                    "`{word}` is not a term of a call; the terms are `{known}`, `approve` and `worktrees`"
                ));
            }
        }
    }
    Ok((name.to_owned(), Some(terms)))
}

fn limit(text: &str) -> Result<(LimitName, u64), String> {
    let (name, number) =
        text.split_once('=').ok_or("write it as LIMIT=NUMBER, such as cpu_ms=5000")?;
    let name: LimitName = name.parse().map_err(|why: UnknownLimit| why.to_string())?;
    let number = number.parse().map_err(|_| format!("`{number}` is not a number"))?;
    name.check(number).map_err(|why| why.to_string())?;
    Ok((name, number))
}

fn host(text: &str) -> Result<HostPattern, String> {
    HostPattern::try_from(text.to_owned()).map_err(|why| why.to_string())
}

fn header(text: &str) -> Result<(HostPattern, HeaderName, HeaderTemplate), String> {
    let form =
        "write it as HOST:NAME=VALUE, such as \"api.example.com:Authorization=Bearer secret:KEY\"";
    let (to, named) = text.split_once(':').ok_or(form)?;
    let (name, value) = named.split_once('=').ok_or(form)?;
    let name = HeaderName::try_from(name.to_owned()).map_err(|why| why.to_string())?;
    let value = HeaderTemplate::try_from(value.to_owned()).map_err(|why| why.to_string())?;
    Ok((host(to)?, name, value))
}

fn access(text: &str) -> Result<WorkspaceAccess, String> {
    match text {
        "read" => Ok(WorkspaceAccess::Read),
        "read-write" => Ok(WorkspaceAccess::ReadWrite),
        _ => Err("it is `read` or `read-write`".to_owned()),
    }
}

impl GrantOptions {
    /// True if the options name no permission.
    pub(super) fn is_empty(&self) -> bool {
        let Self { pin: _, key: _, dev: _, .. } = self;
        let named = Self { pin: false, key: None, dev: false, ..self.clone() };
        named == Self::default()
    }

    /// True if the program is named by `--program`.
    pub(super) fn names(&self, program: &str) -> bool {
        self.program.iter().any(|(name, _)| name == program)
    }

    /// Adds the requested permissions to the grant `before` of a component that asks for `ask`.
    ///
    /// # Errors
    ///
    /// If a permission is named that the component does not ask for: it would have no effect.
    pub(super) fn on_top_of(&self, before: Grant, ask: &Ask) -> Result<Grant, CommandError> {
        let mut grant = before;
        if self.all {
            for name in ask.process.keys() {
                grant.process.entry(name.clone()).or_default();
            }
            grant.memory = widened(grant.memory, ask.memory.is_some());
            grant.files = widened(grant.files, ask.files.is_some());
            grant.workspace = grant.workspace.max(ask.workspace.as_ref().map(|ask| ask.access));
        }
        grant = self.with_hosts(grant, ask)?;
        if self.workspace.is_some() {
            if ask.workspace.is_none() {
                return Err(not_requested(
                    "does not ask for the files of a task's directory",
                    "nothing of the kind",
                ));
            }
            grant.workspace = self.workspace;
        }
        for (name, path) in &self.program {
            requested_program(ask, name)?;
            let program = grant.process.entry(name.clone()).or_default();
            if path.is_some() {
                program.path.clone_from(path);
            }
        }
        for (variables, which) in [(&self.pass, Which::Pass), (&self.set, Which::Set)] {
            for (name, variable) in variables {
                let requested = requested_program(ask, name)?;
                let program = grant.process.get_mut(name).ok_or_else(|| not_run(name))?;
                which.add(program, requested, name, variable)?;
            }
        }
        if self.pin {
            grant.process.values_mut().for_each(|program| program.pin = Pin::AsFound);
        }
        grant.memory = named_bytes("memory", self.memory, ask.memory.is_some(), grant.memory)?;
        grant.files = named_bytes("files", self.files, ask.files.is_some(), grant.files)?;
        let peers = &ask.delegate.agents;
        if !self.delegate.is_empty() && peers.is_none() {
            return Err(not_requested("calls no other agents", "`delegate`"));
        }
        let other = self.delegate.iter().map(|(agent, _)| agent);
        if let Some(agent) = other.filter(|agent| *agent != "*").find(|it| !peers.overlaps(it)) {
            let named = peers.named().map(ToString::to_string).collect();
            let problem = format!("does not ask to call the agent `{agent}`");
            return Err(not_requested(&problem, &among(&named)));
        }
        let all = peers.named().filter(|_| self.all);
        all.for_each(|agent| grant.delegate.allow(agent.to_string()));
        grant = self.with_tools(grant, ask)?;
        grant.limits.extend(self.limit.iter().copied());
        for (agent, terms) in &self.delegate {
            match terms {
                Some(terms) => grant.delegate.allow_on(agent.clone(), *terms),
                None => grant.delegate.allow(agent.clone()),
            }
        }
        if !self.directory.is_empty() {
            grant.directories = Some(self.directory.iter().cloned().collect());
        }
        Ok(grant)
    }
}

impl GrantOptions {
    /// Adds the named tools and, with `--all`, those that the component names.
    fn with_tools(&self, mut grant: Grant, ask: &Ask) -> Result<Grant, CommandError> {
        for (server, tool) in &self.tool {
            if !is_requested(&ask.tools, server, tool) {
                let problem = format!("does not ask to call the tool `{tool}` of `{server}`");
                let requested = ask.tools.iter().flat_map(|(server, asked)| {
                    asked.names.iter().map(move |tool| format!("{server}:{tool}"))
                });
                return Err(not_requested(&problem, &among(&requested.collect())));
            }
            grant.tools.entry(server.clone()).or_default().insert(tool.clone());
        }
        let all = ask.tools.iter().filter(|(server, _)| self.all && !is_every(server));
        for (server, requested) in all {
            let named = requested.names.iter().filter(|tool| !is_every(tool)).cloned();
            grant.tools.entry(server.clone()).or_default().extend(named);
        }
        grant.tools.retain(|_, tools| !tools.is_empty());
        Ok(grant)
    }

    /// Adds the named hosts and their headers.
    fn with_hosts(&self, mut grant: Grant, ask: &Ask) -> Result<Grant, CommandError> {
        let mut hosts: BTreeMap<HostPattern, HttpGrant> = grant.http.into();
        if self.all {
            let named = ask.http.keys().filter(|host| **host != HostPattern::Any);
            for host in named {
                hosts.entry(host.clone()).or_default();
            }
        }
        for host in &self.http {
            let word = String::from(host.clone());
            if !ask.http.keys().any(|pattern| pattern == host || pattern.matches(&word)) {
                let requested = ask.http.keys().cloned().map(String::from).collect();
                let problem = format!("sends no requests to `{word}`");
                return Err(not_requested(&problem, &among(&requested)));
            }
            hosts.entry(host.clone()).or_default();
        }
        for (host, name, value) in &self.header {
            let Some(granted) = hosts.get_mut(host) else {
                let host = String::from(host.clone());
                return Err(CommandError::usage(format!(
                    "put a header into requests to `{host}`: the host itself is not granted; add `--http {host}`"
                )));
            };
            granted.headers.insert(name.clone(), value.clone());
        }
        let hosts = hosts.try_into();
        grant.http = hosts.map_err(|why: a2a_hub_core::grant::http::InvalidHttpGrant| {
            CommandError::usage(why.to_string())
        })?;
        Ok(grant)
    }
}

/// List of variables of a program: those passed from the environment, or those that the plug-in
/// sets.
#[derive(Clone, Copy)]
enum Which {
    Pass,
    Set,
}

impl Which {
    fn add(
        self,
        granted: &mut ProgramGrant,
        requested: &ProgramAsk,
        program: &str,
        variable: &str,
    ) -> Result<(), CommandError> {
        let (verb, requested, unnamed) = match self {
            Self::Pass => ("be passed", &requested.pass, requested.passed_unnamed()),
            Self::Set => ("be set", &requested.set, requested.set_unnamed()),
        };
        if !requested.contains(variable) {
            let problem = format!("does not ask for `{variable}` of `{program}` to {verb}");
            return Err(not_requested(&problem, &among(requested)));
        }
        let granted = match self {
            Self::Pass => &mut granted.pass,
            Self::Set => &mut granted.set,
        };
        granted.get_or_insert(unnamed).insert(variable.to_owned());
        Ok(())
    }
}

/// Returns the allowance in bytes under `--all`.
fn widened(before: Allowance, is_requested: bool) -> Allowance {
    if is_requested { Allowance::AsAsked } else { before }
}

fn named_bytes(
    capability: &str,
    named: Option<Option<u64>>,
    is_requested: bool,
    before: Allowance,
) -> Result<Allowance, CommandError> {
    match named {
        None => Ok(before),
        Some(_) if !is_requested => {
            Err(not_requested(&format!("asks for no {capability}"), "nothing of the kind"))
        }
        Some(None) => Ok(Allowance::AsAsked),
        Some(Some(bytes)) => Ok(Allowance::Bytes(bytes)),
    }
}

fn requested_program<'a>(ask: &'a Ask, name: &str) -> Result<&'a ProgramAsk, CommandError> {
    ask.process.get(name).ok_or_else(|| {
        let problem = format!("does not ask to run `{name}`");
        not_requested(&problem, &among(&ask.process.keys().cloned().collect()))
    })
}

fn among(words: &BTreeSet<String>) -> String {
    if words.is_empty() {
        return "none at all".to_owned();
    }
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

fn not_requested(problem: &str, instead: &str) -> CommandError {
    CommandError::usage(format!(
        "the plug-in {problem}, so granting it has no effect; it asks for {instead}: see `a2a-hub \
         plugin inspect`"
    ))
}

fn not_run(program: &str) -> CommandError {
    CommandError::usage(format!(
        "grant a variable of `{program}`: the program itself is not granted; add `--program {program}`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_core::grant::{DelegateAsk, delegate::PeersAsk, memory::MemoryAsk};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        wanted: GrantOptions,
    }

    fn wanted(args: &[&str]) -> GrantOptions {
        Line::try_parse_from([&["grant"], args].concat()).unwrap().wanted
    }

    fn ask() -> Ask {
        let git = ProgramAsk {
            args: vec![vec!["log".to_owned()]].try_into().unwrap(),
            pass: ["HOME".to_owned(), "NODE_OPTIONS".to_owned()].into(),
            set: ["LC_ALL".to_owned(), "LD_PRELOAD".to_owned()].into(),
            ..ProgramAsk::default()
        };
        Ask {
            process: [("git".to_owned(), git), ("sh".to_owned(), ProgramAsk::default())].into(),
            memory: Some(MemoryAsk { max_bytes: 4096, max_items: None, reason: None }),
            delegate: DelegateAsk { agents: PeersAsk::Any(true), reason: None },
            ..Ask::default()
        }
    }

    fn granted(before: Grant, args: &[&str]) -> String {
        match wanted(args).on_top_of(before, &ask()) {
            Ok(grant) => toml::to_string(&grant).unwrap(),
            Err(why) => why.to_string(),
        }
    }

    #[test]
    fn all_excludes_delegation_and_loader_variables() {
        insta::assert_snapshot!(granted(Grant::default(), &["--all"]), @r"
        memory = true

        [process.git]

        [process.sh]
        ");
        let all = wanted(&["--all"]).on_top_of(Grant::default(), &ask()).unwrap();
        let settled = all.settled(&ask());
        assert_eq!(settled.process["git"].set, Some(["LC_ALL".to_owned()].into()));
        assert_eq!(settled.process["git"].pass, Some(["HOME".to_owned()].into()));
        assert_eq!(settled.memory, Allowance::Bytes(4096), "the number of this very manifest");
    }

    #[test]
    fn named_permissions_extend_existing_grant() {
        let before = Grant { memory: Allowance::Bytes(10), ..Grant::default() };
        let more = [
            "--program",
            "git=/usr/bin/git",
            "--set",
            "git:LD_PRELOAD",
            "--pin",
            "--delegate",
            "codex",
        ];
        insta::assert_snapshot!(granted(before.clone(), &more), @r#"
        memory = 10
        delegate = ["codex"]

        [process.git]
        path = "/usr/bin/git"
        pin = true
        set = ["LC_ALL", "LD_PRELOAD"]
        "#);
        let terms = ["--delegate", "codex:edit,approve,worktrees", "--delegate", "gemini"];
        insta::assert_snapshot!(granted(before.clone(), &terms), @r#"
        memory = 10

        [delegate.codex]
        permissions = "edit"
        approve = true
        worktrees = true

        [delegate.gemini]
        permissions = "ask"
        approve = false
        worktrees = false
        "#);
        let refused = Line::try_parse_from(["grant", "--delegate", "codex:rw"]).err().unwrap();
        let refused = refused.to_string();
        assert!(
            refused.contains("`rw` is not a term of a call; the terms are `read-only`, "),
            "{refused}"
        );
        insta::assert_snapshot!(granted(before.clone(), &["--memory=20", "--directory", "/srv"]), @r#"
        memory = 20
        directories = ["/srv"]
        "#);
        insta::assert_snapshot!(granted(before, &["--memory"]), @"memory = true");
    }

    #[test]
    fn named_agents_are_granted_by_all() {
        let ask: Ask = toml::from_str("[delegate]\nagents = ['codex', 'echo']").unwrap();
        let granted = |args: &[&str]| match wanted(args).on_top_of(Grant::default(), &ask) {
            Ok(grant) => toml::to_string(&grant).unwrap(),
            Err(why) => why.to_string(),
        };
        insta::assert_snapshot!(granted(&["--all"]), @r#"delegate = ["codex", "echo"]"#);
        insta::assert_snapshot!(granted(&["--delegate", "echo"]), @r#"delegate = ["echo"]"#);
        let refused = granted(&["--delegate", "gemini"]);
        assert!(refused.contains("it asks for `codex`, `echo`"), "{refused}");
    }

    #[test]
    fn tools_are_granted_by_name() {
        let ask: Ask =
            toml::from_str("[tools.files]\nnames = ['read', 'write']\n[tools.web]\nnames = ['*']")
                .unwrap();
        let granted = |args: &[&str]| match wanted(args).on_top_of(Grant::default(), &ask) {
            Ok(grant) => toml::to_string(&grant).unwrap(),
            Err(why) => why.to_string(),
        };
        insta::assert_snapshot!(granted(&["--tool", "files:read", "--tool", "web:get"]), @r#"
        [tools]
        files = ["read"]
        web = ["get"]
        "#);
        insta::assert_snapshot!(granted(&["--all"]), @r#"
        [tools]
        files = ["read", "write"]
        "#);
        insta::assert_snapshot!(granted(&["--tool", "files:remove"]), @"the plug-in does not ask to call the tool `remove` of `files`, so granting it has no effect; it asks for `files:read`, `files:write`, `web:*`: see `a2a-hub plugin inspect`");
        let every = Line::try_parse_from(["grant", "--tool", "files:*"]).map(drop).unwrap_err();
        assert!(every.to_string().contains("by its name"), "{every}");
    }

    #[test]
    fn hosts_are_granted_with_secret_headers() {
        let ask: Ask = toml::from_str(
            "[http.'api.example.com']\n[http.'*']\n[workspace]\naccess = 'read-write'",
        )
        .unwrap();
        let granted = |args: &[&str]| match wanted(args).on_top_of(Grant::default(), &ask) {
            Ok(grant) => toml::to_string(&grant).unwrap(),
            Err(why) => why.to_string(),
        };
        insta::assert_snapshot!(granted(&["--all"]), @r#"
        workspace = "read-write"

        [http."api.example.com"]
        scheme = "https"
        private = false

        [http."api.example.com".headers]
        "#);
        let key = "api.example.com:Authorization=Bearer secret:KEY";
        insta::assert_snapshot!(granted(&["--http", "api.example.com", "--header", key, "--workspace", "read"]), @r#"
        workspace = "read"

        [http."api.example.com"]
        scheme = "https"
        private = false

        [http."api.example.com".headers]
        authorization = "Bearer secret:KEY"
        "#);
        assert!(
            granted(&["--http", "other.org"]).contains("other.org"),
            "any that the operator names"
        );
        insta::assert_snapshot!(granted(&["--header", key]), @"put a header into requests to `api.example.com`: the host itself is not granted; add `--http api.example.com`");
    }

    #[test]
    fn unrequested_permission_is_refused() {
        let refused = |args: &[&str]| granted(Grant::default(), args);
        insta::assert_snapshot!(refused(&["--program", "rm"]), @"the plug-in does not ask to run `rm`, so granting it has no effect; it asks for `git`, `sh`: see `a2a-hub plugin inspect`");
        insta::assert_snapshot!(refused(&["--files"]), @"the plug-in asks for no files, so granting it has no effect; it asks for nothing of the kind: see `a2a-hub plugin inspect`");
        insta::assert_snapshot!(refused(&["--set", "git:LC_ALL"]), @"grant a variable of `git`: the program itself is not granted; add `--program git`");
        insta::assert_snapshot!(refused(&["--program", "sh", "--pass", "sh:HOME"]), @"the plug-in does not ask for `HOME` of `sh` to be passed, so granting it has no effect; it asks for none at all: see `a2a-hub plugin inspect`");
    }

    #[test]
    fn last_limit_option_wins() {
        let before = wanted(&["--limit", "cpu_ms=7", "--limit", "events=9"]);
        let before = before.on_top_of(Grant::default(), &ask()).unwrap();
        insta::assert_snapshot!(granted(before, &["--limit", "cpu_ms=5000", "--memory"]), @r"
        memory = true

        [limits]
        cpu_ms = 5000
        events = 9
        ");
        for (wrong, why) in [
            ("cpu_ms", "write it as LIMIT=NUMBER"),
            ("cpu_ms=-1", "`-1` is not a number"),
            ("cpu=1", "expected one of `memory_mb`"),
            ("memory_mb=2000", "it must be from 1 to 1024"),
        ] {
            let told = Line::try_parse_from(["grant", "--limit", wrong]).map(drop).unwrap_err();
            assert!(told.to_string().contains(why), "{told}");
        }
    }

    #[test]
    fn key_and_dev_name_no_permission() {
        assert!(wanted(&[]).is_empty());
        assert!(wanted(&["--dev", "--key", "RW", "--pin"]).is_empty());
        assert!(!wanted(&["--memory"]).is_empty());
        let bad = Line::try_parse_from(["grant", "--program", "git=bin/git"]).map(drop);
        assert!(bad.unwrap_err().to_string().contains("not an absolute path"));
    }
}
