//! What a guest asks for, what the operator allows, and the overlap: closed by default.
//!
//! A component carries a manifest that says what it asks for ([`Ask`]); the operator writes what it may have
//! ([`Grant`]). It holds what stands in both. Every refusal names the line that would allow it.

use crate::forms::Forms;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What a component asks for, as its manifest says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ask {
    /// The programs it would run, by the name it calls them.
    pub process: BTreeMap<String, ProgramAsk>,
    /// The memory it would keep.
    pub memory: Option<MemoryAsk>,
    /// The files it would hand to its programs.
    pub files: Option<FilesAsk>,
    /// What it would do with other agents.
    pub delegate: DelegateAsk,
    /// Whether it takes a task up again that was cut off at work, when it hears the next message.
    pub resume: bool,
    /// Whether it does one task of a conversation at a time, for its program's session takes no two writers.
    pub one_per_context: bool,
    /// How its programs are pointed at a model that is not there, to see whether they get on.
    pub trial: Option<Trial>,
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
    /// Variables of the hub's environment that the program needs, in the words of [`passes`]. The guest never sees their
    /// values.
    pub pass: BTreeSet<String>,
    /// Variables that the guest would set itself.
    pub set: BTreeSet<String>,
}

/// How much a component would remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryAsk {
    /// Keys and values together, in bytes.
    pub max_bytes: u64,
}

/// How much a component would write into files for its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesAsk {
    /// All files of one task together, in bytes.
    pub max_bytes: u64,
}

/// What a component would do with other agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DelegateAsk {
    /// Know which there are.
    pub agents: bool,
}

/// What the operator allows an agent, as the configuration says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grant {
    /// The programs it may run.
    pub process: BTreeMap<String, ProgramGrant>,
    /// Whether it may remember values, up to what it asks for.
    pub memory: bool,
    /// Whether it may write files for its programs, up to what it asks for.
    pub files: bool,
    /// The agents it may call, by name; `*` is every other one.
    pub delegate: BTreeSet<String>,
}

/// What the operator allows an agent to do with one program. What is left out is as the agent asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramGrant {
    /// Where the program is; otherwise its name is looked up on the hub's `PATH`.
    pub path: Option<String>,
    /// Only these forms of arguments.
    pub args: Option<Forms>,
    /// Only these variables of the hub's environment, in the same words.
    pub pass: Option<BTreeSet<String>>,
    /// How many may run at once.
    pub max_running: Option<usize>,
}

/// Programs of one agent that may run at once, unless the grant says otherwise: enough for a few tasks side by side, few
/// enough that a runaway agent does not take the machine.
pub const DEFAULT_MAX_RUNNING: usize = 16;

/// What stands for every other agent in a grant.
const EVERY_AGENT: &str = "*";

/// Arguments that a program may be started with: more are a list, which belongs on standard input.
const MAX_ARGS: usize = 4_096;

impl Grant {
    /// Everything that `ask` asks for, but for other agents: what the hub grants the agents it brings along. Whom one may call
    /// is for the operator to say, for it costs what the other costs.
    pub fn everything(ask: &Ask) -> Self {
        let process = ask.process.keys().map(|name| (name.clone(), ProgramGrant::default()));
        Self { process: process.collect(), memory: true, files: true, delegate: BTreeSet::new() }
    }
}

/// What a guest holds: the overlap of what it asks and what it is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveGrant {
    /// The programs it may run.
    pub programs: BTreeMap<String, HeldProgram>,
    /// Bytes it may remember; none if it may not.
    pub memory_bytes: Option<u64>,
    /// Bytes it may write into files for its programs; none if it may not.
    pub files_bytes: Option<u64>,
    /// The agents it may call, in the words of the grant.
    pub agents: BTreeSet<String>,
    /// Programs it asks for and was not granted, so that the operator can be told.
    pub refused: BTreeSet<String>,
}

/// What a guest may do with one program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldProgram {
    /// Where the operator says it is.
    pub path: Option<String>,
    /// Forms of arguments, of each of which one must fit.
    pub forms: Vec<Forms>,
    /// Variables passed on from the hub's environment, in the words of [`passes`].
    pub pass: BTreeSet<String>,
    /// Variables the guest may set.
    pub set: BTreeSet<String>,
    /// How many may run at once.
    pub max_running: usize,
}

