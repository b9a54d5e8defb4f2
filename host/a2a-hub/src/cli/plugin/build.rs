//! `plugin build`: the component of a project, with its manifest inside.

use super::{
    component::Component,
    project::{Kind, MANIFEST, Prepare, Project},
    tool::{NO_TOOL, Ran, Tool, Workshop},
};
use crate::cli::{
    Exit, Global, block_on,
    failure::CommandError,
    render::{duration, size},
    terminal::Progress,
};
use a2a_hub_config::own_file;
use a2a_hub_sandbox::manifest;
use a2a_hub_toolchain::{self as toolchain, TARGET, Toolchain};
use anyhow::{Context as _, anyhow};
use clap::Args;
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};

/// The project does not build as it is.
pub(super) const NOT_BUILT: &str = "BUILD_FAILED";

#[derive(Debug, Args)]
pub(in crate::cli) struct Build {
    /// The project's folder
    #[arg(default_value = ".")]
    project: PathBuf,
}

/// A component that was built.
pub(super) struct Built {
    pub(super) component: Component,
    pub(super) took: Duration,
}

pub(super) fn build(global: &Global, build: &Build) -> anyhow::Result<Exit> {
    let project = Project::of(&build.project)?;
    let built = block_on(async {
        let workshop = Workshop::new(&project.dir);
        let built = tokio::select! {
            built = make(global, &project, &workshop, Say::InOneLine) => built.map(Some),
            stopped = stopped() => stopped.map(|()| None),
        };
        workshop.close().await;
        built
    })?;
    let Some(Built { component, took }) = built else {
        global.console().note("called off; nothing of the build is left running");
        return Ok(Exit::Interrupted);
    };
    let told = component.to_json();
    global.show(&json!({ "agentId": project.name, "component": told }), || {
        let words = format!(
            "{} ({}) is built, in {}\n\n  a2a-hub plugin inspect {0}    what it says of itself and asks for\n  a2a-hub plugin dev    \
             into a running hub\n",
            shown(&component.path),
            size(component.bytes.len()),
            duration(took.as_secs()),
        );
        Ok(words.into())
    })?;
    Ok(Exit::Done)
}

/// Returns once the user wants this to end.
pub(super) async fn stopped() -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// How what the tools of a build say is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Say {
    /// On a terminal in a line that moves; all of it where the build fails.
    InOneLine,
    /// Line by line, for other things are told meanwhile.
    AllOfIt,
}

/// Builds the component. Dropping the future ends the tools that do so.
pub(super) async fn make(
    global: &Global,
    project: &Project,
    workshop: &Workshop,
    say: Say,
) -> anyhow::Result<Built> {
    let hand = Hand { global, project, workshop, say };
    let began = Instant::now();
    let place = project.component();
    let made = match &project.kind {
        Kind::Rust { library } => hand.compile(library).await?,
        Kind::Command { prepare, build, .. } => {
            if let Some(prepare) = prepare.as_ref().filter(|it| is_due(&project.dir, it)) {
                hand.run(Tool::named(&prepare.command)?).await?;
            }
            hand.run(Tool::named(build)?).await?;
            place.clone()
        }
    };
    let bytes = Component::bytes_of(&made)
        .context("the build went well, and left no component that could join")?;
    let component = with_manifest(project, made, bytes)?;
    if !fs::read(&place).is_ok_and(|there| there == component.bytes) {
        let folder = place.parent().unwrap_or(&place);
        let put =
            fs::create_dir_all(folder).and_then(|()| own_file::replace(&place, &component.bytes));
        put.with_context(|| format!("write {}", place.display()))?;
    }
    let component = Component { path: place, ..component };
    Ok(Built { component, took: began.elapsed() })
}

/// The component with the project's manifest inside, which its build may have put there already.
fn with_manifest(project: &Project, path: PathBuf, bytes: Vec<u8>) -> anyhow::Result<Component> {
    let Some(text) = project.manifest()? else { return Component::of(path, bytes) };
    let what = |why: manifest::ManifestError| {
        anyhow!("use {}: {why}", project.dir.join(MANIFEST).display())
    };
    let ask = manifest::parse(text.as_bytes()).map_err(what)?;
    if manifest::read(&bytes).is_ok_and(|there| there == ask) {
        return Component::of(path, bytes);
    }
    let (bytes, _) = manifest::embed(&bytes, text.as_bytes()).map_err(what)?;
    Component::of(path, bytes)
}

/// Whether what a build needs was not installed yet, or before it was changed.
fn is_due(dir: &Path, prepare: &Prepare) -> bool {
    let modified = |path: &Path| fs::metadata(dir.join(path)).and_then(|it| it.modified()).ok();
    match (modified(&prepare.needs), modified(&prepare.installed)) {
        (Some(needs), Some(installed)) => needs > installed,
        (_, None) => true,
        (None, Some(_)) => false,
    }
}

