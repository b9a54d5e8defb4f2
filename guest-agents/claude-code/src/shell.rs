//! Directory of the CLI's shell. Its tool keeps the directory from one command to the next, so a
//! later command may run in another directory than that of the task.

use serde_json::{Value, json};

/// Tool that runs commands.
const TOOL: &str = "Bash";

/// End of the names of the tools that take the whole session to another directory.
const MOVING_TOOLS: &str = "Worktree";

/// Member of the idle state.
const MOVED: &str = "shellMoved";

/// Words of bash and zsh that change the shell's directory, run text that may, or begin another
/// command.
const MOVES: [&str; 45] = [
    "-",
    ".",
    "alias",
    "always",
    "autoload",
    "builtin",
    "case",
    "cd",
    "chdir",
    "command",
    "coproc",
    "do",
    "elif",
    "else",
    "emulate",
    "enable",
    "eval",
    "exec",
    "fc",
    "for",
    "foreach",
    "function",
    "if",
    "j",
    "mapfile",
    "nocorrect",
    "noglob",
    "popd",
    "pushd",
    "r",
    "readarray",
    "repeat",
    "sched",
    "select",
    "shopt",
    "setopt",
    "source",
    "then",
    "time",
    "trap",
    "until",
    "while",
    "z",
    "zle",
    "zmodload",
];

/// Shell of the CLI, as far as its commands tell.
#[derive(Debug, Default)]
pub struct Shell {
    moved: bool,
}

impl Shell {
    /// Shell of a program that was idle.
    pub fn resumed(idle: &Value) -> Self {
        Self { moved: idle[MOVED] != false }
    }

    /// Idle state, for [`Shell::resumed`].
    pub fn idle(&self) -> Value {
        json!({ MOVED: self.moved })
    }

    /// True if the shell may be in another directory than at its start.
    pub fn may_have_moved(&self) -> bool {
        self.moved
    }

    /// Takes note of a line of the CLI that cannot be read: it may be a command.
    pub fn lose_track(&mut self) {
        self.moved = true;
    }

    /// Takes note of a tool's use.
    pub fn follow(&mut self, tool: &str, input: &Value) {
        self.moved |= match tool {
            TOOL => input["command"].as_str().is_none_or(may_move),
            tool => tool.ends_with(MOVING_TOOLS),
        };
    }
}

/// True if the command may change the shell's directory: it names a word that does, or builds words
/// in a way that is not read here.
fn may_move(command: &str) -> bool {
    if command.contains(['$', '`', '\\', '{', '}', '*', '?', '[', ']', '~', '!', '#']) {
        return true;
    }
    // Redirects to a number, whose `&` separates no commands.
    let text = command.replace("2>&1", " ").replace(">&2", " ");
    let begins = |part: &str| {
        let Some(first) = part.split_whitespace().next() else { return false };
        let word: String = first.chars().filter(|char| !matches!(char, '\'' | '"')).collect();
        // Behind a redirect or a quoted assignment, another word is the command.
        let is_prefix =
            word.contains(['<', '>']) || (word.contains('=') && part.contains(['\'', '"']));
        let command = part.split_whitespace().find(|word| !word.contains('='));
        let command = command.unwrap_or_default().replace(['\'', '"'], "");
        is_prefix || MOVES.contains(&word.as_str()) || MOVES.contains(&command.as_str())
    };
    text.split([';', '|', '&', '(', ')', '\n']).any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_commands_stay() {
        for (command, moves) in [
            ("cargo test --lib", false),
            ("ls | head -3 > out.txt; echo cd", false),
            ("FOO=1 npm test && git commit -m 'cd x'", false),
            ("cd sub && npm test", true),
            ("ls; cd /", true),
            ("(cd x)", true),
            ("c\"d\" x", true),
            ("'cd' x", true),
            ("A=1 cd x", true),
            ("eval x", true),
            (". ./env.sh", true),
            ("c? /", true),
            ("$X /", true),
            ("if true; then cd x; fi", true),
            ("\\cd x", true),
            ("> out cd x", true),
            ("cargo test 2>&1 | tail -3", false),
            ("echo hi >&2", false),
            ("2>&1 cd sub", true),
            (">&2 cd sub", true),
            (">|out cd sub", true),
            ("A='x y' cd sub", true),
            ("A=1 B=2 cd sub", true),
            ("trap 'cd sub' DEBUG", true),
            ("mapfile -C 'cd sub' -c 1 x < f", true),
            ("chdir sub", true),
            ("noglob cd sub", true),
            ("repeat 1 cd sub", true),
            ("emulate sh -c 'cd sub'", true),
            ("true & cd sub", true),
        ] {
            assert_eq!(may_move(command), moves, "{command}");
        }
    }

    #[test]
    fn moved_shell_stays_moved_when_idle() {
        let mut shell = Shell::default();
        shell.follow("Write", &json!({ "command": "cd x" }));
        shell.follow("Bash", &json!({ "command": "ls" }));
        assert!(!shell.may_have_moved() && !Shell::resumed(&shell.idle()).may_have_moved());
        shell.follow("Bash", &json!({ "command": "cd x" }));
        assert!(shell.may_have_moved() && Shell::resumed(&shell.idle()).may_have_moved());
        assert!(Shell::resumed(&Value::Null).may_have_moved(), "an earlier version left nothing");
        let mut elsewhere = Shell::default();
        elsewhere.follow("EnterWorktree", &json!({ "name": "x" }));
        assert!(elsewhere.may_have_moved());
        let mut unknown = Shell::default();
        unknown.follow("Bash", &json!({}));
        assert!(unknown.may_have_moved());
    }
}
