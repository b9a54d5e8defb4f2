//! Scripts that bash, dash and zsh read alike: programs with plain arguments, joined by `&&`.
//!
//! This is no parser of a shell's language. It accepts words of a small set of characters, and
//! whole words in quotes. It refuses every other script, so that no part has a second meaning.
//! `tests/permission_shell.rs` runs accepted scripts in real shells.

use crate::text::plain_text::is_plain_line;

/// Maximum length of a script in bytes.
pub const MAX_SCRIPT: usize = 8 * 1024;

/// Maximum number of commands in a script.
pub const MAX_COMMANDS: usize = 16;

/// Maximum number of words in a command.
pub const MAX_WORDS: usize = 64;

/// Reserved words and builtins of bash, dash and zsh, by which a command is not the start of a
/// program. `echo`, `false`, `pwd` and `true` are absent: they act like programs of these names.
#[rustfmt::skip]
const SHELL_WORDS: &[&str] = &[
    "alias", "always", "autoload", "bg", "bind", "bindkey", "break", "builtin", "bye", "caller",
    "cap", "case", "cd", "chdir", "clone", "command", "comparguments", "compadd", "compcall",
    "compctl", "compdescribe", "compfiles", "compgen", "compgroups", "complete", "compopt",
    "compquote", "compset", "comptags", "comptry", "compvalues", "continue", "coproc", "declare",
    "dirs", "disable", "disown", "do", "done", "echotc", "echoti", "elif", "else", "emulate",
    "enable", "end", "esac", "eval", "exec", "exit", "export", "fc", "fg", "fi", "float", "for",
    "foreach", "function", "functions", "getcap", "getln", "getopts", "hash", "help", "history",
    "if", "in", "integer", "jobs", "kill", "let", "limit", "local", "log", "logout", "mapfile",
    "nocorrect", "noglob", "popd", "print", "printf", "private", "pushd", "pushln", "r", "read",
    "readarray", "readonly", "rehash", "repeat", "return", "run-help", "sched", "select", "set",
    "setcap", "setopt", "shift", "shopt", "source", "suspend", "sysopen", "sysread", "sysseek",
    "syswrite", "test", "then", "time", "times", "trap", "ttyctl", "type", "typeset", "ulimit",
    "umask", "unalias", "unfunction", "unhash", "unlimit", "unset", "unsetopt", "until", "vared",
    "wait", "whence", "where", "which", "which-command", "while", "zcompile", "zcurses", "zformat",
    "zle", "zmodload", "zparseopts", "zprof", "zpty", "zregexparse", "zselect", "zsocket", "zstat",
    "zstyle", "ztcp", "ztie", "zuntie",
];

/// Reads the commands of a script, each a program with its arguments. Returns the reason if a shell
/// could read the script in another way.
pub fn commands(script: &str) -> Result<Vec<Vec<String>>, String> {
    if script.len() > MAX_SCRIPT {
        return Err(format!("the script is longer than {MAX_SCRIPT} bytes"));
    }
    let mut rest = script;
    let mut commands = vec![Vec::new()];
    loop {
        rest = rest.trim_start_matches(' ');
        if rest.is_empty() {
            break;
        }
        let (token, after) = next_token(rest)?;
        rest = after;
        match (token, commands.last_mut()) {
            (Some(word), Some(command)) => command.push(word),
            (None, _) | (Some(_), None) => commands.push(Vec::new()),
        }
    }
    if commands.len() > MAX_COMMANDS {
        return Err(format!("the script has more than {MAX_COMMANDS} commands"));
    }
    for command in &commands {
        check_command(command)?;
    }
    Ok(commands)
}

/// Refuses a command that a shell does not run as this program with these arguments.
pub fn check_command(words: &[String]) -> Result<(), String> {
    let Some(program) = words.first() else {
        return Err("a command has no program".to_owned());
    };
    if words.len() > MAX_WORDS {
        return Err(format!("a command has more than {MAX_WORDS} words"));
    }
    check_program(program)?;
    let odd = words.iter().find(|word| !is_plain_line(word));
    odd.map_or(Ok(()), |_| Err("an argument has control or invisible characters".to_owned()))
}

/// Refuses a program's name that is a word of the shell, or a path relative to a directory in which
/// the agent may write.
pub fn check_program(program: &str) -> Result<(), String> {
    let starts_plainly = program.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
    if !starts_plainly || program.contains('=') || !program.chars().all(is_plain) {
        return Err(format!("{} is not a plain name of a program", shown(program)));
    }
    if SHELL_WORDS.contains(&program) {
        return Err(format!("`{program}` is a word of the shell, and starts no program"));
    }
    if program.contains('/') && super::path::canonical(program) != Some(program) {
        return Err(format!("`{program}` is not the absolute path of a program"));
    }
    Ok(())
}

/// Next word of a script, or `None` for `&&`, and the rest of the script.
fn next_token(script: &str) -> Result<(Option<String>, &str), String> {
    let (token, after) = match script.chars().next() {
        Some(quote @ ('\'' | '"')) => {
            let (word, after) = quoted(script, quote)?;
            (Some(word.to_owned()), after)
        }
        _ => {
            let end = script.find(' ').unwrap_or(script.len());
            let (word, after) = script.split_at(end);
            (plain_token(word)?, after)
        }
    };
    if after.is_empty() || after.starts_with(' ') {
        Ok((token, after))
    } else {
        Err("a word consists of several parts with quotes".to_owned())
    }
}

/// Word without quotes, or `None` for `&&`.
fn plain_token(word: &str) -> Result<Option<String>, String> {
    if word == "&&" {
        return Ok(None);
    }
    if let Some(c) = word.chars().find(|c| !is_plain(*c)) {
        return Err(format!("{} has a meaning to shells", shown(&c.to_string())));
    }
    // zsh replaces `=NAME` by the path of a program, with an option also after `=` and `:`.
    if word.starts_with(['=', '%']) || word.contains("==") || word.contains(":=") {
        return Err(format!("`{word}` has a meaning to zsh"));
    }
    Ok(Some(word.to_owned()))
}

/// Content of the quotes at the beginning of a script, and the rest.
fn quoted(script: &str, quote: char) -> Result<(&str, &str), String> {
    let inside = script.strip_prefix(quote).and_then(|inside| inside.split_once(quote));
    let Some((content, after)) = inside else {
        return Err("a quote is not closed".to_owned());
    };
    if quote == '"' && content.contains(['$', '`', '\\', '!']) {
        return Err("a word in double quotes has characters with a meaning to shells".to_owned());
    }
    if !is_plain_line(content) {
        return Err("a word in quotes has control or invisible characters".to_owned());
    }
    Ok((content, after))
}

/// True for characters without a meaning to a shell in the places where they are accepted.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_@%+:,./=-".contains(c)
}

/// Untrusted text for a message.
fn shown(text: &str) -> String {
    match text {
        "\n" => "a line end".to_owned(),
        _ if is_plain_line(text) => format!("`{}`", crate::text::plain_text::line(text, 64)),
        _ => "a control or invisible character".to_owned(),
    }
}
