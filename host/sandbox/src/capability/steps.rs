//! Steps of a replayed agent: effects on the world, and reads of it.

use crate::store::{
    bindings::a2a::hub::{
        steps::{Host, HostStep, Mode},
        types,
    },
    convert::failure_to_guest,
    resources::Step,
    state::GuestState,
};
use a2a_hub_core::task::replay::StepMode;
use a2a_hub_runtime::Failure;
use wasmtime::component::Resource;

impl Host for GuestState {}

impl HostStep for GuestState {
    async fn begin(
        &mut self,
        key: String,
        mode: Mode,
    ) -> wasmtime::Result<Result<Resource<Step>, types::Failure>> {
        let mode = match mode {
            Mode::Recorded => StepMode::Recorded,
            Mode::Again => StepMode::Again,
            Mode::Ask => StepMode::Ask,
        };
        let step = self.begin_step(&key, mode).await?;
        let step = step.and_then(|step| {
            self.table.push(step).map_err(|_| {
                Failure::Exhausted("begin a step: too many handles are open; drop some".to_owned())
            })
        });
        Ok(step.map_err(failure_to_guest))
    }

    async fn kept(&mut self, step: Resource<Step>) -> wasmtime::Result<Option<String>> {
        Ok(self.table.get(&step)?.result.clone())
    }

    async fn end(
        &mut self,
        step: Resource<Step>,
        result: String,
    ) -> wasmtime::Result<Result<(), types::Failure>> {
        if self.table.delete(step)?.result.is_some() {
            let why = "end a step: an earlier run has ended it; drop it".to_owned();
            return Ok(Err(failure_to_guest(Failure::Invalid(why))));
        }
        Ok(self.end_step(result).await?.map_err(failure_to_guest))
    }

    async fn drop(&mut self, step: Resource<Step>) -> wasmtime::Result<()> {
        let step = self.table.delete(step)?;
        // The step then has no result. A guest that continued without one would behave differently
        // on replay.
        if step.result.is_none() {
            self.abandon_step()?;
        }
        Ok(())
    }
}
