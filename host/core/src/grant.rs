//! Permissions of a guest: the intersection of its manifest's requests ([`Ask`]) and the operator's
//! grant ([`Grant`]). Denied by default; every refusal names the line that would allow the call.

pub mod argument_patterns;
mod ask;
pub mod byte_limit;
pub mod confinement;
pub mod delegate;
pub mod host_pattern;
pub mod http;
pub mod http_header;
pub mod loader_variable;
pub mod memory;
pub mod permissions;
pub mod resource_limits;
pub mod tools;
pub mod withdrawal;
pub mod workspace;

use crate::grant::{
    argument_patterns::{Forms, MAX_COMPARISONS},
    byte_limit::Allowance,
    delegate::{DelegateGrants, PeersAsk},
    http::{EffectiveHttp, HttpGrants},
    loader_variable::loads_code,
    memory::MemoryAsk,
    resource_limits::GrantedLimits,
    tools::ToolNames,
    workspace::WorkspaceAccess,
};
pub use ask::{Ask, DelegateAsk, FilesAsk, ProgramAsk, Reports, Resume, Trial};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Permissions that the operator gives an agent, as in the configuration and in the grant records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    /// Limit of its memory in bytes; at most what it asks for.
    #[serde(skip_serializing_if = "Allowance::is_none")]
    pub memory: Allowance,
    /// Limit of its memory in items; at most what it asks for. Default: as asked, at most 100,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_items: Option<u64>,
    /// Limit in bytes of each task's files for its programs; at most what it asks for.
    #[serde(skip_serializing_if = "Allowance::is_none")]
    pub files: Allowance,
    /// Access to the files of its working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceAccess>,
    /// Agents that it may call, by name; `*` is every other agent.
    #[serde(skip_serializing_if = "DelegateGrants::is_empty")]
    pub delegate: DelegateGrants,
    /// Tools that it may call, each by name, by their server.
    #[serde(skip_serializing_if = "ToolNames::is_empty")]
    pub tools: ToolNames,
    /// Directories that its programs may work in, as absolute paths. Default: the configuration's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directories: Option<BTreeSet<String>>,
    /// Limits of each of its tasks that override the configuration.
    #[serde(skip_serializing_if = "GrantedLimits::is_empty")]
    pub limits: GrantedLimits,
    /// Hosts that it may send requests to.
    #[serde(skip_serializing_if = "HttpGrants::is_empty")]
    pub http: HttpGrants,
    /// Programs that it may run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub process: BTreeMap<String, ProgramGrant>,
}

/// Permissions for one program. A field that is left out is as the agent asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramGrant {
    /// Path of the program; by default its name is looked up on the hub's `PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Pin of the program to the exact file that was granted.
    #[serde(skip_serializing_if = "Pin::is_free")]
    pub pin: Pin,
    /// Restricts the allowed argument patterns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Forms>,
    /// Restricts the variables passed from the hub's environment (patterns for [`passes`]).
    /// Default: as asked, except variables that load other code ([`loads_code`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<BTreeSet<String>>,
    /// Restricts the variables that the guest may set. Default: as asked, except variables that can
    /// make a program run other code ([`leads_astray`](loader_variable::leads_astray)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<BTreeSet<String>>,
    /// Limit of concurrent processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_running: Option<usize>,
}

