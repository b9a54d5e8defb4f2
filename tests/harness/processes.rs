//! Processes of this machine, read from `/proc`.

use std::{collections::HashMap, fs, path::Path};

/// Processes that a hub with this data directory started, and their descendants, unless they
/// cleared their environment.
pub fn processes_with_marker(data_dir: &Path) -> Vec<u32> {
    marked_with(&format!("A2A_HUB_DATA={}", data_dir.display()))
}

/// True if a process of the hub with this data directory runs this program. After a cancelled turn,
/// a CLI may be kept for the next one; the programs that it started are not.
pub fn runs(data_dir: &Path, program: &str) -> bool {
    processes_with_marker(data_dir).into_iter().any(|pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim_end() == program)
    })
}

/// Processes of one task only: a hub also runs programs for health checks.
pub fn processes_of_task(task: &str) -> Vec<u32> {
    marked_with(&format!("A2A_HUB_OWNER={task}"))
}

fn marked_with(marker: &str) -> Vec<u32> {
    let marked = |pid: &u32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
            environ.split(|&byte| byte == 0).any(|entry| entry == marker.as_bytes())
        })
    };
    all().filter(marked).collect()
}

/// Descendants of a process; parents before their children.
pub fn descendants(of: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in all() {
        if let Some(parent) = parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = children.remove(&of).unwrap_or_default();
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// Resident memory of a process in bytes; `None` if it is gone.
pub fn resident_bytes(pid: u32) -> Option<u64> {
    bytes_told(pid, "status", "VmRSS:")
}

/// Proportional memory (PSS), where a page shared by several processes counts once in total: the
/// memory that the process really costs.
pub fn proportional_bytes(pid: u32) -> Option<u64> {
    bytes_told(pid, "smaps_rollup", "Pss:")
}

fn bytes_told(pid: u32, file: &str, name: &str) -> Option<u64> {
    let told = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kilobytes * 1024)
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Line of the form `pid (name) state parent …`, where the name may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{process::Stdio, time::Duration};
    use tokio::{
        io::{AsyncBufReadExt as _, BufReader},
        process::Command,
    };

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "there must be processes to find")]
    async fn processes_are_found_by_marker_and_descent() {
        let dir = tempfile::tempdir().unwrap();
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 60 & echo $!; wait"])
            .env("A2A_HUB_DATA", dir.path())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).await.unwrap();
        let (shell_id, sleep_id) = (shell.id().unwrap(), line.trim().parse().unwrap());

        let mut marked = Vec::new();
        // Between fork and exec, a process has no readable environment.
        for _ in 0..500 {
            marked = processes_with_marker(dir.path());
            marked.sort_unstable();
            if marked.len() == 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(marked, [shell_id, sleep_id]);
        assert_eq!(descendants(shell_id), [sleep_id]);
        assert!(descendants(std::process::id()).contains(&sleep_id));
        let resident = resident_bytes(shell_id).unwrap();
        assert!(resident > 0);
        assert!((1..=resident).contains(&proportional_bytes(shell_id).unwrap()));

        let pid = rustix::process::Pid::from_raw(sleep_id.try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        shell.wait().await.unwrap();
        assert!(processes_with_marker(dir.path()).is_empty());
        assert_eq!(resident_bytes(shell_id), None);
    }
}
