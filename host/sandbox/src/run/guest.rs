//! One running task of a guest: a Tokio task that owns the guest's store, and with it all of the
//! guest's resources.

use crate::{
    component::{
        engine::{Engine, GuestSlot},
        plugin::Plugin,
    },
    cpu::scheduler::{CpuAccount, GuestThread, Job},
    store::{
        bindings::{
            Plugin as Bindings,
            a2a::hub::types::{Failure as GuestFailure, Outcome, Task},
        },
        convert::task_to_guest,
        limits::{self, CpuExhausted},
        redaction::{Hide as _, Redaction},
        replay::ReplayDiverged,
        state::{GuestState, Processes},
    },
};
use a2a_hub_core::text::redact::Secrets;
use a2a_hub_process::Panicked;
use a2a_hub_protocol::id::TaskId;
use a2a_hub_runtime::{
    Call, Crash, Ended, Failure, HealthReport, Limits, Run, Work, port::journal::Journal,
};
use std::{
    sync::Arc,
    task::{Context, Poll},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap, component::Instance};

/// A guest that runs a task. Dropping it ends the guest at once, with the programs that it started.
#[derive(Debug)]
pub struct Guest {
    run: JoinSet<Ended>,
    cancel: CancellationToken,
    end: CancellationToken,
}

impl Guest {
    /// Starts a fresh instance of `plugin` on the task.
    pub fn start(plugin: &Plugin, call: Call, work: Work) -> Self {
        let thread = GuestThread::for_task(&plugin.share);
        let (cancel, end) = (thread.cancel.clone(), CancellationToken::new());
        let (plugin, until) = (Arc::new(plugin.clone()), end.clone());
        let (mut run, hub) = (JoinSet::new(), thread.hub.clone());
        let (call, work) = (Box::new(call), Box::new(work));
        let on_its_account = async move {
            let account = Arc::clone(&thread.account);
            let run = Box::pin(execute(Arc::clone(&plugin), call, work, thread));
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
        // Waits instead of aborting: once the run has ended, all of the guest's resources are gone,
        // on every thread.
        self.end.cancel();
        while self.run.join_next().await.is_some() {}
    }
}

/// Runs the guest to its end. The input is boxed, and freed as soon as the guest has it, because a
/// guest may wait for days.
async fn execute(
    plugin: Arc<Plugin>,
    call: Box<Call>,
    work: Box<Work>,
    thread: GuestThread,
) -> Ended {
    let secrets = Arc::clone(&call.secrets);
    let (task, journal, live) = {
        let directory = call.working_directory.as_deref();
        let Work { task, message, history, live, journal } = *work;
        (task_to_guest(&task, &message, &history, directory), journal, live)
    };
    let ended =
        self::call(&plugin, call, thread, GuestSlot::Task, journal, async |guest, store| {
            let export = if live { &plugin.runs.stream } else { &plugin.runs.execute };
            let run = guest.get_typed_func::<(&Task,), (Result<Outcome, GuestFailure>,)>(
                &mut *store,
                export,
            )?;
            let returned = run.call_async(&mut *store, (&task,)).await.map(|(returned,)| returned);
            // Independent of the outcome, events that were emitted before must be complete.
            store.data_mut().tell_rest().await;
            Ok(store.data_mut().ended(returned?).await)
        });
    ended.await.unwrap_or_else(|why| Ended::Failed(hidden(why, &secrets)))
}

/// Redacts the guest's secrets in the reason of a failure.
fn hidden(mut why: Failure, secrets: &Secrets) -> Failure {
    why.hide(secrets);
    why
}

/// Calls a guest's health check, with its capabilities.
pub async fn health(plugin: &Plugin, call: Call) -> Result<HealthReport, Failure> {
    let secrets = Arc::clone(&call.secrets);
    let (thread, of) = (GuestThread::for_hub_call(&plugin.share), plugin.clone());
    let account = Arc::clone(&thread.account);
    let work = async move {
        let health = async |guest: &Instance, store: &mut Store<GuestState>| {
            let guest = Bindings::new(&mut *store, guest)?;
            let report = guest.a2a_hub_agent().call_health(&mut *store).await?;
            Ok(store.data_mut().reported(report).await)
        };
        self::call(&of, Box::new(call), thread, GuestSlot::HubCall, None, health).await
    };
    let report = scheduled(plugin, &account, Box::pin(work));
    report.await.map_err(|why| hidden(why, &secrets))
}

/// Calls a fresh instance's clean-up after a cancelled task.
pub async fn clean_up(plugin: &Plugin, call: Call, task: &TaskId) -> Result<(), Failure> {
    let secrets = Arc::clone(&call.secrets);
    let (thread, of, task) =
        (GuestThread::for_hub_call(&plugin.share), plugin.clone(), task.to_string());
    let account = Arc::clone(&thread.account);
    let work = async move {
        let cancel = async |guest: &Instance, store: &mut Store<GuestState>| {
            let guest = Bindings::new(&mut *store, guest)?;
            let cleaned = guest.a2a_hub_agent().call_cancel(&mut *store, &task).await?;
            Ok(store.data_mut().cleaned_up(cleaned).await)
        };
        self::call(&of, Box::new(call), thread, GuestSlot::HubCall, None, cancel).await
    };
    let cleaned = scheduled(plugin, &account, Box::pin(work));
    cleaned.await.map_err(|why| hidden(why, &secrets))?
}

/// Calls a guest's `card`, and returns its card in JSON.
pub(crate) async fn card(plugin: &Plugin, call: Call) -> Result<String, Failure> {
    let (thread, of) = (GuestThread::for_hub_call(&plugin.share), plugin.clone());
    let account = Arc::clone(&thread.account);
    let card = async |guest: &Instance, store: &mut Store<GuestState>| {
        let guest = Bindings::new(&mut *store, guest)?;
        guest.a2a_hub_agent().call_card(store).await
    };
    let work = async move {
        self::call(&of, Box::new(call), thread, GuestSlot::HubCall, None, card).await
    };
    scheduled(plugin, &account, Box::pin(work)).await
}

/// Runs a job of a guest on an account. Dropping the future ends the guest.
async fn scheduled<T: Send + 'static>(
    plugin: &Plugin,
    account: &Arc<CpuAccount>,
    work: Job<Result<T, Failure>>,
) -> Result<T, Failure> {
    let done = plugin.engine.scheduler.run(account, &CancellationToken::new(), work).await;
    done.unwrap_or(Err(Failure::Cancelled))
}

