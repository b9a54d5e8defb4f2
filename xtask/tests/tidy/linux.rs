//! Modules of the host that assume Linux, in one list: a port to another system begins here.
//!
//! `docs/decisions/0015-a-port-to-macos.md` says for each area what a port needs.

use crate::sources::{is_test, read, sources, without_tests};
use regex::Regex;
use std::collections::BTreeSet;

/// Page that says for each area what a port needs.
const RECORD: &str = "docs/decisions/0015-a-port-to-macos.md";

/// Interfaces that only Linux has: files, system calls, and crates that wrap them.
pub(crate) const INTERFACES: &str = r"target_os|target_env|os::linux|/proc\b|/sys/|/dev/shm|landlock::|seccompiler::|netlink|PeerPidfd|peer_cred|pidfd_|memfd_|cgroup|openat2|unshare(_\w+)?\(|rustix::mount|prctl|child_subreaper|parent_process_death_signal|no_new_privs|setpriority_process|RenameFlags|libc::SYS_|inotify|epoll|malloc_trim";

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
            "host/config/src/environment/unix.rs",
        ],
    ),
    (
        "callers",
        &[
            "host/rpc/src/peer/identity.rs",
            "host/process/src/socket_owner.rs",
            "host/server/src/unix/socket.rs",
            "host/socket-client/src/hub_client/local.rs",
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
            "host/socket-client/src/signals/unix.rs",
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
