//! Delegation calls of a run with a journal. The journal is replayed for ever, so an answer is
//! written to it only once the hub is up: while tasks of the previous process are recovered, agents
//! are loading or the store fails, the call waits and is made again. In a hub that stops, the run
//! is ended before it receives anything, and the next process makes the call.
//!
//! | result of a call | written to the journal? |
//! | --- | --- |
//! | the child, its events, its end | yes |
//! | not granted, unknown, unhealthy, busy, no route, no budget | yes, once all agents are loaded |
//! | the store fails, a running child's events break off | no: retried once the store works |
//! | any refusal of a hub that stops | no: the run ends first |
//!
//! The wait has the deadline of the task.

use crate::tasks::{Tasks, guest_port::GuestRequest};
use a2a_hub_protocol::{
    id::TaskId,
    message::Message,
    operation::{AgentQuery, FoundAgents},
};
use a2a_hub_runtime::{
    Failure,
    port::delegate::{CallPort, ChildRequest, ChildTask, DelegatePort, JoinChild, Update},
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::sync::mpsc;

/// Pause before a failed store is tried again, unless the store is known to fail longer.
const PAUSE: Duration = Duration::from_millis(100);

/// Delegation calls of a recorded run.
pub(in crate::tasks) struct RecordedCalls {
    calls: Arc<dyn DelegatePort>,
    hub: UpHub,
}

struct RecordedCall {
    call: Box<dyn CallPort>,
    hub: UpHub,
}

/// The hub, seen by a recorded run only while it is up.
#[derive(Clone)]
struct UpHub {
    tasks: Tasks,
    /// Actor of the run's task: closed once the run is over.
    run: mpsc::Sender<GuestRequest>,
}

impl RecordedCalls {
    /// Wraps the calls of the run that is connected to that actor.
    pub(in crate::tasks) fn new(
        calls: Arc<dyn DelegatePort>,
        tasks: Tasks,
        run: mpsc::Sender<GuestRequest>,
    ) -> Self {
        Self { calls, hub: UpHub { tasks, run } }
    }

    fn recorded(&self, call: Box<dyn CallPort>) -> Box<dyn CallPort> {
        Box::new(RecordedCall { call, hub: self.hub.clone() })
    }
}

impl UpHub {
    /// Passes on a result if it is final, which means that the hub was up and working. Otherwise
    /// returns none once the call may be retried. `settled` is true if all agents were loaded when
    /// the call was made.
    async fn answer<T: Send>(
        &self,
        settled: bool,
        result: Result<T, Failure>,
    ) -> Option<Result<T, Failure>> {
        let why = match result {
            Ok(value) => return Some(Ok(value)),
            Err(why) => why,
        };
        if self.tasks.phase.is_stopping() {
            self.run.closed().await;
            return Some(Err(Failure::Cancelled));
        }
        let again = async {
            if let Failure::HubNotUp(why) = &why {
                tracing::warn!(why, "a call waits until the hub can answer it");
                self.tasks.until_usable(PAUSE).await;
            } else if !settled {
                tracing::info!(%why, "a call waits until all agents have joined");
                self.tasks.directory.settled().await;
            } else {
                return false;
            }
            true
        };
        tokio::select! {
            is_asked_again = again => (!is_asked_again).then_some(Err(why)),
            () = self.run.closed() => Some(Err(Failure::Cancelled)),
        }
    }

    /// True if all agents are loaded or have failed.
    fn is_settled(&self) -> bool {
        self.tasks.directory.is_settled()
    }

    /// Waits until all agents are loaded or have failed, or the run is over.
    async fn settled(&self) {
        tokio::select! {
            () = self.tasks.directory.settled() => {}
            () = self.run.closed() => {}
        }
    }
}

#[async_trait::async_trait]
impl DelegatePort for RecordedCalls {
    async fn agents(&self) -> Vec<Value> {
        self.hub.settled().await;
        self.calls.agents().await
    }

    async fn find(&self, query: AgentQuery) -> Result<FoundAgents, Failure> {
        self.hub.settled().await;
        self.calls.find(query).await
    }

    async fn start(&self, request: ChildRequest) -> Result<Box<dyn CallPort>, Failure> {
        loop {
            let settled = self.hub.is_settled();
            let begun = self.calls.start(request.clone()).await;
            if let Some(answer) = self.hub.answer(settled, begun).await {
                return answer.map(|call| self.recorded(call));
            }
        }
    }

    async fn join(&self, child: &JoinChild) -> Result<Box<dyn CallPort>, Failure> {
        loop {
            let joined = self.calls.join(child).await;
            if let Some(answer) = self.hub.answer(true, joined).await {
                return answer.map(|call| self.recorded(call));
            }
        }
    }

    async fn children(&self) -> Result<Vec<ChildTask>, Failure> {
        loop {
            if let Some(answer) = self.hub.answer(true, self.calls.children().await).await {
                return answer;
            }
        }
    }
}

#[async_trait::async_trait]
impl CallPort for RecordedCall {
    fn task(&self) -> &TaskId {
        self.call.task()
    }

    async fn next(&mut self) -> Result<Update, Failure> {
        loop {
            let update = self.call.next().await;
            if let Some(answer) = self.hub.answer(true, update).await {
                return answer;
            }
        }
    }

    async fn answer(&self, message: Message) -> Result<(), Failure> {
        loop {
            let taken = self.call.answer(message.clone()).await;
            if let Some(answer) = self.hub.answer(true, taken).await {
                return answer;
            }
        }
    }

    async fn send(&self, message: Message) -> Result<(), Failure> {
        loop {
            let taken = self.call.send(message.clone()).await;
            if let Some(answer) = self.hub.answer(true, taken).await {
                return answer;
            }
        }
    }

    /// Nothing of it is recorded.
    async fn cancel(&self) -> Result<(), Failure> {
        self.call.cancel().await
    }
}
