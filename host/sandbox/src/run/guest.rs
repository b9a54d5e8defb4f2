//! One running task: a Tokio task that owns its store, and with it everything the guest holds.

use crate::{
    component::{
        engine::{Engine, Place},
        plugin::Plugin,
    },
    cpu::scheduler::{CpuAccount, Job, Seat},
    store::{
        bindings::Plugin as Instance,
        convert::{ended_from_guest, failure_from_guest, report_from_guest, task_to_guest},
        limits::{self, CpuExhausted},
        redaction::{Hide as _, Redaction},
        replay::ReplayDiverged,
        state::{Processes, State},
    },
};
use a2a_hub_process::Panicked;
use a2a_hub_protocol::id::TaskId;
use a2a_hub_runtime::{
    Call, Crash, Ended, Failure, Limits, Report, Run, Work, port::journal::Journal,
};
use std::{
    sync::Arc,
    task::{Context, Poll},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap};

/// A guest at work on a task. Dropping it ends the guest at once, and the programs it started with it.
#[derive(Debug)]
pub struct Guest {
    run: JoinSet<Ended>,
    cancel: CancellationToken,
    end: CancellationToken,
}

impl Guest {
    /// Sets a fresh instance of `plugin` to work.
    pub fn start(plugin: &Plugin, call: Call, work: Work) -> Self {
        let seat = Seat::of(&plugin.share);
        let (cancel, end) = (seat.cancel.clone(), CancellationToken::new());
        let (plugin, until) = (Arc::new(plugin.clone()), end.clone());
        let (mut run, hub) = (JoinSet::new(), seat.hub.clone());
        let (call, work) = (Box::new(call), Box::new(work));
        let on_its_account = async move {
            let account = Arc::clone(&seat.account);
            let run = Box::pin(execute(Arc::clone(&plugin), call, work, seat));
            let ended = plugin.engine.scheduler.run(&account, &until, run).await;
            ended.unwrap_or(Ended::Failed(Failure::Cancelled))
        };
        run.spawn_on(on_its_account.in_current_span(), &hub);
        Self { run, cancel, end }
    }
}

