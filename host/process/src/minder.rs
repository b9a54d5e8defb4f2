//! The minder: a process that owns one program and kills its whole tree at the end, even if the hub
//! dies. A confined program's init stands between the two.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getrlimit, kill_process_group,
    setrlimit, setsid, wait,
};

use super::ProgramExit;
use super::baseline_processes::BaselineProcesses;
use super::confine::{INIT, NotConfined, enter_namespaces};
use super::control_group::TreeGroup;
use super::inherited::InheritedDescriptors;
use super::memory::MemoryWatch;
use super::proc::{now, wait_for};
use super::system::{OperatingSystem, System};
use super::wire::{
    FrameBody, Launched, MinderOrder, MinderReport, decode_env, receive_launch, send_pipes,
};

/// Time that an ended daemon below a running program may stay unreaped. Nothing else depends on it.
const REAP_EVERY: Duration = Duration::from_secs(5);

/// Most bytes of an unfinished line from the hub: far more than any order has.
const MAX_ORDER: usize = 1024;

/// Runs as a minder. `args` are those after [`SUPERVISE`](super::SUPERVISE); standard input is the
/// socket to the hub.
pub(super) fn supervise(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match try_supervise(args) {
        Ok(()) => ExitCode::SUCCESS,
        // No channel for the error is left: the hub sees the socket close.
        Err(_) => ExitCode::FAILURE,
    }
}

fn try_supervise(args: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    let inherited = InheritedDescriptors::of_now()?;
    setsid()?;
    let mut hub = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);

    let mut args = args.into_iter();
    let mut number = || args.next()?.to_str()?.parse::<u64>().ok();
    let (grace, open_files) = (number().map(Duration::from_millis), number());
    let system = args.next().and_then(|word| System::named(word.to_str()?));
    let (Some(grace), Some(open_files), Some(system), Some(program)) =
        (grace, open_files, system, args.next())
    else {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    };
    let system = system.calls();
    system.become_subreaper()?;
    if open_files > 0 {
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(open_files), ..limit })?;
    }
    let launched = receive_launch(&mut hub)?;
    let limit = launched.confinement.as_ref().and_then(|it| it.ceilings.memory_bytes);
    let mut group =
        launched.confinement.as_ref().and_then(|confinement| TreeGroup::make(confinement.ceilings));
    let started = match launched.confinement {
        None => start(&program, args, launched, &inherited),
        Some(_) => system
            .may_confine()
            .map_err(NotStarted::from)
            .and_then(|()| start_confined(&program, args, launched, &inherited, &mut group)),
    };
    let report = match &started {
        Ok(Started { program, .. }) => {
            MinderReport::Started { group: system.group_of(*program).map(Pid::as_raw_pid) }
        }
        Err(NotStarted::Refused(report)) => report.clone(),
        Err(NotStarted::Io(error)) => {
            MinderReport::Failed(Errno::from_io_error(error).unwrap_or(Errno::INVAL).raw_os_error())
        }
    };
    // If the hub is gone, the end of its orders shows that below.
    let sent = send_report(&mut hub, &report);
    let Ok(Started { program, init }) = started else { return sent };

    let unread = Vec::new();
    let baseline = BaselineProcesses::of_now(system);
    let memory = limit.map(MemoryWatch::new);
    let exit = None;
    let mut minder = Minder {
        system,
        hub,
        unread,
        hub_lives: true,
        program,
        init,
        grace,
        exit,
        baseline,
        memory,
        group,
    };
    // Without a handle the program's end cannot be observed, so it is killed now.
    let _ = minder.watch();
    let survivors = minder.sweep();
    let exit = minder.exit.unwrap_or(ProgramExit::KILLED);
    send_report(&mut minder.hub, &MinderReport::Ended { exit, survivors })
}

/// A started program, or the init of one.
struct Started {
    program: Pid,
    /// Channel on which the init reports the program's exit.
    init: Option<BufReader<UnixStream>>,
}

/// Reason why nothing was started.
enum NotStarted {
    Io(io::Error),
    /// The init's report.
    Refused(MinderReport),
}

