//! What a guest asks for, what the operator allows, and the overlap: closed by default.
//!
//! A component carries a manifest that says what it asks for ([`Ask`]); the operator writes what it may have
//! ([`Grant`]). It holds what stands in both. Every refusal names the line that would allow it.

use crate::{
    allowance::Allowance,
    delegate_grant::DelegateGrants,
    forms::{Forms, MAX_COMPARISONS},
    granted_limits::GrantedLimits,
    http_grant::{HeldHttp, HttpAsk, HttpGrants},
    http_host::HostPattern,
    loader_variable::{leads_astray, loads_code},
    memory_grant::{self, MemoryAsk},
    one_line::OneLine,
    tools_grant::{self, ToolNames, ToolsAsk},
    workspace_grant::{self, WorkspaceAccess, WorkspaceAsk},
};
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a component says of itself and asks for, as its manifest has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ask {
    /// The name it is made for; it joins under no other.
    pub id: Option<AgentId>,
    /// Its version, in its maker's words.
    pub version: Option<OneLine>,
    /// Who made it, by its own word: only a signature proves that.
    pub publisher: Option<OneLine>,
    /// What it is, for the operator who is to decide.
    pub description: Option<OneLine>,
    /// What it would be called besides; it is, where nobody else is, once the operator vouches for it.
    pub aliases: BTreeSet<AgentId>,
    /// The programs it would run, by the name it calls them.
    pub process: BTreeMap<String, ProgramAsk>,
    /// The memory it would keep.
    pub memory: Option<MemoryAsk>,
    /// The files it would hand to its programs.
    pub files: Option<FilesAsk>,
    /// The hosts it would send requests to.
    pub http: BTreeMap<HostPattern, HttpAsk>,
    /// What it would do with the files of its working directory.
    pub workspace: Option<WorkspaceAsk>,
    /// What it would do with other agents.
    pub delegate: DelegateAsk,
    /// The tools that it would call, by the server that has them.
    pub tools: BTreeMap<String, ToolsAsk>,
    /// Whether it takes a task up again that was cut off at work, when it hears the next message.
    pub resume: Resume,
    /// Whether it does one task of a conversation at a time, for its program's session takes no two writers.
    pub one_per_context: bool,
    /// How its programs are pointed at a model that is not there, to see whether they get on.
    pub trial: Option<Trial>,
}

/// What an agent does with a task that its hub's end cut off. A manifest says `false`, `true` or `"replay"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ResumeWord", into = "ResumeWord")]
pub enum Resume {
    /// Nothing: its work ended with the hub.
    #[default]
    Nothing,
    /// It takes the task up again when it hears the client's next message.
    Session,
    /// It runs again from the start, and is answered what it was answered before.
    Replay,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ResumeWord {
    Flag(bool),
    Word(String),
}

impl TryFrom<ResumeWord> for Resume {
    type Error = String;

    fn try_from(word: ResumeWord) -> Result<Self, String> {
        match word {
            ResumeWord::Flag(false) => Ok(Self::Nothing),
            ResumeWord::Flag(true) => Ok(Self::Session),
            ResumeWord::Word(word) if word == "replay" => Ok(Self::Replay),
            ResumeWord::Word(word) => {
                Err(format!("`resume` is true, false or \"replay\", and not {word:?}"))
            }
        }
    }
}

impl From<Resume> for ResumeWord {
    fn from(resume: Resume) -> Self {
        match resume {
            Resume::Nothing => Self::Flag(false),
            Resume::Session => Self::Flag(true),
            Resume::Replay => Self::Word("replay".to_owned()),
        }
    }
}

/// How a component's programs are pointed at the loopback model of `a2a-hub doctor --trial`. In the values, `{model}`
/// stands for its URL, such as `http://127.0.0.1:40000`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trial {
    /// Variables of the hub's environment, of those that the component's programs are passed.
    pub env: BTreeMap<String, String>,
    /// Files, by their paths below the home directory.
    pub files: BTreeMap<String, String>,
}

