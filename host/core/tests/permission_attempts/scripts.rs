//! Scripts for shells, programs that are denied, and programs that run others.

use super::{
    AttemptOutcome::{self, Allowed, Denied, People},
    *,
};

pub(crate) const SCRIPTS: &[(&str, AttemptOutcome)] = &[
    ("cargo test", Allowed),
    ("  cargo   test ", Allowed),
    ("'cargo' test", Allowed),
    ("cargo 'test'", Allowed),
    ("cargo \"test\"", Allowed),
    ("ls", Allowed),
    ("ls -l 'a b'", Allowed),
    ("ls && cargo test", Allowed),
    ("cargo test && ls && echo done", Allowed),
    // Operators.
    ("cargo test; rm a", People),
    ("cargo test;rm a", People),
    ("cargo test | tee a", People),
    ("cargo test || rm a", People),
    ("cargo test & rm a", People),
    ("cargo test &", People),
    ("cargo test && rm a", People),
    ("cargo test&&rm a", People),
    ("ls && rm a && ls", People),
    ("&& cargo test", People),
    ("cargo test &&", People),
    ("cargo test && && ls", People),
    ("! cargo test", People),
    ("(cargo test)", People),
    ("{ cargo test; }", People),
    ("ls > a", People),
    ("ls >a", People),
    ("ls 2>&1", People),
    ("ls < a", People),
    ("ls >(rm a)", People),
    // Substitution and expansion.
    ("ls $(rm a)", People),
    ("ls `rm a`", People),
    ("ls $HOME", People),
    ("ls ${a}", People),
    ("ls $((1))", People),
    ("ls \"$(rm a)\"", People),
    ("ls \"`rm a`\"", People),
    ("ls ~", People),
    ("ls ~root", People),
    ("ls *", People),
    ("ls a?", People),
    ("ls [a]", People),
    ("ls {a,b}", People),
    ("ls =rm", People),
    ("ls --a==rm", People),
    ("ls !!", People),
    ("ls \"!!\"", People),
    ("ls %1", People),
    ("ls <(rm a)", People),
    // Line ends, here-documents and comments.
    ("cargo test\nrm a", People),
    ("cargo test\n", People),
    ("cargo test\r\nrm a", People),
    ("ls 'a\nrm a'", People),
    ("ls <<E\nE\nrm a", People),
    ("ls <<< a", People),
    ("ls # a", People),
    ("cargo test # harmless\nrm a", People),
    ("cargo te\\\nst", People),
    ("\ncargo test", People),
    // Quotes.
    ("ls 'a", People),
    ("ls \"a", People),
    ("ls 'a'b", People),
    ("ls a'b'", People),
    ("ls 'a''b'", People),
    ("ls 'a'\\''b'", People),
    ("ls $'a\\nb'", People),
    ("ls $\"a\"", People),
    ("c'arg'o test", People),
    ("\"cargo\" test", Allowed),
    ("'cargo test'", People),
    // Look-alikes and control characters.
    ("ls\u{a0}-l", People),
    ("cargo\ttest", People),
    ("cаrgo test", People),
    ("ls 'a\u{202e}b'", People),
    ("ls 'a\u{200b}b'", People),
    ("ls 'a\u{1b}[2Jb'", People),
    ("ls 'a\0b'", People),
    ("ls \u{ff07}a\u{ff07}", People),
    ("cargo test \u{ff06}\u{ff06} ls", People),
    ("cargo test\u{2028}rm a", People),
    ("ls 'größer'", Allowed),
    // State of the shell.
    ("cd /tmp && cargo test", People),
    ("A=1 cargo test", People),
    ("A=1", People),
    ("ls && A=1 && cargo test", People),
    ("alias cargo=rm && cargo test", People),
    ("export PATH=/tmp && cargo test", People),
    ("source a && cargo test", People),
    (". a", People),
    ("hash -p /tmp/x cargo && cargo test", People),
    ("eval cargo test", People),
    ("exec cargo test", People),
    ("command cargo test", People),
    ("builtin echo a", People),
    ("time cargo test", People),
    ("if ls", People),
    ("noglob ls", People),
    ("- ls", People),
    ("printf -v a b", People),
    ("test -v a", People),
    ("echo 'a' && cargo test", Allowed),
    // Programs in other places.
    ("./cargo test", People),
    ("bin/cargo test", People),
    ("../cargo test", People),
    ("/tmp/cargo test", People),
    ("/usr/bin/cargo test", People),
    ("/usr/bin/id", Allowed),
    ("/usr/bin/../bin/id", People),
    ("id", People),
    // Arguments.
    ("cargo test -p a", People),
    ("cargo", People),
    ("cargo TEST", People),
    ("wc -l a", Allowed),
    ("wc -l", People),
    ("wc -l a b", People),
    ("wc -c a", People),
    ("", People),
    (" ", People),
];

#[test]
fn shell_scripts_are_read_exactly() {
    for (script, expected) in SCRIPTS {
        assert_eq!(judged(&bash(script)), *expected, "{script:?}");
    }
}

