//! Journal of a replayed guest: answers are read from the journal, or live and then recorded; and
//! the steps in which it may have effects.

use crate::store::{
    replay::{ReplayDiverged, mixed_up},
    replay_clock::{now_ms, outside_of_step},
    resources::Step,
    state::GuestState,
    usage::json_bytes,
};
use a2a_hub_core::task::replay::{
    CallIdentity, MAX_KEY, MAX_RESULT_BYTES, Recorded, StepMode, StepStart,
};
use a2a_hub_protocol::message::{Message, Role};
use a2a_hub_runtime::{
    Failure,
    port::{
        journal::JournalAnswer,
        tasks::{ClientAnswer, Emitted, Need},
    },
};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Size of a journal entry besides its contents, in bytes.
const FRAME: u64 = 128;

/// Delay before a failed store is tried again.
const STORE_RETRY_DELAY: Duration = Duration::from_millis(250);

/// Answers of the client that repeat an interrupted step.
const YES: [&str; 4] = ["again", "yes", "y", "ok"];

impl GuestState {
    /// True while the guest's answers come from its journal.
    pub(crate) fn is_replayed(&self) -> bool {
        self.replay.as_ref().is_some_and(|replay| !replay.run.is_live())
    }

    /// Refuses operations with effects outside a step, because a replay would repeat them.
    pub(crate) fn require_in_step(&self, action: &str) -> Result<(), Failure> {
        match &self.replay {
            Some(replay) if replay.run.step().is_none() => Err(outside_of_step(action)),
            Some(_) | None => Ok(()),
        }
    }

    /// Refuses operations with their own record within a step, which is recorded as a whole.
    pub(crate) fn require_outside_step(&self, action: &str) -> Result<(), Failure> {
        let step = self.replay.as_ref().and_then(|replay| replay.run.step());
        step.map_or(Ok(()), |key| {
            Err(Failure::Denied(format!(
                "{action}: not in a step, and this is in the step `{key}`; end the step first"
            )))
        })
    }

    /// Recorded answer to this request, if any. Traps if the guest requests something else than
    /// recorded.
    pub(crate) fn recall(
        &mut self,
        identity: &CallIdentity,
    ) -> wasmtime::Result<Option<JournalAnswer>> {
        let Some(replay) = &mut self.replay else { return Ok(None) };
        let recorded = replay.recall(identity)?;
        if let Some(recorded) = &recorded {
            // Charged like the original answer.
            let _ = self.output.charge(1, weight(recorded));
        }
        Ok(recorded)
    }

    /// Records the answer that the guest is about to receive. Answers of a cancelled run and of a
    /// hub that is not up are not recorded: the guest receives nothing before its run ends, and the
    /// next process replays the recorded part.
    pub(crate) async fn record_answer(
        &mut self,
        identity: CallIdentity,
        answer: JournalAnswer,
    ) -> wasmtime::Result<()> {
        let is_recorded = self.replay.is_some();
        if is_recorded && let Some(Failure::HubNotUp(why)) = answer.failure() {
            tracing::warn!(agent = %self.agent, %identity, why, "answer not recorded: the hub is not up");
            self.cancel.cancelled().await;
        }
        if self.cancel.is_cancelled() {
            return Ok(());
        }
        let Some(replay) = &mut self.replay else { return Ok(()) };
        let weight = weight(&answer);
        let entry = replay.run.record_answer(identity, answer, now_ms());
        self.record(entry, weight).await
    }

    /// Records an entry, which counts as an event and follows the same rate limit.
    async fn record(
        &mut self,
        entry: Recorded<JournalAnswer>,
        weight: u64,
    ) -> wasmtime::Result<()> {
        self.output.charge(1, weight).map_err(wasmtime::Error::new)?;
        if self.until_its_pace(1, weight).await.is_err() {
            // A cancelled guest receives nothing more.
            return Ok(());
        }
        let Some(replay) = &mut self.replay else { return Ok(()) };
        let port = Arc::clone(&replay.port);
        replay.clock.follow(&replay.run);
        tokio::select! {
            recorded = port.record(entry) => Ok(recorded?),
            // A cancelled guest receives nothing more.
            () = self.cancel.cancelled() => Ok(()),
        }
    }

    /// The new ones among these events; the others are in the task's log from an earlier run.
    pub(crate) fn untold(&mut self, events: Vec<Emitted>) -> wasmtime::Result<Vec<Emitted>> {
        match &mut self.replay {
            Some(replay) => Ok(replay.untold(events)?),
            None => Ok(events),
        }
    }

