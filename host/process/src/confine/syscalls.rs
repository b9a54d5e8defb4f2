//! System call filter (seccomp) of a confined program: a baseline that refuses calls which no
//! agent's program needs and which kernel exploits use.

use super::step::{NotConfined, Step};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter, sock_filter,
};
use std::{collections::BTreeMap, env::consts::ARCH, io};

/// Calls refused to every program, with any arguments.
const NEVER: &[libc::c_long] = &[
    // Other processes: their memory and descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    // Keys: the session's keyring belongs to no namespace.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Kernel internals.
    libc::SYS_bpf,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_syslog,
    libc::SYS_lookup_dcookie,
    // io_uring submits system calls past this filter.
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Machine-wide settings.
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // File handles, which bypass paths.
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
];

/// Further system calls that are always denied, for this architecture only.
#[cfg(target_arch = "x86_64")]
const NEVER_HERE: &[libc::c_long] = &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_HERE: &[libc::c_long] = &[];

/// Calls that create or enter namespaces and mount in them: for programs that confine their own
/// tools.
const NESTING: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
];

/// Flags of `clone` and `unshare` that create a namespace.
const NAMESPACES: i32 = libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP;

/// Socket families that a program may open. Packets, virtual machines, cryptography, Bluetooth and
/// others have each had vulnerabilities.
const FAMILIES: &[i32] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Protocols over IP: the default, TCP and UDP. Landlock's ports cover TCP, and not its
/// alternatives (MPTCP, SCTP).
const PROTOCOLS: &[i32] = &[0, libc::IPPROTO_TCP, libc::IPPROTO_UDP];

/// Terminal requests that inject input.
const TERMINAL_TRICKS: &[u64] = &[libc::TIOCSTI, libc::TIOCLINUX];

/// Calls that send, with the index of their flags argument. With `MSG_FASTOPEN` they also connect
/// (TCP Fast Open), and Landlock, which checks `connect`, does not see the port.
const SENDING: &[(libc::c_long, u8)] =
    &[(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];

/// Rules of one filter by system call number; an empty list matches any arguments.
type FilterRules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that some confined programs need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// The program creates namespaces and mounts in them.
    pub(super) nests: bool,
    /// The program may listen. Not in a shared network: a socket that listens without a bound port
    /// gets one automatically, and Landlock checks bound ports only.
    pub(super) listens: bool,
}

/// Filters the system calls of this process and its descendants, irrevocably.
pub(super) fn filter(needs: Needs) -> Result<(), NotConfined> {
    let failed = |why: BackendError| NotConfined::at(Step::Filter)(io::Error::other(why));
    let not_applied = |why| NotConfined::at(Step::Filter)(io::Error::other(why));
    // The kernel evaluates both filters, and no call is in both.
    apply_filter(&unknown(needs).map_err(failed)?).map_err(not_applied)?;
    apply_filter(&refused(needs).map_err(failed)?).map_err(not_applied)
}

/// Calls that a process does not need which reads one socket and writes to it: files by name,
/// programs, other sockets, signals to others.
const NEVER_ALONE: &[libc::c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_mknodat,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_truncate,
    libc::SYS_readlinkat,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_memfd_create,
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_setpriority,
    libc::SYS_mq_open,
];

/// [`NEVER_ALONE`] under the calls' older names, on architectures that have those.
#[cfg(target_arch = "x86_64")]
const NEVER_ALONE_HERE: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_mknod,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_rename,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_readlink,
    libc::SYS_fork,
    libc::SYS_vfork,
];
#[cfg(not(target_arch = "x86_64"))]
const NEVER_ALONE_HERE: &[libc::c_long] = &[];

/// Restricts this process and the threads that it starts, irrevocably, to its open descriptors.
pub(super) fn alone() -> Result<(), NotConfined> {
    let failed = |why: BackendError| NotConfined::at(Step::Filter)(io::Error::other(why));
    let not_applied = |why| NotConfined::at(Step::Filter)(io::Error::other(why));
    let needs = Needs { nests: false, listens: false };
    apply_filter(&unknown(needs).map_err(failed)?).map_err(not_applied)?;
    let mut rules = rules(needs).map_err(failed)?;
    rules.extend(NEVER_ALONE.iter().chain(NEVER_ALONE_HERE).map(|call| (*call, Vec::new())));
    let program = program(rules, libc::EPERM).map_err(failed)?;
    apply_filter(&program).map_err(not_applied)
}

/// Calls answered as unimplemented (`ENOSYS`), so that the C library falls back to calls that the
/// filter can inspect.
fn unknown(needs: Needs) -> Result<BpfProgram, BackendError> {
    let mut rules = FilterRules::new();
    if !needs.nests {
        rules.insert(libc::SYS_clone3, Vec::new()); // its flags are in memory, which filters cannot read
    }
    rules.insert(libc::SYS_io_uring_setup, Vec::new());
    program(rules, libc::ENOSYS)
}