/// What a component would do with one program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramAsk {
    /// The forms of its arguments.
    pub args: Forms,
    /// Variables of the hub's environment that the program needs, in the words of [`passes`]. The guest never sees their values.
    pub pass: BTreeSet<String>,
    /// Variables that the guest would set itself.
    pub set: BTreeSet<String>,
    /// Where the program keeps what is its own, such as a login and its sessions: below the home directory, with a `/` at the end of
    /// a directory; or `$NAME`, where a variable that it is passed says. A confined program of an agent that comes with the hub may
    /// write there.
    pub keeps: BTreeSet<String>,
    /// Why it needs the program.
    pub reason: Option<OneLine>,
}

/// How much a component would write into files for its programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesAsk {
    /// All files of one task together, in bytes.
    pub max_bytes: u64,
    /// Why it needs to.
    pub reason: Option<OneLine>,
}

/// What a component would do with other agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DelegateAsk {
    /// Know which there are.
    pub agents: bool,
    /// Why it needs to.
    pub reason: Option<OneLine>,
}

/// What the operator allows an agent, as the configuration and the records of grants say it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    /// How many bytes it may remember; never more than it asks for.
    #[serde(skip_serializing_if = "Allowance::is_none")]
    pub memory: Allowance,
    /// How many items it may have in mind; never more than it asks for. If it is left out: as it asks, 100,000 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_items: Option<u64>,
    /// How many bytes each task may write into files for its programs; never more than it asks for.
    #[serde(skip_serializing_if = "Allowance::is_none")]
    pub files: Allowance,
    /// What it may do with the files of its working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<WorkspaceAccess>,
    /// The agents it may call, by name; `*` is every other one.
    #[serde(skip_serializing_if = "DelegateGrants::is_empty")]
    pub delegate: DelegateGrants,
    /// The tools that it may call, one by one, by the server that has them.
    #[serde(skip_serializing_if = "ToolNames::is_empty")]
    pub tools: ToolNames,
    /// The directories that its programs may work in, as absolute paths; otherwise those of the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directories: Option<BTreeSet<String>>,
    /// What each of its tasks may use up, where the operator says otherwise than the configuration.
    #[serde(skip_serializing_if = "GrantedLimits::is_empty")]
    pub limits: GrantedLimits,
    /// The hosts it may send requests to.
    #[serde(skip_serializing_if = "HttpGrants::is_empty")]
    pub http: HttpGrants,
    /// The programs it may run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub process: BTreeMap<String, ProgramGrant>,
}

/// What the operator allows an agent to do with one program. What is left out is as the agent asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramGrant {
    /// Where the program is; otherwise its name is looked up on the hub's `PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Whether it must be the very file that it was when it was granted.
    #[serde(skip_serializing_if = "Pin::is_free")]
    pub pin: Pin,
    /// Only these forms of arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Forms>,
    /// Only these variables of the hub's environment, in the same words. What is left out is as asked, but for variables by
    /// which other code is loaded ([`loads_code`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass: Option<BTreeSet<String>>,
    /// Only these variables may be set by the guest. What is left out is as asked, but for variables that lead a program
    /// astray ([`leads_astray`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<BTreeSet<String>>,
    /// How many may run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_running: Option<usize>,
}

/// Whether a program is one very file: `pin` of a program's grant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SaidPin", into = "SaidPin")]
pub enum Pin {
    /// Whatever stands at its path, for programs update themselves: written `false`, or left out.
    #[default]
    Free,
    /// What stands there when it is granted: written `true`.
    AsFound,
    /// The file of this SHA-256 digest, in hex: what a record holds in place of `true`.
    To(String),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected true, false or a SHA-256 digest in hex")]
enum SaidPin {
    Flag(bool),
    Digest(String),
}

impl From<SaidPin> for Pin {
    fn from(said: SaidPin) -> Self {
        match said {
            SaidPin::Flag(false) => Self::Free,
            SaidPin::Flag(true) => Self::AsFound,
            SaidPin::Digest(digest) => Self::To(digest),
        }
    }
}

impl From<Pin> for SaidPin {
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

/// Programs of one agent that may run at once, unless the grant says otherwise: enough for a few tasks, too few to take the machine.
pub const DEFAULT_MAX_RUNNING: usize = 16;

/// Arguments that a program may be started with: more are a list, which belongs on standard input.
const MAX_ARGS: usize = 4_096;

impl Grant {
    /// Everything that `ask` asks for, but for hosts, the workspace, tools and other agents: what the hub grants the agents it brings along. Whom one
    /// may call is for the operator to say, for it costs what the other costs.
    pub fn everything(ask: &Ask) -> Self {
        let process = ask.process.keys().map(|name| (name.clone(), ProgramGrant::default()));
        let (memory, files) = (Allowance::AsAsked, Allowance::AsAsked);
        Self { process: process.collect(), memory, files, ..Self::default() }.trusting(ask)
    }

