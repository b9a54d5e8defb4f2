//! Debian package, made by `dpkg-deb`: it exists on every Debian, validates the package, and gives
//! the same bytes for the same files. Installation needs no configuration and no actions, so the
//! package has neither conffiles nor maintainer scripts; the systemd unit is per user, and the user
//! enables it.

use std::{env, fs, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use super::{
    files::{Files, VERSION},
    glibc, tree,
};
use crate::shell::{output, run};

/// Path of the program in the repository's unit, and in the package.
const USER_PROGRAM: &str = "%h/.local/bin/a2a-hub";
const PROGRAM: &str = "/usr/bin/a2a-hub";

/// Packs `files` as a `.deb` in `to`, and returns its name.
pub(super) fn package(files: &Files, (epoch, is_quick): (u64, bool), to: &Path) -> Result<String> {
    let architecture = output(Command::new("dpkg").arg("--print-architecture")).context(
        "dpkg packs for Debian; elsewhere, install it as `dpkg` by your system's package manager",
    )?;
    let scratch = to.join(".deb");
    lay_out(files, &scratch)?;

    let installed = installed_kib(&scratch)?;
    let sums = output(
        Command::new("sh")
            .current_dir(&scratch)
            .args(["-c", "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum"]),
    )?;
    let control = control(&architecture, installed, &files.program);
    tree::file(&scratch, "DEBIAN/control", control.as_bytes(), 0o644)?;
    tree::file(&scratch, "DEBIAN/md5sums", (sums + "\n").as_bytes(), 0o644)?;

    // `dpkg-deb` only reduces later times to this one.
    let touch = ["-exec", "touch", "--no-dereference", "--date", &format!("@{epoch}"), "{}", "+"];
    run(Command::new("find").arg(&scratch).args(touch))?;
    let name = format!("a2a-hub_{VERSION}_{architecture}.deb");
    let mut dpkg_deb = Command::new("dpkg-deb");
    // The number of threads changes the compressed bytes.
    dpkg_deb.env("SOURCE_DATE_EPOCH", epoch.to_string()).env("DPKG_DEB_THREADS_MAX", "1");
    dpkg_deb.args(if is_quick { ["-Zgzip", "-z1"] } else { ["-Zxz", "-z9"] });
    dpkg_deb.args(["--root-owner-group", "--build"]).arg(&scratch).arg(to.join(&name));
    run(&mut dpkg_deb)?;
    fs::remove_dir_all(scratch)?;
    Ok(name)
}

/// Writes each file to its path in the package.
fn lay_out(files: &Files, scratch: &Path) -> Result<()> {
    tree::afresh(scratch)?;
    tree::file(scratch, "usr/bin/a2a-hub", &files.program, 0o755)?;
    for (shell, script) in &files.completions {
        let path = match *shell {
            "bash" => "usr/share/bash-completion/completions/a2a-hub",
            "zsh" => "usr/share/zsh/vendor-completions/_a2a-hub",
            _ => "usr/share/fish/vendor_completions.d/a2a-hub.fish",
        };
        tree::file(scratch, path, script.as_bytes(), 0o644)?;
    }
    for (page, text) in &files.pages {
        compressed(scratch, &format!("usr/share/man/man1/{page}.1"), text.as_bytes())?;
    }
    let unit = system_unit(&files.unit)?;
    tree::file(scratch, "usr/lib/systemd/user/a2a-hub.service", unit.as_bytes(), 0o644)?;

    let documents = "usr/share/doc/a2a-hub";
    let copyright = copyright(&fs::read_to_string(files.root.join("LICENSE"))?);
    tree::file(scratch, &format!("{documents}/copyright"), copyright.as_bytes(), 0o644)?;
    let changes = fs::read(files.root.join("CHANGELOG.md"))?;
    compressed(scratch, &format!("{documents}/changelog"), &changes)?;
    let readme = fs::read(files.root.join("README.md"))?;
    compressed(scratch, &format!("{documents}/README.md"), &readme)
}

fn compressed(scratch: &Path, path: &str, bytes: &[u8]) -> Result<()> {
    tree::file(scratch, path, bytes, 0o644)?;
    tree::gzip(&scratch.join(path))
}

/// Systemd unit for an installed program, without the installation hint.
fn system_unit(unit: &str) -> Result<String> {
    ensure!(
        unit.contains(USER_PROGRAM),
        "packaging/a2a-hub.service no longer starts {USER_PROGRAM}"
    );
    let lines = unit.lines().filter(|line| !line.starts_with("# Put it into "));
    Ok(lines.map(|line| line.replace(USER_PROGRAM, PROGRAM) + "\n").collect())
}

/// Control file of the package.
fn control(architecture: &str, installed_kib: u64, program: &[u8]) -> String {
    let libc = glibc::newest(program).map_or_else(String::new, |(major, minor)| {
        format!("Depends: libc6 (>= {major}.{minor}), libgcc-s1\n")
    });
    // Maintainer variables of Debian's own tools.
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let name = variable("DEBFULLNAME").unwrap_or_else(|| "a2a-hub".to_owned());
    let email = variable("DEBEMAIL").unwrap_or_else(|| "a2a-hub@localhost".to_owned());
    format!(
        "Package: a2a-hub\n\
         Version: {VERSION}\n\
         Architecture: {architecture}\n\
         Maintainer: {name} <{email}>\n\
         Installed-Size: {installed_kib}\n\
         {libc}\
         Recommends: ca-certificates, git\n\
         Section: net\n\
         Priority: optional\n\
         Description: host of A2A agents as sandboxed WebAssembly components\n\
         \x20One local program that hosts coding agents and speaks A2A to whoever wants\n\
         \x20to talk with them. Each agent is a sandboxed WebAssembly component behind one\n\
         \x20contract, and has only the capabilities that it is granted.\n\
         \x20.\n\
         \x20To have systemd keep a hub up for you:\n\
         \x20systemctl --user enable --now a2a-hub\n"
    )
}

fn copyright(license: &str) -> String {
    let text: String = license
        .trim_end()
        .lines()
        .map(|line| if line.trim().is_empty() { " .\n".to_owned() } else { format!(" {line}\n") })
        .collect();
    format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         \n\
         Files: *\n\
         Copyright: the authors of a2a-hub\n\
         License: Apache-2.0\n\
         \n\
         License: Apache-2.0\n{text}"
    )
}

/// Installed size as Debian counts it: each file in whole KiB, and one for each folder.
fn installed_kib(dir: &Path) -> Result<u64> {
    let mut all = 1;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        all +=
            if meta.is_dir() { installed_kib(&entry.path())? } else { meta.len().div_ceil(1024) };
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_requires_newest_glibc() {
        let program = b"\0GLIBC_2.9\0GLIBC_2.34\0";
        let control = control("amd64", 7, program);
        assert!(control.contains("\nDepends: libc6 (>= 2.34), libgcc-s1\n"), "{control}");
    }

    #[test]
    fn system_unit_starts_installed_program() {
        let own = "# A user unit\n# Put it into ~/.config\nExecStart=%h/.local/bin/a2a-hub start\n";
        let unit = system_unit(own).unwrap();
        assert_eq!(unit, "# A user unit\nExecStart=/usr/bin/a2a-hub start\n");
        assert!(system_unit("ExecStart=/opt/hub").is_err());
    }

    #[test]
    fn licence_keeps_its_paragraphs() {
        assert!(copyright("One\n\nTwo\n").ends_with("License: Apache-2.0\n One\n .\n Two\n"));
    }
}
