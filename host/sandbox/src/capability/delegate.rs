//! Other agents, through the hub: which there are, for whom the operator lets know. None can be called yet.

use crate::{
    bindings::a2a::hub::{
        delegate::{Host, HostCall, Update},
        types::{self, Message},
    },
    resources::Delegated,
    state::State,
};
use serde_json::Value;
use wasmtime::component::Resource;

fn denied<T>() -> wasmtime::Result<Result<T, types::Failure>> {
    let why = "call another agent: this hub grants no agent another one";
    Ok(Err(types::Failure::Denied(why.to_owned())))
}

impl Host for State {
    async fn agents(&mut self) -> wasmtime::Result<Result<String, types::Failure>> {
        Ok(match &self.ports.delegate {
            Some(port) => Ok(Value::from(port.agents()).to_string()),
            None => Err(types::Failure::Denied(format!(
                "ask for other agents: not granted; the manifest must ask with `agents = true` in `[delegate]`, and the \
                 operator allows it with `delegate = [\"*\"]`, or the names of some, in `[agents.{}.grant]` of the hub's \
                 configuration",
                self.agent
            ))),
        })
    }
}

impl HostCall for State {
    async fn start(
        &mut self,
        _agent: String,
        _message: Message,
    ) -> wasmtime::Result<Result<Resource<Delegated>, types::Failure>> {
        denied()
    }

    async fn next(
        &mut self,
        _call: Resource<Delegated>,
        _timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<Update, types::Failure>> {
        denied()
    }

    async fn cancel(&mut self, _call: Resource<Delegated>) -> wasmtime::Result<()> {
        Ok(())
    }

    async fn drop(&mut self, call: Resource<Delegated>) -> wasmtime::Result<()> {
        self.table.delete(call)?;
        Ok(())
    }
}