    /// The same for a component that the operator installed together with the hub: of the variables of its programs, what the
    /// grant leaves out is as asked, without exception.
    #[must_use]
    pub fn trusting(mut self, ask: &Ask) -> Self {
        for (name, program) in &mut self.process {
            if let Some(asked) = ask.process.get(name) {
                program.pass.get_or_insert_with(|| asked.pass.clone());
                program.set.get_or_insert_with(|| asked.set.clone());
            }
        }
        self
    }

    /// The same for good, as it is recorded for the component that asks `ask`: what is left out, for it is as asked, is written
    /// down, so that no later manifest widens it. For that component the grant allows just what it did.
    #[must_use]
    pub fn settled(mut self, ask: &Ask) -> Self {
        self.memory = self.memory.settled(ask.memory.as_ref().map(|ask| ask.max_bytes));
        let items =
            |asked: &MemoryAsk| asked.max_items.map(|_| memory_grant::items(Some(asked), None));
        self.memory_items = self.memory_items.or_else(|| items(ask.memory.as_ref()?));
        self.files = self.files.settled(ask.files.as_ref().map(|ask| ask.max_bytes));
        self.http = self.http.settled(&ask.http);
        self.workspace = workspace_grant::held(ask.workspace.as_ref(), self.workspace);
        self.tools = tools_grant::held(&ask.tools, &self.tools);
        self.process.retain(|name, _| ask.process.contains_key(name));
        for (name, program) in &mut self.process {
            if let Some(asked) = ask.process.get(name) {
                program.args.get_or_insert_with(|| asked.args.clone());
                program.pass.get_or_insert_with(|| asked.passed_unnamed());
                program.set.get_or_insert_with(|| asked.set_unnamed());
            }
        }
        self
    }
}

impl ProgramAsk {
    /// What is passed where the operator names no variables.
    pub fn passed_unnamed(&self) -> BTreeSet<String> {
        self.pass.iter().filter(|word| !loads_code(word)).cloned().collect()
    }

    /// What may be set where the operator names no variables.
    pub fn set_unnamed(&self) -> BTreeSet<String> {
        self.set.iter().filter(|name| !leads_astray(name)).cloned().collect()
    }
}

/// What a guest holds: the overlap of what it asks and what it is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveGrant {
    /// The programs it may run.
    pub programs: BTreeMap<String, HeldProgram>,
    /// Bytes it may remember; none if it may not.
    pub memory_bytes: Option<u64>,
    /// Items it may have in mind.
    pub memory_items: u64,
    /// Bytes it may write into files for its programs; none if it may not.
    pub files_bytes: Option<u64>,
    /// The hosts it may send requests to.
    pub http: HeldHttp,
    /// What it may do with the files of its working directory.
    pub workspace: Option<WorkspaceAccess>,
    /// The agents it may call, and on which terms.
    pub agents: DelegateGrants,
    /// The tools that it may call.
    pub tools: ToolNames,
    /// The directories that its programs may work in; none if the grant leaves that to the configuration.
    pub directories: Option<BTreeSet<String>>,
    /// Programs it asks for and was not granted, so that the operator can be told.
    pub refused: BTreeSet<String>,
}

/// What a guest may do with one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldProgram {
    /// Where the operator says it is.
    pub path: Option<String>,
    /// Whether it must be one very file.
    pub pin: Pin,
    /// Forms of arguments, of each of which one must fit.
    pub forms: Vec<Forms>,
    /// Variables passed on from the hub's environment, in the words of [`passes`].
    pub pass: BTreeSet<String>,
    /// Variables the guest may set.
    pub set: BTreeSet<String>,
    /// Where it keeps what is its own, in the words of [`ProgramAsk::keeps`].
    pub keeps: BTreeSet<String>,
    /// Variables the guest asks to set, and was not granted.
    pub withheld: BTreeSet<String>,
    /// How many may run at once.
    pub max_running: usize,
}

