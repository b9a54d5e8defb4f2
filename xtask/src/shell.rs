//! Runs other programs, and announces each step.

use std::{
    env,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};

/// Build arguments: the whole workspace determines the features of dependencies, so that no binary
/// needs a second build of them.
pub(crate) const BUILD: [&str; 3] = ["build", "--locked", "--workspace"];

/// Prints the step that begins.
pub(crate) fn announce(step: &str) {
    eprintln!("==> {step}");
}

/// Runs `command` to its end on this terminal. A failure is an error with the command line.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = command_line(command);
    announce(&shown);
    let status = command.status().with_context(|| format!("failed to start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Program that runs in the background; its output is printed at its end.
pub(crate) struct BackgroundProgram {
    shown: String,
    child: Child,
}

impl BackgroundProgram {
    /// Starts `command`.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let shown = command_line(command);
        announce(&shown);
        // The output is read at the end: a program that fills the pipe waits until then.
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().with_context(|| format!("failed to start `{shown}`"))?;
        Ok(Self { shown, child })
    }

    /// Waits for the exit. A failure is an error with the command line.
    pub(crate) fn finish(self) -> Result<()> {
        let ended = self.child.wait_with_output()?;
        io::stdout().write_all(&ended.stdout)?;
        io::stderr().write_all(&ended.stderr)?;
        if !ended.status.success() {
            bail!("`{}` failed: {}", self.shown, ended.status);
        }
        Ok(())
    }
}

/// True if `command` starts and succeeds; its output is discarded.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Standard output of `command`, trimmed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = command_line(command);
    let output = command.output().with_context(|| format!("failed to start `{shown}`"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed: {}\n{}", output.status, stderr.trim());
    }
    let text = String::from_utf8(output.stdout)
        .with_context(|| format!("`{shown}` printed something that is not UTF-8"))?;
    Ok(text.trim().to_owned())
}

/// Command of the cargo that runs this program, in the workspace at `root`. It does not inherit
/// this package's variables: build scripts that read them would run again whenever cargo is called
/// with and without `xtask` in turn, and dependent crates would be recompiled.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    let of_this_package = |name: &str| {
        ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix))
    };
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(of_this_package) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Directory of cargo's build output for this machine.
pub(crate) fn target_dir(root: &Path) -> PathBuf {
    root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Command line as a user would type it.
fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let mut line = name.into_owned();
    for argument in command.get_args() {
        let argument = argument.to_string_lossy();
        line.push(' ');
        if argument.contains(' ') {
            line.push_str(&format!("{argument:?}"));
        } else {
            line.push_str(&argument);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_shown_as_typed() {
        let mut command = Command::new("/opt/bin/a2a-hub");
        command.args(["send", "echo", "what changed?"]);
        assert_eq!(command_line(&command), r#"a2a-hub send echo "what changed?""#);
    }

    #[test]
    fn failure_names_the_command() {
        let error = run(&mut Command::new("false")).unwrap_err();
        assert!(error.to_string().starts_with("`false` failed: "), "{error}");
        let error = run(&mut Command::new("no-such-program")).unwrap_err();
        assert_eq!(error.to_string(), "failed to start `no-such-program`");
    }

    #[test]
    fn background_program_failure_is_returned() {
        BackgroundProgram::start(&mut Command::new("true")).unwrap().finish().unwrap();
        let error =
            BackgroundProgram::start(&mut Command::new("false")).unwrap().finish().unwrap_err();
        assert!(error.to_string().starts_with("`false` failed: "), "{error}");
    }

    #[test]
    fn output_is_trimmed() {
        assert_eq!(output(Command::new("echo").arg("hello")).unwrap(), "hello");
    }
}
