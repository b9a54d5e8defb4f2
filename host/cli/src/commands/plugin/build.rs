//! `plugin build`: builds a project's component, with the manifest embedded.

use super::component;
use crate::{
    Exit, Global, block_on,
    ui::{
        interactive::{ProgressLine, TICK},
        render::{duration, size},
    },
};
use a2a_hub_authoring::{self as authoring, Built, Observer, Project, Workshop};
use a2a_hub_protocol::id::AgentId;
use clap::Args;
use serde_json::json;
use std::{
    cell::RefCell,
    convert::Infallible,
    path::{Path, PathBuf},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::sleep,
};

/// The running program, which supervises the tools of a build.
pub(super) const THIS_PROGRAM: &str = "/proc/self/exe";

#[derive(Debug, Args)]
pub(crate) struct Build {
    /// Folder of the project
    #[arg(default_value = ".")]
    project: PathBuf,
}

pub(super) fn build(global: &Global, build: &Build) -> anyhow::Result<Exit> {
    let project = Project::open(&build.project)?;
    let built = block_on(async {
        let workshop = Workshop::new(THIS_PROGRAM, &project.dir);
        let screen = Screen::new(global, Say::InOneLine);
        let built = tokio::select! {
            built = authoring::build(&project, &workshop, &screen) => built.map(Some).map_err(Into::into),
            stopped = stopped() => stopped.map(|()| None),
            never = screen.keep_drawing() => match never {},
        };
        drop(screen);
        workshop.close().await;
        built
    })?;
    let Some(Built { component, took }) = built else {
        global.console().note("interrupted; all processes of the build have ended");
        return Ok(Exit::Interrupted);
    };
    let details = component::to_json(&component);
    global.show(&json!({ "agentId": project.name, "component": details }), || {
        let words = format!(
            "built {} ({}) in {}\n\n  a2a-hub plugin inspect {0}    shows its description and \
             permissions\n  a2a-hub plugin dev    loads it into the running hub\n",
            shell_path(&component.path),
            size(component.bytes.len()),
            duration(took.as_secs()),
        );
        Ok(words.into())
    })?;
    Ok(Exit::Done)
}

/// Waits for SIGINT or SIGTERM.
pub(super) async fn stopped() -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Display of the build tools' output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Say {
    /// On a terminal, one line that is overwritten; the whole output if the build fails.
    InOneLine,
    /// Line by line, because other messages are printed in between.
    AllOfIt,
}

/// Display of a build's tools.
pub(super) struct Screen<'a> {
    global: &'a Global,
    say: Say,
    /// Progress display of the tool that runs.
    progress: RefCell<Option<ProgressLine>>,
}

impl<'a> Screen<'a> {
    pub(super) fn new(global: &'a Global, say: Say) -> Self {
        Self { global, say, progress: RefCell::default() }
    }

    /// Redraws the progress line until the future is dropped.
    async fn keep_drawing(&self) -> Infallible {
        loop {
            sleep(TICK).await;
            if let Some(progress) = &mut *self.progress.borrow_mut() {
                progress.draw_if_due();
            }
        }
    }
}

impl Observer for Screen<'_> {
    fn begins(&self, agent: &AgentId) {
        let is_in_one_line = self.say == Say::InOneLine;
        let progress = self.global.progress(&format!("building {agent}"), is_in_one_line);
        *self.progress.borrow_mut() = Some(progress);
    }

    fn says(&self, line: &str) {
        if let Some(progress) = &mut *self.progress.borrow_mut() {
            progress.says(Some(line.to_owned()));
        }
    }

    fn ends(&self, lines: &[&str]) {
        let was_shown = self.progress.take().is_some_and(|it| it.keeps_messages());
        for line in lines.iter().filter(|_| !was_shown) {
            self.global.console().note(*line);
        }
    }
}

/// Formats a path for a shell in the current directory.
pub(super) fn shell_path(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let short = here.as_deref().and_then(|here| path.strip_prefix(here).ok());
    crate::ui::render::shell_word(&short.unwrap_or(path).display().to_string())
}
