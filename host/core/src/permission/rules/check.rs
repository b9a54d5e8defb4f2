//! Refusal of rules that the hub cannot honour, or that would allow more than they say.

use super::matching::{ANY_REST, is_free};
use super::{describe::command, time};
use crate::permission::{path, programs, request, shell};
use crate::text::plain_text::is_plain_line;
use a2a_hub_protocol::permission::{ActionPattern, PermissionRule, RuleEffect};

/// Maximum length of a text of a rule in bytes.
const MAX_TEXT: usize = 4 * 1024;

/// Maximum number of agents above the asking one.
const MAX_THROUGH: usize = 64;

/// Refuses a rule with the reason and the way out. `confined` is true if the hub's sandbox confines
/// the agent's program, and `is_sensitive` for a file of the repository that programs obey.
pub fn check(
    rule: &PermissionRule,
    confined: bool,
    is_sensitive: &dyn Fn(&str) -> bool,
) -> Result<(), String> {
    check_texts(rule)?;
    let is_allowing = rule.effect == RuleEffect::Allow;
    if is_allowing {
        check_scope(rule)?;
    }
    match &rule.pattern {
        ActionPattern::Run { words, directory } => {
            check_words(words)?;
            check_directory(directory)?;
            if is_allowing { check_program(rule, words, confined) } else { Ok(()) }
        }
        ActionPattern::Edit { path } => {
            check_path(path)?;
            if is_allowing { check_edit(path, is_sensitive) } else { Ok(()) }
        }
        ActionPattern::Read { path } => {
            check_path(path)?;
            if is_allowing { check_read(path) } else { Ok(()) }
        }
    }
}

/// Refuses texts that are long or deceptive, and times in another form.
fn check_texts(rule: &PermissionRule) -> Result<(), String> {
    let members = [
        ("text", rule.text.as_deref()),
        ("vendor", rule.vendor.as_deref()),
        ("repository", rule.repository.as_deref()),
        ("principal", rule.principal.as_deref()),
        ("id", Some(rule.id.as_str())),
        ("createdBy", Some(rule.created_by.as_str())),
    ];
    for (name, text) in members {
        let Some(text) = text else { continue };
        if text.len() > MAX_TEXT {
            return Err(format!("{name} is longer than {MAX_TEXT} bytes: shorten it"));
        }
        if !is_plain_line(text) {
            return Err(format!(
                "{name} has line ends, control or invisible characters: write one plain line"
            ));
        }
        if name != "text" && text.is_empty() {
            return Err(format!("{name} is empty: leave it out, or name it"));
        }
    }
    if rule.effect == RuleEffect::Allow && rule.text.is_some() {
        return Err("only a rule that denies has a text for the agent: leave text out".to_owned());
    }
    if rule.through.len() > MAX_THROUGH {
        return Err(format!("through names more than {MAX_THROUGH} agents"));
    }
    if rule.expires_at.as_deref().is_some_and(|expiry| !time::is_time(expiry)) {
        return Err("expiresAt is not a time in UTC: write it as 2027-01-31T00:00:00Z".to_owned());
    }
    Ok(())
}

/// Refuses a rule that allows and leaves open for whom.
fn check_scope(rule: &PermissionRule) -> Result<(), String> {
    let missing = [
        ("agent", rule.agent.is_none()),
        ("vendor", rule.vendor.is_none()),
        ("repository", rule.repository.is_none()),
        ("principal", rule.principal.is_none()),
    ];
    if let Some((name, _)) = missing.iter().find(|(_, is_missing)| *is_missing) {
        return Err(format!(
            "a rule that allows needs {name}: name it, or make it a rule that denies"
        ));
    }
    let vendor = rule.vendor.as_deref().unwrap_or_default();
    request::check_vendor(vendor, matches!(rule.pattern, ActionPattern::Run { .. }))?;
    if request::asks_outside_sandbox(vendor) && !rule.outside_sandbox {
        return Err(format!(
            "{vendor} asks only to act outside of its sandbox, so the rule would match nothing: \
             set outsideSandbox"
        ));
    }
    let repository = rule.repository.as_deref().unwrap_or_default();
    if path::canonical(repository) != Some(repository) || repository == "/" {
        return Err("repository is not an absolute path without `.` and `..`".to_owned());
    }
    Ok(())
}

