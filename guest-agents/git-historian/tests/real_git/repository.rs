//! A small repository, and questions about it that the real git answers.
//!
//! A scripted hub replays git's output. Each run of the agent goes one command further than the
//! last: the command that is missing in the script is executed and recorded, until no more is
//! missing.

use std::path::Path;
use std::process::{Command, Output};

use a2a_hub_sdk::testing::{ScriptedHost, task};
use a2a_hub_sdk::{Outcome, TaskState};
use jiff::civil::{Date, date};
use tempfile::TempDir;

/// A Saturday.
const TODAY: Date = date(2026, 11, 21);

/// Limit of commands, beyond what any question needs.
const MAX_COMMANDS: usize = 30;

#[expect(
    clippy::disallowed_methods,
    reason = "tests run git themselves, without the hub's supervisor"
)]
pub(crate) fn git(directory: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new("git");
    command.current_dir(directory).env_clear().args(args);
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("GIT_CONFIG_NOSYSTEM", "1");
    command.envs(env.iter().copied()).output().unwrap()
}

fn must(directory: &Path, args: &[&str], env: &[(&str, &str)]) {
    let output = git(directory, args, env);
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Repository that is built commit by commit.
pub(crate) struct Repo(pub(crate) TempDir);

impl Repo {
    pub(crate) fn new() -> Self {
        let repo = Self(TempDir::new().unwrap());
        must(repo.path(), &["init", "-q", "-b", "main"], &[]);
        repo
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Commits everything as that author at noon of that day.
    pub(crate) fn commit(&self, author: &str, day: &str, message: &str) -> &Self {
        self.commit_with(author, day, &["-m", message])
    }

    /// Commits everything with the message in that file, whose bytes stay as they are.
    pub(crate) fn commit_file(&self, author: &str, day: &str, file: &str) -> &Self {
        self.commit_with(author, day, &["-F", file])
    }

    fn commit_with(&self, author: &str, day: &str, message: &[&str]) -> &Self {
        let (time, email) = (format!("{day}T12:00:00Z"), format!("{author}@example.org"));
        let env = [
            ("GIT_AUTHOR_NAME", author),
            ("GIT_AUTHOR_EMAIL", &email),
            ("GIT_AUTHOR_DATE", &time),
            ("GIT_COMMITTER_NAME", author),
            ("GIT_COMMITTER_EMAIL", &email),
            ("GIT_COMMITTER_DATE", &time),
        ];
        must(self.path(), &["add", "-A"], &[]);
        must(self.path(), &[&["commit", "-q", "--allow-empty"], message].concat(), &env);
        self
    }

    /// Linked worktree of a repository, in another directory.
    pub(crate) fn linked_to(repo: &Self) -> Self {
        let linked = Self(TempDir::new().unwrap());
        repo.run(&["worktree", "add", "-q", linked.path().join("w").to_str().unwrap()]);
        linked
    }

    pub(crate) fn run(&self, args: &[&str]) -> &Self {
        must(self.path(), args, &[]);
        self
    }

    /// Sample repository: two releases, a rename, a fix last week.
    pub(crate) fn sample() -> Self {
        let repo = Self::new();
        repo.write(
            "src/old.rs",
            "fn begin() {}\nfn frobnicate() {}\n// filler\n// filler\n// filler\n",
        )
        .write("README.md", "hello\n")
        .commit("Ada", "2026-01-05", "feat: begin\n\nFrobnicating was asked for by everyone.")
        .run(&["tag", "v1.0"])
        .run(&["mv", "src/old.rs", "src/x.rs"])
        .commit("Ada", "2026-03-01", "refactor: call it x")
        .write(
            "src/x.rs",
            "fn begin() {}\nfn frobnicate() {}\n// filler\n// filler\n// filler\nfn parse() {}\n",
        )
        .write("docs/use it.md", "how\n")
        .commit("Bob", "2026-04-01", "feat: parse")
        .run(&["tag", "v1.1"])
        .write("src/x.rs", "fn begin() {}\n// filler\n// filler\n// filler\nfn parse() {}\n")
        .commit("Bob", "2026-11-18", "fix: frobnicate no more");
        repo
    }

    pub(crate) fn ask(&self, question: &str) -> Answer {
        self.ask_in("", question)
    }

    pub(crate) fn ask_in(&self, folder: &str, question: &str) -> Answer {
        let directory = self.path().join(folder);
        let mut recorded: Vec<(Vec<String>, Output)> = Vec::new();
        while recorded.len() < MAX_COMMANDS {
            let host = ScriptedHost::new();
            for (args, output) in &recorded {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                let program =
                    host.program("git").args(&args).stdout(&output.stdout).stderr(&output.stderr);
                program.exit(output.status.code().unwrap());
            }
            let outcome = git_historian::answer_as_of(&host.context(), &task(question), TODAY);
            let Some(next) = host.spawned().into_iter().nth(recorded.len()) else {
                return Answer { outcome: outcome.unwrap(), host };
            };
            let args: Vec<&str> = next.args.iter().map(String::as_str).collect();
            let env: Vec<(&str, &str)> =
                next.env.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            let output = git(&directory, &args, &env);
            recorded.push((next.args, output));
        }
        panic!("`{question}` takes more than {MAX_COMMANDS} commands");
    }
}

/// Answer of the agent.
pub(crate) struct Answer {
    pub(crate) outcome: Outcome,
    pub(crate) host: ScriptedHost,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        assert_eq!(self.outcome.state(), Some(TaskState::Completed), "{}", self.outcome.text());
        self.host.artifact("answer").unwrap()
    }

    #[track_caller]
    pub(crate) fn tells(&self, expected: &[&str]) -> &Self {
        let text = self.text();
        for expected in expected {
            assert!(text.contains(expected), "no `{expected}` in:\n{text}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn keeps_from(&self, unexpected: &[&str]) -> &Self {
        let text = self.text();
        for unexpected in unexpected {
            assert!(!text.contains(unexpected), "`{unexpected}` in:\n{text}");
        }
        self
    }

    #[track_caller]
    pub(crate) fn fails(&self, reason: &str, message: &str) {
        assert_eq!(self.outcome.metadata()["reason"], reason, "{}", self.outcome.text());
        assert!(self.outcome.text().contains(message), "{}", self.outcome.text());
    }
}