/// Pin of a program to one exact file: `pin` of a program's grant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RawPin", into = "RawPin")]
pub enum Pin {
    /// Any file at the path, because programs update themselves: written `false`, or left out.
    #[default]
    Free,
    /// The file that is present at the time of the grant: written `true`.
    AsFound,
    /// The file with this SHA-256 digest, in hex: a grant record holds it in place of `true`.
    To(String),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected true, false or a SHA-256 digest in hex")]
enum RawPin {
    Flag(bool),
    Digest(String),
}

impl From<RawPin> for Pin {
    fn from(raw: RawPin) -> Self {
        match raw {
            RawPin::Flag(false) => Self::Free,
            RawPin::Flag(true) => Self::AsFound,
            RawPin::Digest(digest) => Self::To(digest),
        }
    }
}

impl From<Pin> for RawPin {
    fn from(pin: Pin) -> Self {
        match pin {
            Pin::Free => Self::Flag(false),
            Pin::AsFound => Self::Flag(true),
            Pin::To(digest) => Self::Digest(digest),
        }
    }
}

impl Pin {
    fn is_free(&self) -> bool {
        *self == Self::Free
    }
}

/// Default limit of an agent's concurrent programs: ample for a few tasks, safe for the machine.
pub const DEFAULT_MAX_RUNNING: usize = 16;

/// Maximum number of arguments: a longer list belongs on standard input.
const MAX_ARGS: usize = 4_096;

impl Grant {
    /// Grants all of `ask` except hosts, the workspace, tools and other agents (their costs are the
    /// operator's decision): the grant of bundled agents.
    pub fn everything(ask: &Ask) -> Self {
        let process = ask.process.keys().map(|name| (name.clone(), ProgramGrant::default()));
        let (memory, files) = (Allowance::AsAsked, Allowance::AsAsked);
        Self { process: process.collect(), memory, files, ..Self::default() }.trusting(ask)
    }

    /// Fills in the grant of a component that the operator installed together with the hub:
    /// variables left out of the grant are as asked, without exception.
    #[must_use]
    pub fn trusting(mut self, ask: &Ask) -> Self {
        for (name, program) in &mut self.process {
            if let Some(requested) = ask.process.get(name) {
                program.pass.get_or_insert_with(|| requested.pass.clone());
                program.set.get_or_insert_with(|| requested.set.clone());
            }
        }
        self
    }

    /// Makes the grant explicit for its record: fills in the requests of `ask` where the grant
    /// leaves something out, so that no later manifest widens it. For the current component the
    /// grant allows exactly the same as before.
    #[must_use]
    pub fn settled(mut self, ask: &Ask) -> Self {
        self.memory = self.memory.settled(ask.memory.as_ref().map(|ask| ask.max_bytes));
        let items = |requested: &MemoryAsk| {
            requested.max_items.map(|_| memory::items(Some(requested), None))
        };
        self.memory_items = self.memory_items.or_else(|| items(ask.memory.as_ref()?));
        self.files = self.files.settled(ask.files.as_ref().map(|ask| ask.max_bytes));
        self.http = self.http.settled(&ask.http);
        self.workspace = workspace::effective(ask.workspace.as_ref(), self.workspace);
        self.tools = tools::effective(&ask.tools, &self.tools);
        if let PeersAsk::Named(_) = &ask.delegate.agents {
            self.delegate = self.delegate.within(&ask.delegate.agents);
        }
        self.process.retain(|name, _| ask.process.contains_key(name));
        for (name, program) in &mut self.process {
            if let Some(requested) = ask.process.get(name) {
                program.args.get_or_insert_with(|| requested.args.clone());
                program.pass.get_or_insert_with(|| requested.passed_unnamed());
                program.set.get_or_insert_with(|| requested.set_unnamed());
            }
        }
        self
    }
}

/// Effective permissions of a guest: the intersection of its requests and its grant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveGrant {
    /// Programs that it may run.
    pub programs: BTreeMap<String, EffectiveProgram>,
    /// Memory limit in bytes; `None` if it has no memory.
    pub memory_bytes: Option<u64>,
    /// Memory limit in items.
    pub memory_items: u64,
    /// Limit in bytes of files for its programs; `None` if it may not write any.
    pub files_bytes: Option<u64>,
    /// Hosts that it may send requests to.
    pub http: EffectiveHttp,
    /// Access to the files of its working directory.
    pub workspace: Option<WorkspaceAccess>,
    /// Agents that it may call, with the terms of each.
    pub agents: DelegateGrants,
    /// Tools that it may call.
    pub tools: ToolNames,
    /// Directories that its programs may work in; `None` if the configuration decides.
    pub directories: Option<BTreeSet<String>>,
    /// Programs that it asks for and was not granted, for messages to the operator.
    pub refused: BTreeSet<String>,
}

