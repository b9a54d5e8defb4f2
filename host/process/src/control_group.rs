//! Control group (cgroup v2) for each confined tree, if the hub has a delegated group: the kernel's
//! limits on all processes of a tree together. Without one, `memory` checks the memory, and
//! `confine` bounds the number of processes by other means.

use super::confine::Ceilings;
use super::proc::pause;
use rustix::process::{Pid, getpid};
use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

/// Table of mounts, one line each (proc(5)).
const MOUNTS: &str = "/proc/self/mountinfo";

/// Group of the hub and its minders: a group that enables controllers for its children may have no
/// process itself.
const HUB: &str = "hub";

/// Name prefix of a tree's group; the minder's pid follows.
const TREE: &str = "tree-";

/// Controllers used for a tree.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// Bytes beyond a tree's limit before the kernel kills it: the minder's own check, which reports
/// the amount, should come first.
const SLACK: u64 = 64 << 20;

/// Processes of a tree that belong to the hub: its init.
const HUB_PROCESSES: u32 = 1;

/// Attempts to remove a group whose processes have just exited, and the pause between them.
const TRIES: (u32, Duration) = (50, Duration::from_millis(2));

/// Takes over the group that this process is alone in, as created by systemd's `Delegate=`: the
/// process moves one level down, so that groups for trees can be created next to it. Does nothing
/// if other processes are in the group or permission is missing.
pub(super) fn take_over() {
    let Some(found) = current_group() else { return };
    if delegated(&found).is_none()
        && let Err(why) = take_at(&found, getpid())
    {
        tracing::debug!(group = %found.display(), %why, "the hub's control group is not delegated");
    }
    if let Some(group) = current_group().as_deref().and_then(delegated) {
        remove_leftovers(&group);
    }
}

/// Directory of this process's group.
fn current_group() -> Option<PathBuf> {
    group_of("self")
}

/// Directory of any process's group. The file has one hierarchy a line; that of version 2 is
/// `0::PATH` (cgroups(7)).
fn group_of(process: &str) -> Option<PathBuf> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string(MOUNTS).ok()?;
    Some(mounted(&mounts)?.join(path.trim_start_matches('/')))
}

/// Controllers that the hub with this pid enables for the group of each confined program: those of
/// `memory` and `pids` that were delegated to it.
pub fn controllers_of_trees(hub: i32) -> Vec<&'static str> {
    let parent = group_of(&hub.to_string()).as_deref().and_then(delegated);
    parent.map(|parent| enabled_controllers(&parent)).unwrap_or_default()
}

/// Mount point of the version 2 hierarchy.
fn mounted(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let at = mount.split(' ').nth(4)?;
        (kind.split(' ').next() == Some("cgroup2")).then(|| PathBuf::from(at))
    })
}

/// Parent of the trees' groups, from the hub's own group.
fn delegated(group: &Path) -> Option<PathBuf> {
    let parent = group.parent().filter(|_| group.ends_with(HUB))?;
    (!enabled_controllers(parent).is_empty()).then(|| parent.to_owned())
}

/// Controllers that a group enables for its children.
fn enabled_controllers(group: &Path) -> Vec<&'static str> {
    let controllers = fs::read_to_string(group.join("cgroup.subtree_control")).unwrap_or_default();
    wanted(&controllers)
}

fn wanted(controllers: &str) -> Vec<&'static str> {
    let has = |wanted: &&str| controllers.split_whitespace().any(|found| found == *wanted);
    CONTROLLERS.into_iter().filter(has).collect()
}

/// Writes to a file that the kernel provides. The fake groups of tests have none at first.
fn write(file: &Path, value: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(cfg!(test)).truncate(false);
    options.open(file)?.write_all(value.as_bytes())
}

fn take_at(group: &Path, us: Pid) -> io::Result<bool> {
    let wanted = wanted(&fs::read_to_string(group.join("cgroup.controllers"))?);
    let us = us.to_string();
    let alone = fs::read_to_string(group.join("cgroup.procs"))?.lines().eq([us.as_str()]);
    if wanted.is_empty() || !alone {
        return Ok(false);
    }
    let hub = group.join(HUB);
    fs::create_dir(&hub)?;
    let enabled = write(&hub.join("cgroup.procs"), &us).and_then(|()| {
        let changes: Vec<_> = wanted.iter().map(|wanted| format!("+{wanted}")).collect();
        write(&group.join("cgroup.subtree_control"), &changes.join(" "))
    });
    if let Err(why) = enabled {
        // Restores the previous state.
        let _ = write(&group.join("cgroup.procs"), &us);
        let _ = fs::remove_dir(&hub);
        return Err(why);
    }
    Ok(true)
}

