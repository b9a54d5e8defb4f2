//! Waiting for whichever of two things comes first: a client's answer, or a word of a program. For more than these there is
//! `poll`, which is not offered yet, and says so rather than never being ready.

use crate::{
    bindings::a2a::hub::wait::{First, Host, Source},
    resources::{Child, Question},
    state::State,
};
use std::mem;
use wasmtime::component::Resource;

impl Host for State {
    async fn poll(
        &mut self,
        _sources: Vec<Source>,
        _timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Vec<u32>> {
        Err(wasmtime::Error::msg("`wait.poll` is denied: this hub does not offer it"))
    }

    async fn first_of(
        &mut self,
        question: Resource<Question>,
        child: Resource<Child>,
    ) -> wasmtime::Result<First> {
        let cancel = self.cancel.clone();
        // The table lends one thing at a time. Whoever drops this future drops the guest, and its question with it.
        let mut asked = mem::take(self.table.get_mut(&question)?);
        let child = self.table.get_mut(&child)?;
        let first = tokio::select! {
            // A client that has decided is heard before a program that never stops talking.
            biased;
            () = cancel.cancelled() => First::Cancelled,
            _ = asked.answered() => First::Answer,
            () = child.ready() => First::Output,
        };
        *self.table.get_mut(&question)? = asked;
        Ok(first)
    }
}