#[async_trait::async_trait]
impl Run for Guest {
    fn poll_ended(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        match self.run.poll_join_next(cx) {
            Poll::Ready(Some(Ok(ended))) => Poll::Ready(ended),
            Poll::Ready(Some(Err(why))) => {
                let why = Panicked::from(why);
                Poll::Ready(Ended::Failed(Failure::Internal(format!("run the agent: {why}"))))
            }
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }

    fn cancel(&self) {
        self.cancel.cancel();
    }

    async fn end(&mut self) {
        // Not aborted: once the run is over, all that the guest held is gone, on whichever thread it was.
        self.end.cancel();
        while self.run.join_next().await.is_some() {}
    }
}

/// What it is given stands on the heap and goes as soon as the guest has it, for a guest may wait for days.
async fn execute(plugin: Arc<Plugin>, call: Box<Call>, work: Box<Work>, seat: Seat) -> Ended {
    let secrets = Arc::clone(&call.secrets);
    let (task, journal, live) = {
        let directory = call.working_directory.as_deref();
        let Work { task, message, history, live, journal } = *work;
        (task_to_guest(&task, &message, &history, directory), journal, live)
    };
    let ended = self::call(&plugin, call, seat, Place::Task, journal, async |guest, store| {
        let agent = guest.a2a_hub_agent();
        let ended = if live {
            agent.call_stream(&mut *store, &task).await
        } else {
            agent.call_execute(&mut *store, &task).await
        };
        // However it ended: what it told before, it told whole.
        store.data_mut().tell_rest().await;
        ended
    });
    let mut ended = ended.await.map_or_else(Ended::Failed, ended_from_guest);
    ended.hide(&secrets);
    ended
}

/// Asks a guest how it is, with its capabilities.
pub async fn health(plugin: &Plugin, call: Call) -> Result<Report, Failure> {
    let secrets = Arc::clone(&call.secrets);
    let (seat, of) = (Seat::of_visit(&plugin.share), plugin.clone());
    let account = Arc::clone(&seat.account);
    let work = async move {
        let health =
            async |guest: &Instance, store: &mut _| guest.a2a_hub_agent().call_health(store).await;
        self::call(&of, Box::new(call), seat, Place::Visit, None, health).await
    };
    let report = scheduled(plugin, &account, Box::pin(work));
    let mut report = report.await.map(report_from_guest);
    report.hide(&secrets);
    report
}

/// Lets a fresh instance clean up after a task that was cancelled.
pub async fn clean_up(plugin: &Plugin, call: Call, task: &TaskId) -> Result<(), Failure> {
    let secrets = Arc::clone(&call.secrets);
    let (seat, of, task) = (Seat::of_visit(&plugin.share), plugin.clone(), task.to_string());
    let account = Arc::clone(&seat.account);
    let work = async move {
        let cancel = async |guest: &Instance, store: &mut _| {
            guest.a2a_hub_agent().call_cancel(store, &task).await
        };
        self::call(&of, Box::new(call), seat, Place::Visit, None, cancel).await
    };
    let cleaned = scheduled(plugin, &account, Box::pin(work));
    let mut cleaned = cleaned.await.and_then(|cleaned| cleaned.map_err(failure_from_guest));
    cleaned.hide(&secrets);
    cleaned
}

/// Asks a guest for its card: what it says of itself, in JSON.
pub(crate) async fn card(plugin: &Plugin, call: Call) -> Result<String, Failure> {
    let (seat, of) = (Seat::of_visit(&plugin.share), plugin.clone());
    let account = Arc::clone(&seat.account);
    let card = async |guest: &Instance, store: &mut _| guest.a2a_hub_agent().call_card(store).await;
    let work = async move { self::call(&of, Box::new(call), seat, Place::Visit, None, card).await };
    scheduled(plugin, &account, Box::pin(work)).await
}

/// Does something of a guest's on an account of its own. Dropping the future ends the guest.
async fn scheduled<T: Send + 'static>(
    plugin: &Plugin,
    account: &Arc<CpuAccount>,
    work: Job<Result<T, Failure>>,
) -> Result<T, Failure> {
    let done = plugin.engine.scheduler.run(account, &CancellationToken::new(), work).await;
    done.unwrap_or(Err(Failure::Cancelled))
}

/// Calls one of a fresh instance's functions, in a run that is recorded if there is a journal. Dropping the future ends the guest.
async fn call<T>(
    plugin: &Plugin,
    call: Box<Call>,
    seat: Seat,
    place: Place,
    journal: Option<Journal>,
    function: impl AsyncFnOnce(&Instance, &mut Store<State>) -> wasmtime::Result<T>,
) -> Result<T, Failure> {
    let Some(_slot) = plugin.engine.slot(place) else {
        return Err(Failure::HubFull);
    };
    let limits = call.limits;
    let journal = journal.zip(call.ports.journal.clone());
    let workspace = match &call.ports.workspace {
        // What files hold is not recorded.
        Some(_) if journal.is_some() => None,
        Some(port) => Some(port.open(call.working_directory.as_deref()).await?),
        None => None,
    };
    let mut store = store_for(&plugin.engine, *call, seat);
    if let Some(open) = workspace {
        store.data_mut().enter(&open)?;
    }
    if let Some((journal, port)) = journal {
        store.data_mut().replays(journal, port);
    }
    let called = async {
        let instance = plugin.pre.instantiate_async(&mut store).await?;
        function(&instance, &mut store).await
    };
    let called = called.await;
    called.map_err(|why| why_it_broke(&why, &store, &limits))
}

fn store_for(engine: &Engine, call: Call, seat: Seat) -> Store<State> {
    let Call { agent, limits, held, ports, secrets, working_directory: home, client } = call;
    let (processes, redaction) = (Processes { held, home }, Redaction::new(secrets));
    let account = Arc::clone(&seat.account);
    let state = State::new(agent, &limits, ports, client, processes, redaction, seat);
    let mut store = Store::new(&engine.inner, state);
    limits::put_on(&mut store, &limits, account, |state| &mut state.limiter);
    store
}

