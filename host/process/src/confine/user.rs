//! The user and PID namespace of a confined tree, made by its minder, which stays in the PID namespace above.

use super::step::{NotConfined, Step};
use rustix::{
    process::{getegid, geteuid},
    thread::{
        CapabilitySet, CapabilitySets, UnshareFlags, configure_capability_in_ambient_set,
        set_capabilities,
    },
};
use std::{fs, io};

/// What the init needs to make its program's world, all of it over its own namespaces only.
const INIT_NEEDS: [CapabilitySet; 3] = [
    CapabilitySet::SYS_ADMIN, // namespaces and mounts
    CapabilitySet::NET_ADMIN, // the loopback interface
    CapabilitySet::SETPCAP,   // giving capabilities up for good
];

/// As whom the superuser's programs find themselves that make user namespaces of their own: in one, no program may map the
/// superuser that has given up `CAP_SETFCAP`. Who that is, every system knows (`daemon`).
const NESTING_SUPERUSER: u32 = 1;

/// Enters a new user namespace, in which user and group are who they are, but for a superuser whose program `nests`, and nobody
/// else is anybody; and has the next process that is started be PID 1 of a new PID namespace. For a process of one thread.
pub(crate) fn enter_namespaces(nests: bool) -> Result<(), NotConfined> {
    let failed = NotConfined::at(Step::User);
    // Asked before: in a new user namespace everybody is nobody.
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let inside = |id| if nests && uid == 0 { NESTING_SUPERUSER } else { id };
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWPID).map_err(&failed)?;
    // Whoever may not give groups away, must say first that nobody will drop any.
    fs::write("/proc/self/setgroups", "deny").map_err(&failed)?;
    fs::write("/proc/self/uid_map", format!("{} {uid} 1", inside(uid))).map_err(&failed)?;
    fs::write("/proc/self/gid_map", format!("{} {gid} 1", inside(gid))).map_err(&failed)?;
    keep_for_init().map_err(failed)
}

/// Whether a confined program runs as the superuser of the namespace above, whoever it is in its own. Where that is not to be
/// read, it is taken for one.
pub(super) fn is_superuser() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.split_ascii_whitespace().nth(1).is_none_or(|outside| outside == "0")
}

/// Has the init keep what it needs, though it is not root: ambient capabilities outlive `exec`.
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
