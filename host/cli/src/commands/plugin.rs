//! `plugin`: manages what components ask for, what the operator grants them, and their updates. The
//! hub that uses the data directory writes the grants; without a running hub, this command does.

mod add;
mod build;
mod component;
mod dev;
mod dev_log;
mod diff;
mod edit;
mod fetch;
mod grant;
mod grant_effect;
mod grant_options;
mod inspect;
mod list;
mod new;
mod pack;
mod revoke;
mod sign;
mod test;

use super::{completion, plugin::grant_options::Wanted};
use crate::{Exit, Global};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// Make the project of a new agent, in Rust, JavaScript or Python
    New(new::New),
    /// Build the component of a project
    Build(build::Build),
    /// Build a project into a running hub, and again whenever it changes; show what the agent says and what it is denied
    Dev(Box<dev::Dev>),
    /// Put a manifest into a component
    Pack(pack::Pack),
    /// Make a key to sign components with
    Keygen(sign::Keygen),
    /// Sign a component, so that updates of it keep what was granted
    Sign(sign::Sign),
    /// List the plug-ins: what each is granted, what it asks for besides, and what is held back
    List,
    /// Show what a component says of itself and asks for, without running it
    Inspect {
        /// A component's file, or a plug-in of the hub
        what: String,
    },
    /// Fetch a component, check who signed it, show what it asks for, and put it into the plugins folder
    Add(Box<Add>),
    /// Grant a plug-in what it asks for, or what is named; let an update in that is held back
    Grant(Box<GrantTo>),
    /// Take some of what was granted away, also from tasks at work
    Deny {
        /// The plug-in
        #[arg(add = completion::agents())]
        id: String,
        /// What it may not do any more, such as `process.git`, `http.api.example.com`, `memory`, `files`, `workspace` or `delegate.codex`
        #[arg(required = true, value_name = "CAPABILITY")]
        capabilities: Vec<String>,
    },
    /// Take all away that was granted, also from tasks at work; what it keeps stays
    Revoke {
        /// The plug-in
        #[arg(add = completion::agents())]
        id: String,
    },
    /// Take a plug-in out of the plugins folder, and forget all that it keeps
    Remove {
        /// The plug-in
        #[arg(add = completion::agents())]
        id: String,
    },
    /// Try a component in a sandbox of its own: whether it keeps what the contract asks of it
    Test(test::Test),
    /// Show what an update asks for that the granted component does not
    Diff {
        /// The plug-in
        #[arg(add = completion::agents())]
        id: String,
        /// The update; otherwise what is in the plugins folder
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The component: a file, or an https URL
    from: String,
    /// The name it is to have; otherwise the one that it has in its manifest, or its file's
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
}

#[derive(Debug, Args)]
pub(crate) struct GrantTo {
    /// The plug-in
    #[arg(add = completion::agents())]
    id: String,
    /// Only if its component has this SHA-256 digest: what was looked at is what is granted
    #[arg(long, value_name = "DIGEST")]
    sha256: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
}

pub(crate) fn plugin(global: &Global, plugin: &Plugin) -> anyhow::Result<Exit> {
    match plugin {
        Plugin::New(it) => new::new(global, it),
        Plugin::Build(it) => build::build(global, it),
        Plugin::Dev(it) => dev::dev(global, it),
        Plugin::Pack(it) => pack::pack(global, it),
        Plugin::Keygen(it) => sign::keygen(global, it),
        Plugin::Sign(it) => sign::sign(global, it),
        Plugin::List => list::list(global),
        Plugin::Inspect { what } => inspect::inspect(global, what),
        Plugin::Add(it) => add::add(global, &it.from, it.name.as_deref(), &it.wanted),
        Plugin::Grant(it) => grant::grant(global, &it.id, it.sha256.as_deref(), &it.wanted),
        Plugin::Deny { id, capabilities } => revoke::deny(global, id, capabilities),
        Plugin::Revoke { id } => revoke::revoke(global, id),
        Plugin::Remove { id } => revoke::remove(global, id),
        Plugin::Test(it) => test::test(global, it),
        Plugin::Diff { id, file } => diff::diff(global, id, file.as_deref()),
    }
}