    /// Begins a step of the guest.
    pub(crate) async fn begin_step(
        &mut self,
        key: &str,
        mode: StepMode,
    ) -> wasmtime::Result<Result<Step, Failure>> {
        if key.is_empty() || key.len() > MAX_KEY {
            let why = format!("begin a step: its key is 1 to {MAX_KEY} bytes long");
            return Ok(Err(Failure::Invalid(why)));
        }
        if let Err(why) = self.require_outside_step("begin another step") {
            return Ok(Err(why));
        }
        loop {
            if self.cancel.is_cancelled() {
                return Ok(Err(Failure::Cancelled));
            }
            let Some(replay) = &mut self.replay else { return Ok(Ok(Step { result: None })) };
            let begun = replay.run.begin(key, mode, now_ms());
            let begun = begun.map_err(|why| ReplayDiverged(why.to_string()))?;
            replay.clock.follow(&replay.run);
            match begun {
                StepStart::Done(result) => return Ok(Ok(Step { result: Some(result) })),
                StepStart::Work(None) => return Ok(Ok(Step { result: None })),
                StepStart::Work(Some(entry)) => {
                    self.record(entry, FRAME).await?;
                    return Ok(Ok(Step { result: None }));
                }
                StepStart::CutOff(entry) => {
                    if let Some(entry) = entry {
                        self.record(entry, FRAME).await?;
                    }
                    match self.ask_whether_again(key).await? {
                        Ok(true) => {}
                        Ok(false) => {
                            return Ok(Err(Failure::Unavailable(format!(
                                "the step `{key}` was cut off by a restart of the hub, and the client does not want it done again"
                            ))));
                        }
                        Err(why) => return Ok(Err(why)),
                    }
                }
            }
        }
    }

    /// Ends the guest's current step.
    pub(crate) async fn end_step(
        &mut self,
        result: String,
    ) -> wasmtime::Result<Result<(), Failure>> {
        if result.len() > MAX_RESULT_BYTES {
            return Ok(Err(Failure::Exhausted(format!(
                "keep what a step came to: it is {} bytes long, and {MAX_RESULT_BYTES} are kept; keep less of it, or read it again with the mode \
                 `again`",
                result.len()
            ))));
        }
        let Some(replay) = &mut self.replay else { return Ok(Ok(())) };
        let bytes = u64::try_from(result.len()).unwrap_or(u64::MAX);
        let entry = replay.run.end(result, now_ms());
        replay.clock.follow(&replay.run);
        if let Some(entry) = entry {
            self.record(entry, FRAME + bytes).await?;
        }
        Ok(Ok(()))
    }

    /// Traps if the guest drops a step that it has not ended.
    pub(crate) fn abandon_step(&self) -> wasmtime::Result<()> {
        match self.replay.as_ref().and_then(|replay| replay.run.step()) {
            None => Ok(()),
            Some(key) => Err(wasmtime::Error::msg(format!(
                "the step `{key}` was dropped before it was ended"
            ))),
        }
    }

    /// Asks the client whether to repeat an interrupted step whose progress is unknown.
    async fn ask_whether_again(&mut self, key: &str) -> wasmtime::Result<Result<bool, Failure>> {
        let identity = CallIdentity::new("steps.again", key);
        let answer = match self.recall(&identity)? {
            Some(JournalAnswer::Reply(answer)) => answer,
            Some(_) => return Err(mixed_up()),
            None => {
                let Some(port) = self.ports.tasks.clone() else {
                    return Ok(Err(Failure::Unsupported(
                        "ask: there is no task in this call".to_owned(),
                    )));
                };
                let prompt = format!(
                    "The hub was restarted while this agent did `{key}`, and nobody knows how far that had come. Answer `again` to have it \
                     done once more, or anything else to leave it."
                );
                let prompt = Message::text(Role::Agent, prompt);
                let cancel = self.cancel.clone();
                let answer = tokio::select! {
                    answer = port.ask(Need::Input, prompt, None) => answer,
                    () = cancel.cancelled() => Err(Failure::Cancelled),
                };
                if answer != Err(Failure::Cancelled) {
                    self.record_answer(identity, JournalAnswer::Reply(answer.clone())).await?;
                }
                answer
            }
        };
        Ok(answer.map(|ClientAnswer { message, client }| {
            self.client = client;
            let text = message.joined_text().trim().to_lowercase();
            YES.contains(&text.as_str())
        }))
    }
}

/// Answer of the hub's store. In a step of a recorded run (`is_recorded`), a failed store is
/// retried until it works.
pub(super) async fn once_up<T, F>(
    is_recorded: bool,
    cancel: &CancellationToken,
    mut ask: impl FnMut() -> F,
) -> Result<T, Failure>
where
    F: Future<Output = Result<T, Failure>>,
{
    loop {
        match ask().await {
            Err(Failure::HubNotUp(_)) if is_recorded => tokio::select! {
                () = cancel.cancelled() => return Err(Failure::Cancelled),
                () = sleep(STORE_RETRY_DELAY) => {}
            },
            answer => return answer,
        }
    }
}

/// Size of an answer in the journal, in bytes.
fn weight(answer: &JournalAnswer) -> u64 {
    FRAME + json_bytes(answer)
}
