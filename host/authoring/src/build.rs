//! Builds a project's component, with the manifest embedded.

use crate::{
    compiled_deps::{CompiledDeps, local_packages},
    component::Component,
    error::{AuthoringError, Doing as _, FailureKind},
    project::{MANIFEST, Prepare, Project, Recipe},
    tool::{Ran, Tool, Workshop},
};
use a2a_hub_config::{cache_dir, private_file};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::id::AgentId;
use a2a_hub_sandbox::{component::manifest, digest_of};
use a2a_hub_toolchain::{self as toolchain, TARGET, Toolchain};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::Instant;

/// Result of a build.
#[derive(Debug)]
pub struct Built {
    /// Component in its project.
    pub component: Component,
    /// Duration of the build.
    pub took: Duration,
}

/// Observer of a build's tools: their start, their output and their end.
pub trait Observer {
    /// Called when a tool that builds this agent starts.
    fn begins(&self, agent: &AgentId);

    /// Called with each line of the tool's output.
    fn says(&self, line: &str);

    /// Called when the tool ends. `output` is the relevant output for observers that did not show
    /// it: the warnings, or all of it if the tool failed.
    fn ends(&self, output: &[&str]);
}

/// Builds the component. Dropping the future ends its tools.
///
/// # Errors
/// If a tool is missing ([`FailureKind::NoTool`]) or fails ([`FailureKind::NotBuilt`]), or its
/// result is no valid component; and I/O errors.
pub async fn build(
    project: &Project,
    workshop: &Workshop,
    observer: &impl Observer,
) -> Result<Built, AuthoringError> {
    let hand = Hand { project, workshop, observer };
    let began = Instant::now();
    let destination = project.component();
    let artifact = match &project.recipe {
        Recipe::Rust { library } => hand.compile(library).await?,
        Recipe::Command { prepare, build, .. } => {
            if let Some(prepare) = prepare.as_ref().filter(|it| is_due(&project.dir, it)) {
                hand.run(Tool::named(&prepare.command)?).await?;
            }
            hand.run(Tool::named(build)?).await?;
            destination.clone()
        }
    };
    let bytes = Component::bytes_of(&artifact)
        .doing(|| "the build went well, and left no component that could join".to_owned())?;
    let component = with_manifest(project, artifact, bytes)?;
    if !fs::read(&destination).is_ok_and(|there| there == component.bytes) {
        let folder = destination.parent().unwrap_or(&destination);
        let put = fs::create_dir_all(folder)
            .and_then(|()| private_file::replace(&destination, &component.bytes));
        put.doing(|| format!("write {}", destination.display()))?;
    }
    let component = Component { path: destination, ..component };
    Ok(Built { component, took: began.elapsed() })
}

/// Embeds the project's manifest, unless the build did so already.
fn with_manifest(
    project: &Project,
    path: PathBuf,
    bytes: Vec<u8>,
) -> Result<Component, AuthoringError> {
    let Some(text) = project.manifest()? else { return Component::new(path, bytes) };
    let to_error = |why: manifest::ManifestError| {
        let why = format!("use {}: {why}", project.dir.join(MANIFEST).display());
        AuthoringError::new(FailureKind::Other, why)
    };
    let ask = manifest::parse(text.as_bytes()).map_err(to_error)?;
    if manifest::read(&bytes).is_ok_and(|there| there == ask) {
        return Component::new(path, bytes);
    }
    let (bytes, _) = manifest::embed(&bytes, text.as_bytes()).map_err(to_error)?;
    Component::new(path, bytes)
}

/// True if a build's dependencies are not installed, or changed since they were.
fn is_due(dir: &Path, prepare: &Prepare) -> bool {
    let modified = |path: &Path| fs::metadata(dir.join(path)).and_then(|it| it.modified()).ok();
    match (modified(&prepare.needs), modified(&prepare.installed)) {
        (Some(needs), Some(installed)) => needs > installed,
        (_, None) => true,
        (None, Some(_)) => false,
    }
}

/// Build of one project.
struct Hand<'a, O> {
    project: &'a Project,
    workshop: &'a Workshop,
    observer: &'a O,
}