/// The overlap of `ask` and `grant`.
pub fn intersect(ask: &Ask, grant: &Grant) -> EffectiveGrant {
    let mut held = EffectiveGrant {
        memory_bytes: grant.memory.of(ask.memory.as_ref().map(|ask| ask.max_bytes)),
        memory_items: memory_grant::items(ask.memory.as_ref(), grant.memory_items),
        files_bytes: grant.files.of(ask.files.as_ref().map(|ask| ask.max_bytes)),
        directories: grant.directories.clone(),
        workspace: workspace_grant::held(ask.workspace.as_ref(), grant.workspace),
        http: HeldHttp::new(&ask.http, &grant.http),
        tools: tools_grant::held(&ask.tools, &grant.tools),
        agents: if ask.delegate.agents { grant.delegate.clone() } else { Default::default() },
        ..EffectiveGrant::default()
    };
    for (name, asked) in &ask.process {
        let Some(granted) = grant.process.get(name) else {
            held.refused.insert(name.clone());
            continue;
        };
        let pass = match &granted.pass {
            Some(only) => in_both(&asked.pass, only),
            None => asked.passed_unnamed(),
        };
        let set = match &granted.set {
            Some(only) => asked.set.intersection(only).cloned().collect(),
            None => asked.set_unnamed(),
        };
        let withheld = asked.set.difference(&set).cloned().collect();
        let forms = [Some(asked.args.clone()), granted.args.clone()];
        let program = HeldProgram {
            path: granted.path.clone(),
            forms: forms.into_iter().flatten().collect(),
            pin: granted.pin.clone(),
            pass,
            set,
            withheld,
            keeps: asked.keeps.clone(),
            max_running: granted.max_running.unwrap_or(DEFAULT_MAX_RUNNING),
        };
        held.programs.insert(name.clone(), program);
    }
    held
}

/// Whether a word of `pass` names a variable: `HOME` names itself, `VIBE_*` all that begin with `VIBE_`, but for those by which
/// other code is loaded ([`loads_code`]): each of them is named by itself. A bare `*` names none of any use, for nobody knows what
/// it would pass on.
pub fn passes(word: &str, variable: &str) -> bool {
    word == variable || (covers(word, variable) && !loads_code(variable))
}

/// Whether a word with a `*` at its end stands for `other`, a variable or a word itself.
fn covers(word: &str, other: &str) -> bool {
    let prefix = word.strip_suffix('*').filter(|prefix| !prefix.is_empty());
    prefix.is_some_and(|prefix| other.starts_with(prefix))
}

/// Words for the variables that both sides name. Of two words that name one in common, one says no more than the other.
fn in_both(asked: &BTreeSet<String>, granted: &BTreeSet<String>) -> BTreeSet<String> {
    let pairs = asked.iter().flat_map(|asked| granted.iter().map(move |granted| (asked, granted)));
    let narrower = pairs.filter_map(|(asked, granted)| {
        let same = (asked == granted).then_some(granted);
        let less = same.or_else(|| covers(asked, granted).then_some(granted));
        // A word with a star names none of those that are to be named one by one.
        less.or_else(|| (covers(granted, asked) && !loads_code(asked)).then_some(asked))
    });
    narrower.cloned().collect()
}