/// Calls refused with `EPERM`.
fn refused(needs: Needs) -> Result<BpfProgram, BackendError> {
    program(rules(needs)?, libc::EPERM)
}

fn rules(needs: Needs) -> Result<FilterRules, BackendError> {
    let always = NEVER.iter().chain(NEVER_HERE);
    let mut rules: FilterRules = always.map(|call| (*call, Vec::new())).collect();
    if !needs.listens {
        rules.insert(libc::SYS_listen, Vec::new());
    }
    if !needs.nests {
        rules.extend(NESTING.iter().map(|call| (*call, Vec::new())));
        let each = (0..i32::BITS).map(|bit| 1 << bit).filter(|flag| NAMESPACES & flag != 0);
        let flags = each.collect::<Vec<i32>>();
        for call in [libc::SYS_clone, libc::SYS_unshare] {
            let has = |flag: &i32| rule(&[(0, SeccompCmpOp::MaskedEq(long(*flag)), long(*flag))]);
            rules.insert(call, flags.iter().map(has).collect::<Result<_, _>>()?);
        }
    }
    rules.insert(libc::SYS_socket, sockets()?);
    for (call, flags) in SENDING {
        let connects = long(libc::MSG_FASTOPEN);
        rules.insert(*call, vec![rule(&[(*flags, SeccompCmpOp::MaskedEq(connects), connects)])?]);
    }
    let tricks = TERMINAL_TRICKS.iter().map(|trick| rule(&[(1, SeccompCmpOp::Eq, *trick)]));
    rules.insert(libc::SYS_ioctl, tricks.collect::<Result<_, _>>()?);
    Ok(rules)
}

/// Other socket families, and other protocols over IP and netlink.
fn sockets() -> Result<Vec<SeccompRule>, BackendError> {
    let other = |argument, known: &[i32]| -> Vec<_> {
        known.iter().map(|one| (argument, SeccompCmpOp::Ne, long(*one))).collect()
    };
    let family = |family| (0, SeccompCmpOp::Eq, long(family));
    let mut rules = vec![rule(&other(0, FAMILIES))?];
    for ip in [libc::AF_INET, libc::AF_INET6] {
        rules.push(rule(&[vec![family(ip)], other(2, PROTOCOLS)].concat())?);
    }
    // Routes and addresses are readable; audit, packet filters and the rest are refused.
    let routes = vec![family(libc::AF_NETLINK), (2, SeccompCmpOp::Ne, long(libc::NETLINK_ROUTE))];
    rules.push(rule(&routes)?);
    Ok(rules)
}

/// Rule that matches if all `conditions` on the arguments hold, compared as the 32 bits that the
/// kernel reads.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions.iter().map(|(argument, is, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, is.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// A positive constant of the C library in the filter's type.
fn long(number: i32) -> u64 {
    u64::from(number.unsigned_abs())
}

fn program(rules: FilterRules, errno: i32) -> Result<BpfProgram, BackendError> {
    let refusal = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, ARCH.try_into()?)?;
    let mut program = BpfProgram::try_from(filter)?;
    if cfg!(target_arch = "x86_64") {
        program.splice(0..0, no_x32());
    }
    Ok(program)
}

/// Refuses x32, a second numbering of the same system calls on the same processor, which would
/// bypass every rule.
fn no_x32() -> [sock_filter; 3] {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS; offset 0 has the number of the call
    const JUMP_AT_LEAST: u16 = 0x35; // BPF_JMP | BPF_JGE | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    const X32: u32 = 0x4000_0000;
    let no_such_call = u32::from(SeccompAction::Errno(libc::ENOSYS.unsigned_abs()));
    [
        sock_filter { code: LOAD, jt: 0, jf: 0, k: 0 },
        sock_filter { code: JUMP_AT_LEAST, jt: 0, jf: 1, k: X32 },
        sock_filter { code: RETURN, jt: 0, jf: 0, k: no_such_call },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A classic BPF filter has at most 4,096 instructions, and jumps of at most 255.
    #[test]
    fn filters_fit_kernel_size_limit() {
        let all = [false, true].map(|nests| [false, true].map(|listens| Needs { nests, listens }));
        for needs in all.into_iter().flatten() {
            for filter in [unknown(needs).unwrap(), refused(needs).unwrap()] {
                assert!((10..4_096).contains(&filter.len()), "{}", filter.len());
            }
        }
        let length = |nests| refused(Needs { nests, listens: true }).unwrap().len();
        assert!(length(false) > length(true));
    }
}