/// Calls a function of a fresh instance, in a recorded run if it has a journal. Dropping the future
/// ends the guest.
async fn call<T>(
    plugin: &Plugin,
    call: Box<Call>,
    thread: GuestThread,
    slot: GuestSlot,
    journal: Option<Journal>,
    function: impl AsyncFnOnce(&Instance, &mut Store<GuestState>) -> wasmtime::Result<T>,
) -> Result<T, Failure> {
    let Some(_slot) = plugin.engine.slot(slot) else {
        return Err(Failure::HubFull);
    };
    let limits = call.limits;
    let journal = journal.zip(call.ports.journal.clone());
    let workspace = match &call.ports.workspace {
        // The contents of files are not recorded.
        Some(_) if journal.is_some() => None,
        Some(port) => Some(port.open(call.working_directory.as_deref()).await?),
        None => None,
    };
    let mut store = store_for(&plugin.engine, *call, thread);
    if let Some(open) = workspace {
        store.data_mut().enter(&open)?;
    }
    if let Some((journal, port)) = journal {
        store.data_mut().replays(journal, port);
    }
    let called = async {
        let instance = plugin.pre.instance_pre().instantiate_async(&mut store).await?;
        function(&instance, &mut store).await
    };
    let called = called.await;
    called.map_err(|why| why_it_broke(&why, &store, &limits))
}

fn store_for(engine: &Engine, call: Call, thread: GuestThread) -> Store<GuestState> {
    let Call { agent, limits, grant, ports, secrets, working_directory: home, client } = call;
    let (processes, redaction) = (Processes { grant, home }, Redaction::new(secrets));
    let account = Arc::clone(&thread.account);
    let state = GuestState::new(agent, &limits, ports, client, processes, redaction, thread);
    let mut store = Store::new(&engine.inner, state);
    limits::put_on(&mut store, &limits, account, |state| &mut state.limiter);
    store
}