/// Who builds a project.
struct Hand<'a> {
    global: &'a Global,
    project: &'a Project,
    workshop: &'a Workshop,
    say: Say,
}

impl Hand<'_> {
    /// Has cargo compile the library, and returns where it left it.
    async fn compile(&self, library: &str) -> anyhow::Result<PathBuf> {
        let Self { project, workshop, .. } = self;
        let sysroot = self.sysroot().await;
        let toolchain = Toolchain::find(sysroot.as_deref()).ok_or_else(|| {
            let why = format!(
                "build {}: no Rust on this machine compiles for {TARGET}; {}",
                project.name,
                toolchain::advice()
            );
            CommandError::new(NO_TOOL, why).mended_by(format!("rustup target add {TARGET}"))
        })?;
        // Beside what `cargo test` leaves in a target directory: another compiler may have made that.
        let target = workshop.variable("CARGO_TARGET_DIR").unwrap_or("target");
        let target = std::path::absolute(project.dir.join(target))?.join("components");
        let folder = target.to_str().context("build in a folder whose name is no text")?;
        let cargo = Tool::cargo(toolchain.cargo())?;
        let words = ["build", "--release", "--target", TARGET, "--target-dir", folder];
        self.run(cargo.args(&words)).await?;
        let made = target.join(TARGET).join("release").join(format!("{library}.wasm"));
        if !made.is_file() {
            let why = format!(
                "build {}: cargo left no {}; say `crate-type = [\"cdylib\", \"lib\"]` below `[lib]` in Cargo.toml",
                project.name,
                made.display()
            );
            return Err(CommandError::new(NOT_BUILT, why).into());
        }
        Ok(made)
    }

    /// Where the active compiler is, if there is one.
    async fn sysroot(&self) -> Option<PathBuf> {
        let words = ["rustc", "--print", "sysroot"].map(str::to_owned);
        let ran = self.workshop.run(Tool::named(&words).ok()?, None).await.ok()?;
        ran.lines.last().filter(|_| ran.succeeded).map(PathBuf::from)
    }

    /// Runs a tool of the build, and shows what it says.
    async fn run(&self, tool: Tool) -> anyhow::Result<()> {
        let Self { global, project, workshop, say } = self;
        let doing = format!("building {}", project.name);
        let mut progress = Progress::new(global, &doing, *say == Say::InOneLine);
        let Ran { succeeded, ending, lines } = workshop.run(tool, Some(&mut progress)).await?;
        let was_seen = progress.keeps_what_is_said();
        drop(progress);
        let all = || lines.iter().map(String::as_str).collect();
        let told = if succeeded { warnings(&lines) } else { all() };
        for line in told.into_iter().filter(|_| !was_seen) {
            global.console().note(line);
        }
        if succeeded {
            return Ok(());
        }
        let why = format!("build {}: {ending}; what it said stands above", project.name);
        Err(CommandError::new(NOT_BUILT, why).into())
    }
}

/// What a compiler that went well warns of, without what it says of its own progress.
fn warnings(lines: &[String]) -> Vec<&str> {
    let is_progress = |line: &&str| {
        line.starts_with("   ") && PROGRESS.iter().any(|word| line.trim_start().starts_with(word))
    };
    let lines = lines.iter().map(String::as_str);
    lines
        .skip_while(|line| !line.starts_with("warning"))
        .filter(|line| !is_progress(line))
        .collect()
}

/// With these words cargo tells how far it is.
const PROGRESS: [&str; 2] = ["Compiling ", "Finished "];

/// A path as somebody who is in the current directory would type it.
pub(super) fn shown(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let short = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    crate::cli::render::shell_word(&short.unwrap_or(path).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_told_and_nothing_else_of_a_build_that_went_well() {
        let said = |lines: &[&str]| {
            let lines: Vec<_> = lines.iter().map(|&line| line.to_owned()).collect();
            warnings(&lines).join("|")
        };
        assert_eq!(said(&["   Compiling x", "    Finished y"]), "");
        assert_eq!(
            said(&["   Compiling x", "warning: unused", "  --> a", "    Finished y"]),
            "warning: unused|  --> a"
        );
    }

    #[test]
    fn what_is_needed_is_installed_once_and_again_when_that_changed() {
        let dir = tempfile::tempdir().unwrap();
        let prepare = Prepare {
            command: Vec::new(),
            needs: "package.json".into(),
            installed: "node_modules".into(),
        };
        fs::write(dir.path().join("package.json"), "").unwrap();
        assert!(is_due(dir.path(), &prepare));
        fs::create_dir(dir.path().join("node_modules")).unwrap();
        assert!(!is_due(dir.path(), &prepare));
        let newer = fs::File::open(dir.path().join("node_modules")).unwrap();
        let earlier = newer.metadata().unwrap().modified().unwrap() - Duration::from_secs(60);
        newer.set_modified(earlier).unwrap();
        assert!(is_due(dir.path(), &prepare));
    }
}
