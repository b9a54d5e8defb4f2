//! Runs guests on threads of two priorities. A guest runs on the hub's own threads while its agent
//! is within its CPU share, or while it has only begun and no other agent is active. After that it
//! runs on low-priority threads (`nice`), which get the CPU time that everything else leaves. A
//! guest that spins uses the whole of an idle machine and does not slow down a busy one: short runs
//! of other agents throttle it where it would leave them no core.
//!
//! All work done while a guest's future is polled is charged to the guest's account: its own code,
//! and the hub's work for it, such as reading its JSON, comparing its arguments, copying, hashing
//! and redaction. Time spent waiting is free. The hub's work for its tasks outside of the poll,
//! such as storing its events, is done at the agent's priority as well.

use crate::cpu::{epoch_ticker::Pulse, thread_time::thread_used};
use a2a_hub_core::scheduling::cpu_share::{AgentKey, Contention, Priority, SHORT_RUN, Share};
use parking_lot::Mutex;
use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Poll, ready},
    thread::{self, available_parallelism},
    time::{Duration, Instant},
};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// Nice value of the low-priority threads. Next to a busy thread of the hub they get a tenth of a
/// core, so none starves.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Approximate CPU time, in nanoseconds, that the hub spends on each byte that a guest emits: the
/// byte is read, counted, searched for secrets, and written.
const BYTE: u64 = 20;

/// Approximate CPU time, in nanoseconds, that the hub spends on an event in addition to its bytes:
/// the event is numbered, stored and published.
const EVENT: u64 = 20_000;

/// CPU time, in nanoseconds, charged to a run that traps. It is more than a working run costs, so
/// an agent that only traps and restarts soon ranks behind others.
const BREAKING: u64 = 1_000_000;

/// Number of bytes that the hub processes in less than a millisecond.
const SHORT: usize = 32 << 10;

/// CPU share of one agent, used by all its runs.
#[derive(Debug)]
pub(crate) struct AgentShare {
    agent: AgentKey,
    share: Mutex<Share>,
    /// CPU contention among all agents of the hub.
    contention: Arc<Mutex<Contention>>,
    /// Queue of the agent's throttled runs; only the head polls, so cost does not grow with their
    /// number.
    line: tokio::sync::Mutex<()>,
    /// Pulse that interrupts the agent's runs.
    pulse: Arc<Pulse>,
}

impl AgentShare {
    fn charge(&self, used: Duration, now: Instant) {
        self.share.lock().charge(used, now);
    }

    fn priority_of_run(&self, used: Duration, now: Instant) -> Priority {
        let (mut share, mut contention) = (self.share.lock(), self.contention.lock());
        share.priority_of_run(used, now, self.agent, &mut contention)
    }
}

/// Real time, also where tests pause the clock, because CPU time is real.
#[expect(clippy::disallowed_methods, reason = "a guest burns real time, also where tests pause it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// CPU time of one run, measured while its future is polled, on any thread.
#[derive(Debug)]
pub(crate) struct CpuAccount {
    /// CPU time up to the end of the last poll, in nanoseconds.
    used: AtomicU64,
    /// CPU time of the polling thread when the current poll began, in nanoseconds.
    begun: AtomicU64,
    /// CPU time paid for in advance, in nanoseconds.
    ahead: AtomicU64,
    share: Arc<AgentShare>,
    /// CPU time, in nanoseconds, from which on short runs of other agents throttle the run at low
    /// priority.
    throttle_after: u64,
}

impl CpuAccount {
    /// Creates the account of a task.
    pub(crate) fn new(share: Arc<AgentShare>) -> Self {
        let (used, begun, ahead) = Default::default();
        Self { used, begun, ahead, share, throttle_after: 0 }
    }

    /// Creates the account of a question about the agent's card or health, or of a clean-up. A
    /// caller waits for the answer, which takes little time, so the run starts without throttling.
    fn for_hub_call(share: Arc<AgentShare>) -> Self {
        let a_short_run = u64::try_from(SHORT_RUN.as_nanos()).unwrap_or(u64::MAX);
        Self { throttle_after: a_short_run, ..Self::new(share) }
    }

