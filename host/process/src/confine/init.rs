//! The init of a confined program: PID 1 of its namespace. It sets up the confinement, starts the
//! program, reaps orphans, and reports the program's exit to the minder. The kernel ends the whole
//! namespace with it.

use super::{
    Confinement, Network, ceilings,
    landlock::{self, Writable},
    loopback,
    step::{NotConfined, Step},
    syscalls::{self, Needs},
    user, view,
};
use crate::{
    ProgramExit,
    minder::exit_of,
    wire::{Launched, MinderReport, decode_env, receive_launch},
};
use rustix::{
    io::Errno,
    process::{
        DumpableBehavior, Pid, Signal, WaitOptions, set_dumpable_behavior,
        set_parent_process_death_signal, wait,
    },
    thread::{
        CapabilitySet, CapabilitySets, UnshareFlags, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};
use std::{
    env,
    ffi::OsString,
    io::{self, Write as _},
    os::{fd::AsFd as _, unix::net::UnixStream},
    path::Path,
    process::{Command, ExitCode},
};

/// Runs as the init of a confined program. `args` are those after [`INIT`](super::INIT); standard
/// input is the socket to the minder.
pub(crate) fn init(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match try_init(args) {
        Ok(()) => ExitCode::SUCCESS,
        // No channel for the error is left: the minder sees the socket close.
        Err(_) => ExitCode::FAILURE,
    }
}

fn try_init(args: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    // Nothing else would end an init without its minder. If the minder died before this call, the
    // socket is closed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // No other process may inspect this one, whose descriptors lead outside.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut minder = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let launched = receive_launch(&mut minder)?;
    let confinement = launched.confinement.as_ref().ok_or(io::ErrorKind::InvalidInput)?;
    if let Err(why) = confine(confinement) {
        return writeln!(minder, "{}", MinderReport::NotConfined(why));
    }
    if launched.rehearses {
        return writeln!(minder, "{}", MinderReport::Started { group: None });
    }
    let program = match start(launched, args) {
        Ok(program) => program,
        Err(why) => {
            let errno = Errno::from_io_error(&why).unwrap_or(Errno::INVAL).raw_os_error();
            return writeln!(minder, "{}", MinderReport::Failed(errno));
        }
    };
    writeln!(minder, "{}", MinderReport::Started { group: None })?;
    let exit = outlive(program);
    writeln!(minder, "{}", MinderReport::Ended { exit, survivors: 0 })
}

/// Applies all confinement to this process, irrevocably.
fn confine(confinement: &Confinement) -> Result<(), NotConfined> {
    let alone = confinement.network == Network::Nothing;
    let network = if alone { UnshareFlags::NEWNET } else { UnshareFlags::empty() };
    let namespaces = UnshareFlags::NEWNS | UnshareFlags::NEWIPC | network;
    user::unshare(namespaces).map_err(NotConfined::at(Step::Namespaces))?;
    if alone {
        loopback::bring_up().map_err(NotConfined::at(Step::Loopback))?;
    }
    let cwd = env::current_dir().map_err(NotConfined::at(Step::View))?;
    view::enter(confinement, &cwd)?;
    ceilings::set(confinement.ceilings, Path::new("/proc"))?;
    view::seal()?;
    give_up_capabilities().map_err(NotConfined::at(Step::Capabilities))?;
    // A program that mounts inside is restricted by its view only, because Landlock's file rules
    // forbid every mount.
    let writable = (!confinement.nests)
        .then(|| Writable { directories: view::writable(confinement), devices: "/dev".into() });
    landlock::restrict(&confinement.network, writable.as_ref())?;
    syscalls::filter(Needs { nests: confinement.nests, listens: alone })
}

/// Drops all capabilities: those over the own namespaces would still allow mounting and
/// configuration. No program of the tree can regain any.
fn give_up_capabilities() -> io::Result<()> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            Err(Errno::INVAL) => break, // the kernel knows no more of them
            Err(why) => return Err(why.into()),
        }
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(set_no_new_privs(true)?)
}

/// Starts the program with its three pipes and no other descriptor, in the init's process group,
/// which the minder signals.
fn start(launched: Launched, args: impl IntoIterator<Item = OsString>) -> io::Result<Pid> {
    let mut args = args.into_iter();
    let program = args.next().ok_or(io::ErrorKind::InvalidInput)?;
    let [stdin, stdout, stderr] = launched.pipes;
    #[expect(
        clippy::disallowed_methods,
        reason = "here is where every confined program is started"
    )]
    let mut command = Command::new(&program);
    command.args(args).env_clear().envs(decode_env(&launched.env));
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    Ok(Pid::from_child(&command.spawn()?))
}

/// Reaps processes until the program has exited.
fn outlive(program: Pid) -> ProgramExit {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => return exit_of(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_no_children) => return ProgramExit::KILLED,
        }
    }
}
