//! Landlock's rules for a confined program: what its view lets it write, which ports it may call, and that it signals nobody.

use super::{
    Network,
    step::{NotConfined, Step},
};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetError, Scope,
};
use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

/// The newest rights that are asked for; a kernel without them is asked for those it has.
const NEWEST: ABI = ABI::V6;

/// What this kernel's Landlock can do, in the order in which it learned it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Rules for files, links between directories too (Linux 5.19).
    pub(super) files: bool,
    /// Rules for TCP ports (6.7).
    pub(super) tcp: bool,
    /// Scopes for signals and abstract sockets (6.12).
    pub(super) scopes: bool,
}

impl Abilities {
    /// Asked of the kernel.
    pub(super) fn of_kernel() -> Self {
        let needs = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let has = |asked: Result<Ruleset, RulesetError>| {
            asked.is_ok_and(|ruleset| ruleset.create().is_ok())
        };
        Self {
            files: has(needs().handle_access(AccessFs::Refer)),
            tcp: has(needs().handle_access(AccessNet::ConnectTcp)),
            scopes: has(needs().scope(Scope::Signal)),
        }
    }
}

/// Where a program may do more than read, by its own names for it.
pub(super) struct Writable {
    pub(super) directories: Vec<PathBuf>,
    /// Devices: no file of theirs can be made or removed.
    pub(super) devices: PathBuf,
}

/// Restricts this process, and all that it starts, for good. Without `writable` files are the mount namespace's matter alone:
/// whoever mounts inside, may not be restricted so.
pub(super) fn restrict(network: &Network, writable: Option<&Writable>) -> Result<(), NotConfined> {
    let failed = |why: RulesetError| NotConfined::at(Step::Landlock)(io::Error::other(why));
    let has = Abilities::of_kernel();
    let writable = writable.filter(|_| has.files);
    let ports = match network {
        Network::Nothing => None,
        Network::Ports(ports) => Some(ports),
    };
    if writable.is_none() && ports.is_none() && !has.scopes {
        return Ok(()); // a ruleset without any rule is none
    }
    let mut ruleset = Ruleset::default();
    if writable.is_some() {
        ruleset = ruleset.handle_access(AccessFs::from_all(NEWEST)).map_err(failed)?;
    }
    if ports.is_some() {
        // What is promised of the network stands on nothing else.
        let all = AccessNet::from_all(NEWEST);
        ruleset = ruleset.set_compatibility(CompatLevel::HardRequirement);
        ruleset = ruleset.handle_access(all).map_err(failed)?;
        ruleset = ruleset.scope(Scope::from_all(NEWEST)).map_err(failed)?;
    } else {
        // Its own PID and network namespace say the same; this is a second wall.
        ruleset = ruleset.scope(Scope::from_all(NEWEST)).map_err(failed)?;
    }
    let mut created =
        ruleset.set_compatibility(CompatLevel::BestEffort).create().map_err(failed)?;
    for port in ports.unwrap_or(&BTreeSet::new()) {
        created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(failed)?;
    }
    for (path, rights) in writable.map(rules).unwrap_or_default() {
        let file = PathFd::new(path)
            .map_err(|why| NotConfined::at(Step::Landlock)(io::Error::other(why)))?;
        created = created.add_rule(PathBeneath::new(file, rights)).map_err(failed)?;
    }
    created.restrict_self().map_err(failed)?;
    Ok(())
}

type Rights = landlock::BitFlags<AccessFs>;

/// Reading and running everywhere, for the view has nothing else; writing where it may.
fn rules(writable: &Writable) -> Vec<(&Path, Rights)> {
    let all = AccessFs::from_all(NEWEST);
    let use_devices = AccessFs::from_file(NEWEST) | AccessFs::ReadDir;
    let directories = writable.directories.iter().map(|path| (path.as_path(), all));
    let rest =
        [(Path::new("/"), AccessFs::from_read(NEWEST)), (writable.devices.as_path(), use_devices)];
    rest.into_iter().chain(directories).collect()
}
