//! Usage of one instance: remaining events, output bytes and files, and rate limits.

use a2a_hub_core::{
    grant::EffectiveGrant,
    scheduling::token_bucket::{Bucket, Rate},
    text::file_name,
};
use a2a_hub_runtime::{Failure, Limits, limits::Rates};
use serde::Serialize;
use std::{collections::BTreeSet, io, time::Duration};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Remaining output of a task.
#[derive(Debug)]
pub(crate) struct OutputBudget {
    remaining_events: u64,
    remaining_bytes: u64,
}

impl OutputBudget {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { remaining_events: limits.events, remaining_bytes: limits.output_bytes }
    }

    pub(crate) fn charge(&mut self, events: u64, bytes: u64) -> Result<(), Failure> {
        let (Some(remaining_events), Some(remaining_bytes)) =
            (self.remaining_events.checked_sub(events), self.remaining_bytes.checked_sub(bytes))
        else {
            return Err(Failure::Exhausted(
                "emit more: this task's output limit is used up; the operator raises it with `events` or `output_bytes` \
                 in the agent's `limits`"
                    .to_owned(),
            ));
        };
        *self = Self { remaining_events, remaining_bytes };
        Ok(())
    }
}

/// Files of one instance, however small: each takes a directory entry.
const MAX_FILES: usize = 1_000;

/// Files written by one instance, and the remaining bytes.
#[derive(Debug)]
pub(crate) struct WriteBudget {
    names: BTreeSet<String>,
    remaining_bytes: u64,
}

impl WriteBudget {
    pub(crate) fn new(grant: &EffectiveGrant) -> Self {
        Self { names: BTreeSet::new(), remaining_bytes: grant.files_bytes.unwrap_or(0) }
    }

    /// Reserves a file; returns its name.
    pub(crate) fn reserve(&mut self, proposed: &str, bytes: usize) -> Result<String, Failure> {
        let remaining =
            u64::try_from(bytes).ok().and_then(|bytes| self.remaining_bytes.checked_sub(bytes));
        let Some(remaining) = remaining else {
            return Err(Failure::Exhausted(format!(
                "write a file of {bytes} bytes: {} are left of what the manifest's `[files]` asks for and `grant.files` allows",
                self.remaining_bytes
            )));
        };
        if self.names.len() == MAX_FILES {
            return Err(Failure::Exhausted(format!(
                "write a file: there are {MAX_FILES}, which is all that one task may have"
            )));
        }
        let name = file_name::unused(proposed, &self.names);
        self.names.insert(name.clone());
        self.remaining_bytes = remaining;
        Ok(name)
    }
}

/// Length of a value as JSON, in bytes.
pub(crate) fn json_bytes(it: &impl Serialize) -> u64 {
    let mut bytes = Counted(0);
    // Only the writer or a key that is not text could fail, and neither occurs.
    let _ = serde_json::to_writer(&mut bytes, it);
    bytes.0
}

/// Counts written bytes.
struct Counted(u64);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shorter waits are deferred, so that the work of several is done together (timers, wakeups,
/// transactions of the store). A person does not notice that text arrives forty times a second.
const SHORTEST_WAIT: Duration = Duration::from_millis(25);

/// Rate limits of one instance for requests that cost others work. A guest that is too fast waits
/// (backpressure).
#[derive(Debug)]
pub(crate) struct Paces {
    pub(crate) events: Bucket,
    pub(crate) output_bytes: Bucket,
    pub(crate) log_lines: Bucket,
    pub(crate) memory_calls: Bucket,
    pub(crate) files: Bucket,
    pub(crate) programs: Bucket,
}

impl Paces {
    pub(crate) fn new(rates: &Rates) -> Self {
        let now = Instant::now().into_std();
        let of = |per_second| Bucket::full(Rate::new(per_second), now);
        let Rates { events, output_bytes, log_lines, memory_calls, files, programs } = *rates;
        Self {
            events: of(events),
            output_bytes: of(output_bytes),
            log_lines: of(log_lines),
            memory_calls: of(memory_calls),
            files: of(files),
            programs: of(programs),
        }
    }
}

/// Wait after taking these tokens.
pub(crate) fn pace(bucket: &mut Bucket, tokens: u64) -> Duration {
    bucket.take(tokens, Instant::now().into_std())
}

/// Waits, unless the task is cancelled.
pub(crate) async fn wait(time: Duration, cancel: &CancellationToken) -> Result<(), Failure> {
    if time < SHORTEST_WAIT {
        return Ok(());
    }
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Failure::Cancelled),
        () = sleep(time) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paused clock advances as soon as everybody waits, by as much.
    #[tokio::test(start_paused = true)]
    async fn fast_guest_waits_without_loss() {
        let rates = Rates { events: 100, ..Rates::default() };
        let (mut paces, cancel) = (Paces::new(&rates), CancellationToken::new());
        let begun = Instant::now();
        for _ in 0..1_200 {
            let time = pace(&mut paces.events, 1);
            wait(time, &cancel).await.unwrap();
        }
        let took = begun.elapsed();
        let expected = Duration::from_secs(10);
        assert!(took.abs_diff(expected) < Duration::from_millis(50), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn rate_limit_wait_is_cancellable() {
        let (hour, cancel) = (Duration::from_secs(3_600), CancellationToken::new());
        let begun = Instant::now();
        let cancels = async {
            sleep(Duration::from_secs(1)).await;
            cancel.cancel();
        };
        let (waited, ()) = tokio::join!(wait(hour, &cancel), cancels);
        assert_eq!(waited, Err(Failure::Cancelled));
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
    }
}