/// Explains a trap by the guest's action, in place of the processor's error.
fn why_it_broke(why: &wasmtime::Error, store: &Store<GuestState>, limits: &Limits) -> Failure {
    if why.is::<PoolConcurrencyLimitError>() {
        return Failure::HubFull;
    }
    if let Some(ReplayDiverged(why)) = why.downcast_ref() {
        return Failure::Diverged(why.clone());
    }
    // A failure of the hub, or an exhausted limit, is not a crash of the guest.
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
    // Rust, C and Go execute `unreachable` after a refused allocation.
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
        // Debug form, because the text may contain line breaks and escape sequences.
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
        component::engine::{EngineSettings, HUB_CALL_SLOTS},
        cpu::scheduler::{AgentShare, now},
        store::bindings::{
            a2a::hub::types,
            exports::a2a::hub::agent::{HealthReport, HealthStatus},
        },
    };
    use a2a_hub_core::scheduling::cpu_share::{Priority, SHORT_RUN};
    use a2a_hub_protocol::id::AgentId;
    use std::time::Duration;
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
            store_for(&engine, call, GuestThread::for_task(&Arc::new(engine.scheduler.share())))
        };
        let mut full = Vec::new();
        for _ in 0..=HUB_CALL_SLOTS {
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

    fn text_message(bytes: usize) -> types::Message {
        let content = types::PartContent::Text("x".repeat(bytes));
        let part = types::Part { content, filename: None, media_type: None, metadata: None };
        types::Message {
            id: String::new(),
            role: types::Role::Agent,
            parts: vec![part],
            context_id: None,
            task_id: None,
            reference_task_ids: Vec::new(),
            extensions: Vec::new(),
            metadata: None,
        }
    }

    #[tokio::test]
    async fn returned_values_are_charged_and_bounded() {
        let engine = Engine::new(&EngineSettings::default()).unwrap();
        let seat = GuestThread::for_task(&Arc::new(engine.scheduler.share()));
        let account = Arc::clone(&seat.account);
        let call = Call::bare(AgentId::parse("a").unwrap(), Limits::default());
        let mut store = store_for(&engine, call, seat);
        let state = store.data_mut();
        let reply = |bytes| Ok(Outcome::Message(text_message(bytes)));

        assert!(matches!(state.ended(reply(10)).await, Ended::Reply(_)));
        let an_event = account.paid_ahead();
        assert!(an_event > Duration::ZERO && an_event < Duration::from_millis(1), "{an_event:?}");
        assert!(matches!(state.ended(reply(1_000_000)).await, Ended::Reply(_)));
        let reply_paid = account.paid_ahead();
        assert!(reply_paid >= Duration::from_millis(20), "{reply_paid:?}");

        let too_long = state.ended(reply((1 << 20) + 1)).await;
        assert!(matches!(too_long, Ended::Failed(Failure::Exhausted(_))), "{too_long:?}");
        let failed = state.ended(Err(types::Failure::Internal("ä".repeat(1_000_000)))).await;
        let Ended::Failed(Failure::Internal(why)) = failed else { panic!("{failed:?}") };
        assert!(why.len() < 20_000 && why.ends_with("… (cut: 2000000 bytes)"));
        let why = state.cleaned_up(Err(types::Failure::Denied("x".repeat(1_000_000)))).await;
        assert!(matches!(why, Err(Failure::Denied(why)) if why.len() < 20_000));
        let detail = Some(" ".repeat(1_000_000));
        let status = HealthStatus::Degraded;
        let report = HealthReport { status, version: None, detail, fix: None };
        state.reported(report).await;
        let paid = account.paid_ahead() - reply_paid;
        assert!(paid >= Duration::from_millis(100), "{paid:?} for what was cut, too");
    }

    #[tokio::test]
    async fn repeated_traps_lower_the_priority() {
        let engine = Engine::new(&EngineSettings::default()).unwrap();
        let module = wat::parse_str("(module (func $trap unreachable) (start $trap))").unwrap();
        let module = Module::new(&engine.inner, module).unwrap();
        let limits = Limits::default();
        let trap_often = async |share: &Arc<AgentShare>| {
            for _ in 0..60 {
                let call = Call::bare(AgentId::parse("a").unwrap(), limits);
                let mut store = store_for(&engine, call, GuestThread::for_task(share));
                let why = Instance::new_async(&mut store, &module, &[]).await.unwrap_err();
                let why = why_it_broke(&why, &store, &limits);
                assert!(matches!(why, Failure::Trapped(_)), "{why:?}");
            }
        };
        let priority = |share: &Arc<AgentShare>| {
            let next = GuestThread::for_task(share).account;
            // More than a short run, which could stay at high priority without other agents.
            next.pay(SHORT_RUN);
            next.priority(now())
        };
        assert_eq!(priority(&Arc::new(engine.scheduler.share())), Priority::High);
        // The price of a trap wears off with time, and a busy machine may take long for sixty.
        for _ in 0..10 {
            let share = Arc::new(engine.scheduler.share());
            trap_often(&share).await;
            if priority(&share) == Priority::Low {
                return;
            }
        }
        panic!("sixty traps cost nothing");
    }
}
