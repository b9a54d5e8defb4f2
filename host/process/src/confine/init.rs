//! The init of a confined program: PID 1 of its namespace. It makes the program's world, starts the program in it, reaps
//! whoever is left to it, and tells the minder how the program ended; its own end is the end of all below it.

use super::{
    Confinement, Network, ceilings,
    landlock::{self, Writable},
    loopback,
    step::{NotConfined, Step},
    syscalls::{self, Needs},
    user, view,
};
use crate::{
    Exit,
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

/// Runs as the init of a confined program: `args` are those after [`INIT`](super::INIT), standard input is the socket to the
/// minder.
pub(crate) fn init(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match try_init(args) {
        Ok(()) => ExitCode::SUCCESS,
        // There is nobody to tell: the minder sees the socket close.
        Err(_) => ExitCode::FAILURE,
    }
}

fn try_init(args: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    // Without its minder nobody would end it. Whoever lost the minder before this finds the socket closed.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // Nobody looks into it, whose descriptors lead out.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let mut minder = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let launched = receive_launch(&mut minder)?;
    let confinement = launched.confinement.as_ref().ok_or(io::ErrorKind::InvalidInput)?;
    if let Err(why) = confine(confinement) {
        return writeln!(minder, "{}", MinderReport::NotConfined(why));
    }
    if launched.rehearses {
        return writeln!(minder, "{}", MinderReport::Started);
    }
    let program = match start(launched, args) {
        Ok(program) => program,
        Err(why) => {
            let errno = Errno::from_io_error(&why).unwrap_or(Errno::INVAL).raw_os_error();
            return writeln!(minder, "{}", MinderReport::Failed(errno));
        }
    };
    writeln!(minder, "{}", MinderReport::Started)?;
    let exit = outlive(program);
    writeln!(minder, "{}", MinderReport::Ended { exit, left: 0 })
}

/// Goes behind all walls, for good.
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
    // Whoever mounts inside is held by the view alone: Landlock's rules for files forbid every mount.
    let writable = (!confinement.nests)
        .then(|| Writable { directories: view::writable(confinement), devices: "/dev".into() });
    landlock::restrict(&confinement.network, writable.as_ref())?;
    syscalls::filter(Needs { nests: confinement.nests, listens: alone })
}

/// Capabilities over its own namespaces would still be rights to mount and to configure; no program of the tree gets any back.
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

/// Starts the program with its three pipes and no other descriptor. It is of the init's group, which the minder signals.
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

/// Reaps whoever ends, until the program has.
fn outlive(program: Pid) -> Exit {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => return exit_of(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_no_children) => return Exit::KILLED,
        }
    }
}
