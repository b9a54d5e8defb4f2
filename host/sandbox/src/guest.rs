//! One running task: a Tokio task that owns its store, and with it everything the guest holds.

use crate::{
    bindings::Plugin as Instance,
    capability::{Ports, process::Processes},
    convert::{ended_from_guest, failure_from_guest, report_from_guest, task_to_guest},
    engine::Engine,
    failure::Failure,
    limits::{self, CpuExhausted, Limits},
    plugin::Plugin,
    redaction::{Hide as _, Redaction},
    state::State,
};
use a2a_hub_core::{grant::Held, redact::Secrets};
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    message::{Message, Metadata},
    operation::HealthStatus,
    task::{Task, TaskState},
};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap};

/// What a call into a guest comes with: whose it is, and what it may do.
#[derive(Clone)]
pub struct Call {
    /// The agent.
    pub agent: AgentId,
    /// What it may use up.
    pub limits: Limits,
    /// What it holds.
    pub held: Arc<Held>,
    /// The hub's side of what it holds.
    pub ports: Arc<Ports>,
    /// What must not be in anything it tells.
    pub secrets: Arc<Secrets>,
    /// Where the client would have the work done.
    pub working_directory: Option<String>,
}

impl Call {
    /// A call with no capability at all.
    pub fn bare(agent: AgentId, limits: Limits) -> Self {
        let (held, ports, secrets) = Default::default();
        Self { agent, limits, held, ports, secrets, working_directory: None }
    }
}

/// How a guest's run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// With a direct answer and no task result.
    Reply(Message),
    /// With a final status of the task.
    Status {
        /// The state, a final one.
        state: TaskState,
        /// What the agent says.
        message: Option<Message>,
        /// Facts to be merged into the task's.
        metadata: Option<Metadata>,
    },
    /// Without one.
    Failed(Failure),
}

/// What a guest says of its health.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// How well it is.
    pub status: HealthStatus,
    /// The version of the program behind it.
    pub version: Option<String>,
    /// What was found.
    pub detail: Option<String>,
    /// The command that mends it.
    pub fix: Option<String>,
}

/// A guest at work on a task. Dropping it ends the guest at once, and the programs it started with it.
#[derive(Debug)]
pub struct Guest {
    run: JoinSet<Ended>,
    cancel: CancellationToken,
}

/// What a guest is to do.
#[derive(Clone, Debug)]
pub struct Work {
    /// The task.
    pub task: Task,
    /// What the client said last.
    pub message: Message,
    /// What was said before in this conversation, oldest first.
    pub history: Vec<Message>,
    /// Whether somebody listens.
    pub live: bool,
}

impl Guest {
    /// Sets a fresh instance of `plugin` to work.
    pub fn start(plugin: &Plugin, call: Call, work: Work) -> Self {
        let cancel = CancellationToken::new();
        let mut run = JoinSet::new();
        run.spawn(execute(plugin.clone(), call, work, cancel.clone()));
        Self { run, cancel }
    }

    /// How it ended. May be dropped and called again; after the end it waits for ever.
    pub async fn ended(&mut self) -> Ended {
        match self.run.join_next().await {
            Some(Ok(ended)) => ended,
            Some(Err(why)) => Ended::Failed(Failure::Internal(format!("run the agent: {why}"))),
            None => std::future::pending().await,
        }
    }

    /// Asks it to stop: whatever it waits for ends with `cancelled`, and so does all it asks for from now on.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Ends it now, wherever it is.
    pub async fn end(&mut self) {
        self.run.shutdown().await;
    }
}

async fn execute(plugin: Plugin, call: Call, work: Work, cancel: CancellationToken) -> Ended {
    let directory = call.working_directory.clone();
    let secrets = Arc::clone(&call.secrets);
    let task = task_to_guest(&work.task, &work.message, &work.history, directory.as_deref());
    let ended = call_with(&plugin, call, cancel, async |guest, store| {
        let agent = guest.a2a_hub_agent();
        let ended = if work.live {
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
    let report = self::call(plugin, call, async |guest, store| {
        guest.a2a_hub_agent().call_health(store).await
    });
    let mut report = report.await.map(report_from_guest);
    report.hide(&secrets);
    report
}

/// Lets a fresh instance clean up after a task that was cancelled.
pub async fn clean_up(plugin: &Plugin, call: Call, task: &TaskId) -> Result<(), Failure> {
    let secrets = Arc::clone(&call.secrets);
    let cleaned = self::call(plugin, call, async |guest, store| {
        guest.a2a_hub_agent().call_cancel(store, task.as_str()).await
    });
    let mut cleaned = cleaned.await.and_then(|cleaned| cleaned.map_err(failure_from_guest));
    cleaned.hide(&secrets);
    cleaned
}

/// Calls one of a fresh instance's functions. Dropping the future ends the guest.
pub(crate) async fn call<T>(
    plugin: &Plugin,
    call: Call,
    function: impl AsyncFnOnce(&Instance, &mut Store<State>) -> wasmtime::Result<T>,
) -> Result<T, Failure> {
    call_with(plugin, call, CancellationToken::new(), function).await
}

async fn call_with<T>(
    plugin: &Plugin,
    call: Call,
    cancel: CancellationToken,
    function: impl AsyncFnOnce(&Instance, &mut Store<State>) -> wasmtime::Result<T>,
) -> Result<T, Failure> {
    let Some(_slot) = plugin.engine.slot() else {
        return Err(Failure::HubFull);
    };
    let limits = call.limits;
    let mut store = store_for(&plugin.engine, call, cancel);
    let called = async {
        let instance = plugin.pre.instantiate_async(&mut store).await?;
        function(&instance, &mut store).await
    };
    let called = called.await;
    called.map_err(|why| why_it_broke(&why, &store, &limits))
}

fn store_for(engine: &Engine, call: Call, cancel: CancellationToken) -> Store<State> {
    let Call { agent, limits, held, ports, secrets, working_directory: home } = call;
    let (processes, redaction) = (Processes { held, home }, Redaction::new(secrets));
    let state = State::new(agent, &limits, ports, processes, redaction, cancel);
    let mut store = Store::new(&engine.inner, state);
    limits::put_on(&mut store, &limits, |state| &mut state.limiter);
    store
}

/// A trap says what the processor saw; people want to know what the guest did.
fn why_it_broke(why: &wasmtime::Error, store: &Store<State>, limits: &Limits) -> Failure {
    if why.is::<PoolConcurrencyLimitError>() {
        return Failure::HubFull;
    }
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
        return Failure::Trapped(printed[at..].trim().to_owned());
    }
    match trap {
        Some(trap) => Failure::Trapped(trap.to_string()),
        None => Failure::Trapped(format!("{:#}", why.root_cause())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineSettings;
    use wasmtime::{Instance, Module};

    #[tokio::test]
    async fn a_full_pool_is_no_fault_of_the_guests() {
        let engine =
            Engine::new(&EngineSettings { max_instances: 1, ..Default::default() }).unwrap();
        let module = wat::parse_str("(module (memory 1))").unwrap();
        let module = Module::new(&engine.inner, module).unwrap();
        let limits = Limits::default();
        let store = || {
            let call = Call::bare(AgentId::parse("a").unwrap(), limits);
            store_for(&engine, call, CancellationToken::new())
        };
        let mut first = store();
        for _ in 0..limits::MAX_MEMORIES {
            Instance::new_async(&mut first, &module, &[]).await.unwrap();
        }
        let mut second = store();
        let why = Instance::new_async(&mut second, &module, &[]).await.unwrap_err();
        assert_eq!(why_it_broke(&why, &second, &limits), Failure::HubFull);
    }
}
