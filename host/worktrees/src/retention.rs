//! Retention: which worktrees at rest are removed, by age and number. Their changes stay in the
//! repositories.

use std::time::Duration;

/// Limits of worktrees at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorktreeRetention {
    /// Time of rest after which a worktree is removed; none if age removes none.
    pub keep: Option<Duration>,
    /// Number of all worktrees above which those that rest for the longest time are removed; none
    /// if the number removes none.
    pub keep_most: Option<usize>,
}

/// A worktree in which no task works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestingWorktree {
    /// Task that it was made for.
    pub task: String,
    /// Time since the last task in it.
    pub rests: Duration,
}

impl WorktreeRetention {
    /// Tasks whose worktrees are to be removed, the one that rests for the longest time first.
    /// `total` is the number of all worktrees, with those at work.
    pub fn due(&self, total: usize, mut resting: Vec<RestingWorktree>) -> Vec<String> {
        resting.sort_by(|a, b| b.rests.cmp(&a.rests).then_with(|| a.task.cmp(&b.task)));
        let surplus = self.keep_most.map_or(0, |most| total.saturating_sub(most));
        let is_old = |rests: Duration| self.keep.is_some_and(|keep| rests >= keep);
        let due = resting.into_iter().enumerate();
        let due = due.filter(|(at, one)| *at < surplus || is_old(one.rests));
        due.map(|(_, one)| one.task).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(keep: Option<u64>, keep_most: Option<usize>, total: usize, rests: &[u64]) -> String {
        let resting = rests.iter().map(|&hours| RestingWorktree {
            task: format!("t{hours}"),
            rests: Duration::from_hours(hours),
        });
        let retention = WorktreeRetention { keep: keep.map(Duration::from_hours), keep_most };
        retention.due(total, resting.collect()).join(" ")
    }

    #[test]
    fn old_and_surplus_worktrees_are_due() {
        assert_eq!(due(None, None, 9, &[1, 2, 3]), "");
        assert_eq!(due(Some(2), None, 9, &[1, 2, 3]), "t3 t2");
        assert_eq!(due(None, Some(2), 3, &[1, 2, 3]), "t3");
        assert_eq!(due(Some(3), Some(1), 3, &[1, 2, 3]), "t3 t2");
        // Those at work count, and stay.
        assert_eq!(due(None, Some(2), 9, &[1, 2]), "t2 t1");
        assert_eq!(due(None, Some(0), 1, &[]), "");
    }
}