    /// Creates the account of the hub's work for a task of the agent. It is never throttled,
    /// because cancelling the task is part of that work.
    pub(crate) fn of_hub(share: Arc<AgentShare>) -> Self {
        Self { throttle_after: u64::MAX, ..Self::new(share) }
    }

    /// CPU time used so far. To be called on the polling thread.
    pub(crate) fn used(&self) -> Duration {
        let goes_on = thread_used(now()).saturating_sub(self.begun.load(Relaxed));
        Duration::from_nanos(self.used.load(Relaxed) + goes_on)
    }

    /// Current priority of the run. To be called while the run is not polled.
    pub(crate) fn priority(&self, now: Instant) -> Priority {
        self.share.priority_of_run(Duration::from_nanos(self.paid()), now)
    }

    /// Records the end of the run at high priority.
    fn is_over(&self, now: Instant) {
        self.share.contention.lock().is_over(now);
    }

    /// CPU time up to the end of the last poll, plus the time paid for in advance, in nanoseconds.
    fn paid(&self) -> u64 {
        self.used.load(Relaxed) + self.ahead.load(Relaxed)
    }

    /// CPU time paid for in advance.
    #[cfg(test)]
    pub(crate) fn paid_ahead(&self) -> Duration {
        Duration::from_nanos(self.ahead.load(Relaxed))
    }

    /// Charges CPU time before it is used.
    pub(crate) fn pay(&self, ahead: Duration) {
        self.share.charge(ahead, now());
        self.ahead.fetch_add(u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Charges the hub's work for this number of guest events.
    pub(crate) fn tells(&self, events: u64) {
        self.pay(Duration::from_nanos(events.saturating_mul(EVENT)));
    }

    /// Charges for a trap.
    pub(crate) fn breaks(&self) {
        self.pay(Duration::from_nanos(BREAKING));
    }

    /// Runs `act` on this account, starting at `now`. Also returns the time at its end: a run is
    /// polled often and mostly briefly, so each read of the clock counts.
    fn charged<T>(&self, now: Instant, act: impl FnOnce() -> T) -> (T, Instant) {
        let _polled = self.share.pulse.polls();
        let begun = thread_used(now);
        self.begun.store(begun, Relaxed);
        let done = act();
        let now = self::now();
        let used = thread_used(now).saturating_sub(begun);
        self.used.fetch_add(used, Relaxed);
        self.share.charge(Duration::from_nanos(used), now);
        (done, now)
    }

    /// Yields to other runs if the hub's work on this number of bytes takes long. The agent's share
    /// pays in advance, so very long work is done at low priority.
    pub(crate) async fn before(&self, bytes: usize) {
        if bytes > SHORT {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            self.pay(Duration::from_nanos(bytes.saturating_mul(BYTE)));
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the run may continue at low priority.
    async fn may_go_on(&self) {
        let share = &self.share;
        let holds_off = || share.contention.lock().holds_off(now());
        if self.paid() < self.throttle_after || holds_off().is_none() {
            return;
        }
        let _throttled = ThrottledRun::new(share);
        let _first = share.line.lock().await;
        while let Some(wait) = holds_off() {
            tokio::time::sleep(wait).await;
        }
    }
}

/// Guard of a throttled run: counts it in the agent's share until it is dropped.
struct ThrottledRun<'s>(&'s AgentShare, Instant);

impl<'s> ThrottledRun<'s> {
    fn new(share: &'s AgentShare) -> Self {
        share.share.lock().record_throttled();
        Self(share, now())
    }
}

impl Drop for ThrottledRun<'_> {
    fn drop(&mut self) {
        let now = now();
        self.0.share.lock().goes_on(now.saturating_duration_since(self.1), now);
    }
}

/// Guard of a low-priority run that uses the CPU: reports its use to the contention when it is
/// dropped.
struct Greedy<'a>(&'a CpuAccount, u64);

impl<'a> Greedy<'a> {
    fn new(account: &'a CpuAccount) -> Self {
        account.share.contention.lock().begins();
        Self(account, account.paid())
    }
}

impl Drop for Greedy<'_> {
    fn drop(&mut self) {
        let used = Duration::from_nanos(self.0.paid().saturating_sub(self.1));
        self.0.share.contention.lock().ends(used, now());
    }
}

