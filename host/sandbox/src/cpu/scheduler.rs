//! Where guests run: on the hub's own threads while their agent is within its share of the processor, or they have only begun and no
//! other agent is about; after that on threads of low priority (`nice`), which take what everything else leaves. So a spinner uses the whole of an idle
//! machine, and nobody notices it on a busy one: short runs of others hold it off where it would leave them no core.
//!
//! Whatever is done while a guest's future is polled is on the guest's account, be it its own code or what the hub does for
//! it: reading its JSON, comparing its arguments, copying, hashing, redaction. What it waits for is not. What the hub does for
//! its tasks beside it, such as storing its events, is done at the agent's priority as well.

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

/// How nice the threads of low priority are: beside a busy thread of the hub's they get a tenth of a core, so that nothing is
/// starved.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// What the hub does with a byte that a guest tells, about, in nanoseconds of the processor: it is read, weighed, searched for
/// secrets, and written.
const BYTE: u64 = 20;

/// What the hub does for an event beside its bytes, about, in nanoseconds of the processor: it is numbered, stored and told.
const EVENT: u64 = 20_000;

/// What a run pays that breaks, in nanoseconds of the processor: more than one that does its work, so that an agent that does nothing but
/// trap, and is started again, is soon behind others.
const BREAKING: u64 = 1_000_000;

/// Bytes with which the hub is done in less than a millisecond.
const SHORT: usize = 32 << 10;

/// The share of one agent, of which all its runs take.
#[derive(Debug)]
pub(crate) struct AgentShare {
    agent: AgentKey,
    share: Mutex<Share>,
    /// That of all agents of the hub.
    contention: Arc<Mutex<Contention>>,
    /// In which its runs stand that others hold off: the first of them asks again and again, so that many cost no more than one.
    line: tokio::sync::Mutex<()>,
    /// What interrupts its runs.
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

/// The real time, also where tests pause the clock: what is shared is a real processor.
#[expect(clippy::disallowed_methods, reason = "a guest burns real time, also where tests pause it")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// What one run has used of the processor: while its future was polled, by whichever thread.
#[derive(Debug)]
pub(crate) struct CpuAccount {
    /// In nanoseconds, up to the last poll that has ended.
    used: AtomicU64,
    /// What the thread had used when the poll began that goes on, in nanoseconds.
    begun: AtomicU64,
    /// What was paid for in advance, in nanoseconds.
    ahead: AtomicU64,
    share: Arc<AgentShare>,
    /// With how much use short runs of others begin to hold it off at low priority, in nanoseconds.
    held_off_from: u64,
}

impl CpuAccount {
    /// Of a task of the agent's.
    pub(crate) fn new(share: Arc<AgentShare>) -> Self {
        let (used, begun, ahead) = Default::default();
        Self { used, begun, ahead, share, held_off_from: 0 }
    }

    /// Of a question about its card or its health, or of a clean-up: somebody waits for it, and not for long. So it begins at once.
    fn of_visit(share: Arc<AgentShare>) -> Self {
        let a_short_run = u64::try_from(SHORT_RUN.as_nanos()).unwrap_or(u64::MAX);
        Self { held_off_from: a_short_run, ..Self::new(share) }
    }

    /// Of what the hub does for a task of the agent's. Nothing holds that off, for to cancel the task is a part of it.
    pub(crate) fn of_hub(share: Arc<AgentShare>) -> Self {
        Self { held_off_from: u64::MAX, ..Self::new(share) }
    }

    /// What was used so far. For the thread that polls.
    pub(crate) fn used(&self) -> Duration {
        let goes_on = thread_used(now()).saturating_sub(self.begun.load(Relaxed));
        Duration::from_nanos(self.used.load(Relaxed) + goes_on)
    }

    /// How urgent the run is. For whoever does not poll it now.
    pub(crate) fn priority(&self, now: Instant) -> Priority {
        self.share.priority_of_run(Duration::from_nanos(self.paid()), now)
    }

