//! Files of a program's installation, wherever it is: found by its links and by the interpreter
//! that a script names.
//!
//! | location | files |
//! | --- | --- |
//! | `…/bin`, `…/sbin`, `…/libexec` | it and its siblings `lib`, `lib64`, `libexec`, `pyvenv.cfg` |
//! | `…/node_modules/…` | the outermost `node_modules` |
//! | `/opt/NAME/…` | `/opt/NAME` |
//! | any other directory | the file alone, because the directory may be a home |

use std::{
    collections::BTreeSet,
    fs,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

/// Longest chain of links and of scripts whose interpreters are scripts.
const MAX_STEPS: usize = 40;

/// Directories of programs; their siblings contain what the programs load.
const PROGRAM_DIRECTORIES: &[&str] = &["bin", "sbin", "libexec"];

/// Siblings of a directory of programs that the programs load from.
const NEIGHBOURS: &[&str] = &["lib", "lib64", "libexec", "pyvenv.cfg"];

/// Longest first line of a script that the kernel reads (`BINPRM_BUF_SIZE`).
const FIRST_LINE: u64 = 256;

/// Finds the real path of a file or directory; none where the way there must not be followed.
type Real<'r> = &'r dyn Fn(&Path) -> Option<PathBuf>;

/// Finds the files of `program`'s installation, with links resolved; `search` are the directories
/// in which `env` looks for interpreters. The program can change the directories of `written`: a
/// link or a first line (`#!`) in one of them is not followed. Blocks on the disk.
pub fn files_of(
    program: &Path,
    search: &[PathBuf],
    written: &[PathBuf],
    real: Real<'_>,
) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut next = Some(program.to_owned());
    for _ in 0..MAX_STEPS {
        let file = next.as_deref().and_then(|next| in_real_directory(next, real));
        let Some(file) = file else { break };
        add_installation(&file, &mut found, real);
        if written.iter().any(|directory| file.starts_with(directory)) {
            break;
        }
        next = match fs::read_link(&file) {
            Ok(target) => Some(file.parent().unwrap_or(&file).join(target)),
            Err(_) => interpreter(&file, search),
        };
    }
    found
}

/// Path of a file with the links of its directory resolved; the file itself may be a link.
fn in_real_directory(file: &Path, real: Real<'_>) -> Option<PathBuf> {
    Some(real(file.parent()?)?.join(file.file_name()?))
}

fn add_installation(file: &Path, found: &mut BTreeSet<PathBuf>, real: Real<'_>) {
    let Some(directory) = file.parent() else { return };
    if let Some(modules) = up_to(file, |name| name == "node_modules") {
        found.insert(modules);
        return;
    }
    let mut names = file.components().skip(1);
    if names.next() == Some(Component::Normal("opt".as_ref())) && names.count() > 1 {
        found.insert(file.components().take(3).collect());
        return;
    }
    let name = directory.file_name().and_then(|name| name.to_str());
    if !name.is_some_and(|name| PROGRAM_DIRECTORIES.contains(&name)) {
        found.insert(file.to_owned());
        return;
    }
    found.insert(directory.to_owned());
    let parent = directory.parent().unwrap_or(directory);
    found.extend(NEIGHBOURS.iter().filter_map(|name| real(&parent.join(name))));
}

/// Prefix of a path up to the first component that matches.
fn up_to(path: &Path, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
    let names = |part: &Component<'_>| part.as_os_str().to_str().is_some_and(&is_it);
    let position = path.components().position(|part| names(&part))?;
    Some(path.components().take(position + 1).collect())
}