/// Denials of commands, which match more than they say.
const DENIALS: &[(&str, AttemptOutcome)] = &[
    ("git push", Denied),
    ("git push origin main", Denied),
    ("/usr/bin/git push", Denied),
    ("ls && git push", Denied),
    ("git push && made-up program", Denied),
    ("sudo git push", Denied),
    ("sudo -u a git push", Denied),
    ("env A=1 git push origin", Denied),
    ("timeout 5 nice git push", Denied),
    ("GIT push", Denied),
    ("rm -rf /", Denied),
    ("rm -rf a && git push", Denied),
    ("rm -r a", People),
    ("git -C a push", People),
    // Such requests cannot be read, so people see them.
    ("git push; ls", People),
    ("sh -c 'git push'", People),
];

#[test]
fn denied_commands_are_never_allowed() {
    let everything = [
        trusting(allow("all", run_of("git|push", ""))),
        trusting(allow("more", run_of("git|push|origin|main", ""))),
        allow("remove", run_of("rm|-rf|/", "")),
    ];
    let rules = [&everything[..], &rules()].concat();
    for (script, expected) in DENIALS {
        let request = read(&bash(script));
        let found = verdict(&rules, &facts(&request, &agent("coder")));
        assert_eq!(found, *expected, "{script:?}");
    }
}

#[test]
fn never_precedes_deny_and_allow() {
    let pattern = || run_of("id", "");
    let allowing = allow("a", pattern());
    let denying = deny("d", RuleEffect::Deny, pattern());
    let never = deny("n", RuleEffect::Never, pattern());
    let request = read(&bash("id"));
    let coder = agent("coder");
    let decided = |rules: &[PermissionRule]| match decide(rules, &facts(&request, &coder)) {
        Some(RuleVerdict::Denied(rule)) => rule.id.clone(),
        Some(RuleVerdict::Allowed(rules)) => rules[0].id.clone(),
        None => String::new(),
    };
    assert_eq!(decided(&[allowing.clone(), denying.clone(), never.clone()]), "n");
    assert_eq!(decided(&[never, denying.clone(), allowing.clone()]), "n");
    assert_eq!(decided(&[allowing.clone(), denying]), "d");
    assert_eq!(decided(&[allowing]), "a");
    assert_eq!(decided(&[]), "");
}

/// Programs that run programs, each with a rule as wide as it could be written, without
/// `trusts_workspace`, and the verdicts without and with the hub's sandbox.
pub(crate) const RUNNERS: &[(&str, &str, AttemptOutcome, AttemptOutcome)] = &[
    ("env|**", "env ls", People, People),
    ("env|ls", "env ls", People, People),
    ("sudo|**", "sudo ls", People, People),
    ("/usr/bin/sudo|ls", "/usr/bin/sudo ls", People, People),
    ("sh|-c|*", "sh -c ls", People, People),
    ("bash|-c|ls", "bash -c ls", People, People),
    ("bash|a.sh", "bash a.sh", People, People),
    ("xargs|**", "xargs rm", People, People),
    ("nohup|ls", "nohup ls", People, People),
    ("timeout|5|**", "timeout 5 ls", People, People),
    ("nice|ls", "nice ls", People, People),
    ("watch|ls", "watch ls", People, People),
    ("busybox|**", "busybox sh", People, People),
    ("ssh|**", "ssh host ls", People, People),
    ("find|**", "find . -exec rm a", People, People),
    ("find|.|-name|a", "find . -name a", Allowed, Allowed),
    ("tar|xf|*", "tar xf --to-command=rm", People, People),
    ("tar|xf|a.tar", "tar xf a.tar", Allowed, Allowed),
    ("rg|**", "rg --pre rm a", People, People),
    ("rg|a", "rg a", Allowed, Allowed),
    ("sed|*|a", "sed 1e a", People, People),
    ("awk|**", "awk 'a'", People, People),
    ("perl|-e|*", "perl -e 1", People, People),
    ("git|log|**", "git log --output=a", People, People),
    ("git|status", "git status", People, Allowed),
    ("/usr/lib/git-core/git-log|**", "/usr/lib/git-core/git-log a", People, People),
    ("cargo-clippy|a", "cargo-clippy a", People, Allowed),
    ("cargo|**", "cargo --config a test", People, People),
    ("cargo|build", "cargo build", People, Allowed),
    ("npm|run|*", "npm run a", People, Allowed),
    ("make|all", "make all", People, Allowed),
    ("pytest|**", "pytest -p a", People, Allowed),
    ("python3.12|a.py", "python3.12 a.py", People, Allowed),
    ("python3|-c|*", "python3 -c 1", People, People),
    ("/repo/tool|**", "/repo/tool a", People, Allowed),
    ("/trees/1/tool", "/trees/1/tool", People, Allowed),
    ("docker|ps", "docker ps", People, People),
    ("gradle|test", "gradle test", People, People),
    ("cp|**", "cp a /home/dev/.bashrc", People, People),
    ("stat|*", "stat a", Allowed, Allowed),
    ("**", "stat a", People, People),
    ("*|a", "stat a", People, People),
];

#[test]
fn programs_that_run_programs_are_asked() {
    for (pattern, script, unconfined, confined) in RUNNERS {
        let rules = [allow("wide", run_of(pattern, "**"))];
        let request = read(&bash(script));
        let coder = agent("coder");
        let asked = facts(&request, &coder);
        assert_eq!(verdict(&rules, &asked), *unconfined, "{script}");
        let asked = RuleSubject { confined: true, ..asked };
        assert_eq!(verdict(&rules, &asked), *confined, "{script}, confined");
        let is_checked = check(&rules[0], true, &is_sensitive).is_ok();
        assert!(is_checked || *confined == People, "{script} is allowed by a refused rule");
    }
}
