//! Running programs of guests, and the pool of idle programs. A task for each idle program reads
//! its output and ends it when its time is over.

use super::launch_check::LaunchFacts;
use crate::port::{
    files::InstanceFiles,
    live_grant::{Revocation, revoked},
};
use a2a_hub_config::KeptLimits;
use a2a_hub_core::scheduling::process_pool::{Eviction, IdlePool, Keeping, PoolCapacity, PoolKey};
use a2a_hub_process::{Child, MemoryExceeded, Output, ProgramExit};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::{
    Failure,
    port::process::{ChildPort, Said},
};
use parking_lot::Mutex;
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval_at, sleep},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Capacity of the idle pool over all agents of a hub.
const HUBS_ROOM: PoolCapacity = PoolCapacity { programs: 16, bytes: 6 << 30 };

/// Most unread output of an idle program, in bytes.
const MAX_UNREAD: usize = 64 << 10;

/// Interval at which an idle program's memory is measured.
const WEIGHED_EVERY: Duration = Duration::from_secs(30);

/// Suffix of the owner's name of idle programs.
const KEPT: &str = "/kept";

/// True if programs of this owner are idle and serve no task.
pub fn is_kept(owner: &str) -> bool {
    owner.ends_with(KEPT)
}

/// Concurrency permit of a program among those of its name: released while the program is idle.
pub(super) type Permit = Arc<Mutex<Option<OwnedSemaphorePermit>>>;

/// Pool of the hub's idle programs. Clones share state.
#[derive(Clone, Default)]
pub(crate) struct IdlePrograms(Arc<SharedPool>);

#[derive(Default)]
struct SharedPool {
    shelf: Mutex<IdlePool<Keeper>>,
    keepers: TaskTracker,
}

impl IdlePrograms {
    /// Waits until the pool is empty; called once all agents have left.
    pub(crate) async fn shutdown(&self) {
        self.0.keepers.close();
        self.0.keepers.wait().await;
    }
}

/// Sends an order to the task that holds an idle program.
struct Keeper(oneshot::Sender<IdleOrder>);

/// One-time order to the holder of an idle program.
enum IdleOrder {
    /// Hands the program over.
    HandOver(oneshot::Sender<RunningProgram>),
    /// Ends the program.
    End(Eviction),
}

/// One agent's part of the idle pool. A replacement of the agent under other settings has another.
pub(crate) struct Seat {
    pub(crate) agent: AgentId,
    pub(crate) kept: IdlePrograms,
    pub(crate) limits: KeptLimits,
    /// Cancelled when the agent leaves or is replaced.
    pub(crate) left: CancellationToken,
}

impl Seat {
    /// Number of the agent's idle programs.
    pub(super) fn count(&self) -> usize {
        self.kept.0.shelf.lock().of_agent(&self.agent)
    }

    /// True if the pool has a program under this key.
    pub(super) fn has(&self, spot: &PoolKey) -> bool {
        self.kept.0.shelf.lock().has(spot)
    }

    /// Takes the program under this key; none if it has ended meanwhile.
    pub(super) async fn take(&self, spot: &PoolKey) -> Option<RunningProgram> {
        let Keeper(told) = self.kept.0.shelf.lock().take(spot)?;
        let (hands, handed) = oneshot::channel();
        told.send(IdleOrder::HandOver(hands)).ok()?;
        handed.await.ok()
    }

    /// Evicts idle programs until at most `most` of `program` are left.
    pub(super) fn make_room(&self, program: &str, most: usize) {
        end(self.kept.0.shelf.lock().make_room(&self.agent, program, most));
    }

    fn put(self: &Arc<Self>, keeping: Keeping, running: RunningProgram) {
        let (told, orders) = oneshot::channel();
        let key = keeping.spot.key.clone();
        let mut shelf = self.kept.0.shelf.lock();
        let mut number = 0;
        let gone = shelf.put(keeping, self.limits.room, HUBS_ROOM, |given| {
            number = given;
            Keeper(told)
        });
        drop(shelf);
        end(gone);
        self.kept.0.keepers.spawn(keep(Arc::clone(self), number, key, running, orders));
    }
}

