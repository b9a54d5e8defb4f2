//! Programs: the grant is checked here, the hub runs them.

use super::timeout::deadline;
use crate::store::{
    bindings::a2a::hub::{
        process::{Command, ExitStatus, Host, HostChild, Output},
        types,
    },
    convert::failure_to_guest,
    resources::GuestProcess,
    state::GuestState,
    usage::{pace, wait},
};
use a2a_hub_core::grant::{EffectiveProgram, GrantRefusal};
use a2a_hub_runtime::{
    Failure,
    port::process::{ChildPort, PermittedLaunch, ProcessPort, ProgramEvent},
};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinSet;
use wasmtime::component::Resource;

/// Longest grace period of a retired program: enough to save its state, and short enough that no
/// program works on after the task.
const MAX_RETIREMENT: Duration = Duration::from_secs(5);

/// Longest key of an idle program, in bytes.
const MAX_KEY: usize = 256;

impl GuestState {
    /// Waits for the rate limit of program starts; refused starts count as well.
    async fn until_one_more_may_start(&mut self) -> Result<(), Failure> {
        let time = pace(&mut self.paces.programs, 1);
        wait(time, &self.cancel).await
    }

    fn refused_program(&self, program: &str, refusal: &GrantRefusal) -> Failure {
        self.ports.tell_refused(&format!("process.{program}"));
        Failure::Denied(refusal.to_string())
    }

    async fn fingerprint_of(&mut self, program: &str) -> Result<String, Failure> {
        self.require_in_step("look at programs")?;
        let Some(port) = self.ports.process.clone() else {
            return Err(Failure::Denied("look at programs: not in this call".to_owned()));
        };
        self.until_one_more_may_start().await?;
        let program_grant = self.processes.grant.named(self.agent.as_str(), program);
        program_grant.map_err(|refusal| self.refused_program(program, &refusal))?;
        port.fingerprint(program).await
    }

    /// Checks a command against the grant; returns the port and the launch.
    async fn allowed(
        &mut self,
        command: Command,
    ) -> Result<(Arc<dyn ProcessPort>, PermittedLaunch), Failure> {
        self.require_in_step("run programs")?;
        let Some(port) = self.ports.process.clone() else {
            return Err(Failure::Denied("run programs: not in this call".to_owned()));
        };
        if self.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        // Before any comparison: a refused command is work as well.
        self.until_one_more_may_start().await?;
        let Command { program, args, env, cwd } = command;
        let grant = Arc::clone(&self.processes.grant);
        let EffectiveProgram { pass, max_running, .. } = grant
            .program(self.agent.as_str(), &program, &args, &env)
            .map_err(|refusal| self.refused_program(&program, &refusal))?;
        let (pass, max_running) = (pass.clone(), *max_running);
        let launch = PermittedLaunch {
            program,
            args,
            set: env,
            pass,
            cwd: cwd.or_else(|| self.processes.home.clone()),
            max_running,
        };
        Ok((port, launch))
    }

    /// Creates a handle for the guest.
    fn hand_out(&mut self, port: Box<dyn ChildPort>) -> Result<Resource<GuestProcess>, Failure> {
        self.table.push(GuestProcess { port, buffered: None }).map_err(|_| {
            Failure::Exhausted("start a program: too many handles are open; drop some".to_owned())
        })
    }

    async fn spawn_child(&mut self, command: Command) -> Result<Resource<GuestProcess>, Failure> {
        let (port, launch) = self.allowed(command).await?;
        let started = self.on_hub("start a program", async move { port.spawn(launch).await });
        let child = started.await?;
        self.hand_out(child)
    }

    /// Runs work on the hub's own threads, where programs are started. Dropped with the guest.
    fn on_hub<T: Send + 'static, W: Future<Output = Result<T, Failure>> + Send + 'static>(
        &self,
        action: &'static str,
        work: W,
    ) -> impl Future<Output = Result<T, Failure>> + Send + use<T, W> {
        let mut working = JoinSet::new();
        working.spawn_on(work, &self.hub);
        async move {
            let worked = working.join_next().await.and_then(Result::ok);
            worked
                .ok_or_else(|| Failure::Unavailable(format!("{action}: the hub is going down")))?
        }
    }

    /// Refuses calls outside a task: idle programs are kept between tasks only.
    fn require_task(&self, action: &str) -> Result<(), Failure> {
        let is_of_a_task = self.ports.tasks.is_some();
        is_of_a_task
            .then_some(())
            .ok_or_else(|| Failure::Denied(format!("{action}: not in this call")))
    }

    async fn take_up_child(
        &mut self,
        key: String,
        command: Command,
    ) -> Result<Option<Resource<GuestProcess>>, Failure> {
        require_valid_key(&key)?;
        self.require_task("take up programs")?;
        let (port, launch) = self.allowed(command).await?;
        let taking =
            self.on_hub("take up a program", async move { port.take_up(&key, launch).await });
        let taken = taking.await?;
        taken.map(|child| self.hand_out(child)).transpose()
    }

