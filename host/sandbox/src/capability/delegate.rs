//! Other agents, through the hub: no agent can be granted another yet, so every call is denied.

use crate::{
    bindings::a2a::hub::{
        delegate::{Host, HostCall, Update},
        types::{self, Message},
    },
    state::State,
};
use wasmtime::component::Resource;

/// A call to another agent. None can be made, so there is none.
pub enum Delegated {}

fn denied<T>() -> wasmtime::Result<Result<T, types::Failure>> {
    let why = "call another agent: this hub grants no agent another one";
    Ok(Err(types::Failure::Denied(why.to_owned())))
}

impl Host for State {
    async fn agents(&mut self) -> wasmtime::Result<Result<String, types::Failure>> {
        denied()
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
