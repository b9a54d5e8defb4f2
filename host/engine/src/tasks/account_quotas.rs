//! Used-up quotas of the accounts of all agents, and the decision whether a task waits for one.

use a2a_hub_agents::Agent;
use a2a_hub_clock::{self as clock, quota_reset::quota_reset};
use a2a_hub_core::{
    failure_reason::FailureReason,
    grant::Resume,
    identity::LoginUser,
    scheduling::task_admission::Busy,
    task::{
        metadata::{QUOTA_RESETS_AT, REASON, quota_waits},
        quota::{Accounts, Moment, NoWait, QuotaAdmission, QuotaReaction, UsedUpQuota, wait_until},
    },
};
use a2a_hub_protocol::{
    id::{AgentId, TaskId},
    message::{Message, Metadata},
    task::{Task, TaskState},
};
use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::{sync::watch, time::Instant};

/// Quotas of all accounts. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct AccountQuotas {
    accounts: Arc<Mutex<Accounts>>,
    /// Tasks that wait, with their agents.
    waiting: Arc<Mutex<BTreeMap<TaskId, AgentId>>>,
    /// Notified when an account may have opened before the time of its reset.
    opened: Arc<watch::Sender<()>>,
}

impl AccountQuotas {
    /// Closes an account until this time, in milliseconds since 1970.
    pub(super) fn close(&self, account: &str, until_ms: u64) {
        let now = moment();
        self.accounts.lock().close(account, now.at_wall(until_ms), now);
    }

    /// Time until which a new task of the agent waits (RFC 3339), if it waits.
    ///
    /// # Errors
    /// If as many of the agent's tasks wait as may be queued.
    pub(super) fn closed_until(
        &self,
        agent: &Agent,
        account: &str,
    ) -> Result<Option<String>, Busy> {
        if agent.config.on_quota != Some(QuotaReaction::Wait) {
            return Ok(None);
        }
        let until = self.accounts.lock().closed_until(account, moment());
        let Some(until) = until else { return Ok(None) };
        let waiting = self.waiting.lock().values().filter(|of| **of == agent.id).count();
        if waiting >= agent.config.max_queued {
            return Err(Busy::UsedUpQuota { waiting });
        }
        Ok(clock::at_ms(until.wall_ms))
    }

    /// Decides whether a task starts its agent now.
    pub(super) fn admit(&self, account: &str, task: &TaskId) -> QuotaAdmission {
        self.accounts.lock().admit(account, task, moment())
    }

    /// Lets a task try now.
    pub(super) fn try_now(&self, account: &str, task: &TaskId) {
        self.accounts.lock().try_now(account, task, moment());
    }

    /// Reports that a task ended; with `has_run`, its run was not refused.
    pub(super) fn ended(&self, account: &str, task: &TaskId, has_run: bool) {
        if self.accounts.lock().ended(account, task, has_run) {
            self.opened.send_replace(());
        }
    }

    /// Records whether a task of an agent waits.
    pub(super) fn set_waiting(&self, task: &TaskId, agent: &AgentId, waits: bool) {
        let mut waiting = self.waiting.lock();
        if waits {
            waiting.insert(task.clone(), agent.clone());
        } else {
            waiting.remove(task);
        }
    }

    /// Tasks that wait.
    pub(super) fn waiting(&self) -> BTreeSet<TaskId> {
        self.waiting.lock().keys().cloned().collect()
    }

    /// Receiver of the notifications that an account may have opened.
    pub(super) fn openings(&self) -> watch::Receiver<()> {
        self.opened.subscribe()
    }
}

/// Current time on both clocks.
pub(super) fn moment() -> Moment {
    Moment { steady: Instant::now().into_std(), wall_ms: clock::now_ms() }
}