fn end(gone: Vec<(Keeper, Eviction)>) {
    for (Keeper(told), why) in gone {
        // The holder of a program that has exited receives nothing.
        let _ = told.send(IdleOrder::End(why));
    }
}

/// Holds an idle program until it is readmitted or its time is over.
async fn keep(
    seat: Arc<Seat>,
    number: u64,
    key: String,
    mut running: RunningProgram,
    mut orders: oneshot::Receiver<IdleOrder>,
) {
    let agent = &seat.agent;
    tracing::info!(%agent, key, program = running.program, "a program is kept for the next task");
    let idle = sleep(seat.limits.idle);
    tokio::pin!(idle);
    let mut weighing = interval_at(Instant::now() + WEIGHED_EVERY, WEIGHED_EVERY);
    weighing.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let why = loop {
        tokio::select! {
            biased;
            order = &mut orders => match order {
                Ok(IdleOrder::HandOver(to)) => {
                    // If the requester has left, the program ends when it is dropped.
                    let _ = to.send(running);
                    return;
                }
                Ok(IdleOrder::End(why)) => break why.why(),
                Err(_) => break "the hub keeps none any more",
            },
            () = running.revocation.token.cancelled() => break "its grant was taken away",
            () = seat.left.cancelled() => break "its agent has left, or was replaced",
            () = &mut idle => break "no task took it up in time",
            _ = weighing.tick() => {
                let Some(bytes) = running.child.resident().await else { break "it has ended" };
                end(seat.kept.0.shelf.lock().weighs(number, bytes, seat.limits.room, HUBS_ROOM));
            }
            said = running.child.next() => {
                let said = said_of(&seat.agent, said);
                if matches!(said, Said::Code(_) | Said::Signal(_)) {
                    break "it has ended by itself";
                }
                running.unread.push_back(said);
                if running.unread_bytes() > MAX_UNREAD {
                    break "it said too much while nobody listened";
                }
            }
        }
    };
    seat.kept.0.shelf.lock().remove(number);
    tracing::info!(%agent, key, program = running.program, why, "a kept program was ended");
}

/// A running program of a guest. It ends when its grant is revoked.
pub(super) struct RunningProgram {
    pub(super) child: Child,
    /// Name of the program in the grant.
    pub(super) program: String,
    pub(super) revocation: Revocation,
    /// Properties and holder at the start of the program.
    pub(super) fit: LaunchFacts,
    /// Files that the agent wrote for the program, and its temporary files.
    pub(super) files: Arc<InstanceFiles>,
    pub(super) permit: Permit,
    pub(super) seat: Arc<Seat>,
    /// Output that nobody has read yet.
    unread: VecDeque<Said>,
    /// Ends the program on revocation, independently of the guest's calls.
    _ending: JoinSet<()>,
}

impl RunningProgram {
    pub(super) fn new(
        child: Child,
        program: String,
        revocation: Revocation,
        fit: LaunchFacts,
        files: Arc<InstanceFiles>,
        permit: Permit,
        seat: Arc<Seat>,
    ) -> Self {
        let (token, end) = (revocation.token.clone(), child.ender());
        let mut ending = JoinSet::new();
        ending.spawn(async move {
            token.cancelled().await;
            end.cancel();
        });
        let unread = VecDeque::new();
        Self { child, program, revocation, fit, files, permit, seat, unread, _ending: ending }
    }

    /// Operation named in the refusal after a revocation.
    fn what(&self) -> String {
        format!("run `{}`", self.program)
    }

    fn unread_bytes(&self) -> usize {
        let bytes = self.unread.iter().map(|said| match said {
            Said::Stdout(bytes) | Said::Stderr(bytes) => bytes.len(),
            Said::Code(_) | Said::Signal(_) => 0,
        });
        bytes.sum()
    }