    /// The run is over, at high priority.
    fn is_over(&self, now: Instant) {
        self.share.contention.lock().is_over(now);
    }

    /// What was used up to the last poll that has ended, or paid in advance, in nanoseconds.
    fn paid(&self) -> u64 {
        self.used.load(Relaxed) + self.ahead.load(Relaxed)
    }

    /// Pays for something before it is done.
    pub(crate) fn pay(&self, ahead: Duration) {
        self.share.charge(ahead, now());
        self.ahead.fetch_add(u64::try_from(ahead.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }

    /// Pays for what the hub does for so many events of the guest's.
    pub(crate) fn tells(&self, events: u64) {
        self.pay(Duration::from_nanos(events.saturating_mul(EVENT)));
    }

    /// Pays for having broken.
    pub(crate) fn breaks(&self) {
        self.pay(Duration::from_nanos(BREAKING));
    }

    /// Does something on this account, from now on. Tells as well when it was done: a run is polled so often, and mostly for so short, that each look
    /// at the clock counts.
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

    /// Lets others go first if what the hub is about to do with so many bytes takes long. The agent's share pays for it in
    /// advance, so that what takes very long is done at low priority.
    pub(crate) async fn before(&self, bytes: usize) {
        if bytes > SHORT {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            self.pay(Duration::from_nanos(bytes.saturating_mul(BYTE)));
            tokio::task::yield_now().await;
        }
    }

    /// Returns once the run may go on at low priority.
    async fn may_go_on(&self) {
        let share = &self.share;
        let holds_off = || share.contention.lock().holds_off(now());
        if self.paid() < self.held_off_from || holds_off().is_none() {
            return;
        }
        let _held = HeldOff::new(share);
        let _first = share.line.lock().await;
        while let Some(wait) = holds_off() {
            tokio::time::sleep(wait).await;
        }
    }
}

/// While it is there, a run of this agent is held off.
struct HeldOff<'s>(&'s AgentShare, Instant);

impl<'s> HeldOff<'s> {
    fn new(share: &'s AgentShare) -> Self {
        share.share.lock().is_held_off();
        Self(share, now())
    }
}

impl Drop for HeldOff<'_> {
    fn drop(&mut self) {
        let now = now();
        self.0.share.lock().goes_on(now.saturating_duration_since(self.1), now);
    }
}

/// While it is there, a run of low priority uses the processor.
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

/// Where a guest runs.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) account: Arc<CpuAccount>,
    /// Asks the guest to stop.
    pub(crate) cancel: CancellationToken,
    /// The hub's own threads. What starts programs starts them there: they inherit the priority of a thread.
    pub(crate) hub: Handle,
}

impl Seat {
    /// A new one for a task of this agent.
    pub(crate) fn of(share: &Arc<AgentShare>) -> Self {
        Self::with(CpuAccount::new(Arc::clone(share)))
    }

    /// The same for something else that its guest is asked for.
    pub(crate) fn of_visit(share: &Arc<AgentShare>) -> Self {
        Self::with(CpuAccount::of_visit(Arc::clone(share)))
    }

    fn with(account: CpuAccount) -> Self {
        let account = Arc::new(account);
        Self { account, cancel: CancellationToken::new(), hub: own_threads() }
    }
}

tokio::task_local! {
    /// The hub's own threads, for what was moved from there.
    static HUB: Handle;
}

/// The hub's own threads, also for who is on others.
fn own_threads() -> Handle {
    HUB.try_with(Handle::clone).unwrap_or_else(|_| Handle::current())
}

/// The threads of low priority, of which there are none until somebody needs them; and who takes part.
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

/// How far a run has come on the threads where it was.
enum Turn<T> {
    Done(T),
    /// It goes on at another priority.
    Moves,
    /// Nobody wants it any more.
    Ended,
}

impl Scheduler {
    /// Of agents that share so many cores.
    fn on(cores: usize) -> Self {
        let contention = Arc::new(Mutex::new(Contention::on(cores, now())));
        let (low, agents, pulse) = Default::default();
        Self { low, agents, contention, pulse }
    }

