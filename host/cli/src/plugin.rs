//! `plugin`: manages what components ask for, what the operator grants them, and their updates. The
//! hub that uses the data directory writes the grants; without a running hub, this command does.

mod add;
mod build;
mod component;
mod dev;
mod diff;
mod edit;
mod feed;
mod fetch;
mod grant;
mod inspect;
mod list;
mod new;
mod pack;
mod sign;
mod standing;
mod test;
mod wanted;
mod withdraw;

use super::{Exit, Global, completing};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use wanted::Wanted;

#[derive(Debug, Subcommand)]
pub(super) enum Plugin {
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
        #[arg(add = completing::agents())]
        id: String,
        /// What it may not do any more, such as `process.git`, `http.api.example.com`, `memory`, `files`, `workspace` or `delegate.codex`
        #[arg(required = true, value_name = "CAPABILITY")]
        capabilities: Vec<String>,
    },
    /// Take all away that was granted, also from tasks at work; what it keeps stays
    Revoke {
        /// The plug-in
        #[arg(add = completing::agents())]
        id: String,
    },
    /// Take a plug-in out of the plugins folder, and forget all that it keeps
    Remove {
        /// The plug-in
        #[arg(add = completing::agents())]
        id: String,
    },
    /// Try a component in a sandbox of its own: whether it keeps what the contract asks of it
    Test(test::Test),
    /// Show what an update asks for that the granted component does not
    Diff {
        /// The plug-in
        #[arg(add = completing::agents())]
        id: String,
        /// The update; otherwise what is in the plugins folder
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(super) struct Add {
    /// The component: a file, or an https URL
    from: String,
    /// The name it is to have; otherwise the one that it has in its manifest, or its file's
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
}

#[derive(Debug, Args)]
pub(super) struct GrantTo {
    /// The plug-in
    #[arg(add = completing::agents())]
    id: String,
    /// Only if its component has this SHA-256 digest: what was looked at is what is granted
    #[arg(long, value_name = "DIGEST")]
    sha256: Option<String>,
    #[command(flatten)]
    wanted: Wanted,
}

pub(super) fn plugin(global: &Global, plugin: &Plugin) -> anyhow::Result<Exit> {
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
        Plugin::Deny { id, capabilities } => withdraw::deny(global, id, capabilities),
        Plugin::Revoke { id } => withdraw::revoke(global, id),
        Plugin::Remove { id } => withdraw::remove(global, id),
        Plugin::Test(it) => test::test(global, it),
        Plugin::Diff { id, file } => diff::diff(global, id, file.as_deref()),
    }
}