/// Execution context of a guest: its CPU account, its cancellation and the hub's runtime.
#[derive(Debug)]
pub(crate) struct GuestThread {
    pub(crate) account: Arc<CpuAccount>,
    /// Cancels the guest's run.
    pub(crate) cancel: CancellationToken,
    /// Runtime of the hub's own threads. Programs are started there, because they inherit the
    /// priority of the starting thread.
    pub(crate) hub: Handle,
}

impl GuestThread {
    /// Creates the context of a task of this agent.
    pub(crate) fn for_task(share: &Arc<AgentShare>) -> Self {
        Self::with(CpuAccount::new(Arc::clone(share)))
    }

    /// Creates the context of another call to the guest, such as a question about its card or
    /// health.
    pub(crate) fn for_hub_call(share: &Arc<AgentShare>) -> Self {
        Self::with(CpuAccount::for_hub_call(Arc::clone(share)))
    }

    fn with(account: CpuAccount) -> Self {
        let account = Arc::new(account);
        Self { account, cancel: CancellationToken::new(), hub: hub_runtime() }
    }
}

tokio::task_local! {
    /// Runtime of the hub's own threads, for work that was moved to other threads.
    static HUB: Handle;
}

/// Returns the runtime of the hub's own threads, also on other threads.
fn hub_runtime() -> Handle {
    HUB.try_with(Handle::clone).unwrap_or_else(|_| Handle::current())
}

/// Low-priority threads, which start at first use, and the agents that share the CPU.
#[derive(Debug)]
pub(crate) struct Scheduler {
    low: OnceLock<Option<Runtime>>,
    agents: AtomicU64,
    contention: Arc<Mutex<Contention>>,
    pulse: Arc<Pulse>,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::on(cores())
    }
}

fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Outcome of a run's time on the threads of one priority.
enum SliceOutcome<T> {
    Done(T),
    /// The run continues at the other priority.
    Moves,
    /// The run was cancelled.
    Ended,
}

impl Scheduler {
    /// Creates a scheduler for this number of cores.
    fn on(cores: usize) -> Self {
        let contention = Arc::new(Mutex::new(Contention::on(cores, now())));
        let (low, agents, pulse) = Default::default();
        Self { low, agents, contention, pulse }
    }

    /// Creates the share of one more agent.
    pub(crate) fn share(&self) -> AgentShare {
        let agent = self.agents.fetch_add(1, Relaxed);
        let contention = Arc::clone(&self.contention);
        let (share, pulse) = (Mutex::new(Share::new(now())), self.pulse());
        AgentShare { agent, share, contention, line: Default::default(), pulse }
    }

    /// Pulse that reports running guests.
    pub(crate) fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    /// Runs `work` on an account to its end, or drops it and returns `None` once `end` is
    /// cancelled. Dropping this future also ends the work.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        account: &Arc<CpuAccount>,
        end: &CancellationToken,
        mut work: Job<T>,
    ) -> Option<T> {
        loop {
            match turn(&mut work, Priority::High, account, end).await {
                SliceOutcome::Done(done) => return Some(done),
                SliceOutcome::Ended => return None,
                SliceOutcome::Moves => {}
            }
            let Some(low) = self.low() else {
                // The system gives the hub no more threads: the work continues here.
                return turn_to_the_end(&mut work, account, end).await;
            };
            let (account, end) = (Arc::clone(account), end.clone());
            let mut moved = JoinSet::new();
            let until_it_moves = HUB.scope(hub_runtime(), async move {
                let turn = turn(&mut work, Priority::Low, &account, &end).await;
                (turn, work)
            });
            // Log lines from the other threads belong to this task's span, too.
            moved.spawn_on(until_it_moves.in_current_span(), low.handle());
            match moved.join_next().await? {
                Ok((SliceOutcome::Moves, goes_on)) => work = goes_on,
                Ok((SliceOutcome::Done(done), _)) => return Some(done),
                Ok((SliceOutcome::Ended, _)) => return None,
                Err(broken) if broken.is_panic() => std::panic::resume_unwind(broken.into_panic()),
                // The runtime was shut down, together with the hub.
                Err(_) => return None,
            }
        }
    }

    fn low(&self) -> Option<&Runtime> {
        let start = || {
            let mut low = Builder::new_multi_thread();
            low.worker_threads(cores());
            low.thread_name("guests-low").on_thread_start(yield_to_others).enable_all();
            low.build()
                .inspect_err(|why| tracing::warn!(%why, "cannot start low-priority threads"))
                .ok()
        };
        self.low.get_or_init(start).as_ref()
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        if let Some(low) = self.low.take().flatten() {
            low.shutdown_background();
        }
    }
}

