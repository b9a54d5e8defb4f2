//! Release artifacts of the hub: the program, a tarball, packages for Debian, npm and Python,
//! checksums, and a bill of materials. Two builds at the same path have equal digests.

mod debian;
mod files;
mod glibc;
mod npm;
mod sbom;
mod tree;
mod wheel;

use std::{
    env::{self, consts::ARCH},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;

use files::{Files, VERSION};

use crate::{
    guests,
    shell::{BUILD, announce, cargo, output, run, target_dir},
};

/// First argument that makes the hub write a copy of itself with its agents' compiled code.
const CARRY: &str = "__carry";

/// File of checksums, in the format of `sha256sum --check`.
const SUMS: &str = "SHA256SUMS";

/// How the packages are made.
#[derive(Args)]
pub(crate) struct Options {
    /// Pack twice, and fail unless all digests are equal
    #[arg(long)]
    check: bool,
    /// With --check: also build the program twice, each time from nothing
    #[arg(long, requires = "check", conflicts_with = "program")]
    rebuild: bool,
    /// Pack this program as it is, instead of building one; without a list of what it is made of
    #[arg(long)]
    program: Option<PathBuf>,
    /// Compress little, which is quick
    #[arg(long)]
    quick: bool,
    /// Build a program that runs with this version of glibc and later ones, such as 2.28; needs
    /// cargo-zigbuild, and ziglang of PyPI
    #[arg(long, value_name = "VERSION", conflicts_with = "program", value_parser = glibc::version)]
    glibc: Option<(u32, u32)>,
    /// Where the packages are put [default: target/dist/packages]
    #[arg(long)]
    to: Option<PathBuf>,
}

/// Input of the packages.
struct Source<'r> {
    root: &'r Path,
    /// Program to pack; `None` to build one.
    program: Option<&'r Path>,
    /// Modification time of all files, in seconds since 1970.
    epoch: u64,
    /// True to compress little.
    is_quick: bool,
    /// Oldest glibc that the program has to run with; `None` for this machine's.
    glibc: Option<(u32, u32)>,
}

/// Makes the packages, and checks on request that a second run gives the same.
pub(crate) fn dist(root: &Path, options: &Options) -> Result<()> {
    let (program, is_quick) = (options.program.as_deref(), options.quick);
    let source = Source { root, program, epoch: epoch(root)?, is_quick, glibc: options.glibc };
    let to = options.to.clone().unwrap_or_else(|| target_dir(root).join("dist/packages"));
    source.pack(&to)?;
    if options.check {
        let sums = fs::read_to_string(to.join(SUMS))?;
        let first = target_dir(root).join("dist-first");
        if options.rebuild {
            tree::afresh(&first)?;
            run(Command::new("cp").arg("-a").arg(to.join(".")).arg(&first))?;
            run(cargo(root).args(["clean", "--profile", "dist"]))?;
        }
        let again = match options.rebuild {
            true => to.clone(),
            false => target_dir(root).join("dist-again"),
        };
        source.pack(&again)?;
        let sums_again = fs::read_to_string(again.join(SUMS))?;
        let differ = differing(&sums, &sums_again);
        let other = if options.rebuild { &first } else { &again };
        ensure!(
            differ.is_empty(),
            "made again, these came out otherwise: {}. Compare {} with {}, for example by diffoscope",
            differ.join(", "),
            to.display(),
            other.display()
        );
        fs::remove_dir_all(other)?;
        announce("made twice, and all digests are equal");
    }
    for line in fs::read_to_string(to.join(SUMS))?.lines() {
        if let Some((_, name)) = line.split_once("  ") {
            let kib = fs::metadata(to.join(name))?.len() >> 10;
            announce(&format!("{} ({kib} KiB)", to.join(name).display()));
        }
    }
    Ok(())
}

impl Source<'_> {
    /// Writes all packages into `to`, replacing its contents.
    fn pack(&self, to: &Path) -> Result<()> {
        tree::afresh(to)?;
        let program = to.join("a2a-hub");
        match self.program {
            Some(prebuilt) => {
                fs::copy(prebuilt, &program)
                    .with_context(|| format!("failed to copy {}", prebuilt.display()))?;
            }
            None => {
                let built = build(self.root, guests::Which::Agents, self.glibc)?;
                carry(&built.stripped, &program)?;
                if let Some(oldest) = self.glibc {
                    glibc::check(&fs::read(&program)?, oldest)?;
                }
            }
        }
        let mut artifacts = vec!["a2a-hub".to_owned()];
        let files = Files::collect(self.root, &program)?;
        artifacts.push(self.tarball(&files, to)?);
        artifacts.push(debian::package(&files, (self.epoch, self.is_quick), to)?);
        artifacts.extend(npm::packages(&files, (self.epoch, self.is_quick), to)?);
        artifacts.push(wheel::wheel(&files, self.is_quick, to)?);
        if self.program.is_none() {
            artifacts.push(sbom::list(self.root, self.epoch, to)?);
        }
        artifacts.sort();
        let sums = output(Command::new("sha256sum").current_dir(to).args(&artifacts))?;
        fs::write(to.join(SUMS), sums + "\n").context("failed to write the checksums")
    }

    /// Tarball for any Linux: a folder to copy from, laid out like `/usr` and `~/.local`.
    fn tarball(&self, files: &Files, to: &Path) -> Result<String> {
        let name = format!("a2a-hub-{VERSION}-{ARCH}-linux");
        let scratch = to.join(".tarball");
        let top = scratch.join(&name);
        tree::file(&top, "bin/a2a-hub", &files.program, 0o755)?;
        for (shell, script) in &files.completions {
            let path = match *shell {
                "bash" => "share/bash-completion/completions/a2a-hub",
                "zsh" => "share/zsh/site-functions/_a2a-hub",
                _ => "share/fish/vendor_completions.d/a2a-hub.fish",
            };
            tree::file(&top, path, script.as_bytes(), 0o644)?;
        }
        for (page, text) in &files.pages {
            tree::file(&top, &format!("share/man/man1/{page}.1"), text.as_bytes(), 0o644)?;
        }
        let unit = "share/systemd/user/a2a-hub.service";
        tree::file(&top, unit, files.unit.as_bytes(), 0o644)?;
        for document in ["README.md", "LICENSE", "CHANGELOG.md"] {
            let bytes = fs::read(self.root.join(document))
                .with_context(|| format!("failed to read {document}"))?;
            tree::file(&top, document, &bytes, 0o644)?;
        }
        let file = format!("{name}.tar.gz");
        tree::tarball(&scratch, &name, (self.epoch, self.is_quick), &to.join(&file))?;
        fs::remove_dir_all(scratch)?;
        Ok(file)
    }
}

