//! `plugin dev`: builds a project into a running hub and rebuilds it on each change of its sources.
//! A failed build is reported, and the previous one stays in use.

use super::{
    build::{Say, Screen, THIS_PROGRAM, stopped},
    component::{file_of, require_free_name},
    dev_log::DevLog,
    edit, grant,
    grant_options::GrantOptions,
};
use crate::{
    Exit, Global, block_on,
    ui::{
        failure::{CommandError, NOT_BUILT},
        render::duration,
    },
};
use a2a_hub_agents::PluginEdit;
use a2a_hub_authoring::{self as authoring, Built, Component, Project, Watch, Workshop};
use a2a_hub_config::GrantsFile;
use a2a_hub_protocol::{
    id::AgentId,
    operation::{AddPlugin, ComponentSource, PluginGrant},
};
use clap::Args;
use std::{future::Future, path::PathBuf, pin::Pin, time::Duration};
use tokio::time::{MissedTickBehavior, interval};

/// Reason of a refusal: the name belongs to a plug-in that is not in development.
const TAKEN: &str = "PLUGIN_EXISTS";

/// Interval at which sources and the log are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// Folder of the project
    #[arg(default_value = ".")]
    project: PathBuf,
    #[command(flatten)]
    wanted: GrantOptions,
}

pub(super) fn dev(global: &Global, dev: &Dev) -> anyhow::Result<Exit> {
    let project = Project::open(&dev.project)?;
    let id = project.name.clone();
    edit::require_operator(global, &format!("develop `{id}`"))?;
    may_be_replaced(global, &id)?;
    block_on(async {
        // Connects before compiling, so that a missing hub is reported first.
        let feed = DevLog::open(global, &id).await?;
        let workshop = Workshop::new(THIS_PROGRAM, &project.dir);
        let bench = Bench { global, project: &project, workshop: &workshop, wanted: &dev.wanted };
        let ended = tokio::select! {
            ended = bench.work(feed) => ended,
            stopped = stopped() => stopped,
        };
        workshop.close().await;
        ended
    })?;
    global.console().note(format!(
        "{id} stays in the hub, and later builds keep its grant; `a2a-hub plugin remove {id}` \
         removes it"
    ));
    Ok(Exit::Done)
}

/// Refuses to replace a plug-in that is not in development.
fn may_be_replaced(global: &Global, id: &AgentId) -> anyhow::Result<()> {
    require_free_name(id)?;
    let grants = GrantsFile::new(&global.data_dir()?).read()?;
    let refused = |why: String, fix: String| CommandError::new(TAKEN, why).mended_by(fix);
    match grants.plugins.get(id) {
        Some(record) if record.dev || record.gone => Ok(()),
        Some(_) => {
            let fix = format!("a2a-hub plugin grant {id} --dev");
            let why = format!(
                "develop `{id}`: the grant of the plug-in with this name is bound to its present \
                 component; `{fix}` lets every build keep the grant, and `a2a-hub plugin remove \
                 {id}` removes the plug-in"
            );
            Err(refused(why, fix).into())
        }
        None if file_of(global, id)?.exists() => {
            let fix = format!("a2a-hub plugin remove {id}");
            let why = format!(
                "develop `{id}`: a plug-in of this name exists already; remove it with `{fix}`, or \
                 set another `id` in the project's manifest.toml"
            );
            Err(refused(why, fix).into())
        }
        None => Ok(()),
    }
}

/// Development loop of one project.
struct Bench<'a> {
    global: &'a Global,
    project: &'a Project,
    workshop: &'a Workshop,
    wanted: &'a GrantOptions,
}

impl Bench<'_> {
    /// Builds at once and on each change of the sources, and reports the hub's events in between.
    /// Never returns without an error.
    async fn work(&self, mut feed: DevLog<'_>) -> anyhow::Result<()> {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watch = Watch::new(&self.project.dir)?;
        let mut building = Some(self.build());
        feed.print_line("build", "building", "")?;
        loop {
            tokio::select! {
                built = done(&mut building) => {
                    building = None;
                    if let Err(why) = self.serve(built, &mut feed).await {
                        feed.print_line("build", &format!("{why:#}"), "failed")?;
                        let advice = "save a change to try again; the previous build stays in use";
                        feed.print_line("build", advice, "")?;
                    }
                }
                event = feed.next() => feed.report(event).await?,
                _ = ticks.tick() => {
                    feed.tell_log()?;
                    feed.return_to_hub().await?;
                    if let Some(file) = watch.poll(building.is_some())? {
                        feed.print_line("build", &format!("{} changed: building", file.display()), "")?;
                        building = Some(self.build());
                    }
                }
            }
        }
    }

    /// Builds the project from its current manifest.
    fn build(&self) -> Building<'_> {
        Box::pin(async {
            let project = Project::open(&self.project.dir)?;
            if project.name != self.project.name {
                let why = format!(
                    "the project is called `{}` now, and was `{}`: stop with Ctrl-C, and start \
                     again",
                    project.name, self.project.name
                );
                return Err(CommandError::new(NOT_BUILT, why).into());
            }
            let screen = Screen::new(self.global, Say::AllOfIt);
            Ok(authoring::build(&project, self.workshop, &screen).await?)
        })
    }

    /// Adds the built component to the hub, with a grant that later builds keep.
    async fn serve(
        &self,
        built: anyhow::Result<Built>,
        feed: &mut DevLog<'_>,
    ) -> anyhow::Result<()> {
        let Built { component, took } = built?;
        let id = &self.project.name;
        component.ask.is_for(id)?;
        let added = AddPlugin {
            id: id.clone(),
            component: ComponentSource::Bytes(component.bytes.clone()),
            sha256: component.sha256.clone(),
            signature: None,
            grant: self.grant(id, &component)?,
        };
        let plugin = edit::edited(self.global, PluginEdit::Add(Box::new(added))).await?;
        feed.report_added(&component, plugin.as_ref(), &duration(took.as_secs())).await
    }

    /// Returns the grant that marks the plug-in as in development; `plugin grant` without `--dev`
    /// revokes that mark. Returns `None` if the plug-in has the mark and no further permissions are
    /// requested.
    fn grant(&self, id: &AgentId, component: &Component) -> anyhow::Result<Option<PluginGrant>> {
        let grants = GrantsFile::new(&self.global.data_dir()?).read()?;
        let record = grants.continued_by(id, &component.sha256);
        if self.wanted.is_empty() && record.is_some_and(|record| record.dev) {
            return Ok(None);
        }
        let wanted = GrantOptions { dev: true, ..self.wanted.clone() };
        grant::planned(self.global, id, component, &wanted).map(Some)
    }
}

/// Future of a running build.
type Building<'a> = Pin<Box<dyn Future<Output = anyhow::Result<Built>> + 'a>>;

/// Waits for the running build; pending forever if none runs.
async fn done(building: &mut Option<Building<'_>>) -> anyhow::Result<Built> {
    match building {
        Some(building) => building.await,
        None => std::future::pending().await,
    }
}