/// Removes groups of a hub that was killed together with its minders.
fn remove_leftovers(group: &Path) {
    let Ok(entries) = fs::read_dir(group) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(TREE) {
            // Fails for a group with live processes.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Group of one tree. Removed on drop, once no process is in it.
#[derive(Debug)]
pub(super) struct TreeGroup(PathBuf);

impl TreeGroup {
    /// Creates a group with these limits, if the hub has a delegated group. Called by a minder for
    /// its one tree.
    pub(super) fn make(ceilings: Ceilings) -> Option<Self> {
        let delegated = delegated(&current_group()?)?;
        let group = delegated.join(format!("{TREE}{}", getpid()));
        // Leftover of a killed minder with the same pid; a group with processes stays.
        let _ = fs::remove_dir(&group);
        Self::make_at(&group, ceilings).ok()
    }

    fn make_at(group: &Path, ceilings: Ceilings) -> io::Result<Self> {
        fs::create_dir(group)?;
        let group = Self(group.to_owned());
        if let Some(bytes) = ceilings.memory_bytes {
            group.set("memory.max", &bytes.saturating_add(SLACK).to_string())?;
            // Swapped memory must not escape the limit.
            group.set("memory.swap.max", "0")?;
            // The kernel kills the whole group, not a single process that the others continue
            // without.
            group.set("memory.oom.group", "1")?;
        }
        group.set("pids.max", &ceilings.processes.saturating_add(HUB_PROCESSES).to_string())?;
        Ok(group)
    }

    /// Sets a value of a controller, if that was delegated.
    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        match write(&self.0.join(file), value) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
            written => written,
        }
    }

    /// Moves a process into the group; its descendants follow.
    pub(super) fn add(&self, process: Pid) -> io::Result<()> {
        write(&self.0.join("cgroup.procs"), &process.to_string())
    }

    /// Memory limit at which the kernel killed the group, if it did.
    pub(super) fn overrun(&self) -> Option<u64> {
        let events = fs::read_to_string(self.0.join("memory.events")).ok()?;
        let times = events.lines().find_map(|line| line.strip_prefix("oom_kill "))?;
        let limit = fs::read_to_string(self.0.join("memory.max")).ok()?;
        limit.trim().parse().ok().filter(|_| times != "0")
    }
}

impl Drop for TreeGroup {
    fn drop(&mut self) {
        for _ in 0..TRIES.0 {
            match fs::remove_dir(&self.0) {
                Err(why) if why.kind() == io::ErrorKind::ResourceBusy => pause(TRIES.1),
                Ok(()) | Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::{TempDir, tempdir};

    /// Directory that imitates a group with these controllers and processes.
    fn group(controllers: &str, processes: &str) -> TempDir {
        let group = tempdir().unwrap();
        fs::write(group.path().join("cgroup.controllers"), controllers).unwrap();
        fs::write(group.path().join("cgroup.procs"), processes).unwrap();
        group
    }

    fn read(group: &Path, what: &str) -> String {
        fs::read_to_string(group.join(what)).unwrap()
    }

    #[test]
    fn cgroup_v2_mount_is_found() {
        let mounts = "36 26 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      37 26 0:32 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(mounted(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mounted("36 26 0:31 / /proc rw - proc proc rw\n"), None);
    }

    #[test]
    fn only_sole_process_takes_group() {
        let us = Pid::from_raw(41).unwrap();
        let delegated_one = group("cpu memory pids\n", "41\n");
        assert!(take_at(delegated_one.path(), us).unwrap());
        let hub = delegated_one.path().join(HUB);
        assert_eq!(read(&hub, "cgroup.procs"), "41");
        assert_eq!(read(delegated_one.path(), "cgroup.subtree_control"), "+memory +pids");
        fs::write(delegated_one.path().join("cgroup.subtree_control"), "memory pids\n").unwrap();
        assert_eq!(delegated(&hub).as_deref(), Some(delegated_one.path()));
        assert_eq!(delegated(delegated_one.path()), None);

        for (controllers, processes) in
            [("cpu\n", "41\n"), ("memory\n", "40\n41\n"), ("memory\n", "40\n"), ("memory\n", "")]
        {
            let other = group(controllers, processes);
            assert!(!take_at(other.path(), us).unwrap(), "{controllers} {processes}");
            assert!(!other.path().join(HUB).exists(), "and nothing is changed");
        }
    }

    #[test]
    fn failed_takeover_restores_group() {
        let us = Pid::from_raw(41).unwrap();
        let refuses = group("memory\n", "41\n");
        fs::create_dir(refuses.path().join("cgroup.subtree_control")).unwrap();
        take_at(refuses.path(), us).unwrap_err();
        assert_eq!(read(refuses.path(), "cgroup.procs").trim(), "41", "it is back");
    }

    #[test]
    fn tree_group_sets_limits() {
        let dir = tempdir().unwrap();
        let group = dir.path().join("tree-7");
        let ceilings =
            Ceilings { processes: 10, memory_bytes: Some(1 << 30), ..Ceilings::default() };
        let made = TreeGroup::make_at(&group, ceilings).unwrap();
        assert_eq!(read(&group, "memory.max"), ((1 << 30) + SLACK).to_string());
        assert_eq!(read(&group, "pids.max"), "11");
        assert_eq!(read(&group, "memory.oom.group"), "1");
        made.add(Pid::from_raw(8).unwrap()).unwrap();
        assert_eq!(read(&group, "cgroup.procs"), "8");
        fs::write(group.join("memory.events"), "low 0\noom 3\noom_kill 0\n").unwrap();
        assert_eq!(made.overrun(), None);
        fs::write(group.join("memory.events"), "low 0\noom 3\noom_kill 2\n").unwrap();
        assert_eq!(made.overrun(), Some((1 << 30) + SLACK));
    }
}