impl From<io::Error> for NotStarted {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}

impl From<NotConfined> for NotStarted {
    fn from(why: NotConfined) -> Self {
        Self::Refused(MinderReport::NotConfined(why))
    }
}

/// Starts the program in a new process group, with its three pipes and no other descriptor. The
/// standard library resets its signal mask and SIGPIPE.
fn start(
    program: &OsStr,
    args: impl Iterator<Item = OsString>,
    launched: Launched,
    inherited: &InheritedDescriptors,
) -> Result<Started, NotStarted> {
    let Launched { pipes: [stdin, stdout, stderr], env, .. } = launched;
    #[expect(clippy::disallowed_methods, reason = "here is where every program is started")]
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(decode_env(&env)).process_group(0);
    command.stdin(stdin).stdout(stdout).stderr(stderr);
    inherited.withhold_from(&mut command)?;
    Ok(Started { program: Pid::from_child(&command.spawn()?), init: None })
}

/// Starts the program's init in a new process group, which the program shares; returns once the
/// program runs.
fn start_confined(
    program: &OsStr,
    args: impl Iterator<Item = OsString>,
    launched: Launched,
    inherited: &InheritedDescriptors,
    group: &mut Option<TreeGroup>,
) -> Result<Started, NotStarted> {
    let Launched { pipes, env, confinement, rehearses } = launched;
    let body = FrameBody::new(env, confinement.as_ref(), rehearses)?;
    let (mut ours, inits) = UnixStream::pair()?;
    enter_namespaces(confinement.as_ref().is_some_and(|it| it.nests))?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the hub's own executable, for a confined program"
    )]
    let mut command = Command::new("/proc/self/exe");
    command.arg0("a2a-hub").arg(INIT).arg(program).args(args).process_group(0);
    command.stdin(OwnedFd::from(inits)).stdout(Stdio::null()).stderr(Stdio::null());
    inherited.withhold_from(&mut command)?;
    let init = Pid::from_child(&command.spawn()?);
    // The init starts nothing before it receives the launch.
    *group = group.take().filter(|group| group.add(init).is_ok());
    drop(command); // its copy of the socket would outlive the init
    send_pipes(&ours, &pipes, &body)?;
    drop(pipes); // the hub sees them close only with the program
    ours.write_all(&body.bytes())?;
    let mut reports = BufReader::new(ours);
    match report(&mut reports) {
        Some(MinderReport::Started { .. }) => Ok(Started { program: init, init: Some(reports) }),
        Some(refused) => Err(NotStarted::Refused(refused)),
        None => Err(NotStarted::Io(io::ErrorKind::UnexpectedEof.into())),
    }
}

/// Next report of the init; none if it is gone.
fn report(init: &mut BufReader<UnixStream>) -> Option<MinderReport> {
    let mut line = String::new();
    init.read_line(&mut line).ok()?;
    line.trim_end_matches('\n').parse().ok()
}

/// A supervised program.
struct Minder {
    system: &'static dyn OperatingSystem,
    hub: UnixStream,
    /// Start of an order whose end has not arrived yet.
    unread: Vec<u8>,
    hub_lives: bool,
    /// The program, or its init.
    program: Pid,
    init: Option<BufReader<UnixStream>>,
    /// Grace period of the program if the hub dies.
    grace: Duration,
    exit: Option<ProgramExit>,
    /// Processes that count as the program itself and its helpers.
    baseline: BaselineProcesses,
    /// Check of the tree's memory limit.
    memory: Option<MemoryWatch>,
    /// Control group with the kernel's limits, if any.
    group: Option<TreeGroup>,
}

