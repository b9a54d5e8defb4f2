//! Cost of a guest alone: a fresh instance of the echo agent runs one task, without a hub.

use a2a_hub_protocol::{
    id::{AgentId, ContextId, TaskId},
    message::{Message, Role},
    task::{Task, TaskState, TaskStatus},
};
use a2a_hub_runtime::{Call, Ended, Limits, Runtime, Work};
use a2a_hub_sandbox::{Engine, EngineSettings, Plugin};
use a2a_hub_tests::test_guests;
use anyhow::{Result, ensure};
use std::fs;
use tokio::time::Instant;

/// Number of runs before the measurement.
const WARM_UP: usize = 200;

/// Number of measured tasks, one after the other.
const RUNS: usize = 3_000;

/// Prints the time to instantiate a guest, run one task in it, and drop it.
pub(crate) async fn measure() -> Result<()> {
    let component = fs::read(test_guests()?.with_file_name("echo.wasm"))?;
    let engine = Engine::new(&EngineSettings::default())?;
    let begun = Instant::now();
    let plugin = Plugin::compile(&engine, &component)?;
    let compiled = begun.elapsed();
    let mut times = Vec::with_capacity(RUNS);
    for run in 0..WARM_UP + RUNS {
        let call = Call::bare(AgentId::parse("echo")?, Limits::default());
        let begun = Instant::now();
        let ended = Runtime::start(&plugin, call, work()).ended().await;
        ensure!(matches!(ended, Ended::Status { state: TaskState::Completed, .. }), "{ended:?}");
        if run >= WARM_UP {
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
    }
    times.sort_by(f64::total_cmp);
    println!(
        "\nguest alone: instantiate, run one echo task and drop: p50 {:.1} us, p99 {:.1} us ({RUNS} tasks); \
         compile once, without a cache: {:.0} ms",
        times[RUNS / 2],
        times[RUNS * 99 / 100],
        compiled.as_secs_f64() * 1e3,
    );
    Ok(())
}

fn work() -> Work {
    let message = Message::text(Role::User, "hi");
    let status =
        TaskStatus { state: TaskState::Submitted, message: None, timestamp: String::new() };
    let task = Task {
        id: TaskId::fresh(),
        context_id: ContextId::fresh(),
        status,
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
    };
    Work { task, message, history: Vec::new(), live: false, journal: None }
}