/// Effective permissions for one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveProgram {
    /// Path that the operator set.
    pub path: Option<String>,
    /// Pin to one exact file.
    pub pin: Pin,
    /// Lists of argument patterns; the arguments must match a pattern of each list.
    pub forms: Vec<Forms>,
    /// Variables passed on from the hub's environment, as patterns for [`passes`].
    pub pass: BTreeSet<String>,
    /// Variables that the guest may set.
    pub set: BTreeSet<String>,
    /// Paths of the program's own data, as in [`ProgramAsk::keeps`].
    pub keeps: BTreeSet<String>,
    /// Variables that the guest asks to set and was not granted.
    pub withheld: BTreeSet<String>,
    /// Limit of concurrent processes.
    pub max_running: usize,
}

/// Intersects `ask` with `grant`.
pub fn intersect(ask: &Ask, grant: &Grant) -> EffectiveGrant {
    let mut effective = EffectiveGrant {
        memory_bytes: grant.memory.limit_for(ask.memory.as_ref().map(|ask| ask.max_bytes)),
        memory_items: memory::items(ask.memory.as_ref(), grant.memory_items),
        files_bytes: grant.files.limit_for(ask.files.as_ref().map(|ask| ask.max_bytes)),
        directories: grant.directories.clone(),
        workspace: workspace::effective(ask.workspace.as_ref(), grant.workspace),
        http: EffectiveHttp::new(&ask.http, &grant.http),
        tools: tools::effective(&ask.tools, &grant.tools),
        agents: grant.delegate.within(&ask.delegate.agents),
        ..EffectiveGrant::default()
    };
    for (name, requested) in &ask.process {
        let Some(granted) = grant.process.get(name) else {
            effective.refused.insert(name.clone());
            continue;
        };
        let pass = match &granted.pass {
            Some(only) => in_both(&requested.pass, only),
            None => requested.passed_unnamed(),
        };
        let set = match &granted.set {
            Some(only) => requested.set.intersection(only).cloned().collect(),
            None => requested.set_unnamed(),
        };
        let withheld = requested.set.difference(&set).cloned().collect();
        let forms = [Some(requested.args.clone()), granted.args.clone()];
        let program = EffectiveProgram {
            path: granted.path.clone(),
            forms: forms.into_iter().flatten().collect(),
            pin: granted.pin.clone(),
            pass,
            set,
            withheld,
            keeps: requested.keeps.clone(),
            max_running: granted.max_running.unwrap_or(DEFAULT_MAX_RUNNING),
        };
        effective.programs.insert(name.clone(), program);
    }
    effective
}

/// True if a pattern of `pass` matches a variable: `HOME` matches itself, `VIBE_*` all that begin
/// with `VIBE_`, except variables that load other code ([`loads_code`]), which must be named
/// exactly. A bare `*` matches nothing, because its effect would be unknown.
pub fn passes(word: &str, variable: &str) -> bool {
    word == variable || (covers(word, variable) && !loads_code(variable))
}

/// True if a pattern with a final `*` covers `other`, a variable or another pattern.
fn covers(word: &str, other: &str) -> bool {
    let prefix = word.strip_suffix('*').filter(|prefix| !prefix.is_empty());
    prefix.is_some_and(|prefix| other.starts_with(prefix))
}

/// Patterns for the variables that both sides match: of overlapping patterns, the narrower one.
fn in_both(requested: &BTreeSet<String>, granted: &BTreeSet<String>) -> BTreeSet<String> {
    let pairs = requested
        .iter()
        .flat_map(|requested| granted.iter().map(move |granted| (requested, granted)));
    let narrower = pairs.filter_map(|(requested, granted)| {
        let same = (requested == granted).then_some(granted);
        let less = same.or_else(|| covers(requested, granted).then_some(granted));
        // A pattern with a star never matches a variable that must be named exactly.
        less.or_else(|| (covers(granted, requested) && !loads_code(requested)).then_some(requested))
    });
    narrower.cloned().collect()
}

