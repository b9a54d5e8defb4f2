//! Changes of all tasks in one order, after which a reader resumes, also over restarts.

use crate::StorageError;
use a2a_hub_protocol::{
    event::TaskEvent,
    id::{AgentId, ContextId, TaskId, TenantId},
    task::TaskState,
};
use std::{borrow::Borrow, fmt, str::FromStr};

/// Number of changes that a store keeps: some six megabytes. A cursor before them is refused.
pub const MAX_CHANGES: u64 = 100_000;

/// Changes after which the oldest ones are deleted, so that one deletion takes some microseconds a
/// change.
pub(crate) const PRUNE_INTERVAL: u64 = 1_024;

/// Position in the order of all changes. As text, it is opaque to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeCursor {
    /// Id that the store took when it was opened. It tells a restored or another store from this
    /// one, whose numbers mean other changes.
    pub(crate) history: String,
    /// Number of the last change before the position; 0 before the first.
    pub(crate) number: u64,
}

impl ChangeCursor {
    /// Cursor of the same history after the change with this number.
    #[must_use]
    pub fn at(&self, number: u64) -> Self {
        Self { history: self.history.clone(), number }
    }

    /// Cursor before the change after which this one is, and the number of the change; none at the
    /// beginning.
    pub fn before(&self) -> Option<(Self, u64)> {
        Some((self.at(self.number.checked_sub(1)?), self.number))
    }
}

impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.history, self.number)
    }
}

/// Error of reading a text that is no cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is the value of `cursor` in an earlier event")]
pub struct NoCursor;

impl FromStr for ChangeCursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let (history, number) = text.rsplit_once('-').ok_or(NoCursor)?;
        let is_canonical = |digits: &str| {
            digits.bytes().all(|byte| byte.is_ascii_digit())
                && (digits.len() == 1 || !digits.starts_with('0'))
        };
        let is_history = !history.is_empty()
            && history.len() <= 64
            && history.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_history || !is_canonical(number) {
            return Err(NoCursor);
        }
        let number = number.parse().map_err(|_| NoCursor)?;
        Ok(Self { history: history.to_owned(), number })
    }
}

/// Append to a task's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskChange {
    /// Number in the order of all changes; it is never used again.
    pub number: u64,
    /// Task.
    pub task: TaskId,
    /// Conversation of the task.
    pub context: ContextId,
    /// Agent of the task.
    pub agent: AgentId,
    /// Number of the last appended event in the task's log.
    pub seq: u64,
    /// Time of the append in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Changes of the task's state.
    pub moves: Moves,
}

/// Changes of a task's state by one append.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// True if the append created the task.
    pub is_new: bool,
    /// States that the task came to, in order.
    pub states: Vec<TaskState>,
}

impl Moves {
    /// Changes by `events`, which follow `before`; none for a new task.
    pub(crate) fn of<E: Borrow<TaskEvent>>(before: Option<TaskState>, events: &[E]) -> Self {
        let (mut moves, mut last) = (Self { is_new: before.is_none(), ..Self::default() }, before);
        for event in events {
            let state = match event.borrow() {
                TaskEvent::Created(created) => {
                    last = Some(created.task.status.state);
                    continue;
                }
                TaskEvent::Status(update) => update.status.state,
                TaskEvent::Reply(_) => TaskState::Completed,
                TaskEvent::Artifact(_) | TaskEvent::Input(_) => continue,
            };
            if last != Some(state) {
                moves.states.push(state);
                last = Some(state);
            }
        }
        moves
    }

    /// Short text for a table, one character each; none if nothing changed.
    pub(crate) fn to_text(&self) -> Option<String> {
        let new = self.is_new.then_some(NEW);
        let text: String =
            new.into_iter().chain(self.states.iter().map(|it| letter(*it))).collect();
        (!text.is_empty()).then_some(text)
    }

    /// Reads [`to_text`](Self::to_text). Letters of later versions are left out.
    pub(crate) fn from_text(text: &str) -> Self {
        let state = |it| TaskState::ALL.into_iter().find(|state| letter(*state) == it);
        Self { is_new: text.starts_with(NEW), states: text.chars().filter_map(state).collect() }
    }
}

/// Letter of a creation in a table.
const NEW: char = '+';

/// Letter of a state in a table.
fn letter(state: TaskState) -> char {
    match state {
        TaskState::Submitted => 's',
        TaskState::Working => 'w',
        TaskState::InputRequired => 'i',
        TaskState::AuthRequired => 'a',
        TaskState::Completed => 'c',
        TaskState::Failed => 'f',
        TaskState::Canceled => 'x',
        TaskState::Rejected => 'r',
        TaskState::Unknown => 'u',
    }
}