/// Refuses words that no request has, and patterns in places where none may stand.
fn check_words(words: &[String]) -> Result<(), String> {
    let Some((program, arguments)) = words.split_first() else {
        return Err("the rule has no program: name one, such as `cargo test`".to_owned());
    };
    if words.iter().any(String::is_empty) {
        return Err("a word of the rule is empty: leave it out".to_owned());
    }
    if words.iter().map(String::len).sum::<usize>() > MAX_TEXT {
        return Err(format!("the words are longer than {MAX_TEXT} bytes: use `**` for the rest"));
    }
    if program.contains('*') {
        return Err(format!("the program `{program}` is a pattern: name one program"));
    }
    if arguments.split_last().is_some_and(|(_, before)| before.iter().any(|word| word == ANY_REST))
    {
        return Err(
            "`**` is not the last word: use `*` for one word, or end the rule with it".to_owned()
        );
    }
    shell::check_command(words)
        .map_err(|reason| format!("no request that the hub can read has these words: {reason}"))
}

fn check_directory(directory: &str) -> Result<(), String> {
    if directory.is_empty() || is_relative_pattern(directory) {
        return Ok(());
    }
    Err("directory is not a path relative to the repository, without `.` and `..`: use `` for the \
         repository itself, or `**` for any directory in it"
        .to_owned())
}

/// Refuses to allow programs whose arguments say too little.
fn check_program(rule: &PermissionRule, words: &[String], confined: bool) -> Result<(), String> {
    let program = words.first().map(String::as_str).unwrap_or_default();
    if let Some(reason) = programs::launches(program) {
        return Err(format!(
            "`{program}` {reason}, so a rule for it would allow anything: allow the other program \
             by its own rule"
        ));
    }
    let reason = programs::takes_exact_arguments(program);
    if let Some(reason) = reason.filter(|_| words.iter().any(|word| is_free(word))) {
        return Err(format!(
            "`{program}` {reason}, so `*` and `**` would allow anything: write its exact \
             arguments, without patterns, instead of `{}`",
            command(words)
        ));
    }
    let is_private = programs::is_private_path(program);
    let reason = programs::runs_workspace_code(program)
        .or_else(|| is_private.then_some("is a file that the agent may be able to change"));
    let is_confined = confined && !programs::asks_service(program);
    match reason {
        Some(reason) if !rule.trusts_workspace && !is_confined => Err(format!(
            "`{program}` {reason}: with edit rights here this means: run anything as you. Confine \
             the agent (`confine = true`), or accept it with --trust-workspace"
        )),
        _ => Ok(()),
    }
}

fn check_path(path: &str) -> Result<(), String> {
    let inner = path.strip_prefix('/').unwrap_or(path);
    if is_relative_pattern(inner) {
        return Ok(());
    }
    Err("path is empty, too long, or has `.`, `..`, `***`, empty components or control characters: \
         write it relative to the repository, such as `src/**`"
        .to_owned())
}

/// True for a pattern of a path that requests can have.
fn is_relative_pattern(path: &str) -> bool {
    path.len() <= MAX_TEXT
        && is_plain_line(path)
        && path::is_canonical_relative(path)
        && !path.contains("***")
}

/// Refuses to allow changes outside of the repository, and of files that programs obey.
fn check_edit(path: &str, is_sensitive: &dyn Fn(&str) -> bool) -> Result<(), String> {
    if path.starts_with('/') {
        return Err(
            "no rule allows changes outside of the repository: write the path relative to \
                    it"
            .to_owned(),
        );
    }
    // Components without a wildcard that follow each other, such as `.github/x` of `**/.github/x`.
    let runs = path.split('/').collect::<Vec<_>>();
    let runs = runs.split(|component| component.contains('*')).map(|run| run.join("/"));
    for run in runs.filter(|run| !run.is_empty()) {
        let inside = format!("{run}/file");
        if path::is_in_git(&run) || is_sensitive(&run) || is_sensitive(&inside) {
            return Err(format!(
                "programs obey {run}, so changes of it are never allowed by a rule: answer each \
                 request for it"
            ));
        }
    }
    Ok(())
}

