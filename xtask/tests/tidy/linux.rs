//! Modules of the host that assume Linux, in one list: a port to another system begins here.
//!
//! `docs/decisions/0015-a-port-to-macos.md` says for each area what a port needs.

use crate::sources::{is_test, read, sources, without_tests};
use regex::Regex;
use std::collections::BTreeSet;

/// Page that says for each area what a port needs.
const RECORD: &str = "docs/decisions/0015-a-port-to-macos.md";

/// Interfaces that only Linux has: files, system calls, and crates that wrap them.
const INTERFACES: &str = r"target_os|target_env|os::linux|/proc\b|/sys/|/dev/shm|landlock::|seccompiler::|netlink|PeerPidfd|peer_cred|pidfd_|memfd_|cgroup|openat2|unshare(_\w+)?\(|rustix::mount|prctl|child_subreaper|parent_process_death_signal|no_new_privs|setpriority_process|RenameFlags|libc::SYS_|inotify|epoll|malloc_trim";

/// Area of the record, and the modules that belong to it.
const MODULES: &[(&str, &[&str])] = &[
    (
        "process trees",
        &[
            "host/process/src/daemon.rs",
            "host/process/src/inside.rs",
            "host/process/src/minder.rs",
            "host/process/src/proc.rs",
            "host/process/src/system/linux.rs",
            "host/process/src/worker.rs",
            "host/a2a-hub/src/builder.rs",
            "host/config/src/environment.rs",
        ],
    ),
    (
        "callers",
        &[
            "host/rpc/src/peer/identity.rs",
            "host/process/src/socket_owner.rs",
            "host/server/src/unix/socket.rs",
            "host/socket-client/src/hub_client.rs",
        ],
    ),
    (
        "confinement",
        &[
            "host/process/src/bin/worker.rs",
            "host/process/src/control_group.rs",
            "host/process/src/confine/init.rs",
            "host/process/src/confine/landlock.rs",
            "host/process/src/confine/mod.rs",
            "host/process/src/confine/step.rs",
            "host/process/src/confine/support.rs",
            "host/process/src/confine/syscalls.rs",
            "host/process/src/confine/system.rs",
            "host/process/src/confine/user.rs",
            "host/process/src/confine/view.rs",
            "host/config/src/confined.rs",
        ],
    ),
    (
        "own executable and descriptors",
        &[
            "host/process/src/inherited.rs",
            "host/process/src/mapped_file.rs",
            "host/process/src/working_directory.rs",
            "host/sandbox/src/compile/bundled_code.rs",
            "host/cli/src/commands/doctor.rs",
            "host/cli/src/commands/plugin/build.rs",
        ],
    ),
    (
        "files",
        &[
            "host/sandbox/src/store/mod.rs",
            "host/sandbox/src/store/openat2.rs",
            "host/sandbox/src/store/workspace.rs",
            "host/agents/src/registry/admin/register.rs",
            "host/authoring/src/compiled_deps.rs",
            "host/authoring/src/create.rs",
            "host/worktrees/src/apply/transaction.rs",
            "host/worktrees/src/create/checkout.rs",
            "host/worktrees/src/create/copied.rs",
            "host/worktrees/src/reader.rs",
            "host/worktrees/src/repository/refs.rs",
        ],
    ),
    (
        "memory, priorities and signals",
        &[
            "host/process/src/unused_memory.rs",
            "host/sandbox/src/component/engine.rs",
            "host/sandbox/src/cpu/scheduler.rs",
            "host/socket-client/src/signals.rs",
        ],
    ),
];

#[test]
fn modules_that_assume_linux_are_listed() {
    let listed: BTreeSet<_> = MODULES.iter().flat_map(|(_, modules)| *modules).copied().collect();
    let interface = Regex::new(INTERFACES).unwrap();
    let host = sources("host");
    let assumes = |(path, text): &&(String, String)| {
        path.contains("/src/") && !is_test(path) && uses(&interface, text)
    };
    let found: BTreeSet<_> = host.iter().filter(assumes).map(|(path, _)| path.as_str()).collect();
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(new.is_empty(), "{new:?}: ask `host/process` for it, or add it to {}", file!());
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "{gone:?}: no longer assume Linux; remove them from {}", file!());
}

/// Interfaces that Unix has, and Windows does not. macOS has most of them.
const UNIX: &str = r"os::unix|rustix::|libc::|UnixStream|UnixListener|net::unix|signal::unix";

/// Crates of which a client of a remote hub consists, and which work on each system.
const PORTABLE_CRATES: [&str; 4] = ["protocol", "core", "clock", "client"];