    async fn park_child(&mut self, child: GuestProcess, key: String) -> Result<(), Failure> {
        let GuestProcess { port, buffered } = child;
        require_valid_key(&key)?;
        self.require_in_step("park programs")?;
        self.require_task("park programs")?;
        let unread = buffered.transpose()?;
        let cancel = self.program_cancel.clone();
        let future = self.on_hub("park a program", port.park(key, unread));
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Cancelled),
            parked = future => parked,
        }
    }
}

impl Host for GuestState {
    async fn fingerprint(
        &mut self,
        program: String,
    ) -> wasmtime::Result<Result<String, types::Failure>> {
        Ok(self.fingerprint_of(&program).await.map_err(failure_to_guest))
    }
}

impl HostChild for GuestState {
    async fn spawn(
        &mut self,
        command: Command,
    ) -> wasmtime::Result<Result<Resource<GuestProcess>, types::Failure>> {
        Ok(self.spawn_child(command).await.map_err(failure_to_guest))
    }

    async fn next(
        &mut self,
        child: Resource<GuestProcess>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<Output, types::Failure>> {
        if let Err(why) = self.require_in_step("hear a program") {
            return Ok(Err(failure_to_guest(why)));
        }
        let cancel = self.program_cancel.clone();
        let child = self.table.get_mut(&child)?;
        // Cancellation takes precedence over output, and output over the timeout.
        let received = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Failure::Cancelled),
            said = child.next() => said,
            () = deadline(timeout_ms) => Err(Failure::Timeout),
        };
        Ok(received.map(output_to_guest).map_err(failure_to_guest))
    }

    async fn write_stdin(
        &mut self,
        child: Resource<GuestProcess>,
        bytes: Vec<u8>,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        let cancel = self.program_cancel.clone();
        let child = self.table.get_mut(&child)?;
        let written = tokio::select! {
            written = child.port.write(&bytes) => written,
            () = cancel.cancelled() => Err(Failure::Cancelled),
        };
        Ok(written.map_err(failure_to_guest))
    }

    async fn close_stdin(&mut self, child: Resource<GuestProcess>) -> wasmtime::Result<()> {
        self.table.get_mut(&child)?.port.close_stdin();
        Ok(())
    }

    async fn interrupt(&mut self, child: Resource<GuestProcess>) -> wasmtime::Result<()> {
        self.table.get_mut(&child)?.port.interrupt();
        Ok(())
    }

    async fn kill(&mut self, child: Resource<GuestProcess>) -> wasmtime::Result<()> {
        self.table.get_mut(&child)?.port.kill();
        Ok(())
    }

    async fn retire(
        &mut self,
        child: Resource<GuestProcess>,
        within_ms: u32,
    ) -> wasmtime::Result<()> {
        let within = Duration::from_millis(within_ms.into()).min(MAX_RETIREMENT);
        self.table.delete(child)?.port.retire(within);
        Ok(())
    }

    async fn settled(&mut self, child: Resource<GuestProcess>) -> wasmtime::Result<()> {
        self.table.get_mut(&child)?.port.settled().await;
        Ok(())
    }

    async fn park(
        &mut self,
        child: Resource<GuestProcess>,
        key: String,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        let child = self.table.delete(child)?;
        Ok(self.park_child(child, key).await.map_err(failure_to_guest))
    }

    async fn take_up(
        &mut self,
        key: String,
        command: Command,
    ) -> wasmtime::Result<Result<Option<Resource<GuestProcess>>, types::Failure>> {
        Ok(self.take_up_child(key, command).await.map_err(failure_to_guest))
    }

    async fn drop(&mut self, child: Resource<GuestProcess>) -> wasmtime::Result<()> {
        self.table.delete(child)?;
        Ok(())
    }
}

/// Validates the key of an idle program.
fn require_valid_key(key: &str) -> Result<(), Failure> {
    let fits = (1..=MAX_KEY).contains(&key.len()) && !key.chars().any(char::is_control);
    fits.then_some(()).ok_or_else(|| {
        Failure::Invalid(format!(
            "keep a program: a key has 1 to {MAX_KEY} bytes and no control characters, and this one has {} bytes",
            key.len()
        ))
    })
}

fn output_to_guest(output: ProgramEvent) -> Output {
    match output {
        ProgramEvent::Stdout(bytes) => Output::Stdout(bytes),
        ProgramEvent::Stderr(bytes) => Output::Stderr(bytes),
        ProgramEvent::Code(code) => Output::Exited(ExitStatus::Code(code)),
        ProgramEvent::Signal(signal) => Output::Exited(ExitStatus::Signal(signal)),
    }
}