/// Changes after a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangesAfter {
    /// The changes, oldest first.
    Page(ChangePage),
    /// Some changes after the cursor cannot be listed.
    Lost(CursorLoss),
}

/// Page of changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangePage {
    /// The changes, oldest first: without those of other tenants and of deleted tasks.
    pub changes: Vec<TaskChange>,
    /// Cursor after all changes that the page covers.
    pub next: ChangeCursor,
    /// True if the store has no later change. Without it, a page may have few changes, even none.
    pub is_last: bool,
}

/// Reason why changes after a cursor cannot be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CursorLoss {
    /// The store has dropped them: it keeps the latest [`MAX_CHANGES`].
    Dropped,
    /// The cursor is of another store, or of one whose later part is gone, as after a restored
    /// backup.
    Foreign,
}

/// Decides whether all changes after number `after` can be listed. `end` is the number of the last
/// change that the cursor's history shares with the store, `None` if the store does not know that
/// history; `oldest` is the number of the oldest kept change.
pub(crate) fn judge(after: u64, end: Option<u64>, oldest: Option<u64>) -> Result<(), CursorLoss> {
    match (end, oldest) {
        (None, _) => Err(CursorLoss::Foreign),
        (Some(end), _) if after > end => Err(CursorLoss::Foreign),
        (Some(_), Some(oldest)) if after.saturating_add(1) < oldest => Err(CursorLoss::Dropped),
        (Some(_), _) => Ok(()),
    }
}

/// Changes of all tasks in the order of their appends. Each append to a log is one change, in the
/// same transaction. Appends of hubs before version 0.2 are none.
#[async_trait::async_trait]
pub trait ChangeLog: Send + Sync {
    /// Cursor after the latest change.
    async fn latest_change(&self) -> Result<ChangeCursor, StorageError>;

    /// Changes after a cursor, of one tenant or of all; examines at most `limit`.
    async fn changes(
        &self,
        after: &ChangeCursor,
        tenant: Option<&TenantId>,
        limit: usize,
    ) -> Result<ChangesAfter, StorageError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{chunk, created, status};

    #[test]
    fn cursor_text_round_trips_and_else_is_refused() {
        let cursor = ChangeCursor { history: "01a2-b".to_owned(), number: 41 };
        assert_eq!(cursor.to_string().parse(), Ok(cursor.clone()));
        let zero = ChangeCursor { number: 0, ..cursor };
        assert_eq!(zero.to_string().parse(), Ok(zero));
        for wrong in [
            "",
            "-",
            "7",
            "a-",
            "-7",
            "a-+7",
            "a-07",
            "a- 7",
            "a-7 ",
            "a-18446744073709551616",
            "a\n-7",
            "ä-7",
        ] {
            assert_eq!(wrong.parse::<ChangeCursor>(), Err(NoCursor), "{wrong:?}");
        }
        assert_eq!(format!("{}-7", "a".repeat(65)).parse::<ChangeCursor>(), Err(NoCursor));
    }

    #[test]
    fn moves_of_append_round_trip() {
        let id = TaskId::fresh();
        let (works, asks) =
            (status(TaskState::Working, 1, None), status(TaskState::InputRequired, 2, None));
        let of = |before, events: &[_]| Moves::of(before, events).to_text().unwrap_or_default();
        assert_eq!(of(None, &[created(&id, "c")]), "+");
        let all = [created(&id, "c"), works.clone(), works.clone(), chunk("x"), asks.clone()];
        assert_eq!(of(None, &all), "+wi");
        assert_eq!(of(Some(TaskState::Working), &[chunk("x"), works.clone()]), "");
        assert_eq!(of(Some(TaskState::InputRequired), &[works, asks]), "wi");
        for state in TaskState::ALL {
            for is_new in [false, true] {
                let moves = Moves { is_new, states: vec![state, TaskState::Failed] };
                assert_eq!(Moves::from_text(&moves.to_text().unwrap()), moves);
            }
        }
        assert_eq!(Moves::from_text("?w").states, [TaskState::Working]);
    }

    #[test]
    fn cursor_is_lost_before_oldest_and_after_end() {
        for (after, end, oldest, wanted) in [
            (0, Some(0), None, Ok(())),
            (5, Some(5), Some(6), Ok(())),
            (4, Some(5), Some(6), Err(CursorLoss::Dropped)),
            (6, Some(5), Some(1), Err(CursorLoss::Foreign)),
            (0, None, Some(1), Err(CursorLoss::Foreign)),
            (u64::MAX, Some(u64::MAX), Some(1), Ok(())),
        ] {
            assert_eq!(judge(after, end, oldest), wanted, "{after} {end:?} {oldest:?}");
        }
    }
}