impl Minder {
    /// Returns when the program has exited, its grace period is over, or the tree has exceeded its
    /// memory limit.
    fn watch(&mut self) -> io::Result<()> {
        let program = self.system.end_of(self.program)?;
        let mut kill_at: Option<Instant> = None;
        while self.exit.is_none() && kill_at.is_none_or(|at| now() < at) {
            let timeout = kill_at.map_or(REAP_EVERY, |at| at.saturating_duration_since(now()));
            let next_check = self.memory.as_ref().map_or(REAP_EVERY, MemoryWatch::due);
            if self.wait(&program, timeout.min(next_check).min(REAP_EVERY)) {
                for order in self.orders() {
                    // If the group is gone already, nobody is left to signal.
                    match order {
                        MinderOrder::Interrupt => {
                            let _ = kill_process_group(self.program, Signal::INT);
                        }
                        MinderOrder::End(grace) => {
                            if kill_at.is_none() {
                                let _ = kill_process_group(self.program, Signal::TERM);
                            }
                            // A second order may shorten the time, and never extends it.
                            let at = now() + grace;
                            kill_at = Some(kill_at.map_or(at, |before| before.min(at)));
                        }
                        MinderOrder::Inspect(inspection) => {
                            let result = self.baseline.inspect(inspection);
                            // If the hub is gone, the end of its orders shows that.
                            let _ = send_report(&mut self.hub, &MinderReport::Inspected(result));
                        }
                    }
                }
            }
            self.reap();
            if let Some(taken) = self.memory.as_mut().and_then(MemoryWatch::exceeded) {
                return send_report(&mut self.hub, &MinderReport::MemoryExceeded(taken));
            }
        }
        match self.group.as_ref().and_then(TreeGroup::overrun) {
            Some(taken) => send_report(&mut self.hub, &MinderReport::MemoryExceeded(taken)),
            None => Ok(()),
        }
    }

    /// Waits for the program's exit or data from the hub; true for the latter.
    fn wait(&self, program: &OwnedFd, timeout: Duration) -> bool {
        let mut fds = [PollFd::new(program, PollFlags::IN), PollFd::new(&self.hub, PollFlags::IN)];
        // A closed socket would be ready without end.
        let watched = if self.hub_lives { 2 } else { 1 };
        wait_for(&mut fds[..watched], timeout);
        !fds[1].revents().is_empty()
    }

    /// Orders from the hub. A closed socket counts as the order to end.
    fn orders(&mut self) -> Vec<MinderOrder> {
        let mut bytes = [0; MAX_ORDER];
        let read = self.hub.read(&mut bytes).unwrap_or(0);
        self.unread.extend_from_slice(&bytes[..read]);
        if read == 0 || self.unread.len() > MAX_ORDER {
            self.hub_lives = false;
            return vec![MinderOrder::End(self.grace)];
        }
        let Some(end) = self.unread.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let lines: Vec<u8> = self.unread.drain(..=end).collect();
        String::from_utf8_lossy(&lines).lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Reaps ended processes below the minder; false if none is left.
    fn reap(&mut self) -> bool {
        if !self.system.may_reap(self.program) {
            return true;
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.program => {
                    self.exit = Some(self.exit_of_program(status));
                }
                Ok(Some(_)) => {}
                Ok(None) => return true,
                Err(_no_children) => return false,
            }
        }
    }

    /// Exit of the program: as its init reports, unless the init was killed. `status` is that of
    /// the reaped process.
    fn exit_of_program(&mut self, status: WaitStatus) -> ProgramExit {
        match self.init.take().map(|mut init| report(&mut init)) {
            Some(Some(MinderReport::Ended { exit, .. })) => exit,
            Some(_) => ProgramExit::KILLED,
            None => exit_of(status),
        }
    }

    /// Kills and reaps until no process of the tree is left; returns the number of survivors.
    fn sweep(&mut self) -> usize {
        let (system, program) = (self.system, self.program);
        system.kill_descendants(program, &mut || self.reap())
    }
}

/// Sends a report to the hub in one write: each write would wake it.
fn send_report(mut hub: impl Write, report: &MinderReport) -> io::Result<()> {
    hub.write_all(format!("{report}\n").as_bytes())
}

/// Exit for the status of a reaped process.
pub(super) fn exit_of(status: WaitStatus) -> ProgramExit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ProgramExit::Code(code),
        (None, Some(signal)) => ProgramExit::Signal(signal),
        (None, None) => ProgramExit::KILLED,
    }
}