/// Why a command may not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantRefusal {
    /// The component's own manifest does not ask for the program.
    #[error(
        "run `{program}`: this agent's manifest does not ask for it; an agent runs only what its `[process.{program}]` names"
    )]
    NotAsked {
        /// The program, as the manifest calls it.
        program: String,
    },
    /// The operator did not grant the program.
    #[error(
        "run `{program}`: not granted; the operator allows it with `[agents.{agent}.grant.process.{program}]` in the hub's configuration, or to a plug-in with `a2a-hub plugin grant {agent} --program {program}`"
    )]
    NotGranted {
        /// The program, as the manifest calls it.
        program: String,
        /// The agent that would run it.
        agent: String,
    },
    /// No form of arguments fits.
    #[error(
        "run `{program}` with these arguments: none of the allowed forms fits {given}; caller's text may not begin with `-`, and belongs on stdin or after `--`"
    )]
    Arguments {
        /// The program, as the manifest calls it.
        program: String,
        /// The arguments that were given, shortened for people.
        given: String,
    },
    /// There are more arguments than any program is started with.
    #[error(
        "run `{program}` with {given} arguments: {MAX_ARGS} are passed on at most; a longer list belongs on stdin"
    )]
    TooMany {
        /// The program, as the manifest calls it.
        program: String,
        /// How many there are.
        given: usize,
    },
    /// The operator did not grant the variable.
    #[error(
        "set `{name}` for `{program}`: not granted; a variable that could have the program run other code counts only where the \
         operator names it, with `set` in `[agents.{agent}.grant.process.{program}]` of the hub's configuration, or to a plug-in with \
         `a2a-hub plugin grant {agent} --set {program}:{name}`"
    )]
    VariableNotGranted {
        /// The program, as the manifest calls it.
        program: String,
        /// The environment variable.
        name: String,
        /// The agent that would set it.
        agent: String,
    },
    /// To compare them with all forms would take too long.
    #[error(
        "run `{program}` with {given} arguments: with forms of so many tokens they take more than {MAX_COMPARISONS} comparisons; \
         fewer arguments, or shorter forms in the manifest's `[process.{program}]`, take less; a long list belongs on stdin"
    )]
    TooLong {
        /// The program, as the manifest calls it.
        program: String,
        /// How many arguments there are.
        given: usize,
    },
    /// The variable may not be set.
    #[error("set `{name}` for `{program}`: the manifest's `set` does not name it")]
    Variable {
        /// The program, as the manifest calls it.
        program: String,
        /// The environment variable.
        name: String,
    },
}

impl EffectiveGrant {
    /// Says where programs are that the grant does not place, and what all of them are passed besides.
    pub fn furnish(&mut self, places: &BTreeMap<String, String>, pass: &BTreeSet<String>) {
        for (name, program) in &mut self.programs {
            program.path = program.path.take().or_else(|| places.get(name).cloned());
            program.pass.extend(pass.iter().cloned());
        }
    }

    /// Whether it may call the agent of that name.
    pub fn may_call(&self, agent: &str) -> bool {
        self.agents.terms(agent).is_some()
    }

    /// Words for all variables that any of its programs is passed.
    pub fn passed(&self) -> BTreeSet<String> {
        self.programs.values().flat_map(|program| program.pass.iter().cloned()).collect()
    }

    /// What `agent` may do with `program`, if it may run it at all.
    pub fn named(&self, agent: &str, program: &str) -> Result<&HeldProgram, GrantRefusal> {
        self.programs.get(program).ok_or_else(|| {
            let (agent, name) = (agent.to_owned(), program.to_owned());
            if self.refused.contains(program) {
                GrantRefusal::NotGranted { program: name, agent }
            } else {
                GrantRefusal::NotAsked { program: name }
            }
        })
    }

    /// Whether `agent` may run `program` with these arguments and variables, and what it may do with it.
    pub fn program(
        &self,
        agent: &str,
        program: &str,
        args: &[String],
        variables: &[(String, String)],
    ) -> Result<&HeldProgram, GrantRefusal> {
        let program_name = || program.to_owned();
        let held = self.named(agent, program)?;
        if args.len() > MAX_ARGS {
            return Err(GrantRefusal::TooMany { program: program_name(), given: args.len() });
        }
        let compared = held.forms.iter().map(|forms| forms.comparisons(args.len()));
        if compared.fold(0, usize::saturating_add) > MAX_COMPARISONS {
            return Err(GrantRefusal::TooLong { program: program_name(), given: args.len() });
        }
        if !held.forms.iter().all(|forms| forms.allow(args))
            || args.iter().any(|arg| arg.contains('\0'))
        {
            return Err(GrantRefusal::Arguments {
                program: program_name(),
                given: shortened(args),
            });
        }
        for (name, value) in variables {
            if held.withheld.contains(name) {
                let (name, agent) = (name.clone(), agent.to_owned());
                return Err(GrantRefusal::VariableNotGranted {
                    program: program_name(),
                    name,
                    agent,
                });
            }
            if !held.set.contains(name) || name.contains('=') || value.contains('\0') {
                return Err(GrantRefusal::Variable { program: program_name(), name: name.clone() });
            }
        }
        Ok(held)
    }
}