fn check_read(path: &str) -> Result<(), String> {
    if path.starts_with('/') && path.contains('*') {
        return Err(
            "outside of the repository, a rule allows to read exact paths only: write each \
                    path without `*`"
                .to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::id::AgentId;

    fn rule(effect: RuleEffect, pattern: ActionPattern) -> PermissionRule {
        let is_allowing = effect == RuleEffect::Allow;
        let scope = |text: &str| is_allowing.then(|| text.to_owned());
        PermissionRule {
            id: "p1".to_owned(),
            effect,
            pattern,
            text: None,
            agent: is_allowing.then(|| AgentId::parse("coder").unwrap()),
            through: Vec::new(),
            vendor: scope("claude"),
            outside_sandbox: false,
            repository: scope("/repo"),
            principal: scope("operator"),
            trusts_workspace: false,
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            created_by: "operator".to_owned(),
            expires_at: None,
            from_question: None,
        }
    }

    fn run_pattern(words: &str, directory: &str) -> ActionPattern {
        let words = words.split('|').map(str::to_owned).collect();
        ActionPattern::Run { words, directory: directory.to_owned() }
    }

    fn is_sensitive(path: &str) -> bool {
        path == ".env" || path.ends_with("/.env") || path.split('/').any(|part| part == ".github")
    }

    /// Start of the refusal, which is empty for an accepted rule.
    fn assert_checked(rule: &PermissionRule, confined: bool, expected: &str) {
        let refusal = check(rule, confined, &is_sensitive).err().unwrap_or_default();
        let is_expected =
            refusal.starts_with(expected) && refusal.is_empty() == expected.is_empty();
        assert!(is_expected, "{rule:?} is refused with {refusal:?}, not {expected:?}");
    }

    #[test]
    fn wide_rules_for_programs_are_refused() {
        for (words, directory, allow, confined, deny) in [
            ("stat|a", "", "", "", ""),
            ("stat|*", "**", "", "", ""),
            ("stat|**", "sub/*", "", "", ""),
            ("npm|test", "", "`npm` runs scripts", "", ""),
            ("npm|**", "", "`npm` runs scripts", "", ""),
            (
                "/repo/tool",
                "",
                "`/repo/tool` is a file that the agent may be able to change",
                "",
                "",
            ),
            ("docker|ps", "", "`docker` builds", "`docker` builds", ""),
            ("git|log|*", "", "`git` has options", "`git` has options", ""),
            ("find|**", "", "`find` has options", "`find` has options", ""),
            ("find|.", "", "", "", ""),
            ("sudo|ls", "", "`sudo` runs another", "`sudo` runs another", ""),
            ("/bin/sh|-c|ls", "", "`/bin/sh` runs a script", "`/bin/sh` runs a script", ""),
            ("", "", "a word of the rule", "a word of the rule", "a word of the rule"),
            ("ls||a", "", "a word of the rule", "a word of the rule", "a word of the rule"),
            ("*", "", "the program `*`", "the program `*`", "the program `*`"),
            ("**", "", "the program `**`", "the program `**`", "the program `**`"),
            ("ls|**|a", "", "`**` is not", "`**` is not", "`**` is not"),
            ("./a", "", "no request", "no request", "no request"),
            ("a/b", "", "no request", "no request", "no request"),
            ("cd|a", "", "no request", "no request", "no request"),
            ("A=1|ls", "", "no request", "no request", "no request"),
            ("ls|a\nb", "", "no request", "no request", "no request"),
            ("ls|a\u{202e}", "", "no request", "no request", "no request"),
            ("stat|a", "..", "directory is", "directory is", "directory is"),
            ("stat|a", "/repo", "directory is", "directory is", "directory is"),
            ("stat|a", "a//b", "directory is", "directory is", "directory is"),
        ] {
            let with = |effect| rule(effect, run_pattern(words, directory));
            assert_checked(&with(RuleEffect::Allow), false, allow);
            assert_checked(&with(RuleEffect::Allow), true, confined);
            assert_checked(&with(RuleEffect::Deny), false, deny);
            assert_checked(&with(RuleEffect::Never), false, deny);
        }
        let long = run_pattern(&format!("ls|{}", "a".repeat(MAX_TEXT)), "");
        assert_checked(&rule(RuleEffect::Never, long), false, "the words are longer");
        let trusting = rule(RuleEffect::Allow, run_pattern("docker|ps", ""));
        assert_checked(&PermissionRule { trusts_workspace: true, ..trusting }, false, "");
    }

    #[test]
    fn wide_rules_for_files_are_refused() {
        for (path, edit, read, deny) in [
            ("src/a.rs", "", "", ""),
            ("src/**", "", "", ""),
            ("**", "", "", ""),
            ("/etc/hosts", "no rule allows changes", "", ""),
            ("/etc/*", "no rule allows changes", "outside of the repository", ""),
            (".env", "programs obey .env", "", ""),
            ("**/.env", "programs obey .env", "", ""),
            ("a/.env", "programs obey a/.env", "", ""),
            (".github/**", "programs obey .github", "", ""),
            ("a/*/.github/b", "programs obey .github/b", "", ""),
            (".git/**", "programs obey .git", "", ""),
            ("a/.GIT/config", "programs obey a/.GIT/config", "", ""),
            ("", "path is", "path is", "path is"),
            ("a/../b", "path is", "path is", "path is"),
            ("./a", "path is", "path is", "path is"),
            ("a/", "path is", "path is", "path is"),
            ("a***", "path is", "path is", "path is"),
            ("a\tb", "path is", "path is", "path is"),
        ] {
            let editing = |effect| rule(effect, ActionPattern::Edit { path: path.to_owned() });
            let reading = |effect| rule(effect, ActionPattern::Read { path: path.to_owned() });
            assert_checked(&editing(RuleEffect::Allow), false, edit);
            assert_checked(&reading(RuleEffect::Allow), false, read);
            assert_checked(&editing(RuleEffect::Deny), false, deny);
            assert_checked(&reading(RuleEffect::Never), false, deny);
        }
    }

    #[test]
    fn open_scope_of_allowance_is_refused() {
        let with = |change: &dyn Fn(&mut PermissionRule), effect| {
            let mut rule = rule(effect, run_pattern("stat|a", ""));
            change(&mut rule);
            rule
        };
        type Change = fn(&mut PermissionRule);
        let cases: [(Change, &str, &str); 16] = [
            (|rule| rule.agent = None, "a rule that allows needs agent", ""),
            (|rule| rule.vendor = None, "a rule that allows needs vendor", ""),
            (|rule| rule.repository = None, "a rule that allows needs repository", ""),
            (|rule| rule.principal = None, "a rule that allows needs principal", ""),
            (|rule| rule.vendor = Some("agy".into()), "the hub does not know the requests", ""),
            (|rule| rule.vendor = Some("gemini".into()), "Gemini sends only the title", ""),
            (|rule| rule.vendor = Some("codex".into()), "codex asks only to act outside", ""),
            (|rule| rule.repository = Some("repo".into()), "repository is not an absolute", ""),
            (|rule| rule.repository = Some("/".into()), "repository is not an absolute", ""),
            (|rule| rule.repository = Some("/a/../b".into()), "repository is not an absolute", ""),
            (|rule| rule.text = Some("use pnpm".into()), "only a rule that denies", ""),
            (|rule| rule.text = Some("a\u{1b}".into()), "text has line ends", "text has line ends"),
            (|rule| rule.text = Some("a".repeat(MAX_TEXT + 1)), "text is longer", "text is longer"),
            (|rule| rule.vendor = Some(String::new()), "vendor is empty", "vendor is empty"),
            (|rule| rule.expires_at = Some("tomorrow".into()), "expiresAt is", "expiresAt is"),
            (|rule| rule.expires_at = Some("2027-01-31T00:00:00Z".into()), "", ""),
        ];
        for (change, allow, deny) in cases {
            assert_checked(&with(&change, RuleEffect::Allow), false, allow);
            assert_checked(&with(&change, RuleEffect::Deny), false, deny);
        }
    }
}
