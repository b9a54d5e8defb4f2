//! Checks every invocation against the manifest, by the same rules as the hub.

use a2a_hub_sdk::testing::ScriptedHost;
use jiff::civil::date;

use super::*;

const MANIFEST: &str = include_str!("../../manifest.toml");

/// Granted forms of arguments, and names of variables that may be set.
fn granted() -> (Vec<Vec<String>>, Vec<String>) {
    let manifest: toml::Table = MANIFEST.parse().unwrap();
    let git = manifest["process"]["git"].as_table().unwrap();
    let strings = |value: &toml::Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|v| v.as_str().unwrap().to_owned()).collect()
    };
    (git["args"].as_array().unwrap().iter().map(strings).collect(), strings(&git["set"]))
}

/// True if the arguments match a form, position by position.
fn fits(form: &[String], args: &[String]) -> bool {
    let mut args = args.iter().peekable();
    let mut options_ended = false;
    for token in form {
        if token == "{}*" {
            return args.all(|arg| is_free(arg, options_ended));
        }
        if let Some(optional) = token.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
            args.next_if(|arg| fits_token(optional, arg, options_ended));
        } else if args.next_if(|arg| fits_token(token, arg, options_ended)).is_none() {
            return false;
        }
        options_ended |= token == "--" || token == "--end-of-options";
    }
    args.next().is_none()
}

fn fits_token(token: &str, arg: &str, options_ended: bool) -> bool {
    match token.strip_suffix("{}") {
        None => token == arg,
        Some("") => is_free(arg, options_ended),
        Some(prefix) => arg.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()),
    }
}

fn is_free(arg: &str, options_ended: bool) -> bool {
    !arg.is_empty() && (options_ended || !arg.starts_with('-'))
}

/// Runs every function of [`Git`] with every kind of argument; returns the started commands.
fn every_invocation() -> Vec<Command> {
    let host = ScriptedHost::new();
    let (hash, range) = ("0123456789abcdef", "0123456789abcdef..fedcba9876543210");
    let runs: [&dyn Fn(&Git<'_>); 11] = [
        &|git| drop(git.version()),
        &|git| drop(git.open()),
        &|git| drop(git.commit_id("--upload-pack=evil")),
        &|git| drop(git.tags(None)),
        &|git| drop(git.tags(Some(hash))),
        &|git| drop(git.tags_containing(hash)),
        &|git| drop(git.files(hash)),
        &|git| drop(git.show(hash)),
        &|git| {
            let whole = Repository { head: hash.into(), shallow: false, up: "../".into() };
            let root = Repository { up: String::new(), ..whole.clone() };
            drop(git.blame(&whole, "src/x.rs", None));
            drop(git.blame(&root, "--contents=evil", Some(7)));
        },
        &|git| drop(git.commit_id("HEAD")),
        &|git| {
            let day = date(2026, 11, 21);
            for (since, until, path) in
                [(None, None, None), (Some(day), Some(day), Some("-x")), (None, Some(day), None)]
            {
                let selection = Selection { range, since, until, path };
                drop((git.count_all(&selection), git.oldest(hash, 7)));
                drop((git.count(&selection), git.log(&selection), git.follow(&selection)));
                drop((
                    git.newest(&selection),
                    git.pickaxe("-x y", &selection),
                    git.grep("--open", &selection),
                ));
            }
        },
    ];
    let context = host.context();
    for run in runs {
        for _ in 0..20 {
            host.program("git").stdout("\n");
        }
        run(&Git::new(&context, None));
    }
    host.spawned()
}

#[test]
fn manifest_forms_match_invocations_exactly() {
    let (forms, variables) = granted();
    let mut unused: Vec<&Vec<String>> = forms.iter().collect();
    for command in every_invocation() {
        assert_eq!(command.program, "git");
        assert!(
            forms.iter().any(|form| fits(form, &command.args)),
            "no form for {:?}",
            command.args
        );
        assert!(command.env.iter().all(|(name, _)| variables.contains(name)), "{:?}", command.env);
        unused.retain(|form| !fits(form, &command.args));
    }
    assert_eq!(unused, Vec::<&Vec<String>>::new());
}

#[test]
fn dangerous_arguments_match_no_form() {
    let (forms, _) = granted();
    let base = BASE.map(str::to_owned);
    let evil: [&[&str]; 9] = [
        &["log", "--ext-diff"],
        &["-c", "core.pager=evil", "--version"],
        &["rev-parse", "--verify", "--quiet", "HEAD"],
        &["ls-tree", "-r", "-z", "--name-only", "--full-tree", "--format=x"],
        &["-c", "diff.algorithm=default", "-c", "core.pager=evil", "blame", "x", "--", "x"],
        &["blame", "--no-textconv", "--porcelain", "--contents=x", "--", "x"],
        &["blame", "--no-textconv", "--porcelain", "--", "x"],
        &["grep", "-O", "evil"],
        &["fetch"],
    ];
    for args in evil {
        let args: Vec<String> =
            base.iter().cloned().chain(args.iter().map(|&arg| arg.to_owned())).collect();
        assert!(!forms.iter().any(|form| fits(form, &args)), "{args:?}");
    }
}
