//! Landlock rules of a confined program: the files that it may write, the ports that it may connect
//! to, and no signals to others.

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

/// Newest Landlock version that is requested; older kernels apply the subset that they support.
const NEWEST: ABI = ABI::V6;

/// Landlock features of this kernel, in the order of their introduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Rules for files, including links between directories (Linux 5.19).
    pub(super) files: bool,
    /// Rules for TCP ports (6.7).
    pub(super) tcp: bool,
    /// Scopes for signals and abstract sockets (6.12).
    pub(super) scopes: bool,
}

impl Abilities {
    /// Queries the kernel.
    pub(super) fn of_kernel() -> Self {
        let needs = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let has = |result: Result<Ruleset, RulesetError>| {
            result.is_ok_and(|ruleset| ruleset.create().is_ok())
        };
        Self {
            files: has(needs().handle_access(AccessFs::Refer)),
            tcp: has(needs().handle_access(AccessNet::ConnectTcp)),
            scopes: has(needs().scope(Scope::Signal)),
        }
    }
}

/// Paths with write access, by the program's own names.
pub(super) struct Writable {
    pub(super) directories: Vec<PathBuf>,
    /// Devices: their files can be used, but not created or removed.
    pub(super) devices: PathBuf,
}

/// Restricts this process and its descendants, irrevocably. Without `writable` only the mount
/// namespace restricts files: a program that mounts inside must not be restricted so.
pub(super) fn restrict(network: &Network, writable: Option<&Writable>) -> Result<(), NotConfined> {
    let failed = |why: RulesetError| NotConfined::at(Step::Landlock)(io::Error::other(why));
    let has = Abilities::of_kernel();
    let writable = writable.filter(|_| has.files);
    let ports = match network {
        Network::Nothing => None,
        Network::Ports(ports) => Some(ports),
    };
    if writable.is_none() && ports.is_none() && !has.scopes {
        return Ok(()); // no rule applies
    }
    let mut ruleset = Ruleset::default();
    if writable.is_some() {
        ruleset = ruleset.handle_access(AccessFs::from_all(NEWEST)).map_err(failed)?;
    }
    if ports.is_some() {
        // Landlock is the only enforcement of the promised network limits.
        let all = AccessNet::from_all(NEWEST);
        ruleset = ruleset.set_compatibility(CompatLevel::HardRequirement);
        ruleset = ruleset.handle_access(all).map_err(failed)?;
        ruleset = ruleset.scope(Scope::from_all(NEWEST)).map_err(failed)?;
    } else {
        // The own PID and network namespaces imply the same; this is defence in depth.
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

/// Read and execute everywhere, because the view contains nothing else; write where allowed.
fn rules(writable: &Writable) -> Vec<(&Path, Rights)> {
    let all = AccessFs::from_all(NEWEST);
    let use_devices = AccessFs::from_file(NEWEST) | AccessFs::ReadDir;
    let directories = writable.directories.iter().map(|path| (path.as_path(), all));
    let rest =
        [(Path::new("/"), AccessFs::from_read(NEWEST)), (writable.devices.as_path(), use_devices)];
    rest.into_iter().chain(directories).collect()
}