impl<O: Observer> Hand<'_, O> {
    /// Compiles the library with cargo and returns the path of the result.
    async fn compile(&self, library: &str) -> Result<PathBuf, AuthoringError> {
        let Self { project, workshop, .. } = self;
        let sysroot = self.sysroot().await;
        let toolchain = Toolchain::find(sysroot.as_deref()).ok_or_else(|| {
            let why = format!(
                "build {}: no Rust on this machine compiles for {TARGET}; {}",
                project.name,
                toolchain::advice()
            );
            AuthoringError::new(FailureKind::NoTool, why)
                .mended_by(format!("rustup target add {TARGET}"))
        })?;
        // Separate from the target directory of `cargo test`, which another compiler may have used.
        let target = workshop.variable("CARGO_TARGET_DIR").unwrap_or("target");
        let target = std::path::absolute(project.dir.join(target))
            .doing(|| format!("build {}", project.name))?
            .join("components");
        let folder = target.to_str().ok_or_else(|| {
            AuthoringError::new(FailureKind::Other, "build in a folder whose name is no text")
        })?;
        let cargo = Tool::cargo(toolchain.cargo())?;
        let deps = if target.exists() { None } else { self.deps(toolchain).await };
        let is_restored = match &deps {
            Some(deps) => self.restored(deps, &target).await,
            None => true,
        };
        let words = ["build", "--release", "--target", TARGET, "--target-dir", folder];
        self.run(cargo.args(&words)).await?;
        if let Some(deps) = deps.filter(|_| !is_restored) {
            self.store(deps, target.clone()).await;
        }
        let artifact = target.join(TARGET).join("release").join(format!("{library}.wasm"));
        if !artifact.is_file() {
            let why = format!(
                "build {}: cargo left no {}; say `crate-type = [\"cdylib\", \"lib\"]` below `[lib]` in Cargo.toml",
                project.name,
                artifact.display()
            );
            return Err(AuthoringError::new(FailureKind::NotBuilt, why));
        }
        Ok(artifact)
    }

    /// Dependencies that an earlier project compiled with this compiler and this profile, or where
    /// they can be stored; `None` if that cannot be determined.
    async fn deps(&self, toolchain: Toolchain) -> Option<CompiledDeps> {
        let cargo = toolchain.cargo();
        let rustc = cargo.set.iter().find(|(name, _)| *name == "RUSTC");
        let rustc = rustc.map_or("rustc", |(_, path)| path).to_owned();
        let ran = self.workshop.run(Tool::named(&[rustc, "-vV".to_owned()]).ok()?, |_| {}).await;
        let compiler = ran.ok().filter(|ran| ran.succeeded)?.lines;
        let manifest = fs::read_to_string(self.project.dir.join("Cargo.toml")).ok()?;
        let profile = manifest.parse::<toml::Table>().ok()?.remove("profile");
        let profile = profile.map(|profile| profile.to_string()).unwrap_or_default();
        let flags = cargo.set.iter().map(|(name, value)| format!("{name}={value}"));
        let version = [env!("CARGO_PKG_VERSION").to_owned(), profile];
        let key: Vec<_> =
            compiler.into_iter().chain(cargo.args.clone()).chain(flags).chain(version).collect();
        let key = key.join("\n");
        Some(CompiledDeps::new(&cache_dir()?, &digest_of(key.as_bytes())[..16]))
    }

    /// Copies an earlier project's dependencies to a new target directory; false if none are
    /// stored.
    async fn restored(&self, deps: &CompiledDeps, target: &Path) -> bool {
        let (deps, target) = (deps.clone(), target.to_owned());
        // Without the copy, the build only takes longer.
        let restored = run_blocking(move || deps.restore(&target).unwrap_or(false)).await;
        restored.unwrap_or(false)
    }

    /// Stores the compiled dependencies for later projects.
    async fn store(&self, deps: CompiledDeps, target: PathBuf) {
        let lock = fs::read_to_string(self.project.dir.join("Cargo.lock"));
        let Some(local) = lock.ok().and_then(|lock| local_packages(&lock)) else { return };
        // Without the copy, the next project's first build only takes longer.
        let _ = run_blocking(move || deps.store(&target, &local)).await;
    }

    /// Sysroot of the active compiler, if it can be determined.
    async fn sysroot(&self) -> Option<PathBuf> {
        let words = ["rustc", "--print", "sysroot"].map(str::to_owned);
        let ran = self.workshop.run(Tool::named(&words).ok()?, |_| {}).await.ok()?;
        ran.lines.last().filter(|_| ran.succeeded).map(PathBuf::from)
    }

    /// Runs a tool of the build and reports its output.
    async fn run(&self, tool: Tool) -> Result<(), AuthoringError> {
        let Self { project, workshop, observer } = self;
        observer.begins(&project.name);
        let ran = workshop.run(tool, |line| observer.says(line)).await;
        let Ran { succeeded, ending, lines } = match ran {
            Ok(ran) => ran,
            Err(why) => {
                observer.ends(&[]);
                return Err(why);
            }
        };
        let all = || lines.iter().map(String::as_str).collect();
        let output = if succeeded { warnings(&lines) } else { all() };
        observer.ends(&output);
        if succeeded {
            return Ok(());
        }
        let why = format!("build {}: {ending}; what it said stands above", project.name);
        Err(AuthoringError::new(FailureKind::NotBuilt, why))
    }
}

/// Extracts the warnings of a successful build, without progress lines.
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

/// Words that begin cargo's progress lines.
const PROGRESS: [&str; 2] = ["Compiling ", "Finished "];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successful_build_reports_only_warnings() {
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
    fn dependencies_are_reinstalled_when_changed() {
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

    /// Observer that expects no tool.
    struct Nobody;

    impl Observer for Nobody {
        fn begins(&self, agent: &AgentId) {
            panic!("a tool that builds {agent} began");
        }

        fn says(&self, _: &str) {}

        fn ends(&self, _: &[&str]) {}
    }

    #[tokio::test]
    async fn missing_build_tool_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let project =
            "[project]\nname = 'x'\n[tool.a2a-hub]\nbuild = ['no-such-tool']\ncomponent = 'x.wasm'";
        fs::write(dir.path().join("pyproject.toml"), project).unwrap();
        let project = Project::open(dir.path()).unwrap();
        let workshop = Workshop::new("/no/such/minder", &project.dir);
        let why = build(&project, &workshop, &Nobody).await.unwrap_err();
        assert_eq!(why.kind(), FailureKind::NoTool);
        assert!(why.to_string().starts_with("run `no-such-tool`"), "{why}");
    }
}
