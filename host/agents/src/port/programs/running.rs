//! Running programs of guests, and the pool of idle programs. A task for each idle program reads
//! its output and ends it when its time is over.

use super::launch_check::LaunchFacts;
use crate::port::{
    files::InstanceFiles,
    live_grant::{Revocation, revoked},
};
use a2a_hub_config::IdleLimits;
use a2a_hub_core::scheduling::process_pool::{Eviction, IdlePool, Keeping, PoolCapacity, PoolKey};
use a2a_hub_process::{Child, MemoryExceeded, Output, ProgramExit};
use a2a_hub_protocol::id::AgentId;
use a2a_hub_runtime::{
    Failure,
    port::process::{ChildPort, ProgramEvent},
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
const HUB_CAPACITY: PoolCapacity = PoolCapacity { programs: 16, bytes: 6 << 30 };

/// Most unread output of an idle program, in bytes.
const MAX_UNREAD: usize = 64 << 10;

/// Interval at which an idle program's memory is measured.
const WEIGHED_EVERY: Duration = Duration::from_secs(30);

/// Suffix of the owner's name of idle programs.
const IDLE_SUFFIX: &str = "/kept";

/// True if programs of this owner are idle and serve no task.
pub fn is_idle_owner(owner: &str) -> bool {
    owner.ends_with(IDLE_SUFFIX)
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
pub(crate) struct AgentPool {
    pub(crate) agent: AgentId,
    pub(crate) idle_programs: IdlePrograms,
    pub(crate) limits: IdleLimits,
    /// Cancelled when the agent leaves or is replaced.
    pub(crate) shutdown: CancellationToken,
}

impl AgentPool {
    /// Number of the agent's idle programs.
    pub(super) fn count(&self) -> usize {
        self.idle_programs.0.shelf.lock().of_agent(&self.agent)
    }

    /// True if the pool has a program under this key.
    pub(super) fn has(&self, spot: &PoolKey) -> bool {
        self.idle_programs.0.shelf.lock().has(spot)
    }

    /// Takes the program under this key; none if it has ended meanwhile.
    pub(super) async fn check_out(&self, spot: &PoolKey) -> Option<RunningProgram> {
        let Keeper(sender) = self.idle_programs.0.shelf.lock().take(spot)?;
        let (hands, handed) = oneshot::channel();
        sender.send(IdleOrder::HandOver(hands)).ok()?;
        handed.await.ok()
    }

    /// Evicts idle programs until at most `max` of `program` are left.
    pub(super) fn evict_idle(&self, program: &str, max: usize) {
        end(self.idle_programs.0.shelf.lock().evict_excess(&self.agent, program, max));
    }

    fn put(self: &Arc<Self>, keeping: Keeping, running: RunningProgram) {
        let (sender, orders) = oneshot::channel();
        let key = keeping.spot.key.clone();
        let mut shelf = self.idle_programs.0.shelf.lock();
        let mut number = 0;
        let evicted = shelf.put(keeping, self.limits.capacity, HUB_CAPACITY, |assigned| {
            number = assigned;
            Keeper(sender)
        });
        drop(shelf);
        end(evicted);
        self.idle_programs.0.keepers.spawn(hold_idle(
            Arc::clone(self),
            number,
            key,
            running,
            orders,
        ));
    }
}

fn end(evicted: Vec<(Keeper, Eviction)>) {
    for (Keeper(sender), why) in evicted {
        // The holder of a program that has exited receives nothing.
        let _ = sender.send(IdleOrder::End(why));
    }
}

/// Holds an idle program until it is readmitted or its time is over.
async fn hold_idle(
    pool: Arc<AgentPool>,
    number: u64,
    key: String,
    mut running: RunningProgram,
    mut orders: oneshot::Receiver<IdleOrder>,
) {
    let agent = &pool.agent;
    tracing::info!(%agent, key, program = running.program, "program is idle until the next task");
    let idle = sleep(pool.limits.idle);
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
            () = pool.shutdown.cancelled() => break "its agent has left, or was replaced",
            () = &mut idle => break "no task took it up in time",
            _ = weighing.tick() => {
                let Some(bytes) = running.child.resident().await else { break "it has ended" };
                end(pool.idle_programs.0.shelf.lock().weighs(number, bytes, pool.limits.capacity, HUB_CAPACITY));
            }
            said = running.child.next() => {
                let said = guest_output(&pool.agent, said);
                if matches!(said, ProgramEvent::Code(_) | ProgramEvent::Signal(_)) {
                    break "it has ended by itself";
                }
                running.unread.push_back(said);
                if running.unread_bytes() > MAX_UNREAD {
                    break "it said too much while nobody listened";
                }
            }
        }
    };
    pool.idle_programs.0.shelf.lock().remove(number);
    tracing::info!(%agent, key, program = running.program, why, "idle program was ended");
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
    pub(super) pool: Arc<AgentPool>,
    /// Output that nobody has read yet.
    unread: VecDeque<ProgramEvent>,
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
        pool: Arc<AgentPool>,
    ) -> Self {
        let (token, end) = (revocation.token.clone(), child.ender());
        let mut ending = JoinSet::new();
        ending.spawn(async move {
            token.cancelled().await;
            end.cancel();
        });
        let unread = VecDeque::new();
        Self { child, program, revocation, fit, files, permit, pool, unread, _ending: ending }
    }

    /// Operation named in the refusal after a revocation.
    fn action(&self) -> String {
        format!("run `{}`", self.program)
    }

    fn unread_bytes(&self) -> usize {
        let bytes = self.unread.iter().map(|output| match output {
            ProgramEvent::Stdout(bytes) | ProgramEvent::Stderr(bytes) => bytes.len(),
            ProgramEvent::Code(_) | ProgramEvent::Signal(_) => 0,
        });
        bytes.sum()
    }

    /// Ends background processes of the task and puts the program into the idle pool.
    async fn park_under(
        mut self,
        key: String,
        unread: Option<ProgramEvent>,
    ) -> Result<(), Failure> {
        let pool = Arc::clone(&self.pool);
        let refused = |why: &str| Failure::Unavailable(format!("park a program: {why}"));
        let pool_full = |why: a2a_hub_core::scheduling::process_pool::PoolRefusal| {
            Failure::Exhausted(format!("park a program: {why}"))
        };
        let spot =
            PoolKey { agent: pool.agent.clone(), tenant: self.fit.holder.tenant.clone(), key };
        let program = self.program.clone();
        let mut keeping = Keeping { spot, program, bytes: 0 };
        IdlePool::<Keeper>::admits(&keeping, pool.limits.capacity, HUB_CAPACITY)
            .map_err(pool_full)?;
        self.unread.extend(unread);
        if self
            .unread
            .iter()
            .any(|output| matches!(output, ProgramEvent::Code(_) | ProgramEvent::Signal(_)))
        {
            return Err(refused("it has ended"));
        }
        if self.unread_bytes() > MAX_UNREAD {
            return Err(refused("it has said too much that was not read"));
        }
        let lost = || refused("it has ended, or what it left in the background could not be ended");
        let pruned = self.child.prune().await.ok_or_else(lost)?;
        if pruned.killed > 0 {
            let (agent, killed) = (&pool.agent, pruned.killed);
            tracing::info!(%agent, program = self.program, killed, "background processes of a task were killed");
        }
        keeping.bytes = pruned.resident;
        IdlePool::<Keeper>::admits(&keeping, pool.limits.capacity, HUB_CAPACITY)
            .map_err(pool_full)?;
        if self.revocation.token.is_cancelled() {
            return Err(revoked(&self.action()));
        }
        if pool.shutdown.is_cancelled() {
            return Err(refused("its agent has left, or was replaced"));
        }
        if !self.child.pass_to(&format!("{}{IDLE_SUFFIX}", pool.agent)) {
            return Err(refused("it has ended"));
        }
        drop(self.permit.lock().take());
        pool.put(keeping, self);
        Ok(())
    }
}