    /// Ends background processes of the task and puts the program into the idle pool.
    async fn park_under(mut self, key: String, unread: Option<Said>) -> Result<(), Failure> {
        let seat = Arc::clone(&self.seat);
        let refused = |why: &str| Failure::Unavailable(format!("park a program: {why}"));
        let no_room = |why: a2a_hub_core::scheduling::process_pool::NoRoom| {
            Failure::Exhausted(format!("park a program: {why}"))
        };
        let spot =
            PoolKey { agent: seat.agent.clone(), tenant: self.fit.holder.tenant.clone(), key };
        let program = self.program.clone();
        let mut keeping = Keeping { spot, program, bytes: 0 };
        IdlePool::<Keeper>::admits(&keeping, seat.limits.room, HUBS_ROOM).map_err(no_room)?;
        self.unread.extend(unread);
        if self.unread.iter().any(|said| matches!(said, Said::Code(_) | Said::Signal(_))) {
            return Err(refused("it has ended"));
        }
        if self.unread_bytes() > MAX_UNREAD {
            return Err(refused("it has said too much that was not read"));
        }
        let lost = || refused("it has ended, or what it left in the background could not be ended");
        let pruned = self.child.prune().await.ok_or_else(lost)?;
        if pruned.killed > 0 {
            let (agent, killed) = (&seat.agent, pruned.killed);
            tracing::info!(%agent, program = self.program, killed, "processes that a task left in the background were ended");
        }
        keeping.bytes = pruned.resident;
        IdlePool::<Keeper>::admits(&keeping, seat.limits.room, HUBS_ROOM).map_err(no_room)?;
        if self.revocation.token.is_cancelled() {
            return Err(revoked(&self.what()));
        }
        if seat.left.is_cancelled() {
            return Err(refused("its agent has left, or was replaced"));
        }
        if !self.child.pass_to(&format!("{}{KEPT}", seat.agent)) {
            return Err(refused("it has ended"));
        }
        drop(self.permit.lock().take());
        seat.put(keeping, self);
        Ok(())
    }
}

fn said_of(agent: &AgentId, output: Output) -> Said {
    match output {
        Output::Stdout(bytes) => Said::Stdout(bytes),
        Output::Stderr(bytes) => Said::Stderr(bytes),
        Output::MemoryExceeded(MemoryExceeded { taken, limit }) => {
            let (taken, limit) = (taken >> 20, limit >> 20);
            let why = format!(
                "\na2a-hub: ended, for it took {taken} MiB of memory with all it started, and may take {limit} \
                 (`agents.{agent}.confined.max_memory_mb`)\n"
            );
            Said::Stderr(why.into_bytes())
        }
        Output::Exited(ProgramExit::Code(code)) => Said::Code(code),
        Output::Exited(ProgramExit::Signal(signal)) => Said::Signal(signal),
    }
}

#[async_trait::async_trait]
impl ChildPort for RunningProgram {
    async fn next(&mut self) -> Result<Said, Failure> {
        if self.revocation.token.is_cancelled() {
            return Err(revoked(&self.what()));
        }
        if let Some(unread) = self.unread.pop_front() {
            return Ok(unread);
        }
        tokio::select! {
            biased;
            () = self.revocation.token.cancelled() => Err(revoked(&self.what())),
            said = self.child.next() => Ok(said_of(&self.seat.agent, said)),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let what = self.what();
        let written = tokio::select! {
            biased;
            () = self.revocation.token.cancelled() => return Err(revoked(&what)),
            written = self.child.write_stdin(bytes) => written,
        };
        written.map_err(|why| Failure::Unavailable(format!("write to the program: {why}")))
    }

    fn close_stdin(&mut self) {
        self.child.close_stdin();
    }

    fn interrupt(&mut self) {
        self.child.interrupt();
    }

    fn kill(&mut self) {
        self.child.kill();
    }

    fn retire(self: Box<Self>, within: Duration) {
        self.child.retire(within);
    }

    async fn settled(&mut self) {
        self.child.settle().await;
    }

    async fn park(self: Box<Self>, key: String, unread: Option<Said>) -> Result<(), Failure> {
        self.park_under(key, unread).await
    }
}
