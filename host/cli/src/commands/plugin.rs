//! `plugin`: manages what components ask for, what the operator grants them, and their updates. The
//! hub that uses the data directory writes the grants; without a running hub, this command does.

mod add;
mod build;
pub(super) mod component;
mod dev;
mod dev_log;
mod diff;
mod docs;
mod edit;
mod fetch;
mod grant;
mod grant_options;
mod inspect;
mod list;
mod new;
mod pack;
mod revoke;
mod sign;
mod test;

use super::{
    completion,
    plugin::grant_options::{GrantOptions, UPDATES},
};
use crate::{Exit, Global};
use a2a_hub_terminal::grant_effect;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Create the project of a new agent, in Rust, JavaScript or Python
    New(new::New),
    /// Print the guide for authors: the SDK, tests and the manifest
    Docs(docs::Docs),
    /// Build the component of a project
    Build(build::Build),
    /// Build a project into the running hub, and rebuild it on each change. Prints the agent's log
    /// and its denied requests
    Dev(Box<dev::Dev>),
    /// Embed a manifest into a component
    Pack(pack::Pack),
    /// Create a key pair for signing components
    Keygen(sign::Keygen),
    /// Sign a component, so that its signed updates keep the grant
    Sign(sign::Sign),
    /// List the plug-ins with their grants, missing permissions and updates that are held back
    List,
    /// Show a component's description and the permissions that it asks for, without running it
    Inspect {
        /// Component file, or id of a plug-in of the hub
        what: String,
    },
    /// Add a component to the plugins folder, after checking its signature. Shows the permissions
    /// that it asks for
    Add(Box<Add>),
    /// Grant a plug-in permissions, or approve an update that is held back
    Grant(Box<GrantTo>),
    /// Withdraw some permissions of a plug-in, from running tasks as well
    Deny {
        /// Id of the plug-in
        #[arg(add = completion::plugins())]
        id: String,
        /// Permission to withdraw, such as `process.git`, `http.api.example.com`, `memory`,
        /// `files`, `workspace` or `delegate.codex`
        #[arg(required = true, value_name = "CAPABILITY")]
        capabilities: Vec<String>,
    },
    /// Withdraw all permissions of a plug-in, from running tasks as well. Its stored data is kept
    Revoke {
        /// Id of the plug-in
        #[arg(add = completion::plugins())]
        id: String,
    },
    /// Remove a plug-in from the plugins folder and delete its stored data
    Remove {
        /// Id of the plug-in
        #[arg(add = completion::plugins())]
        id: String,
    },
    /// Test whether a component conforms to the contract, in a separate sandbox
    Test(test::Test),
    /// Compare the permissions that an update asks for with those of the granted component
    Diff {
        /// Id of the plug-in
        #[arg(add = completion::plugins())]
        id: String,
        /// Component file of the update [default: the plug-in's file in the plugins folder]
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Component: a file, or an HTTPS URL
    from: String,
    /// Id of the plug-in [default: the id in the manifest, or else the file's name]
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    wanted: GrantOptions,
}

#[derive(Debug, Args)]
pub(crate) struct GrantTo {
    /// Id of the plug-in
    #[arg(add = completion::plugins())]
    id: String,
    /// SHA-256 digest that the component must have, so that you grant to the component that you
    /// inspected
    #[arg(long, value_name = "DIGEST")]
    sha256: Option<String>,
    /// End an earlier `--dev`: only the present component keeps the grant
    #[arg(long, help_heading = UPDATES, conflicts_with = "dev")]
    no_dev: bool,
    #[command(flatten)]
    wanted: GrantOptions,
}

pub(crate) fn plugin(global: &Global, plugin: &PluginCommand) -> anyhow::Result<Exit> {
    match plugin {
        PluginCommand::New(it) => new::new(global, it),
        PluginCommand::Docs(it) => docs::docs(global, it),
        PluginCommand::Build(it) => build::build(global, it),
        PluginCommand::Dev(it) => dev::dev(global, it),
        PluginCommand::Pack(it) => pack::pack(global, it),
        PluginCommand::Keygen(it) => sign::keygen(global, it),
        PluginCommand::Sign(it) => sign::sign(global, it),
        PluginCommand::List => list::list(global),
        PluginCommand::Inspect { what: target } => inspect::inspect(global, target),
        PluginCommand::Add(it) => add::add(global, &it.from, it.name.as_deref(), &it.wanted),
        PluginCommand::Grant(it) => {
            let dev = if it.no_dev { Some(false) } else { it.wanted.dev.then_some(true) };
            grant::grant(global, &it.id, it.sha256.as_deref(), &it.wanted, dev)
        }
        PluginCommand::Deny { id, capabilities } => revoke::deny(global, id, capabilities),
        PluginCommand::Revoke { id } => revoke::revoke(global, id),
        PluginCommand::Remove { id } => revoke::remove(global, id),
        PluginCommand::Test(it) => test::test(global, it),
        PluginCommand::Diff { id, file } => diff::diff(global, id, file.as_deref()),
    }
}