fn guest_output(agent: &AgentId, output: Output) -> ProgramEvent {
    match output {
        Output::Stdout(bytes) => ProgramEvent::Stdout(bytes),
        Output::Stderr(bytes) => ProgramEvent::Stderr(bytes),
        Output::MemoryExceeded(MemoryExceeded { taken, limit }) => {
            let (taken, limit) = (taken >> 20, limit >> 20);
            let why = format!(
                "\na2a-hub: ended, for it took {taken} MiB of memory with all it started, and may take {limit} \
                 (`agents.{agent}.confined.max_memory_mb`)\n"
            );
            ProgramEvent::Stderr(why.into_bytes())
        }
        Output::Exited(ProgramExit::Code(code)) => ProgramEvent::Code(code),
        Output::Exited(ProgramExit::Signal(signal)) => ProgramEvent::Signal(signal),
    }
}

#[async_trait::async_trait]
impl ChildPort for RunningProgram {
    async fn next(&mut self) -> Result<ProgramEvent, Failure> {
        if self.revocation.token.is_cancelled() {
            return Err(revoked(&self.action()));
        }
        if let Some(unread) = self.unread.pop_front() {
            return Ok(unread);
        }
        tokio::select! {
            biased;
            () = self.revocation.token.cancelled() => Err(revoked(&self.action())),
            said = self.child.next() => Ok(guest_output(&self.pool.agent, said)),
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let action = self.action();
        let written = tokio::select! {
            biased;
            () = self.revocation.token.cancelled() => return Err(revoked(&action)),
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
        self.child.mark_baseline().await;
    }

    async fn park(
        self: Box<Self>,
        key: String,
        unread: Option<ProgramEvent>,
    ) -> Result<(), Failure> {
        self.park_under(key, unread).await
    }
}