/// Reason why a command is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// The component's own manifest does not ask for the program.
    #[error(
        "run `{program}`: this agent's manifest does not ask for it; an agent runs only what its `[process.{program}]` names"
    )]
    NotRequested {
        /// Program, as the manifest calls it.
        program: String,
    },
    /// The operator did not grant the program.
    #[error(
        "run `{program}`: not granted; the operator allows it with `[agents.{agent}.grant.process.{program}]` in the hub's configuration, or to a plug-in with `a2a-hub plugin grant {agent} --program {program}`"
    )]
    NotGranted {
        /// Program, as the manifest calls it.
        program: String,
        /// Agent that asked to run it.
        agent: String,
    },
    /// The arguments match no pattern.
    #[error(
        "run `{program}` with these arguments: none of the allowed forms fits {args}; caller's text may not begin with `-`, and belongs on stdin or after `--`"
    )]
    Arguments {
        /// Program, as the manifest calls it.
        program: String,
        /// Arguments, shortened for people.
        args: String,
    },
    /// The number of arguments exceeds the maximum for any program.
    #[error(
        "run `{program}` with {count} arguments: {MAX_ARGS} are passed on at most; a longer list belongs on stdin"
    )]
    TooMany {
        /// Program, as the manifest calls it.
        program: String,
        /// Number of arguments.
        count: usize,
    },
    /// The operator did not grant the variable.
    #[error(
        "set `{name}` for `{program}`: not granted; a variable that could have the program run other code counts only where the \
         operator names it, with `set` in `[agents.{agent}.grant.process.{program}]` of the hub's configuration, or to a plug-in with \
         `a2a-hub plugin grant {agent} --set {program}:{name}`"
    )]
    VariableNotGranted {
        /// Program, as the manifest calls it.
        program: String,
        /// Environment variable.
        name: String,
        /// Agent that asked to set it.
        agent: String,
    },
    /// Matching the arguments against all patterns would take too long.
    #[error(
        "run `{program}` with {count} arguments: with forms of so many tokens they take more than {MAX_COMPARISONS} comparisons; \
         fewer arguments, or shorter forms in the manifest's `[process.{program}]`, take less; a long list belongs on stdin"
    )]
    TooLong {
        /// Program, as the manifest calls it.
        program: String,
        /// Number of arguments.
        count: usize,
    },
    /// The manifest does not ask to set the variable.
    #[error("set `{name}` for `{program}`: the manifest's `set` does not name it")]
    Variable {
        /// Program, as the manifest calls it.
        program: String,
        /// Environment variable.
        name: String,
    },
}

impl EffectiveGrant {
    /// Adds configured paths of programs without one in the grant, and variables for all programs.
    pub fn apply_overrides(&mut self, places: &BTreeMap<String, String>, pass: &BTreeSet<String>) {
        for (name, program) in &mut self.programs {
            program.path = program.path.take().or_else(|| places.get(name).cloned());
            program.pass.extend(pass.iter().cloned());
        }
    }

    /// True if it may call the agent of that name.
    pub fn may_call(&self, agent: &str) -> bool {
        self.agents.reaches(agent)
    }

    /// Patterns for all variables that any of its programs is passed.
    pub fn passed(&self) -> BTreeSet<String> {
        self.programs.values().flat_map(|program| program.pass.iter().cloned()).collect()
    }

    /// Permissions of `agent` for `program`, or the reason why it may not run the program at all.
    pub fn named(&self, agent: &str, program: &str) -> Result<&EffectiveProgram, GrantRefusal> {
        self.programs.get(program).ok_or_else(|| {
            let (agent, name) = (agent.to_owned(), program.to_owned());
            if self.refused.contains(program) {
                GrantRefusal::NotGranted { program: name, agent }
            } else {
                GrantRefusal::NotRequested { program: name }
            }
        })
    }

    /// Checks arguments and variables of a call of `program`, and returns its permissions.
    pub fn program(
        &self,
        agent: &str,
        program: &str,
        args: &[String],
        variables: &[(String, String)],
    ) -> Result<&EffectiveProgram, GrantRefusal> {
        let program_name = || program.to_owned();
        let effective = self.named(agent, program)?;
        if args.len() > MAX_ARGS {
            return Err(GrantRefusal::TooMany { program: program_name(), count: args.len() });
        }
        let compared = effective.forms.iter().map(|forms| forms.comparisons(args.len()));
        if compared.fold(0, usize::saturating_add) > MAX_COMPARISONS {
            return Err(GrantRefusal::TooLong { program: program_name(), count: args.len() });
        }
        if !effective.forms.iter().all(|forms| forms.allow(args))
            || args.iter().any(|arg| arg.contains('\0'))
        {
            return Err(GrantRefusal::Arguments { program: program_name(), args: shortened(args) });
        }
        for (name, value) in variables {
            if effective.withheld.contains(name) {
                let (name, agent) = (name.clone(), agent.to_owned());
                return Err(GrantRefusal::VariableNotGranted {
                    program: program_name(),
                    name,
                    agent,
                });
            }
            if !effective.set.contains(name) || name.contains('=') || value.contains('\0') {
                return Err(GrantRefusal::Variable { program: program_name(), name: name.clone() });
            }
        }
        Ok(effective)
    }
}