    /// The share of one more agent.
    pub(crate) fn share(&self) -> AgentShare {
        let agent = self.agents.fetch_add(1, Relaxed);
        let contention = Arc::clone(&self.contention);
        let (share, pulse) = (Mutex::new(Share::new(now())), self.pulse());
        AgentShare { agent, share, contention, line: Default::default(), pulse }
    }

    /// What tells that something runs.
    pub(crate) fn pulse(&self) -> Arc<Pulse> {
        Arc::clone(&self.pulse)
    }

    /// Runs `work` on an account to its end, or drops it once `end` is cancelled and returns nothing. Dropping this future
    /// ends it, too.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        account: &Arc<CpuAccount>,
        end: &CancellationToken,
        mut work: Job<T>,
    ) -> Option<T> {
        loop {
            match turn(&mut work, Priority::High, account, end).await {
                Turn::Done(done) => return Some(done),
                Turn::Ended => return None,
                Turn::Moves => {}
            }
            let Some(low) = self.low() else {
                // This machine gives the hub no more threads: it has to do without.
                return turn_to_the_end(&mut work, account, end).await;
            };
            let (account, end) = (Arc::clone(account), end.clone());
            let mut moved = JoinSet::new();
            let until_it_moves = HUB.scope(own_threads(), async move {
                let turn = turn(&mut work, Priority::Low, &account, &end).await;
                (turn, work)
            });
            // What is logged there is this task's, too.
            moved.spawn_on(until_it_moves.in_current_span(), low.handle());
            match moved.join_next().await? {
                Ok((Turn::Moves, goes_on)) => work = goes_on,
                Ok((Turn::Done(done), _)) => return Some(done),
                Ok((Turn::Ended, _)) => return None,
                Err(broken) if broken.is_panic() => std::panic::resume_unwind(broken.into_panic()),
                // The threads are gone, and the hub with them.
                Err(_) => return None,
            }
        }
    }

    fn low(&self) -> Option<&Runtime> {
        let start = || {
            let mut low = Builder::new_multi_thread();
            low.worker_threads(cores());
            low.thread_name("guests-low").on_thread_start(yield_to_others).enable_all();
            low.build().inspect_err(|why| tracing::warn!(%why, "no threads of low priority")).ok()
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

/// What is run: on the heap, so that it can go from thread to thread.
pub(crate) type Job<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Lowers the priority of the calling thread, which on Linux has one of its own.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(why) = rustix::process::setpriority_process(None, NICE) {
        tracing::debug!(%why, "a thread keeps its priority");
    }
}

/// Gives the core to whoever waits for it, if somebody does (`sched_yield(2)`): the kernel leaves it to a thread for milliseconds, also to one of low
/// priority, however short what it does each time is.
fn let_others_run() {
    thread::yield_now();
}

/// Polls `work` until it is done, or is to go on at another priority.
async fn turn<T>(
    work: &mut Job<T>,
    here: Priority,
    account: &CpuAccount,
    end: &CancellationToken,
) -> Turn<T> {
    let mut end = pin!(end.cancelled());
    let mut may_go_on = pin!(account.may_go_on());
    poll_fn(|cx| {
        if end.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Turn::Ended);
        }
        let now = now();
        if account.priority(now) != here {
            return Poll::Ready(Turn::Moves);
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
                Poll::Ready(Turn::Done(done))
            }
            Poll::Pending if account.priority(now) != here => Poll::Ready(Turn::Moves),
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

    /// Keeps a thread busy for so much of its own time.
    fn burn(ms: u64) {
        let end = thread_used(now()) + ms * 1_000_000;
        while thread_used(now()) < end {
            black_box(());
        }
    }

    /// More than an agent's share.
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
            // What it starts in turn, such as programs, starts where the hub is.
            let mut beside = JoinSet::new();
            beside.spawn_on(async { here() }, &own_threads());
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

    /// Has a short run of another agent go on until then, and low priority owe all that it can.
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
            for not_held in [CpuAccount::of_hub, CpuAccount::of_visit] {
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
