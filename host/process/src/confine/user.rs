//! User and PID namespace of a confined tree, created by its minder, which stays in the outer PID
//! namespace.

use super::step::{NotConfined, Step};
use rustix::{
    process::{getegid, geteuid},
    thread::{
        CapabilitySet, CapabilitySets, UnshareFlags, configure_capability_in_ambient_set,
        set_capabilities,
    },
};
use std::{fs, io};

/// Capabilities that the init needs to set up the confinement, all over its own namespaces only.
const INIT_NEEDS: [CapabilitySet; 3] = [
    CapabilitySet::SYS_ADMIN, // namespaces and mounts
    CapabilitySet::NET_ADMIN, // the loopback interface
    CapabilitySet::SETPCAP,   // dropping capabilities
];

/// User id inside for the superuser's programs that create user namespaces themselves: without
/// `CAP_SETFCAP` no program may map the superuser in one. Every system has this user (`daemon`).
const NESTING_SUPERUSER: u32 = 1;

/// Enters a new user namespace with the same user and group (except for a superuser whose program
/// `nests`) and no others. The next process that is started becomes PID 1 of a new PID namespace.
/// Requires a single-threaded process.
pub(crate) fn enter_namespaces(nests: bool) -> Result<(), NotConfined> {
    let failed = NotConfined::at(Step::User);
    // Read before, because ids are unmapped in a new user namespace.
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let inside = |id| if nests && uid == 0 { NESTING_SUPERUSER } else { id };
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID).map_err(&failed)?;
    // The kernel requires this before an unprivileged process may map groups.
    fs::write("/proc/self/setgroups", "deny").map_err(&failed)?;
    fs::write("/proc/self/uid_map", format!("{} {uid} 1", inside(uid))).map_err(&failed)?;
    fs::write("/proc/self/gid_map", format!("{} {gid} 1", inside(gid))).map_err(&failed)?;
    keep_for_init().map_err(failed)
}

/// True if a confined program runs as the superuser of the outer namespace, whatever its id inside.
/// An unreadable map counts as true.
pub(super) fn is_superuser() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_ascii_whitespace().nth(1).is_none_or(|outside| outside == "0")
}

/// Keeps the capabilities that the init needs: ambient capabilities survive `exec`.
fn keep_for_init() -> io::Result<()> {
    let needed = INIT_NEEDS.into_iter().fold(CapabilitySet::empty(), CapabilitySet::union);
    let sets = CapabilitySets { effective: needed, permitted: needed, inheritable: needed };
    set_capabilities(None, sets)?;
    for capability in INIT_NEEDS {
        configure_capability_in_ambient_set(capability, true)?;
    }
    Ok(())
}

/// `unshare(2)` of namespaces.
pub(super) fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    #[expect(
        deprecated,
        reason = "it is unsafe for the table of descriptors only, which nobody asks for here"
    )]
    rustix::thread::unshare(namespaces).map_err(io::Error::from)
}