/// The arguments as a reader sees them in an error: quoted, and no longer than a line.
fn shortened(args: &[String]) -> String {
    const LINE: usize = 200;
    // However many there are, and however long: what nobody sees is not written.
    let seen = args.iter().take(LINE).map(|arg| &arg[..arg.floor_char_boundary(LINE)]);
    let mut text = format!("{:?}", seen.collect::<Vec<_>>());
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
    fn a_prefix_names_variables() {
        let cases = [
            ("HOME", "HOME", true),
            ("HOME", "HOMES", false),
            ("VIBE_*", "VIBE_HOME", true),
            ("VIBE_*", "VIBE_", true),
            ("VIBE_*", "VIB", false),
            ("*", "HOME", false),
            ("", "HOME", false),
            ("GIT_*", "GIT_AUTHOR_NAME", true),
            // Each that has a program load something else is named by itself.
            ("GIT_*", "GIT_SSH_COMMAND", false),
            ("LD_*", "LD_PRELOAD", false),
            ("LD_PRELOAD", "LD_PRELOAD", true),
        ];
        for (word, variable, named) in cases {
            assert_eq!(passes(word, variable), named, "{word} / {variable}");
        }
    }

    #[test]
    fn the_operator_places_and_furnishes_programs() {
        let ask = git(&["log"]);
        let mut held = intersect(&ask, &Grant::everything(&ask));
        let places = [("git", "/venv/bin/git"), ("sh", "/bin/sh")];
        let places = places.map(|(name, path)| (name.to_owned(), path.to_owned())).into();
        held.furnish(&places, &BTreeSet::from(["GIT_*".to_owned()]));
        assert_eq!(held.programs.keys().collect::<Vec<_>>(), ["git"], "a place is no grant");
        assert_eq!(held.programs["git"].path.as_deref(), Some("/venv/bin/git"));
        assert_eq!(held.passed(), ["GIT_*".to_owned(), "HOME".to_owned()].into());

        let own = ProgramGrant { path: Some("/usr/bin/git".to_owned()), ..ProgramGrant::default() };
        let grant = Grant { process: [("git".to_owned(), own)].into(), ..Grant::default() };
        let mut held = intersect(&ask, &grant);
        held.furnish(&places, &BTreeSet::new());
        assert_eq!(held.programs["git"].path.as_deref(), Some("/usr/bin/git"), "the grant decides");
    }

    #[test]
    fn agents_are_granted_by_name() {
        let ask = Ask { delegate: DelegateAsk { agents: true, reason: None }, ..Ask::default() };
        let grant = |names: &[&str]| Grant {
            delegate: names.iter().map(|&name| name.to_owned()).collect(),
            ..Grant::default()
        };
        let cases = [
            (&ask, grant(&[]), false),
            (&ask, grant(&["other"]), false),
            (&ask, grant(&["echo", "other"]), true),
            (&ask, grant(&["*"]), true),
            // Not even the agents that the hub brings along call others unasked.
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
    fn the_operator_narrows_what_is_asked() {
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
        /// A variable is passed on if both sides name it, and only then.
        #[test]
        fn both_name_what_is_passed(
            asked in proptest::collection::btree_set("[AB]{0,3}\\*?", 0..4),
            granted in proptest::collection::btree_set("[AB]{0,3}\\*?", 0..4),
            variable in "[AB]{1,4}",
        ) {
            let named = |words: &BTreeSet<String>| words.iter().any(|word| passes(word, &variable));
            prop_assert_eq!(named(&in_both(&asked, &granted)), named(&asked) && named(&granted));
        }

        /// Removing a line from a grant never allows more.
        #[test]
        fn less_granted_is_less_allowed(
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
