//! Scripts that the hub reads, run in real shells: each starts the programs that the hub has read,
//! with the same arguments, and nothing else.
//!
//! The shells find only stubs, which record their arguments. Shells that are not installed are
//! skipped.
#![expect(clippy::disallowed_methods, reason = "the test runs real shells")]
#![expect(clippy::unwrap_used, reason = "the helpers of a test fail it as the test itself would")]

use a2a_hub_core::permission::shell::commands;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Shells with options. The last argument is the script.
const SHELLS: &[&[&str]] = &[
    &["/bin/dash", "-c"],
    &["/bin/bash", "-c"],
    &["/bin/bash", "-O", "extglob", "-c", r#"eval "$0""#],
    &["/usr/bin/zsh", "-f", "-c"],
    &[
        "/usr/bin/zsh",
        "-f",
        "-o",
        "extendedglob",
        "-o",
        "magicequalsubst",
        "-o",
        "kshglob",
        "-o",
        "braceccl",
        "-o",
        "rcquotes",
        "-o",
        "cshjunkiequotes",
        "-o",
        "globassign",
        "-c",
    ],
];

/// Builtins that the hub reads as programs. Shells run them without a stub.
const BUILTINS: [&str; 4] = ["echo", "false", "pwd", "true"];

/// Names of files that a shell could take for a pattern's match, an option or an expansion.
const AWKWARD: &[&str] = &[
    "*", "?", "a b", "-rf", "~", "~root", "=a", "%1", "%self", "a=b", "{a,b}", "[a]", "!x", "#",
    "ä", "$HOME", "a", "b", "c.txt", "\\", "'", "\"", "if", "@(a)", "^a", "1", "2", ".a",
];

/// Directory with stubs, a working directory, and the record of the stubs.
struct ShellLab {
    root: PathBuf,
}

impl ShellLab {
    fn new(name: &str) -> Self {
        stub_script();
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let root = root.join(format!("permission-{name}-{}", std::process::id()));
        for directory in ["stubs", "work"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for name in AWKWARD {
            fs::write(root.join("work").join(name), "").unwrap();
        }
        Self { root }
    }

    fn stub(&self, name: &str) -> PathBuf {
        let path = self.root.join("stubs").join(name);
        if !path.exists() {
            symlink(stub_script(), &path).unwrap();
        }
        path
    }

    fn run(&self, shell: &[&str], script: &str) -> Output {
        let (program, options) = shell.split_first().unwrap();
        let mut command = Command::new(program);
        command.args(options).arg(script).env_clear().env("PATH", self.root.join("stubs"));
        command.env("RECORD", self.root.join("record"));
        command.current_dir(self.root.join("work")).output().unwrap()
    }

    /// Programs that ran, with their arguments.
    fn record(&self) -> Vec<Vec<String>> {
        let path = self.root.join("record");
        let record = fs::read(&path).unwrap_or_default();
        fs::remove_file(&path).ok();
        let text = String::from_utf8(record).expect("the arguments are UTF-8");
        let mut fields = text.split_terminator('\0');
        let mut runs = Vec::new();
        while let Some(count) = fields.next() {
            let count: usize = count.parse().unwrap();
            runs.push(fields.by_ref().take(count + 1).map(str::to_owned).collect());
        }
        runs
    }

    /// Names in the working directory.
    fn files(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.root.join("work")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Runs a script that the hub has read in every shell. True if it could be run.
    fn verify(&self, script: &str, commands: &[Vec<String>]) -> bool {
        for words in commands {
            let program = Path::new(&words[0]);
            if program.is_absolute() && !program.starts_with(self.root.join("stubs")) {
                return false;
            }
            if words[0].len() > 200 {
                return false;
            }
            self.stub(program.file_name().unwrap().to_str().unwrap());
        }
        let (expected, may_end) = expected(commands);
        for shell in SHELLS.iter().filter(|shell| Path::new(shell[0]).exists()) {
            let output = self.run(shell, script);
            let ran = self.record();
            let is_right = ran == expected || may_end.is_some_and(|end| ran == expected[..end]);
            assert!(is_right, "{shell:?} ran {ran:?} by {script:?}, not {expected:?}: {output:?}");
            assert_eq!(self.files(), AWKWARD.iter().map(ToString::to_string).collect());
        }
        true
    }
}

impl Drop for ShellLab {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.root).ok();
    }
}

/// Records of the stubs, and the number of them if `pwd` fails, which some shells let it do with
/// arguments.
fn expected(commands: &[Vec<String>]) -> (Vec<Vec<String>>, Option<usize>) {
    let mut records = Vec::new();
    let mut may_end = None;
    for words in commands {
        match words[0].as_str() {
            "false" => break,
            "pwd" if words.len() > 1 => may_end = may_end.or(Some(records.len())),
            builtin if BUILTINS.contains(&builtin) => {}
            program => {
                let mut record = words.clone();
                record[0] = program.rsplit('/').next().unwrap().to_owned();
                records.push(record);
            }
        }
    }
    (records, may_end)
}

/// Script of every stub. It is written once, before any shell starts: a file that a started process
/// has open for writing cannot be run (`ETXTBSY`).
fn stub_script() -> &'static Path {
    static SCRIPT: OnceLock<PathBuf> = OnceLock::new();
    SCRIPT.get_or_init(|| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = path.join(format!("permission-stub-{}", std::process::id()));
        let script = "#!/bin/sh\nprintf '%s\\0' \"$#\" \"${0##*/}\" \"$@\" >> \"$RECORD\"\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    })
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[A-Za-z0-9_@%+:,./=-]{1,8}",
        2 => "'[ -&(-~äß漢]{0,8}'",
        2 => "\"[ #%-\\[\\]-_a-~é]{0,8}\"",
        1 => select(AWKWARD).prop_map(str::to_owned),
        1 => select(vec!["=a", "a==b", "a:=b", "%1", "-", "--", "+", "@", "a=/b:/c", "1", "2", "''",
            "\"\"", "'a'b", "a'b'", "'a''b'", "'\\'", "'!x'", "'$HOME'", "'`a`'", "'*'"])
            .prop_map(str::to_owned),
    ]
}