/// Interpreter named in a script's first line, also through `env`; none for a binary.
fn interpreter(file: &Path, search: &[PathBuf]) -> Option<PathBuf> {
    let mut start = Vec::new();
    fs::File::open(file).ok()?.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = str::from_utf8(line).ok()?.split_ascii_whitespace();
    let first = Path::new(words.next()?);
    if !first.ends_with("env") {
        return Some(first.to_owned());
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    search.iter().map(|directory| directory.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn canonical(path: &Path) -> Option<PathBuf> {
        path.canonicalize().ok()
    }

    struct Disk(tempfile::TempDir);

    impl Disk {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn file(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn link(&self, name: &str, to: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(to, path).unwrap();
        }

        /// Results without the machine's own paths.
        fn found(&self, program: &str, search: &[&str]) -> Vec<String> {
            let search: Vec<_> = search.iter().map(|name| self.path(name)).collect();
            let root = self.path("");
            let found = files_of(&self.path(program), &search, &[], &canonical).into_iter();
            found
                .filter_map(|path| Some(path.strip_prefix(&root).ok()?.display().to_string()))
                .collect()
        }
    }

    #[test]
    fn npm_script_includes_node_runtime() {
        let disk = Disk::new();
        disk.file("nvm/v22/bin/node", "\u{7f}ELF");
        disk.file("nvm/v22/lib/npm.js", "");
        disk.file("home/.npm/node_modules/cli/node_modules/dep/x.js", "");
        disk.file("home/.npm/node_modules/cli/cli.js", "#!/usr/bin/env -S node --x\n");
        disk.link("home/.npm/node_modules/.bin/cli", "../cli/cli.js");
        let found = disk.found("home/.npm/node_modules/.bin/cli", &["nvm/v22/bin"]);
        assert_eq!(found, ["home/.npm/node_modules", "nvm/v22/bin", "nvm/v22/lib"]);
    }

    #[test]
    fn venv_script_includes_python_installation() {
        let disk = Disk::new();
        disk.file("python/3.12/bin/python3.12", "\u{7f}ELF");
        disk.file("python/3.12/lib/os.py", "");
        disk.file("venv/pyvenv.cfg", "");
        disk.file("venv/lib/site.py", "");
        disk.link(
            "venv/bin/python3",
            &disk.path("python/3.12/bin/python3.12").display().to_string(),
        );
        disk.file("venv/bin/vibe", &format!("#!{}\n", disk.path("venv/bin/python3").display()));
        let found = disk.found("venv/bin/vibe", &[]);
        let python = ["python/3.12/bin", "python/3.12/lib"];
        let venv = ["venv/bin", "venv/lib", "venv/pyvenv.cfg"];
        assert_eq!(found, [&python[..], &venv[..]].concat());
    }

    #[test]
    fn home_directory_exposes_program_only() {
        let disk = Disk::new();
        disk.file("home/tool", "\u{7f}ELF");
        disk.file("home/.ssh/id", "");
        disk.link("home/.local/bin/claude", "../share/claude/versions/2.1");
        disk.file("home/.local/share/claude/versions/2.1", "\u{7f}ELF");
        assert_eq!(disk.found("home/tool", &[]), ["home/tool"]);
        assert_eq!(
            disk.found("home/.local/bin/claude", &[]),
            ["home/.local/bin", "home/.local/share/claude/versions/2.1"]
        );
        assert!(files_of(Path::new("/no/such/program"), &[], &[], &canonical).is_empty());
    }

    #[test]
    fn program_in_written_directory_leads_nowhere_else() {
        let disk = Disk::new();
        disk.file("secret/bin/key", "hush");
        disk.file("shop/script", &format!("#!{}\n", disk.path("secret/bin/key").display()));
        disk.link("shop/link", "../secret/bin/key");
        disk.link("own/tool", "../shop/link");
        let written = [disk.path("shop")];
        for program in ["shop/script", "shop/link", "own/tool"] {
            let found = files_of(&disk.path(program), &[], &written, &canonical);
            assert!(!found.contains(&disk.path("secret/bin")), "{program}: {found:?}");
            let found = files_of(&disk.path(program), &[], &[], &canonical);
            assert!(found.contains(&disk.path("secret/bin")), "{program}: {found:?}");
        }
    }

    #[test]
    fn circular_links_terminate() {
        let disk = Disk::new();
        disk.link("bin/a", "b");
        disk.link("bin/b", "a");
        assert_eq!(disk.found("bin/a", &[]), ["bin"]);
    }
}
