//! Resource limits of a confined tree, including its number of processes.

use super::{
    Ceilings,
    step::{NotConfined, Step},
    user,
};
use rustix::{
    process::{Resource, Rlimit, geteuid, getrlimit, setrlimit},
    system::uname,
};
use std::{fs, path::Path};

/// OOM score of confined programs: the kernel kills them before anything else.
const FIRST_TO_GO: &str = "1000";

/// Lowest possible value of `pid_max` (`RESERVED_PIDS` of the kernel, plus one).
const FEWEST: u32 = 301;

/// Sets the limits for this process and its descendants. `proc` is the `/proc` of the new PID
/// namespace.
pub(super) fn set(ceilings: Ceilings, proc: &Path) -> Result<(), NotConfined> {
    let failed = |why: rustix::io::Errno| NotConfined::at(Step::Ceilings)(why.into());
    let limit = |resource, max: u64| {
        // A limit of the hub itself is never raised.
        let max = getrlimit(resource).maximum.map_or(max, |hard_limit| hard_limit.min(max));
        setrlimit(resource, Rlimit { current: Some(max), maximum: Some(max) }).map_err(failed)
    };
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, ceilings.file_bytes)?;
    if let Some(bytes) = ceilings.memory_bytes {
        // Writable memory without a file; addresses that are only reserved, as garbage collectors
        // do, are not counted.
        limit(Resource::Data, bytes)?;
    }
    // When the machine runs out of memory, the kernel kills these programs before the hub (OOM
    // killer). A failure is ignored: a system without this file has no such killer either.
    let _ = fs::write(proc.join("self/oom_score_adj"), FIRST_TO_GO);
    // Counted by user *and* user namespace, and the tree has its own user namespace; the machine's
    // superuser is exempt.
    limit(Resource::Nproc, ceilings.processes.into())?;
    if user::is_superuser() && counts_processes_by_namespace(&release()) {
        let pid_max = ceilings.processes.max(FEWEST).to_string();
        let written = fs::write(proc.join("sys/kernel/pid_max"), pid_max);
        written.map_err(NotConfined::at(Step::Ceilings))?;
    }
    Ok(())
}

/// True if the number of a confined tree's processes can be bounded on this machine: by the user's
/// own limit or, for the exempt superuser, by the PID namespace.
pub(super) fn bound_processes() -> bool {
    !geteuid().is_root() || counts_processes_by_namespace(&release())
}

fn release() -> String {
    uname().release().to_string_lossy().into_owned()
}

/// True if `pid_max` belongs to the PID namespace: since Linux 6.14. On older kernels a write would
/// change it for the whole machine.
fn counts_processes_by_namespace(release: &str) -> bool {
    at_least(release, (6, 14))
}

/// True if a kernel's release, such as `6.1.0-13-amd64`, is at least this version.
pub(super) fn at_least(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= version,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_release_is_compared_by_version() {
        let cases = [
            ("6.14.0", true),
            ("6.14-rc1", true),
            ("6.18.44-fc-v445", true),
            ("7.0.1", true),
            ("6.13.9", false),
            ("6.1.0-13-amd64", false),
            ("5.15.167.4-microsoft-standard-WSL2", false),
            ("none", false),
            ("", false),
        ];
        for (release, new) in cases {
            assert_eq!(counts_processes_by_namespace(release), new, "{release}");
        }
    }
}
