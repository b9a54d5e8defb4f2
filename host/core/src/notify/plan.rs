//! Decisions of a notifier: the items that a message is due for, the time of the next look, and
//! the state that keeps an item from being sent twice.
//!
//! ```text
//! question asked ──── after ────► due ── moment ──► message ──► sent
//!                  └ answered: never sent      └ quiet hours: at their end, if still open
//! ```
//!
//! The decision depends on levels and not on events: it compares all open questions and unread
//! notices with the items that were handled. So an event that nobody saw, a restart or a clock that
//! was set costs no message. The state is stored before a program is started and before a request
//! is sent; see [`NotifierState::begin_delivery`].

pub use super::item::{AttentionId, AttentionItem, DueItem, NotifyKind};

use super::message::NotifyMessage;
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};

/// Time between the first due item and its message, so that several items within a moment make one
/// message, in milliseconds.
pub const BUNDLE_MS: i64 = 2_000;

/// Most handled items that are remembered after they were answered or read. A busy task is listed
/// without its queued questions for a moment, and must not be sent again after it.
const REMEMBERED: usize = 256;

/// Longest pause between two attempts to deliver, in milliseconds. A stored time beyond it was
/// written under a clock that was wrong.
const MAX_PAUSE_MS: i64 = 2 * 60 * 60 * 1000;

/// Rules of a notifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyRules {
    /// Kinds of items.
    pub kinds: BTreeSet<NotifyKind>,
    /// Only items of these agents, or of a question that one of them relays; of every agent, if it
    /// is empty.
    pub agents: BTreeSet<AgentId>,
    /// Time for which an item must be open or unread, in milliseconds.
    pub after_ms: i64,
}

impl NotifyRules {
    fn concerns(&self, item: &AttentionItem) -> bool {
        self.agents.is_empty()
            || self.agents.contains(&item.agent)
            || item.path.iter().any(|agent| self.agents.contains(agent))
    }
}

/// Next step of a notifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifyStep<'i> {
    /// Look again at this time, in milliseconds since 1970; without one, after a change.
    Wait(Option<i64>),
    /// Write a message about these items, which are never empty.
    Compose(Vec<DueItem<'i>>),
    /// Deliver the pending message.
    Deliver,
    /// Drop the pending message: every item in it was answered or read meanwhile.
    Drop,
}

/// State of a notifier, which is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NotifierState {
    /// Keys of the items that a message was written about, or that are older than the notifier.
    handled: Vec<String>,
    /// Message that is to be delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<PendingNotification>,
    /// Failure of the latest delivery; none after one that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<NotifierFailure>,
    /// Number of delivered messages.
    pub sent: u64,
    /// Time of the latest delivered message (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_sent_at: Option<String>,
}

/// Message that is to be delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingNotification {
    /// The message. Its id stays the same over all attempts.
    pub message: NotifyMessage,
    /// Keys of its items.
    keys: Vec<String>,
    /// Number of failed attempts.
    pub attempts: u32,
    /// Time of the first attempt, in milliseconds since 1970.
    pub since_ms: i64,
    /// Time of the next attempt, in milliseconds since 1970.
    pub again_ms: i64,
}

/// Failure of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotifierFailure {
    /// Time of the first failure since the latest success (RFC 3339).
    pub since: String,
    /// Reason, for people.
    pub error: String,
    /// Number of messages that were given up since then.
    pub lost: u64,
}

impl NotifierState {
    /// State of a new notifier: it reports the questions that are open, and no notice from before
    /// its time.
    pub fn new(items: &[AttentionItem]) -> Self {
        let is_notice = |item: &&AttentionItem| matches!(item.id, AttentionId::Notice(_));
        let handled = items.iter().filter(is_notice).map(AttentionItem::key).collect();
        Self { handled, ..Self::default() }
    }