fn program(lab: &ShellLab) -> impl Strategy<Value = String> + use<> {
    let absolute = lab.stub("absolute").display().to_string();
    prop_oneof![
        4 => "[a-z][a-z0-9_.+-]{0,6}",
        1 => "[A-Za-z0-9_@%+:,.=-]{1,6}",
        1 => select(vec!["echo", "pwd", "true", "false", "cargo", "7z", "g++", "a.b", "1", "2"])
            .prop_map(str::to_owned),
        1 => "'[a-z]{1,6}'",
        1 => "\"[a-z]{1,6}\"",
        1 => Just(absolute),
    ]
}

/// Runs those generated scripts that the hub accepts: at most 200, and more than 50 of all `cases`.
fn verify_accepted(lab: &ShellLab, script: &impl Strategy<Value = String>, cases: u32) {
    let ran = Cell::new(0);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(script, |script| {
        if ran.get() < 200
            && let Ok(commands) = commands(&script)
        {
            ran.set(ran.get() + u32::from(lab.verify(&script, &commands)));
        }
        Ok(())
    });
    result.unwrap();
    assert!(ran.get() > 50, "only {} scripts ran", ran.get());
}

#[test]
fn accepted_scripts_run_as_read() {
    let lab = ShellLab::new("accepted");
    let command = (program(&lab), vec(word(), 0..5), select(vec![" ", "  "]))
        .prop_map(|(program, words, space)| [vec![program], words].concat().join(space));
    let script = vec(command, 1..4).prop_map(|commands| commands.join(" && "));
    verify_accepted(&lab, &script, 600);
}

/// Pieces of scripts, most of which have a meaning to a shell.
const PIECES: &[&str] = &[
    "a", "b", "c.txt", "echo", "cd", "if", "then", "fi", "time", "!", "-", "--", "{", "}", "(",
    ")", "&&", "&", "||", "|", ";", "\n", "\r", "\t", "$x", "$(a)", "${a}", "$((1))", "`a`", "'",
    "\"", "\\", "~", "~a", "=", "=a", "a=b", "%1", "#", "#a", "*", "?", "[a]", "{a,b}", "<a", ">b",
    "2>&1", "<<E", "<(a)", "\u{a0}", "ä", "\u{202e}", "\u{200b}", "\0", "'a b'", "\"a\"", "'*'",
    "\"$x\"", "&&a", "a&&b", "a;b", "!!", "^a^b", "@(a)", "a==b", ":", ".", "/", "[", "]]", "[[",
    ",", "+",
];

#[test]
fn nasty_scripts_run_as_read() {
    let lab = ShellLab::new("nasty");
    let piece = (select(PIECES), select(vec![" ", " ", " ", " ", "", "\n"]))
        .prop_map(|(piece, space)| format!("{piece}{space}"));
    let script = vec(piece, 1..7).prop_map(|pieces| format!("a {}", pieces.concat()));
    verify_accepted(&lab, &script, 20_000);
}

#[test]
fn shell_words_are_no_programs() {
    stub_script();
    let lists: [&[&str]; 3] = [
        &["/bin/bash", "-c", "compgen -b; compgen -k"],
        &["/usr/bin/zsh", "-f", "-c", "print -l ${(k)builtins} ${(k)reswords} ${(k)dis_builtins}"],
        &["/usr/bin/zsh", "-f", "-c", "print -l ${(k)aliases} ${(k)functions}"],
    ];
    for list in lists.iter().filter(|list| Path::new(list[0]).exists()) {
        let output = Command::new(list[0]).args(&list[1..]).env_clear().output().unwrap();
        for word in String::from_utf8(output.stdout).unwrap().lines() {
            let is_refused = commands(word).is_err() || commands(&format!("{word} a")).is_err();
            assert!(is_refused || BUILTINS.contains(&word), "{word} of {}", list[0]);
        }
    }
}

#[test]
fn script_limits_are_enforced() {
    let chain = |count: usize| vec!["a"; count].join(" && ");
    let words = |count: usize| vec!["a"; count].join(" ");
    assert!(commands(&chain(16)).is_ok() && commands(&chain(17)).is_err());
    assert!(commands(&words(64)).is_ok() && commands(&words(65)).is_err());
    let script = |length: usize| format!("a {}", "b".repeat(length - 2));
    assert!(commands(&script(8 * 1024)).is_ok() && commands(&script(8 * 1024 + 1)).is_err());
}