/// A trap says what the processor saw; people want to know what the guest did.
fn why_it_broke(why: &wasmtime::Error, store: &Store<State>, limits: &Limits) -> Failure {
    if why.is::<PoolConcurrencyLimitError>() {
        return Failure::HubFull;
    }
    if let Some(ReplayDiverged(why)) = why.downcast_ref() {
        return Failure::Diverged(why.clone());
    }
    // What the hub could not do is no fault of the guest's, nor is that it has used up what it may.
    if let Some(failure) = why.downcast_ref::<Failure>() {
        return failure.clone();
    }
    store.data().account.breaks();
    if let Some(exhausted) = why.downcast_ref::<CpuExhausted>() {
        return Failure::Exhausted(format!(
            "{exhausted}; the operator raises it with `cpu_ms` in the agent's `limits`"
        ));
    }
    let state = store.data();
    let trap = why.downcast_ref::<Trap>();
    // What Rust, C and Go do when memory is refused to them.
    if state.limiter.refused && trap == Some(&Trap::UnreachableCodeReached) {
        return Failure::Exhausted(format!(
            "the agent needs more than its {} MiB of memory; the operator raises it with `memory_mb` in the agent's `limits`",
            limits.memory_bytes >> 20,
        ));
    }
    let printed = state.stderr.contents();
    let printed = String::from_utf8_lossy(&printed);
    if let Some(at) = printed.find("panicked at") {
        let text = state.redaction.secrets.hide(printed[at..].trim()).into_owned();
        // Quoted: it may hold line breaks and escape sequences.
        tracing::warn!(agent = %state.agent, panic = ?text, "an agent's code panicked");
        return Failure::Trapped(Crash::panic(text));
    }
    Failure::Trapped(Crash::trap(match trap {
        Some(trap) => trap.to_string(),
        None => format!("{:#}", why.root_cause()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        component::engine::{EngineSettings, VISITS},
        cpu::scheduler::{AgentShare, now},
    };
    use a2a_hub_core::scheduling::cpu_share::{Priority, SHORT_RUN};
    use a2a_hub_protocol::id::AgentId;
    use wasmtime::{Instance, Module};

    #[tokio::test]
    async fn full_pool_reports_hub_full() {
        let engine =
            Engine::new(&EngineSettings { max_instances: 1, ..Default::default() }).unwrap();
        let module = wat::parse_str("(module (memory 1))").unwrap();
        let module = Module::new(&engine.inner, module).unwrap();
        let limits = Limits::default();
        let store = || {
            let call = Call::bare(AgentId::parse("a").unwrap(), limits);
            store_for(&engine, call, Seat::of(&Arc::new(engine.scheduler.share())))
        };
        let mut full = Vec::new();
        for _ in 0..=VISITS {
            let mut one = store();
            for _ in 0..limits::MAX_MEMORIES {
                Instance::new_async(&mut one, &module, &[]).await.unwrap();
            }
            full.push(one);
        }
        let mut second = store();
        let why = Instance::new_async(&mut second, &module, &[]).await.unwrap_err();
        assert_eq!(why_it_broke(&why, &second, &limits), Failure::HubFull);
    }

    #[tokio::test]
    async fn repeated_traps_lower_the_priority() {
        let engine = Engine::new(&EngineSettings::default()).unwrap();
        let module = wat::parse_str("(module (func $trap unreachable) (start $trap))").unwrap();
        let module = Module::new(&engine.inner, module).unwrap();
        let (limits, share) = (Limits::default(), Arc::new(engine.scheduler.share()));
        for _ in 0..60 {
            let call = Call::bare(AgentId::parse("a").unwrap(), limits);
            let mut store = store_for(&engine, call, Seat::of(&share));
            let why = Instance::new_async(&mut store, &module, &[]).await.unwrap_err();
            assert!(matches!(why_it_broke(&why, &store, &limits), Failure::Trapped(_)), "{why:?}");
        }
        let priority = |share: &Arc<AgentShare>| {
            let next = Seat::of(share).account;
            // More than a short run, which may go on where nobody else is about.
            next.pay(SHORT_RUN);
            next.priority(now())
        };
        assert_eq!(priority(&Arc::new(engine.scheduler.share())), Priority::High);
        assert_eq!(priority(&share), Priority::Low);
    }
}