/// Work of a run, boxed so that it can move between threads.
pub(crate) type Job<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Lowers the priority of the calling thread. On Linux, each thread has its own nice value.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(why) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%why, "cannot lower the priority of a thread");
    }
}

/// Yields the core to a waiting thread (`sched_yield(2)`). Otherwise the kernel leaves the core to
/// a low-priority thread for milliseconds, however short its polls are.
fn let_others_run() {
    thread::yield_now();
}

/// Polls `work` until it is done, is cancelled, or must move to the other priority.
async fn turn<T>(
    work: &mut Job<T>,
    here: Priority,
    account: &CpuAccount,
    end: &CancellationToken,
) -> SliceOutcome<T> {
    let mut end = pin!(end.cancelled());
    let mut may_go_on = pin!(account.may_go_on());
    poll_fn(|cx| {
        if end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(SliceOutcome::Ended);
        }
        let now = now();
        if account.priority(now) != here {
            return Poll::Ready(SliceOutcome::Moves);
        }
        let (polled, now) = match here {
            Priority::High => account.charged(now, || work.as_mut().poll(cx)),
            Priority::Low => {
                ready!(may_go_on.as_mut().poll(cx));
                may_go_on.set(account.may_go_on());
                let greedy = Greedy::new(account);
                let (polled, _) = account.charged(now, || work.as_mut().poll(cx));
                drop(greedy);
                let_others_run();
                (polled, self::now())
            }
        };
        match polled {
            Poll::Ready(done) => {
                if here == Priority::High {
                    account.is_over(now);
                }
                Poll::Ready(SliceOutcome::Done(done))
            }
            Poll::Pending if account.priority(now) != here => Poll::Ready(SliceOutcome::Moves),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

async fn turn_to_the_end<T>(
    work: &mut Job<T>,
    account: &CpuAccount,
    end: &CancellationToken,
) -> Option<T> {
    tokio::select! {
        biased;
        () = end.cancelled() => None,
        done = poll_fn(|cx| account.charged(now(), || work.as_mut().poll(cx)).0) => Some(done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    fn account(scheduler: &Scheduler) -> Arc<CpuAccount> {
        Arc::new(CpuAccount::new(Arc::new(scheduler.share())))
    }

    /// Keeps the thread busy for this much of its CPU time.
    fn burn(ms: u64) {
        let end = thread_used(now()) + ms * 1_000_000;
        while thread_used(now()) < end {
            black_box(());
        }
    }

    /// More CPU time than an agent's share.
    const A_LOT: Duration = Duration::from_secs(1);

    fn here() -> String {
        thread::current().name().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn excessive_cpu_use_lowers_priority() {
        let (scheduler, end) = (Scheduler::default(), CancellationToken::new());
        let account = account(&scheduler);
        let (begun, greedy) = (here(), Arc::clone(&account));
        let work = async move {
            let modest = here();
            burn(5);
            greedy.pay(A_LOT);
            tokio::task::yield_now().await;
            (modest, here())
        };
        let (modest, greedy) = scheduler.run(&account, &end, Box::pin(work)).await.unwrap();
        assert_eq!((modest, greedy.as_str()), (begun, "guests-low"));
        assert!(account.used.load(Relaxed) >= 5_000_000);

        let another = Arc::new(CpuAccount::new(Arc::clone(&account.share)));
        let short = scheduler.run(&another, &end, Box::pin(async { here() })).await;
        assert_ne!(short.as_deref(), Some("guests-low"), "not worth a switch of threads");
        let long = async {
            burn(5);
            tokio::task::yield_now().await;
            // Programs and other work that the run starts begin on the hub's threads.
            let mut beside = JoinSet::new();
            beside.spawn_on(async { here() }, &hub_runtime());
            assert_ne!(beside.join_next().await.unwrap().unwrap(), "guests-low");
            here()
        };
        let long = scheduler.run(&another, &end, Box::pin(long)).await;
        assert_eq!(long.as_deref(), Some("guests-low"), "the share is the agent's, not the run's");

        let modest = self::account(&scheduler);
        let modest = scheduler.run(&modest, &end, Box::pin(async { here() })).await;
        assert_ne!(modest.as_deref(), Some("guests-low"));
        let short = Arc::new(CpuAccount::new(Arc::clone(&account.share)));
        let short = scheduler.run(&short, &end, Box::pin(async { here() })).await;
        assert_eq!(short.as_deref(), Some("guests-low"), "another agent is about");
    }

    #[tokio::test]
    async fn waits_are_free_and_work_prepaid() {
        let (scheduler, end) = (Scheduler::default(), CancellationToken::new());
        let account = account(&scheduler);
        let waits = tokio::time::sleep(Duration::from_millis(100));
        scheduler.run(&account, &end, Box::pin(waits)).await.unwrap();
        assert!(account.used.load(Relaxed) < 50_000_000);
        let paying = Arc::clone(&account);
        let long = async move {
            paying.before(8 << 20).await;
            here()
        };
        assert_eq!(
            scheduler.run(&account, &end, Box::pin(long)).await.as_deref(),
            Some("guests-low")
        );
    }

    /// Lets a short run of another agent go on until `until`, and gives low priority the largest
    /// possible debt.
    fn hold_off(scheduler: &Scheduler, until: Instant) {
        let mut contention = scheduler.contention.lock();
        let (mut other, key) = (Share::new(until), AgentKey::MAX);
        other.priority_of_run(Duration::ZERO, until, key, &mut contention);
        contention.begins();
        contention.ends(A_LOT, now());
    }

    #[tokio::test]
    async fn short_runs_throttle_greedy_agent() {
        let scheduler = Scheduler::on(2);
        let account = account(&scheduler);
        account.pay(A_LOT);
        hold_off(&scheduler, now() + Duration::from_secs(3_600));
        let began = Arc::new(AtomicU64::new(0));
        let (begins, end) = (Arc::clone(&began), CancellationToken::new());
        let held = scheduler.run(&account, &end, Box::pin(async move { begins.store(1, Relaxed) }));
        let beside = async {
            let never = CancellationToken::new();
            for not_held in [CpuAccount::of_hub, CpuAccount::for_hub_call] {
                let account = Arc::new(not_held(Arc::clone(&account.share)));
                let done = scheduler.run(&account, &never, Box::pin(async { here() })).await;
                assert_eq!(done.as_deref(), Some("guests-low"));
            }
            end.cancel();
        };
        let (held, ()) = tokio::join!(held, beside);
        assert_eq!((held, began.load(Relaxed)), (None, 0), "it ends without having begun");

        let scheduler = Scheduler::on(2);
        let account = self::account(&scheduler);
        account.pay(A_LOT);
        hold_off(&scheduler, now());
        let never = CancellationToken::new();
        let goes_on = scheduler.run(&account, &never, Box::pin(async { here() })).await;
        assert_eq!(goes_on.as_deref(), Some("guests-low"), "once the others are gone");
    }

    #[tokio::test]
    async fn cancel_ends_run_on_any_thread() {
        let (scheduler, end) = (Scheduler::default(), CancellationToken::new());
        let account = account(&scheduler);
        let held = Arc::new(());
        let holds = Arc::clone(&held);
        let (ends, greedy) = (end.clone(), Arc::clone(&account));
        let spins = async move {
            let _held = holds;
            loop {
                greedy.pay(A_LOT);
                tokio::task::yield_now().await;
                if here() == "guests-low" {
                    ends.cancel();
                }
            }
        };
        let ended: Option<()> = scheduler.run(&account, &end, Box::pin(spins)).await;
        assert_eq!(ended, None);
        assert_eq!(Arc::strong_count(&held), 1, "and nothing is left of it");
    }

    #[tokio::test]
    #[should_panic(expected = "broken")]
    async fn panic_is_propagated_to_caller() {
        let (scheduler, end) = (Scheduler::default(), CancellationToken::new());
        let account = account(&scheduler);
        let greedy = Arc::clone(&account);
        let breaks = async move {
            greedy.pay(A_LOT);
            tokio::task::yield_now().await;
            panic!("broken");
        };
        scheduler.run(&account, &end, Box::pin(breaks)).await;
    }
}
