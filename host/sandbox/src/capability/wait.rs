//! Wait for the first of several sources: a client's answer, output of a program, an event of a
//! child task, a piece of an HTTP response.

use super::{delegate::lending, timeout::deadline};
use crate::store::{
    bindings::a2a::hub::{
        types,
        wait::{First, Host, Origin, Source},
    },
    convert::failure_to_guest,
    replay::mixed_up,
    resources::{Delegated, Exchange, GuestProcess, PendingQuestion},
    state::GuestState,
};
use a2a_hub_core::task::replay::CallIdentity;
use a2a_hub_runtime::{
    Failure,
    port::{journal::JournalAnswer, tasks::WaitsFor},
};
use std::{future::poll_fn, mem, pin::Pin, task::Poll};
use wasmtime::component::Resource;

/// Handles in one wait: as many as a guest can hold. Each is compared with those before it, to find
/// duplicates.
const MAX_WAITED_FOR: usize = 1_000;

impl Host for GuestState {
    async fn poll(
        &mut self,
        sources: Vec<Source>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Vec<u32>> {
        let handles = sources.into_iter().map(|source| match source {
            Source::Child(child) => Handle::Child(child),
            Source::Call(call) => Handle::Call(call),
        });
        Ok(self.ready_of(handles.collect(), timeout_ms).await?.unwrap_or_default())
    }

    async fn any_of(
        &mut self,
        origins: Vec<Origin>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<Vec<u32>, types::Failure>> {
        let handles = origins.into_iter().map(|origin| match origin {
            Origin::Child(child) => Handle::Child(child),
            Origin::Call(call) => Handle::Call(call),
            Origin::Question(question) => Handle::Question(question),
            Origin::Exchange(exchange) => Handle::Exchange(exchange),
        });
        let ready = self.ready_of(handles.collect(), timeout_ms).await?;
        Ok(ready.map_err(failure_to_guest))
    }

    async fn first_of(
        &mut self,
        question: Resource<PendingQuestion>,
        child: Resource<GuestProcess>,
    ) -> wasmtime::Result<First> {
        // A question is asked outside of steps, and a program runs in one.
        if let Err(why) = self.require_in_step("wait for a program") {
            return Err(wasmtime::Error::new(why));
        }
        let cancel = self.cancel.clone();
        // The table lends one resource at a time. Dropping this future drops the guest, and its
        // question.
        let mut pending = mem::take(self.table.get_mut(&question)?);
        let child = self.table.get_mut(&child)?;
        let first = async {
            tokio::select! {
                // An answer takes precedence over a program that never stops printing.
                biased;
                () = cancel.cancelled() => Err(Failure::Cancelled),
                _ = pending.answered() => Ok(First::Answer),
                () = child.ready() => Ok(First::Output),
            }
        };
        let first = lending(self.ports.tasks.clone(), WaitsFor::Client, first).await;
        let first = first.unwrap_or(First::Cancelled);
        *self.table.get_mut(&question)? = pending;
        Ok(first)
    }
}

/// Handle of a source in a wait. One source may be named twice.
enum Handle {
    Child(Resource<GuestProcess>),
    Question(Resource<PendingQuestion>),
    Exchange(Resource<Exchange>),
    Call(Resource<Delegated>),
}

/// Source taken out of the table during the wait, because the table lends one resource at a time.
enum Thing {
    Child(GuestProcess),
    Question(PendingQuestion),
    Exchange(Exchange),
    Call(Delegated),
    /// Placeholder for a duplicate.
    TakenOut,
}

impl Handle {
    /// Table index, equal for handles of one source.
    fn rep(&self) -> u32 {
        match self {
            Self::Child(child) => child.rep(),
            Self::Question(question) => question.rep(),
            Self::Exchange(exchange) => exchange.rep(),
            Self::Call(call) => call.rep(),
        }
    }
}

impl Thing {
    /// Waits until the source has something to return, and leaves it in place.
    async fn ready(&mut self) {
        match self {
            Self::Child(child) => child.ready().await,
            Self::Question(question) => {
                question.answered().await;
            }
            Self::Exchange(exchange) => exchange.ready().await,
            Self::Call(call) => call.ready().await,
            Self::TakenOut => {}
        }
    }
}

impl GuestState {
    fn take_thing(&mut self, handle: &Handle) -> wasmtime::Result<Thing> {
        Ok(match handle {
            Handle::Child(child) => Thing::Child(mem::take(self.table.get_mut(child)?)),
            Handle::Question(question) => Thing::Question(mem::take(self.table.get_mut(question)?)),
            Handle::Exchange(exchange) => Thing::Exchange(mem::take(self.table.get_mut(exchange)?)),
            Handle::Call(call) => Thing::Call(mem::take(self.table.get_mut(call)?)),
        })
    }

    fn put_thing(&mut self, handle: &Handle, thing: Thing) -> wasmtime::Result<()> {
        match (handle, thing) {
            (Handle::Child(handle), Thing::Child(child)) => *self.table.get_mut(handle)? = child,
            (Handle::Question(handle), Thing::Question(question)) => {
                *self.table.get_mut(handle)? = question;
            }
            (Handle::Exchange(handle), Thing::Exchange(exchange)) => {
                *self.table.get_mut(handle)? = exchange;
            }
            (Handle::Call(handle), Thing::Call(call)) => *self.table.get_mut(handle)? = call,
            (Handle::Child(_) | Handle::Question(_) | Handle::Exchange(_) | Handle::Call(_), _) => {
            }
        }
        Ok(())
    }

    /// Ready sources, recorded if the guest's run is.
    async fn ready_of(
        &mut self,
        handles: Vec<Handle>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<Vec<u32>, Failure>> {
        let is_recorded = |handle: &Handle| matches!(handle, Handle::Call(_) | Handle::Question(_));
        if self.replay.is_none() {
            return self.first_ready(handles, timeout_ms).await;
        }
        if !handles.iter().all(is_recorded) || self.require_outside_step("").is_err() {
            // A step is recorded as a whole.
            return match self.require_in_step("wait for programs and answers over HTTP") {
                Ok(()) => self.first_ready(handles, timeout_ms).await,
                Err(why) => Err(wasmtime::Error::new(why)),
            };
        }
        let identity = CallIdentity::new("wait", &handles.len().to_string());
        if let Some(recorded) = self.recall(&identity)? {
            let JournalAnswer::Ready(ready) = recorded else { return Err(mixed_up()) };
            return Ok(ready);
        }
        let ready = self.first_ready(handles, timeout_ms).await?;
        self.record_answer(identity, JournalAnswer::Ready(ready.clone())).await?;
        Ok(ready)
    }

    /// Waits until a source is ready; returns the ready ones, or none after the timeout.
    async fn first_ready(
        &mut self,
        handles: Vec<Handle>,
        timeout_ms: Option<u32>,
    ) -> wasmtime::Result<Result<Vec<u32>, Failure>> {
        if handles.len() > MAX_WAITED_FOR {
            return Ok(Err(Failure::Invalid(format!(
                "wait for {} things: {MAX_WAITED_FOR} are waited for at once; name each thing once",
                handles.len()
            ))));
        }
        // A duplicate handle waits for the source of the first one.
        let first_of = |at: usize| {
            let rep = handles[at].rep();
            let same = |handle: &Handle| handle.rep() == rep;
            handles[..at].iter().position(same).unwrap_or(at)
        };
        let places: Vec<_> = (0..handles.len()).map(first_of).collect();
        let mut things = Vec::new();
        for (at, handle) in handles.iter().enumerate() {
            let is_first = places[at] == at;
            things.push(if is_first { self.take_thing(handle)? } else { Thing::TakenOut });
        }
        let cancel = self.cancel.clone();
        let waiting = things.iter_mut().enumerate().filter(|(at, _)| places[*at] == *at);
        let ready = async {
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(Failure::Cancelled),
                ready = any_ready(waiting.map(|(at, thing)| (at, thing.ready())).collect()) => Ok(ready),
                () = deadline(timeout_ms) => Ok(Vec::new()),
            }
        };
        // A wait for the client, or for other agents only (not for own programs), needs no run
        // permit.
        let is_question = |handle: &Handle| matches!(handle, Handle::Question(_));
        let is_call = |handle: &Handle| matches!(handle, Handle::Call(_));
        let waits_for = if handles.iter().any(is_question) {
            Some(WaitsFor::Client)
        } else {
            let only_calls = !handles.is_empty() && handles.iter().all(is_call);
            only_calls.then_some(WaitsFor::Agents)
        };
        let ready = match waits_for {
            Some(waits_for) => lending(self.ports.tasks.clone(), waits_for, ready).await,
            None => ready.await,
        };
        for (at, thing) in things.into_iter().enumerate() {
            if places[at] == at {
                self.put_thing(&handles[at], thing)?;
            }
        }
        Ok(ready.map(|ready| {
            let named = (0..handles.len()).filter(|at| ready.contains(&places[*at]));
            named.filter_map(|at| u32::try_from(at).ok()).collect()
        }))
    }
}

/// Waits until any future completes; returns all that are ready.
async fn any_ready(waiting: Vec<(usize, impl Future<Output = ()>)>) -> Vec<usize> {
    let mut waiting: Vec<_> =
        waiting.into_iter().map(|(at, ready)| (at, Box::pin(ready))).collect();
    poll_fn(|cx| {
        let done = waiting
            .iter_mut()
            .filter_map(|(at, ready)| Pin::as_mut(ready).poll(cx).is_ready().then_some(*at));
        let done: Vec<_> = done.collect();
        if done.is_empty() { Poll::Pending } else { Poll::Ready(done) }
    })
    .await
}
