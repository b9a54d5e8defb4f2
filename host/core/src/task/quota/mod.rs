//! Wait of a task for the reset of a used-up quota.
//!
//! ```text
//!  run ends: rate_limited ─► wait_until ─┬► Ok: the task waits, without a run permit
//!                                        └► Err: the failure stands, with the reason
//!  time of the reset ─► accounts: one task tries ─► the others ─► continue_message
//! ```

mod accounts;

pub use accounts::{Accounts, Moment, QuotaAdmission};

use super::{metadata::quota_waits, question::NOTE};
use crate::text::duration::Span;
use a2a_hub_protocol::{
    id::MessageId,
    message::{Message, Metadata, Part, Role},
    task::Task,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limit of waits of one task. If the quota is used up a fourth time, the reported times are wrong,
/// or the work does not fit the quota.
pub const MAX_WAITS: u64 = 3;

/// Shortest wait: a reset that has just passed must not lead to a busy loop.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// Time since a reset that still leads to a try: errors arrive late, and clocks differ.
const MAX_PAST: Duration = Duration::from_secs(60 * 60);

/// Longest jitter: hubs of one account must not all try in the same second (thundering herd).
const MAX_JITTER: Duration = Duration::from_secs(30);

/// Fraction of the wait that is the jitter at most.
const JITTER_FRACTION: u32 = 10;

/// Text for an agent whose session or conversation has the request.
const GO_ON: &str = "[The quota of your account was used up, and it has been reset. Continue where you stopped: see what is \
                     done already, do not repeat it, and finish the rest.]";

/// Reaction of the hub if an agent's quota is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuotaReaction {
    /// The task waits for the reset and continues. If it cannot wait, the group's setting decides.
    Wait,
    /// The hub hands the task over to another agent of the group that the client named.
    Handoff,
    /// The task fails.
    Fail,
}

/// Facts that decide whether a task waits for its quota.
#[derive(Clone, Copy, Debug)]
pub struct UsedUpQuota {
    /// Time of the reset, in milliseconds since 1970, if the agent reported one.
    pub resets_ms: Option<u64>,
    /// Current time in milliseconds since 1970.
    pub now_ms: u64,
    /// Longest wait that the operator allows.
    pub longest: Duration,
    /// Number of earlier waits of the task.
    pub waits: u64,
    /// True if the agent can continue its work in another run.
    pub keeps_session: bool,
    /// Random number for the jitter.
    pub chance: u64,
}

/// Reason why a task does not wait for its quota, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoWait {
    /// The agent could only repeat its work.
    #[error("its agent keeps no session that can be continued")]
    NoSession,
    /// No time was reported.
    #[error("the agent did not say when the quota resets")]
    UnknownTime,
    /// The reported time is long over.
    #[error("the reported time of the reset has passed")]
    Past,
    /// The reset is too far away.
    #[error("the quota resets in {}, and `quota_wait_ms` allows {}", Span(*.wait), Span(*.longest))]
    TooLong {
        /// Time until the reset.
        wait: Duration,
        /// Longest wait that is allowed.
        longest: Duration,
    },
    /// The task has waited before.
    #[error("it has waited {MAX_WAITS} times already")]
    TooOften,
}