/// Further modules that the commands with `--hub`, and `join`, are made of.
const CLIENT: [&str; 19] = [
    "host/terminal/src/",
    "host/socket-client/src/",
    "host/config/src/data_dir/joined_hubs.rs",
    "host/config/src/data_dir/private_file.rs",
    "host/cli/src/automation/schedule.rs",
    "host/cli/src/automation/topic.rs",
    "host/cli/src/automation/trigger.rs",
    "host/cli/src/commands/agent.rs",
    "host/cli/src/commands/agents.rs",
    "host/cli/src/commands/contexts.rs",
    "host/cli/src/commands/deliveries.rs",
    "host/cli/src/commands/send",
    "host/cli/src/commands/task.rs",
    "host/cli/src/commands/task/",
    "host/cli/src/commands/tasks.rs",
    "host/cli/src/inbox",
    "host/cli/src/people.rs",
    "host/cli/src/permissions",
    "host/cli/src/remote_commands.rs",
];

/// Modules of these that do not compile for Windows. The record says what each needs.
const CLIENT_ON_UNIX: [&str; 11] = [
    "host/cli/src/commands/task/resume_in_cli.rs",
    "host/cli/src/commands/tasks.rs",
    "host/cli/src/inbox.rs",
    "host/config/src/data_dir/joined_hubs.rs",
    "host/config/src/data_dir/private_file.rs",
    "host/socket-client/src/hub_client.rs",
    "host/socket-client/src/remote_hub.rs",
    "host/socket-client/src/running_hub.rs",
    "host/socket-client/src/signals.rs",
    "host/terminal/src/console.rs",
    "host/terminal/src/interactive.rs",
];

#[test]
fn portable_crates_call_no_single_system() {
    let (linux, unix) = (Regex::new(INTERFACES).unwrap(), Regex::new(UNIX).unwrap());
    for name in PORTABLE_CRATES {
        let all = sources(&format!("host/{name}/src"));
        assert!(!all.is_empty(), "host/{name} has moved");
        for (path, text) in all.iter().filter(|(path, _)| !is_test(path)) {
            let is_free = !uses(&linux, text) && !uses(&unix, text);
            assert!(is_free, "{path}: a client on macOS or Windows has no such call");
        }
    }
}

#[test]
fn client_modules_that_need_unix_are_listed() {
    let unix = Regex::new(UNIX).unwrap();
    let host = sources("host");
    for part in CLIENT {
        assert!(host.iter().any(|(path, _)| path.starts_with(part)), "{part} has moved");
    }
    let is_client = |path: &str| CLIENT.iter().any(|part| path.starts_with(part));
    let needs_unix =
        |(path, text): &&(String, String)| is_client(path) && !is_test(path) && uses(&unix, text);
    let found: Vec<_> = host.iter().filter(needs_unix).map(|(path, _)| path.as_str()).collect();
    let found: BTreeSet<_> = found.into_iter().collect();
    let listed = BTreeSet::from(CLIENT_ON_UNIX);
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(
        new.is_empty(),
        "{new:?}: a client on Windows has no such call; ask `socket-client` or `terminal` for it"
    );
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "{gone:?}: no longer need Unix; remove them from {}", file!());
}

#[test]
fn record_of_port_names_each_area() {
    let record = read(RECORD);
    for (area, _) in MODULES {
        let heading = format!("\n### {}", area[..1].to_uppercase() + &area[1..]);
        assert!(record.contains(&heading), "{RECORD}: say what a port needs for {area}");
    }
}

#[test]
fn interfaces_in_comments_and_tests_are_ignored() {
    let interface = Regex::new(INTERFACES).unwrap();
    let text = "//! Reads `/proc`.\n\nfn a() {} // no cgroup\n\n#[cfg(test)]\nmod tests {\n    const A: &str = \"/proc\";\n}\n";
    assert!(!uses(&interface, text));
    assert!(uses(&interface, "fn a() {\n    read(\"/proc/self/stat\");\n}\n"));
    assert!(uses(&interface, "#[cfg(target_os = \"linux\")]\nfn a() {}\n"));
}

/// True if the code of `text`, without comments and tests, uses such an interface.
fn uses(interface: &Regex, text: &str) -> bool {
    let code = |line: &str| match line.find("//") {
        // A slash pair after a colon belongs to an address.
        Some(at) if !line[..at].ends_with(':') => line[..at].to_owned(),
        Some(_) | None => line.to_owned(),
    };
    without_tests(text).lines().map(code).any(|line| interface.is_match(&line))
}