/// Account of a task: that of the login of its party or, for the operator's own login, the one that
/// the agent shares with others, or else the agent's. Only the operator names accounts, since an
/// agent that names one could hold up the tasks of others.
pub(super) async fn account_of(
    agent: &Agent,
    task: &TaskId,
    user: &LoginUser,
    directory: Option<&str>,
) -> String {
    match agent.login_name(user, directory).await {
        Ok(Some(login)) => format!("login {login}"),
        Ok(None) => default_account(agent).to_owned(),
        // The task will ask for a login, and uses nobody's quota.
        Err(_) => format!("no login {task}"),
    }
}

/// Account of the operator's own login of an agent.
pub(super) fn default_account(agent: &Agent) -> &str {
    agent.config.account.as_deref().unwrap_or(agent.id.as_str())
}

/// True if a status says that the agent's quota is used up.
pub(super) fn is_quota_failure(state: TaskState, facts: Option<&Metadata>) -> bool {
    let reason = facts.and_then(|facts| facts.get(REASON)?.as_str());
    state == TaskState::Failed && reason.is_some_and(FailureReason::is_of_quota)
}

/// Time until which a task waits whose agent ended so, in milliseconds since 1970, or the reason
/// why it does not wait. `None` if the operator wants no wait.
pub(super) fn decide(
    agent: &Agent,
    task: &Task,
    facts: Option<&Metadata>,
    message: Option<&Message>,
) -> Option<Result<u64, NoWait>> {
    if agent.config.on_quota != Some(QuotaReaction::Wait) {
        return None;
    }
    let now_ms = clock::now_ms();
    Some(wait_until(UsedUpQuota {
        resets_ms: reset_ms(facts, message, now_ms),
        now_ms,
        longest: agent.config.quota_wait(),
        waits: quota_waits(task),
        keeps_session: agent.resume() == Resume::Session,
        chance: getrandom::u64().unwrap_or_default(),
    }))
}

/// Time of the reset, in milliseconds since 1970: as the agent reports it, or else as the vendor's
/// error says. A reported time that is none counts as unknown.
fn reset_ms(facts: Option<&Metadata>, message: Option<&Message>, now_ms: u64) -> Option<u64> {
    let text = match facts.and_then(|facts| facts.get(QUOTA_RESETS_AT)) {
        Some(reported) => json!({ "resets_at": reported }).to_string(),
        None => message.map(Message::joined_text)?,
    };
    let now = Timestamp::from_millisecond(i64::try_from(now_ms).ok()?).ok()?;
    let reset = quota_reset(&text, now, &TimeZone::system())?;
    u64::try_from(reset.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::message::Role;
    use serde_json::Value;

    const NOW: u64 = 1_800_000_000_000;

    #[test]
    fn reset_time_table() {
        let read = |reported: Value, text: &str| {
            let facts = Metadata::from_iter([(QUOTA_RESETS_AT.to_owned(), reported)]);
            let facts = Some(facts).filter(|facts| !facts[QUOTA_RESETS_AT].is_null());
            reset_ms(facts.as_ref(), Some(&Message::text(Role::Agent, text)), NOW)
        };
        let hour = Some(NOW + 3_600_000);
        for (reported, text, expected) in [
            (json!(1_800_003_600), "", hour),
            (json!(1_800_003_600_000_u64), "", hour),
            (json!(1_800_003_600.5), "", hour),
            (json!("2027-01-15T09:00:00Z"), "", hour),
            (Value::Null, "Claude AI usage limit reached|1800003600", hour),
            (Value::Null, "You've hit your limit · resets 9am (UTC)", hour),
            (Value::Null, "Try again in 1 hour.", hour),
            (Value::Null, "429 Too Many Requests, Retry-After: 3600", hour),
            (Value::Null, "You've hit your limit", None),
            // What is reported counts, and not the text.
            (json!("soon"), "try again in 1 hour", None),
            (json!(-1), "try again in 1 hour", None),
            (json!([1_800_003_600]), "try again in 1 hour", None),
            (json!({ "at": 1 }), "", None),
            (json!(253_402_300_799_u64), "", None),
            (json!(1.0e300), "", None),
            (json!(u64::MAX), "", None),
        ] {
            assert_eq!(read(reported.clone(), text), expected, "{reported} {text}");
        }
    }
}