/// Time at which a task whose quota is used up continues, in milliseconds since 1970: a little
/// after the reset.
///
/// # Errors
/// If the task must not wait.
pub fn wait_until(quota: UsedUpQuota) -> Result<u64, NoWait> {
    let UsedUpQuota { resets_ms, now_ms, longest, waits, keeps_session, chance } = quota;
    if !keeps_session {
        return Err(NoWait::NoSession);
    }
    let resets_ms = resets_ms.ok_or(NoWait::UnknownTime)?;
    if Duration::from_millis(now_ms.saturating_sub(resets_ms)) > MAX_PAST {
        return Err(NoWait::Past);
    }
    let wait = Duration::from_millis(resets_ms.saturating_sub(now_ms));
    if wait > longest {
        return Err(NoWait::TooLong { wait, longest });
    }
    if waits >= MAX_WAITS {
        return Err(NoWait::TooOften);
    }
    let wait = wait.max(MIN_WAIT);
    let jitter_ms = millis(MAX_JITTER.min(wait / JITTER_FRACTION));
    let jitter_ms = chance % jitter_ms.saturating_add(1);
    Ok(now_ms.saturating_add(millis(wait)).saturating_add(jitter_ms))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Message with which the agent continues a task after its wait. It has the metadata of the first
/// message, such as its permissions. If the agent does not know the conversation (`is_known`), the
/// message also repeats the request. `None` if the task has no message.
pub fn continue_message(task: &Task, is_known: bool) -> Option<Message> {
    let first = task.history.iter().find(|message| message.role == Role::User)?;
    let mark = Metadata::from_iter([(NOTE.to_owned(), "quota_reset".into())]);
    let note = Part { metadata: Some(mark), ..Part::text(GO_ON) };
    let request = if is_known { Vec::new() } else { first.parts.clone() };
    let message_id = MessageId::new(format!("{}:quota-{}", first.message_id, quota_waits(task)));
    Some(Message {
        message_id,
        parts: request.into_iter().chain([note]).collect(),
        ..first.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000_000;
    const HOUR: Duration = Duration::from_secs(60 * 60);

    fn used_up(resets_ms: Option<u64>) -> UsedUpQuota {
        let (waits, keeps_session, chance) = (0, true, 0);
        UsedUpQuota { resets_ms, now_ms: NOW, longest: 24 * HOUR, waits, keeps_session, chance }
    }

    #[test]
    fn wait_table() {
        let hours = |hours: u64| NOW + hours * millis(HOUR);
        let year_9999 = 253_402_300_799_000;
        let too_long = |wait| Err(NoWait::TooLong { wait, longest: 24 * HOUR });
        for (resets, expected) in [
            (None, Err(NoWait::UnknownTime)),
            (Some(hours(3)), Ok(hours(3))),
            (Some(hours(24)), Ok(hours(24))),
            (Some(hours(25)), too_long(25 * HOUR)),
            (Some(year_9999), too_long(Duration::from_millis(year_9999 - NOW))),
            (Some(u64::MAX), too_long(Duration::from_millis(u64::MAX - NOW))),
            (Some(NOW), Ok(NOW + 1_000)),
            (Some(NOW + 1), Ok(NOW + 1_000)),
            (Some(NOW - millis(HOUR)), Ok(NOW + 1_000)),
            (Some(NOW - millis(HOUR) - 1), Err(NoWait::Past)),
            (Some(0), Err(NoWait::Past)),
        ] {
            assert_eq!(wait_until(used_up(resets)), expected, "{resets:?}");
        }
        let soon = used_up(Some(hours(1)));
        for (waits, expected) in [
            (0, Ok(hours(1))),
            (2, Ok(hours(1))),
            (3, Err(NoWait::TooOften)),
            (u64::MAX, Err(NoWait::TooOften)),
        ] {
            assert_eq!(wait_until(UsedUpQuota { waits, ..soon }), expected, "{waits}");
        }
        let forgetful = UsedUpQuota { keeps_session: false, ..soon };
        assert_eq!(wait_until(forgetful), Err(NoWait::NoSession));
    }

    #[test]
    fn jitter_is_bounded_by_wait() {
        for (wait_ms, most_ms) in [(1_000, 100), (60_000, 6_000), (10_000_000, 30_000)] {
            for chance in [0, 1, 99, most_ms, most_ms + 1, u64::MAX] {
                let until = wait_until(UsedUpQuota { chance, ..used_up(Some(NOW + wait_ms)) });
                let jitter = until.unwrap() - NOW - wait_ms;
                assert!(jitter <= most_ms, "{jitter} of {most_ms}");
            }
        }
    }

    /// Whatever an agent reports, a wait lasts a second at least and the allowed time at most.
    #[test]
    fn hostile_times_are_bounded() {
        let mut seed = 1_u64;
        for _ in 0..10_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let quota =
                UsedUpQuota { chance: seed.rotate_left(17), ..used_up(Some(seed >> (seed % 40))) };
            if let Ok(until) = wait_until(quota) {
                let range = NOW + 1_000..=NOW + millis(24 * HOUR + MAX_JITTER);
                assert!(range.contains(&until), "{until}");
            }
        }
    }
}
