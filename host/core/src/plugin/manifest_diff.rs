//! Differences between the manifests of two versions of a component, as lines for the operator who
//! decides about the update.

use crate::grant::{
    Ask, ProgramAsk, Resume,
    argument_patterns::Forms,
    delegate::{Callee, PeersAsk},
    loader_variable::leads_astray,
    workspace::WorkspaceAccess,
};
use std::{
    collections::BTreeSet,
    fmt::{self, Display},
};

/// Call of an agent or a skill, in words.
pub(super) fn calling(callee: &Callee) -> String {
    match &callee.skill {
        Some(skill) => format!("call the agent `{}` for its skill `{skill}`", callee.agent),
        None => format!("call the agent `{}`", callee.agent),
    }
}

/// Direction of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The new version asks for more.
    More,
    /// The new version asks for less.
    Less,
    /// The description of the component differs.
    Other,
}

/// One difference between two manifests. As text it is one line, beginning with `+`, `-` or `~`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestChange {
    /// Direction of the difference.
    pub direction: Direction,
    /// Added or removed request, in plain words.
    pub description: String,
}

impl Display for ManifestChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.direction {
            Direction::More => '+',
            Direction::Less => '-',
            Direction::Other => '~',
        };
        write!(f, "{sign} {}", self.description)
    }
}

/// Lists the differences between `old` and `new`. Changed reasons do not count.
pub fn difference(old: &Ask, new: &Ask) -> Vec<ManifestChange> {
    let mut found = Differences::default();
    found.value("version", old.version.as_ref(), new.version.as_ref());
    found.value("publisher", old.publisher.as_ref(), new.publisher.as_ref());
    found.value("description", old.description.as_ref(), new.description.as_ref());
    let called =
        |ask: &Ask| ask.aliases.iter().map(|alias| format!("be called `{alias}`")).collect();
    found.words(&called(old), &called(new), str::to_owned);
    let names: BTreeSet<_> = old.process.keys().chain(new.process.keys()).collect();
    for name in names {
        let nothing = ProgramAsk::default();
        let (was, is) = (old.process.get(name), new.process.get(name));
        match (was, is) {
            (None, Some(_)) => found.add(Direction::More, format!("run `{name}`")),
            (Some(_), None) => found.add(Direction::Less, format!("run `{name}`")),
            (Some(_), Some(_)) | (None, None) => {}
        }
        found.program(name, was.unwrap_or(&nothing), is.unwrap_or(&nothing));
    }
    let bytes = |ask: &Ask| {
        let memory = ask.memory.as_ref().map(|ask| ask.max_bytes);
        (memory, ask.files.as_ref().map(|ask| ask.max_bytes))
    };
    let ((memory_was, files_was), (memory_is, files_is)) = (bytes(old), bytes(new));
    found.bytes("remember", memory_was, memory_is);
    found.bytes("write files of", files_was, files_is);
    let hosts = |ask: &Ask| ask.http.iter().map(|(host, ask)| ask.describe(host)).collect();
    found.words(&hosts(old), &hosts(new), str::to_owned);
    let access = |ask: &Ask, access: WorkspaceAccess| {
        ask.workspace.as_ref().is_some_and(|ask| ask.access >= access)
    };
    for (access_to, action) in [
        (WorkspaceAccess::Read, "read the files of its working directory"),
        (WorkspaceAccess::ReadWrite, "change the files of its working directory"),
    ] {
        found.flag(action, access(old, access_to), access(new, access_to));
    }
    let tools = |ask: &Ask| -> BTreeSet<String> {
        ask.tools.iter().flat_map(|(server, requested)| requested.describe(server)).collect()
    };
    found.words(&tools(old), &tools(new), str::to_owned);
    let any = |ask: &Ask| ask.delegate.agents == PeersAsk::Any(true);
    found.flag("know which other agents there are", any(old), any(new));
    let calls =
        |ask: &Ask| -> BTreeSet<String> { ask.delegate.agents.named().map(calling).collect() };
    found.words(&calls(old), &calls(new), str::to_owned);
    let goes_on = |ask: &Ask| ask.resume != Resume::Nothing;
    found.flag("go on with tasks that were cut off", goes_on(old), goes_on(new));
    found.flag("do one task of a conversation at a time", old.one_per_context, new.one_per_context);
    if old.direct_message != new.direct_message {
        let now = if new.direct_message { "may answer" } else { "does not answer" };
        found.add(Direction::Other, format!("{now} with a message in place of a task"));
    }
    if old.reports != new.reports {
        found.add(Direction::Other, "whether it reports tokens or dollars".to_owned());
    }
    if old.trial != new.trial {
        found.add(Direction::Other, "how it is tried by `a2a-hub doctor --trial`".to_owned());
    }
    found.0
}

/// Lists the requests for one program besides running it, one line each: argument patterns,
/// variables passed and set.
pub fn program_requests(name: &str, ask: &ProgramAsk) -> Vec<String> {
    let mut found = Differences::default();
    found.program(name, &ProgramAsk::default(), ask);
    found.0.into_iter().map(|change| change.description).collect()
}

#[derive(Default)]
struct Differences(Vec<ManifestChange>);

impl Differences {
    fn add(&mut self, direction: Direction, description: String) {
        self.0.push(ManifestChange { direction, description });
    }

    fn value<T: Display + PartialEq>(&mut self, label: &str, old: Option<&T>, new: Option<&T>) {
        if old == new {
            return;
        }
        let word =
            |value: Option<&T>| value.map_or_else(|| "nothing".to_owned(), |it| format!("`{it}`"));
        self.add(Direction::Other, format!("{label}: {}, was {}", word(new), word(old)));
    }

