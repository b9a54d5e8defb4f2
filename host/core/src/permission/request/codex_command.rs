//! Script inside of the command that Codex shows: the arguments of a shell, joined with quotes.

use serde_json::Value;
use std::iter::Peekable;
use std::str::Chars;

/// Shells whose option `-c` runs a script.
const SHELLS: &[&str] = &["bash", "sh", "zsh"];

/// Directories of these shells; others are in no known directory.
const DIRECTORIES: &[&str] = &["", "/bin/", "/usr/bin/", "/usr/local/bin/"];

/// Options that run exactly one script, in a login shell or not.
const OPTIONS: &[&str] = &["-c", "-lc"];

/// Script of a command such as `/bin/bash -lc 'cargo test'`, or of the list of its arguments.
pub(super) fn script(command: &Value) -> Result<String, String> {
    let words = match command {
        Value::String(text) => words(text),
        Value::Array(words) => {
            words.iter().map(|word| word.as_str().map(ToOwned::to_owned)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    };
    match words.as_deref() {
        Some([shell, option, script]) if is_shell(shell) && OPTIONS.contains(&option.as_str()) => {
            Ok(script.clone())
        }
        _ => Err("its command is not exactly one script of a known shell".to_owned()),
    }
}

fn is_shell(program: &str) -> bool {
    let name = |directory: &&str| program.strip_prefix(directory);
    DIRECTORIES.iter().filter_map(name).any(|name| SHELLS.contains(&name))
}

/// Words of a text with the quotes of POSIX undone. `None` for anything that has another meaning to
/// a shell.
fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        words.push(word(&mut chars)?);
        match chars.next() {
            None => return Some(words),
            Some(' ') => {}
            Some(_) => return None,
        }
    }
}

/// Next word, of at least one part: plain, in single quotes, or in double quotes.
fn word(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut word = String::new();
    let mut parts = 0;
    while let Some(c) = chars.next_if(|c| *c != ' ') {
        parts += 1;
        match c {
            '\'' => single_quoted(chars, &mut word)?,
            '"' => double_quoted(chars, &mut word)?,
            c if c.is_ascii_alphanumeric() || "_@%+:,./=-".contains(c) => word.push(c),
            _ => return None,
        }
    }
    (parts > 0).then_some(word)
}

fn single_quoted(chars: &mut Peekable<Chars<'_>>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '\'' => return Some(()),
            c => word.push(c),
        }
    }
}

fn double_quoted(chars: &mut Peekable<Chars<'_>>, word: &mut String) -> Option<()> {
    loop {
        match chars.next()? {
            '"' => return Some(()),
            '\\' => word.push(chars.next_if(|c| matches!(c, '$' | '`' | '"' | '\\'))?),
            '$' | '`' | '!' => return None,
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn script_is_unwrapped_strictly() {
        for (command, expected) in [
            (json!("/bin/bash -lc 'cargo test'"), Some("cargo test")),
            (json!("bash -lc ls"), Some("ls")),
            (json!("/usr/local/bin/zsh -c 'a b'"), Some("a b")),
            (json!(r#"/bin/bash -lc "git commit -m 'fix: a'""#), Some("git commit -m 'fix: a'")),
            (json!(r#"/bin/bash -lc "echo '\$x'""#), Some("echo '$x'")),
            (json!(r#"/bin/bash -lc "a '"'$b'"'""#), Some("a '$b'")),
            (json!("/bin/bash -lc 'a\nb'"), Some("a\nb")),
            (json!(["bash", "-lc", "cargo test"]), Some("cargo test")),
            (json!(["/bin/sh", "-c", "a"]), Some("a")),
            (json!("/bin/bash -lc cargo test"), None),
            (json!("/bin/bash  -lc 'a'"), None),
            (json!("/bin/bash -lc 'a' "), None),
            (json!(" /bin/bash -lc 'a'"), None),
            (json!("/bin/bash -lc 'a"), None),
            (json!("/bin/bash -lc \"a $b\""), None),
            (json!("/bin/bash -lc \"a \\n\""), None),
            (json!("/bin/bash -lc 'a' 'b'"), None),
            (json!("/bin/bash -lc a;b"), None),
            (json!("/bin/bash -xc 'a'"), None),
            (json!("/bin/bash -l -c 'a'"), None),
            (json!("/tmp/bash -lc 'a'"), None),
            (json!("/bin/../tmp/bash -lc 'a'"), None),
            (json!("./bash -lc 'a'"), None),
            (json!("fish -c 'a'"), None),
            (json!("touch a"), None),
            (json!(["touch", "a", "b"]), None),
            (json!(["bash", "-lc", "a", "b"]), None),
            (json!(["bash", "-lc", 1]), None),
            (json!(null), None),
            (json!(""), None),
            (json!("write_stdin --session-id 51367 'hi\n'"), None),
        ] {
            assert_eq!(script(&command).ok().as_deref(), expected, "{command}");
        }
    }
}