/// Writes a copy of the hub to `to` that contains its agents' compiled code.
pub(crate) fn carry(hub: &Path, to: &Path) -> Result<()> {
    run(Command::new(hub).arg(CARRY).arg(to))
}

/// Released program, without the compiled code of its agents.
pub(crate) struct Shipped {
    /// With symbols, for profiles and for [`crate::sizes`].
    pub(crate) with_symbols: PathBuf,
    /// Without symbols, for users.
    pub(crate) stripped: PathBuf,
}

/// Builds these guests, and the program optimised for speed and size, with link-time optimisation.
/// `glibc` is the oldest one that the program has to run with; `None` stands for this machine's.
pub(crate) fn build(
    root: &Path,
    which: guests::Which,
    glibc: Option<(u32, u32)>,
) -> Result<Shipped> {
    guests::build(root, which)?;
    let folder = match glibc {
        None => {
            run(&mut compile(root, "a2a-hub"))?;
            target_dir(root).join("dist")
        }
        Some(oldest) => {
            let target = format!("{ARCH}-unknown-linux-gnu");
            let mut build = cargo(root);
            build.args(glibc::BUILD).arg(glibc::target(&target, oldest));
            run(&mut optimised(root, build, "a2a-hub"))
                .context("`cargo install --locked cargo-zigbuild` and `pip install ziglang` install what links for an older glibc")?;
            target_dir(root).join(target).join("dist")
        }
    };
    let with_symbols = folder.join("a2a-hub");
    let stripped = folder.join("shipped/a2a-hub");
    fs::create_dir_all(folder.join("shipped"))?;
    run(Command::new("strip").arg("--strip-all").arg("-o").arg(&stripped).arg(&with_symbols))
        .context("strip comes with the linker, as part of binutils")?;
    Ok(Shipped { with_symbols, stripped })
}

/// Command that compiles a program as released. All such programs use the same flags: otherwise
/// each build would recompile the other's crates.
pub(crate) fn compile(root: &Path, program: &str) -> Command {
    let mut build = cargo(root);
    build.args(BUILD);
    optimised(root, build, program)
}

/// The same build of a program, with the profile and the time of packages.
fn optimised(root: &Path, mut build: Command, program: &str) -> Command {
    build.args(["--profile", "dist", "--bin", program]);
    // Only packages need a time, so a missing one is ignored.
    build.envs(epoch(root).ok().map(|epoch| ("SOURCE_DATE_EPOCH", epoch.to_string())));
    build
}

/// Time of the last change of the source, in seconds since 1970: `SOURCE_DATE_EPOCH`, or the
/// commit's.
fn epoch(root: &Path) -> Result<u64> {
    let value = match env::var("SOURCE_DATE_EPOCH") {
        Ok(value) => value,
        Err(_) => output(Command::new("git").current_dir(root).args(["log", "-1", "--format=%ct"]))
            .context("without git, say in SOURCE_DATE_EPOCH when the source was changed last")?,
    };
    let Ok(epoch) = value.parse() else {
        bail!("SOURCE_DATE_EPOCH is to be a number of seconds since 1970, and is {value}");
    };
    Ok(epoch)
}

/// Names of files whose digests differ between both lists.
fn differing<'s>(first: &'s str, second: &'s str) -> Vec<&'s str> {
    let mut names: Vec<_> = first
        .lines()
        .filter(|line| !second.lines().any(|other| other == *line))
        .chain(second.lines().filter(|line| !first.lines().any(|other| other == *line)))
        .filter_map(|line| Some(line.split_once("  ")?.1))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differing_lists_changed_and_missing_files() {
        let first = "aa  hub\nbb  hub.deb\ncc  gone\n";
        assert!(differing(first, first).is_empty());
        assert_eq!(differing(first, "aa  hub\nb2  hub.deb\ndd  new\n"), ["gone", "hub.deb", "new"]);
    }
}
