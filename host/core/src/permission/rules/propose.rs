//! Patterns for the "always" of a request, and warnings about patterns.

use super::matching::{is_free, is_obeyed};
use super::subject::{RequestPart, RuleSubject, parts};
use crate::permission::{path, programs, shell};
use a2a_hub_protocol::permission::{Action, ActionPattern};

/// Exact patterns that rules need to allow a request always, one for each command or path. Returns
/// the reason if no rule can allow it.
pub fn patterns(subject: &RuleSubject<'_>) -> Result<Vec<ActionPattern>, String> {
    if let Action::Other { reason, .. } = &subject.request.action {
        return Err(format!("no rule can allow this: {reason}"));
    }
    if subject.principal.is_none() {
        return Err("no rule can allow this: nobody is known to have begun the task".to_owned());
    }
    let mut patterns = Vec::new();
    for part in parts(&subject.request.action) {
        let pattern = match part {
            RequestPart::Run { words, directory } => run(words, directory, subject),
            RequestPart::Edit { path } => edit(path, subject),
            RequestPart::Read { path } => read(path, subject),
        };
        let pattern = pattern.map_err(|reason| format!("no rule can allow this: {reason}"))?;
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    if patterns.is_empty() {
        return Err("no rule can allow this: it names no command and no file".to_owned());
    }
    Ok(patterns)
}

fn run(
    words: &[String],
    directory: &str,
    subject: &RuleSubject<'_>,
) -> Result<ActionPattern, String> {
    shell::check_command(words)?;
    let program = words.first().map(String::as_str).unwrap_or_default();
    if let Some(reason) = programs::launches(program) {
        return Err(format!("`{program}` {reason}"));
    }
    if words.iter().any(|word| is_free(word) || word.is_empty()) {
        return Err("one of its words is empty, `*` or `**`, which are patterns".to_owned());
    }
    let directory = path::relative(directory, subject.root)
        .ok_or_else(|| format!("{directory} is outside of the repository"))?;
    let directory = without_wildcard(directory)?;
    Ok(ActionPattern::Run { words: words.to_vec(), directory })
}

fn edit(path: &str, subject: &RuleSubject<'_>) -> Result<ActionPattern, String> {
    let relative = path::relative(path, subject.root).filter(|relative| !relative.is_empty());
    let relative = relative.ok_or_else(|| format!("{path} is outside of the repository"))?;
    if is_obeyed(relative, subject) {
        return Err(format!("{relative} is a file that programs obey"));
    }
    Ok(ActionPattern::Edit { path: without_wildcard(relative)? })
}

fn read(path: &str, subject: &RuleSubject<'_>) -> Result<ActionPattern, String> {
    let path = match path::relative(path, subject.root) {
        Some(relative) => relative,
        None => path::canonical(path).ok_or("it names no file exactly")?,
    };
    if path.is_empty() {
        return Err("it names the repository, and no file".to_owned());
    }
    Ok(ActionPattern::Read { path: without_wildcard(path)? })
}

fn without_wildcard(path: &str) -> Result<String, String> {
    if path.contains('*') {
        Err(format!("{path} has `*`, which is a pattern"))
    } else {
        Ok(path.to_owned())
    }
}

/// Warning for people about a pattern whose program runs code that the agent may have changed.
pub fn warning(pattern: &ActionPattern) -> Option<String> {
    let ActionPattern::Run { words, .. } = pattern else { return None };
    let program = words.first()?;
    let is_private = programs::is_private_path(program);
    let reason = programs::runs_workspace_code(program)
        .or_else(|| is_private.then_some("is a file that the agent may be able to change"))?;
    let name = crate::text::plain_text::line(program, 64);
    Some(format!("`{name}` {reason}: with edit rights here this means: run anything as you"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_code_has_warning() {
        let warning = |program: &str| {
            let words = vec![program.to_owned()];
            warning(&ActionPattern::Run { words, directory: String::new() })
        };
        assert_eq!(
            warning("make").as_deref(),
            Some(
                "`make` runs the commands of build files of the repository: with edit rights here \
                 this means: run anything as you"
            )
        );
        assert_eq!(warning("ls"), None);
    }
}