    fn flag(&mut self, action: &str, old: bool, new: bool) {
        match (old, new) {
            (false, true) => self.add(Direction::More, action.to_owned()),
            (true, false) => self.add(Direction::Less, action.to_owned()),
            (false, false) | (true, true) => {}
        }
    }

    fn bytes(&mut self, action: &str, old: Option<u64>, new: Option<u64>) {
        let describe = |bytes| format!("{action} up to {bytes} bytes");
        match (old, new) {
            (None, Some(new)) => self.add(Direction::More, describe(new)),
            (Some(old), None) => self.add(Direction::Less, describe(old)),
            (Some(old), Some(new)) if old != new => {
                let direction = if new > old { Direction::More } else { Direction::Less };
                self.add(direction, format!("{}, was {old}", describe(new)));
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
    }

    fn program(&mut self, name: &str, old: &ProgramAsk, new: &ProgramAsk) {
        let forms = |forms: &Forms| forms.written().iter().map(|form| quoted(form)).collect();
        self.words(&forms(&old.args), &forms(&new.args), |form| {
            format!("run `{name}` with {form}")
        });
        self.words(&old.pass, &new.pass, |word| format!("pass `{word}` to `{name}`"));
        self.words(&old.set, &new.set, |variable| {
            let warned = leads_astray(variable);
            let warning = if warned { ", which can have it run other code" } else { "" };
            format!("set `{variable}` for `{name}`{warning}")
        });
    }

    fn words(
        &mut self,
        old: &BTreeSet<String>,
        new: &BTreeSet<String>,
        describe: impl Fn(&str) -> String,
    ) {
        new.difference(old).for_each(|word| self.add(Direction::More, describe(word)));
        old.difference(new).for_each(|word| self.add(Direction::Less, describe(word)));
    }
}

/// Argument pattern with each token in quotes.
pub(crate) fn quoted(form: &[String]) -> String {
    if form.is_empty() {
        return "no arguments".to_owned();
    }
    format!("`{}`", form.join("` `"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        grant::{DelegateAsk, FilesAsk, memory::MemoryAsk, tools::ToolsAsk},
        text::one_line::OneLine,
    };

    fn git(forms: &[&[&str]], set: &[&str]) -> Ask {
        let forms = forms.iter().map(|form| form.iter().map(|&token| token.to_owned()).collect());
        let program = ProgramAsk {
            args: forms.collect::<Vec<_>>().try_into().unwrap(),
            pass: ["HOME".to_owned()].into(),
            set: set.iter().map(|&name| name.to_owned()).collect(),
            reason: None,
            ..ProgramAsk::default()
        };
        Ask { process: [("git".to_owned(), program)].into(), ..Ask::default() }
    }

    fn lines(old: &Ask, new: &Ask) -> String {
        difference(old, new).iter().map(|change| format!("{change}\n")).collect()
    }

    #[test]
    fn update_lists_changed_requests() {
        let old = Ask {
            version: OneLine::parse("1.0").ok(),
            memory: Some(MemoryAsk { max_bytes: 4096, max_items: None, reason: None }),
            ..git(&[&["log"], &["status"]], &["LC_ALL"])
        };
        let sh = ProgramAsk { args: vec![vec![]].try_into().unwrap(), ..ProgramAsk::default() };
        let mut new = Ask {
            version: OneLine::parse("1.1").ok(),
            memory: Some(MemoryAsk { max_bytes: 65536, max_items: None, reason: None }),
            files: Some(FilesAsk { max_bytes: 10, reason: None }),
            delegate: DelegateAsk { agents: PeersAsk::Any(true), reason: None },
            ..git(&[&["log"], &["push", "--force", "{}"]], &["LC_ALL", "GIT_SSH_COMMAND"])
        };
        new.process.insert("sh".to_owned(), sh);
        let read = ToolsAsk { names: ["read".to_owned()].into(), reason: None };
        new.tools.insert("files".to_owned(), read);
        insta::assert_snapshot!(lines(&old, &new), @"
        ~ version: `1.1`, was `1.0`
        + run `git` with `push` `--force` `{}`
        - run `git` with `status`
        + set `GIT_SSH_COMMAND` for `git`, which can have it run other code
        + run `sh`
        + run `sh` with no arguments
        + remember up to 65536 bytes, was 4096
        + write files of up to 10 bytes
        + call the tool `read` of the server `files`
        + know which other agents there are
        ");
        insta::assert_snapshot!(lines(&new, &Ask::default()), @"
        ~ version: nothing, was `1.1`
        - run `git`
        - run `git` with `log`
        - run `git` with `push` `--force` `{}`
        - pass `HOME` to `git`
        - set `GIT_SSH_COMMAND` for `git`, which can have it run other code
        - set `LC_ALL` for `git`
        - run `sh`
        - run `sh` with no arguments
        - remember up to 65536 bytes
        - write files of up to 10 bytes
        - call the tool `read` of the server `files`
        - know which other agents there are
        ");
    }

    #[test]
    fn same_requests_have_no_difference() {
        let mut new = git(&[&["log"]], &[]);
        assert_eq!(difference(&new, &new), []);
        let old = new.clone();
        new.process.get_mut("git").unwrap().reason = OneLine::parse("to read the history").ok();
        assert_eq!(difference(&old, &new), [], "a better reason is no other ask");
    }
}