    /// Next step, given everything that is open or unread now. `quiet_until_ms` is the end of the
    /// quiet hours if they last now.
    pub fn step<'i>(
        &self,
        rules: &NotifyRules,
        items: &'i [AttentionItem],
        now_ms: i64,
        quiet_until_ms: Option<i64>,
    ) -> NotifyStep<'i> {
        if let Some(pending) = &self.pending {
            if !pending.keys.iter().any(|key| is_open(items, key)) {
                return NotifyStep::Drop;
            }
            let again = pending.again_ms.min(now_ms.saturating_add(MAX_PAUSE_MS));
            return match quiet_until_ms {
                Some(end) => NotifyStep::Wait(Some(end.max(again))),
                None if again > now_ms => NotifyStep::Wait(Some(again)),
                None => NotifyStep::Deliver,
            };
        }
        let handled: HashSet<&str> = self.handled.iter().map(String::as_str).collect();
        let waiting: Vec<_> = items.iter().filter_map(|item| due(rules, item, &handled)).collect();
        let Some(first_ms) = waiting.iter().map(|due| due.due_ms).min() else {
            return NotifyStep::Wait(None);
        };
        // The clock may have been set back since the item was asked; then it is due after the same
        // time again.
        let message_ms = first_ms.saturating_add(BUNDLE_MS);
        match quiet_until_ms {
            Some(end) => NotifyStep::Wait(Some(end.max(message_ms))),
            None if message_ms > now_ms => NotifyStep::Wait(Some(message_ms)),
            None => {
                let mut due: Vec<_> =
                    waiting.into_iter().filter(|due| due.due_ms <= now_ms).collect();
                due.sort_by_key(|due| (due.kind, due.item.at_ms));
                NotifyStep::Compose(due)
            }
        }
    }

    /// Follows what people did: a question that was set aside is due again once its time is over,
    /// and items that are closed are forgotten. True if the state changed.
    pub fn reconcile(&mut self, items: &[AttentionItem]) -> bool {
        let before = self.handled.len();
        let aside: HashSet<_> =
            items.iter().filter(|item| item.is_set_aside).map(AttentionItem::key).collect();
        self.handled.retain(|key| !aside.contains(key));
        let open: HashSet<_> = items
            .iter()
            .flat_map(|item| [Some(item.key()), item.expiring_key()])
            .flatten()
            .collect();
        let closed = self.handled.iter().filter(|key| !open.contains(*key)).count();
        let mut surplus = closed.saturating_sub(REMEMBERED);
        self.handled.retain(|key| {
            let drops = surplus > 0 && !open.contains(key);
            surplus -= usize::from(drops);
            !drops
        });
        self.handled.len() != before
    }

    /// Records that `message` is about to be delivered. To be stored before the delivery. A kill
    /// after that loses a message that may be sent once only, and repeats one with `is_repeatable`
    /// under the same id.
    pub fn begin_delivery(
        &mut self,
        message: NotifyMessage,
        due: &[DueItem<'_>],
        is_repeatable: bool,
        now_ms: i64,
    ) {
        let keys: Vec<_> = due.iter().flat_map(|due| due.keys.iter().cloned()).collect();
        self.handled.extend(keys.iter().cloned());
        self.pending = is_repeatable.then_some(PendingNotification {
            message,
            keys,
            attempts: 0,
            since_ms: now_ms,
            again_ms: now_ms,
        });
    }

    /// Records a delivery that succeeded at `at`.
    pub fn delivered(&mut self, at: String) {
        (self.pending, self.failure) = (None, None);
        self.sent += 1;
        self.last_sent_at = Some(at);
    }

    /// Records a failed delivery at `at`. The pending message is tried again at `again_ms`; without
    /// a time it is given up.
    pub fn failed(&mut self, error: String, at: String, again_ms: Option<i64>) {
        let before = self.failure.take();
        let (since, lost) = before.map_or((at, 0), |before| (before.since, before.lost));
        match (&mut self.pending, again_ms) {
            (Some(pending), Some(again_ms)) => {
                pending.attempts = pending.attempts.saturating_add(1);
                pending.again_ms = again_ms;
                self.failure = Some(NotifierFailure { since, error, lost });
            }
            (_, _) => {
                self.pending = None;
                self.failure = Some(NotifierFailure { since, error, lost: lost + 1 });
            }
        }
    }
}

/// True if the question or notice of this key is still open or unread.
fn is_open(items: &[AttentionItem], key: &str) -> bool {
    let is_same = |item: &AttentionItem| match (key.split_once(':'), &item.id) {
        (Some(("q" | "e", id)), AttentionId::Question(question)) => question.as_str() == id,
        (Some(("n", number)), AttentionId::Notice(notice)) => notice.to_string() == number,
        (_, _) => false,
    };
    items.iter().any(is_same)
}

/// The item with the time from which on it is due; none if the rules or the state exclude it.
fn due<'i>(
    rules: &NotifyRules,
    item: &'i AttentionItem,
    handled: &HashSet<&str>,
) -> Option<DueItem<'i>> {
    if !rules.concerns(item) {
        return None;
    }
    let (key, expiring) = (item.key(), item.expiring_key());
    let warns = rules.kinds.contains(&NotifyKind::Expiring);
    if let Some(expiring) = expiring.filter(|it| warns && !handled.contains(it.as_str())) {
        // The warning replaces a message about the question that was not sent yet.
        let keys = vec![expiring, key];
        return Some(DueItem { kind: NotifyKind::Expiring, item, keys, due_ms: item.at_ms });
    }
    let is_due =
        rules.kinds.contains(&item.kind) && !item.is_set_aside && !handled.contains(key.as_str());
    let due_ms = item.at_ms.saturating_add(rules.after_ms);
    is_due.then(|| DueItem { kind: item.kind, item, keys: vec![key], due_ms })
}

#[cfg(test)]
mod tests;
