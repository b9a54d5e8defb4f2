//! Tests that the SDKs for Python and JavaScript, their templates and their examples pass their own
//! tests.

use anyhow::{Context as _, Result, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{process::Command, time::timeout};

/// Timeout of an SDK's tests, which take a second or two.
const TESTED_WITHIN: Duration = Duration::from_secs(60);

fn languages() -> PathBuf {
    repository().join("target/languages")
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[tokio::test]
async fn python_sdk_template_and_example_pass() -> Result<()> {
    let root = repository();
    for folder in ["sdk-python/tests", "examples/data-analyst"] {
        python_tests(&root.join(folder)).await.with_context(|| folder.to_owned())?;
    }
    python_tests(project("python")?.path()).await.context("templates/python")
}

#[tokio::test]
async fn javascript_sdk_template_and_example_pass() -> Result<()> {
    let tools = languages().join("node_modules");
    node_tests(&tools.join("a2a-hub-sdk/test")).await.context("sdk-js")?;
    node_tests(&languages().join("link-checker")).await.context("examples/link-checker")?;
    let project = project("js")?;
    std::os::unix::fs::symlink(&tools, project.path().join("node_modules"))?;
    node_tests(project.path()).await.context("templates/js")
}

/// Creates a project from a template.
fn project(template: &str) -> Result<tempfile::TempDir> {
    let project = tempfile::tempdir()?;
    for file in fs::read_dir(repository().join("templates").join(template))? {
        let file = file?;
        let text = fs::read_to_string(file.path())?;
        let text = text.replace("{{name}}", "my-notes").replace("{{title}}", "My notes");
        ensure!(!text.contains("{{"), "{} has another word to replace", file.path().display());
        fs::write(project.path().join(file.file_name()), text)?;
    }
    Ok(project)
}

#[expect(clippy::disallowed_methods, reason = "an SDK's tests run in its own language")]
async fn python_tests(folder: &Path) -> Result<()> {
    let mut python = Command::new(languages().join("venv/bin/python"));
    python.args(["-B", "-m", "unittest", "discover", "-p", "test_*.py"]);
    passes(python.current_dir(folder).env("PYTHONPATH", repository().join("sdk-python"))).await
}

#[expect(clippy::disallowed_methods, reason = "an SDK's tests run in its own language")]
async fn node_tests(folder: &Path) -> Result<()> {
    let mut node = Command::new("node");
    node.arg("--test");
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        if path.to_string_lossy().ends_with(".test.js") {
            node.arg(path);
        }
    }
    passes(node.current_dir(folder).env("A2A_HUB_WIT", repository().join("wit"))).await
}

async fn passes(command: &mut Command) -> Result<()> {
    let command = command.stdin(Stdio::null()).kill_on_drop(true);
    let done = timeout(TESTED_WITHIN, command.output()).await??;
    let told = [done.stdout, done.stderr].concat();
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&told));
    Ok(())
}