/// The overlap of `ask` and `grant`.
pub fn intersect(ask: &Ask, grant: &Grant) -> EffectiveGrant {
    let mut held = EffectiveGrant {
        memory_bytes: ask.memory.filter(|_| grant.memory).map(|ask| ask.max_bytes),
        files_bytes: ask.files.filter(|_| grant.files).map(|ask| ask.max_bytes),
        agents: if ask.delegate.agents { grant.delegate.clone() } else { BTreeSet::new() },
        ..EffectiveGrant::default()
    };
    for (name, asked) in &ask.process {
        let Some(granted) = grant.process.get(name) else {
            held.refused.insert(name.clone());
            continue;
        };
        let pass = match &granted.pass {
            Some(only) => in_both(&asked.pass, only),
            None => asked.pass.clone(),
        };
        let forms = [Some(asked.args.clone()), granted.args.clone()];
        let program = HeldProgram {
            path: granted.path.clone(),
            forms: forms.into_iter().flatten().collect(),
            pass,
            set: asked.set.clone(),
            max_running: granted.max_running.unwrap_or(DEFAULT_MAX_RUNNING),
        };
        held.programs.insert(name.clone(), program);
    }
    held
}

/// Whether a word of `pass` names a variable: `HOME` names itself, `VIBE_*` all that begin with `VIBE_`. A bare `*` names
/// none of any use, for nobody knows what it would pass on.
pub fn passes(word: &str, variable: &str) -> bool {
    let prefix = word.strip_suffix('*').filter(|prefix| !prefix.is_empty());
    word == variable || prefix.is_some_and(|prefix| variable.starts_with(prefix))
}

/// Words for the variables that both sides name. Of two words that name one in common, one says no more than the other.
fn in_both(asked: &BTreeSet<String>, granted: &BTreeSet<String>) -> BTreeSet<String> {
    let pairs = asked.iter().flat_map(|asked| granted.iter().map(move |granted| (asked, granted)));
    let narrower = pairs.filter_map(|(asked, granted)| {
        let less = passes(asked, granted).then_some(granted);
        less.or_else(|| passes(granted, asked).then_some(asked))
    });
    narrower.cloned().collect()
}

/// Why a command may not be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
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
        "run `{program}`: not granted; the operator allows it with `[agents.{agent}.grant.process.{program}]` in the hub's configuration"
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
        self.agents.contains(EVERY_AGENT) || self.agents.contains(agent)
    }

    /// Words for all variables that any of its programs is passed.
    pub fn passed(&self) -> BTreeSet<String> {
        self.programs.values().flat_map(|program| program.pass.iter().cloned()).collect()
    }

    /// What `agent` may do with `program`, if it may run it at all.
    pub fn named(&self, agent: &str, program: &str) -> Result<&HeldProgram, Refusal> {
        self.programs.get(program).ok_or_else(|| {
            let (agent, name) = (agent.to_owned(), program.to_owned());
            if self.refused.contains(program) {
                Refusal::NotGranted { program: name, agent }
            } else {
                Refusal::NotAsked { program: name }
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
    ) -> Result<&HeldProgram, Refusal> {
        let program_name = || program.to_owned();
        let held = self.named(agent, program)?;
        if args.len() > MAX_ARGS {
            return Err(Refusal::TooMany { program: program_name(), given: args.len() });
        }
        if !held.forms.iter().all(|forms| forms.allow(args))
            || args.iter().any(|arg| arg.contains('\0'))
        {
            return Err(Refusal::Arguments { program: program_name(), given: shortened(args) });
        }
        for (name, value) in variables {
            if !held.set.contains(name) || name.contains('=') || value.contains('\0') {
                return Err(Refusal::Variable { program: program_name(), name: name.clone() });
            }
        }
        Ok(held)
    }
}

/// The arguments as a reader sees them in an error: quoted, and no longer than a line.
fn shortened(args: &[String]) -> String {
    let mut text = format!("{args:?}");
    if text.len() > 200 {
        text.truncate(text.floor_char_boundary(200));
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
        let ask = Ask { delegate: DelegateAsk { agents: true }, ..Ask::default() };
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
        let program = ProgramAsk { args, pass, set };
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
        insta::assert_snapshot!(said(&nothing, "git", "log", &[]), @"run `git`: not granted; the operator allows it with `[agents.historian.grant.process.git]` in the hub's configuration");
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