/// Arguments for an error message: quoted, and at most one line long.
fn shortened(args: &[String]) -> String {
    const LINE: usize = 200;
    // Bounds the work for any number and length of arguments: the cut-off part is never formatted.
    let visible = args.iter().take(LINE).map(|arg| &arg[..arg.floor_char_boundary(LINE)]);
    let mut text = format!("{:?}", visible.collect::<Vec<_>>());
    if text.len() > LINE {
        text.truncate(text.floor_char_boundary(LINE));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        text.split('|').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn pattern_matches_variables_by_prefix() {
        let cases = [
            ("HOME", "HOME", true),
            ("HOME", "HOMES", false),
            ("VIBE_*", "VIBE_HOME", true),
            ("VIBE_*", "VIBE_", true),
            ("VIBE_*", "VIB", false),
            ("*", "HOME", false),
            ("", "HOME", false),
            ("GIT_*", "GIT_AUTHOR_NAME", true),
            // Variables that load other code must be named exactly.
            ("GIT_*", "GIT_SSH_COMMAND", false),
            ("LD_*", "LD_PRELOAD", false),
            ("LD_PRELOAD", "LD_PRELOAD", true),
        ];
        for (word, variable, named) in cases {
            assert_eq!(passes(word, variable), named, "{word} / {variable}");
        }
    }

    #[test]
    fn configured_paths_and_variables_reach_programs() {
        let ask = git(&["log"]);
        let mut held = intersect(&ask, &Grant::everything(&ask));
        let places = [("git", "/venv/bin/git"), ("sh", "/bin/sh")];
        let places = places.map(|(name, path)| (name.to_owned(), path.to_owned())).into();
        held.apply_overrides(&places, &BTreeSet::from(["GIT_*".to_owned()]));
        assert_eq!(held.programs.keys().collect::<Vec<_>>(), ["git"], "a place is no grant");
        assert_eq!(held.programs["git"].path.as_deref(), Some("/venv/bin/git"));
        assert_eq!(held.passed(), ["GIT_*".to_owned(), "HOME".to_owned()].into());

        let own = ProgramGrant { path: Some("/usr/bin/git".to_owned()), ..ProgramGrant::default() };
        let grant = Grant { process: [("git".to_owned(), own)].into(), ..Grant::default() };
        let mut held = intersect(&ask, &grant);
        held.apply_overrides(&places, &BTreeSet::new());
        assert_eq!(held.programs["git"].path.as_deref(), Some("/usr/bin/git"), "the grant decides");
    }

    #[test]
    fn agents_are_granted_by_name() {
        let ask = Ask {
            delegate: DelegateAsk { agents: PeersAsk::Any(true), reason: None },
            ..Ask::default()
        };
        let grant = |names: &[&str]| Grant {
            delegate: names.iter().map(|&name| name.to_owned()).collect(),
            ..Grant::default()
        };
        let cases = [
            (&ask, grant(&[]), false),
            (&ask, grant(&["other"]), false),
            (&ask, grant(&["echo", "other"]), true),
            (&ask, grant(&["*"]), true),
            // Not even bundled agents call others without a grant.
            (&ask, Grant::everything(&ask), false),
            (&Ask::default(), grant(&["*"]), false),
        ];
        for (ask, grant, may) in cases {
            assert_eq!(intersect(ask, &grant).may_call("echo"), may, "{ask:?} {grant:?}");
        }
    }

    fn those(forms: &[&str]) -> Forms {
        forms.iter().map(|form| words(form)).collect::<Vec<_>>().try_into().unwrap()
    }

    fn git(forms: &[&str]) -> Ask {
        let args = those(forms);
        let set = BTreeSet::from(["LC_ALL".to_owned()]);
        let pass = BTreeSet::from(["HOME".to_owned()]);
        let keeps = BTreeSet::new();
        let program = ProgramAsk { args, pass, set, keeps, reason: None };
        Ask { process: BTreeMap::from([("git".to_owned(), program)]), ..Ask::default() }
    }

    #[test]
    fn refusals_name_the_way_out() {
        let ask = git(&["log"]);
        let nothing = intersect(&ask, &Grant::default());
        let all = intersect(&ask, &Grant::everything(&ask));
        let said = |held: &EffectiveGrant, program, args, variables: &[(String, String)]| {
            held.program("historian", program, &words(args), variables).unwrap_err().to_string()
        };
        insta::assert_snapshot!(said(&nothing, "git", "log", &[]), @"run `git`: not granted; the operator allows it with `[agents.historian.grant.process.git]` in the hub's configuration, or to a plug-in with `a2a-hub plugin grant historian --program git`");
        insta::assert_snapshot!(said(&all, "sh", "-c|id", &[]), @"run `sh`: this agent's manifest does not ask for it; an agent runs only what its `[process.sh]` names");
        insta::assert_snapshot!(said(&all, "git", "push", &[]), @r#"run `git` with these arguments: none of the allowed forms fits ["push"]; caller's text may not begin with `-`, and belongs on stdin or after `--`"#);
        let preload = [("LD_PRELOAD".to_owned(), "x".to_owned())];
        insta::assert_snapshot!(said(&all, "git", "log", &preload), @"set `LD_PRELOAD` for `git`: the manifest's `set` does not name it");
        assert!(all.program("historian", "git", &words("log"), &[]).is_ok());
        insta::assert_snapshot!(said(&all, "git", &"x|".repeat(5_000), &[]), @"run `git` with 5000 arguments: 4096 are passed on at most; a longer list belongs on stdin");
    }

    #[test]
    fn operator_narrows_requested_permissions() {
        let ask = git(&["log", "show|{}"]);
        let only_log = ProgramGrant {
            args: Some(those(&["log", "push"])),
            pass: Some(BTreeSet::from(["HOME".to_owned(), "TOKEN".to_owned()])),
            ..ProgramGrant::default()
        };
        let grant =
            Grant { process: BTreeMap::from([("git".to_owned(), only_log)]), ..Grant::default() };
        let held = intersect(&ask, &grant);
        let allowed = |args| held.program("a", "git", &words(args), &[]).is_ok();
        assert!(allowed("log"));
        assert!(!allowed("show|x"), "granted less than asked");
        assert!(!allowed("push"), "granted more than asked");
        assert_eq!(held.programs["git"].pass, BTreeSet::from(["HOME".to_owned()]));
    }

    proptest! {
        /// A variable is passed on if and only if both sides match it.
        #[test]
        fn variable_is_passed_if_both_match(
            asked in proptest::collection::btree_set("[AB]{0,3}\\*?", 0..4),
            granted in proptest::collection::btree_set("[AB]{0,3}\\*?", 0..4),
            variable in "[AB]{1,4}",
        ) {
            let named = |words: &BTreeSet<String>| words.iter().any(|word| passes(word, &variable));
            prop_assert_eq!(named(&in_both(&asked, &granted)), named(&asked) && named(&granted));
        }

        /// Removing a line from a grant never allows more.
        #[test]
        fn smaller_grant_never_allows_more(
            asked in proptest::collection::vec("[ab](\\|[ab{}-]{1,2}){0,2}", 1..4),
            granted in proptest::collection::vec("[ab](\\|[ab{}-]{1,2}){0,2}", 1..4),
            args in "[ab](\\|[ab-]{1,2}){0,2}",
        ) {
            let ask = git(&asked.iter().map(String::as_str).collect::<Vec<_>>());
            let with = |forms: &[String]| {
                let args = Some(those(&forms.iter().map(String::as_str).collect::<Vec<_>>()));
                let git = ProgramGrant { args, ..ProgramGrant::default() };
                intersect(&ask, &Grant { process: BTreeMap::from([("git".to_owned(), git)]), ..Grant::default() })
            };
            let allows = |held: &EffectiveGrant| held.program("a", "git", &words(&args), &[]).is_ok();
            if allows(&with(&granted[1..])) {
                prop_assert!(allows(&with(&granted)));
            }
        }
    }
}
