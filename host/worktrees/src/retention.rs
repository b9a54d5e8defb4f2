//! Retention: which worktrees at rest are removed, by age, number and disk use. Their changes stay
//! in the repositories.

use std::time::Duration;

/// Limits of worktrees at rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorktreeRetention {
    /// Time of rest after which a worktree is removed; none if age removes none.
    pub keep: Option<Duration>,
    /// Number of all worktrees above which those that rest for the longest time are removed; none
    /// if the number removes none.
    pub keep_count: Option<usize>,
    /// Bytes of all worktrees above which those that rest for the longest time are removed; none if
    /// their disk use removes none.
    pub keep_bytes: Option<u64>,
}

/// Number and disk use of all worktrees, with those at work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorktreeTotals {
    /// Number.
    pub count: usize,
    /// Disk use in bytes.
    pub bytes: u64,
}

/// A worktree in which no task works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestingWorktree {
    /// Task that it was made for.
    pub task: String,
    /// Time since the last task in it.
    pub rests: Duration,
    /// Disk use in bytes.
    pub bytes: u64,
}

impl WorktreeRetention {
    /// Tasks whose worktrees are to be removed, the one that rests for the longest time first.
    /// `total` counts all worktrees, with those at work.
    pub fn due(&self, total: WorktreeTotals, mut resting: Vec<RestingWorktree>) -> Vec<String> {
        resting.sort_by(|a, b| b.rests.cmp(&a.rests).then_with(|| a.task.cmp(&b.task)));
        let WorktreeTotals { mut count, mut bytes } = total;
        let mut goes = |one: &RestingWorktree| {
            let is_due = self.keep.is_some_and(|keep| one.rests >= keep)
                || self.keep_count.is_some_and(|limit| count > limit)
                || self.keep_bytes.is_some_and(|limit| bytes > limit);
            count = count.saturating_sub(1);
            bytes = bytes.saturating_sub(one.bytes);
            is_due
        };
        // Whatever removes one of them removes those that rest for longer.
        let due = resting.into_iter().take_while(|one| goes(one));
        due.map(|one| one.task).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600;

    /// Worktrees that rest for some hours and take some bytes, of which `due` are removed.
    fn due(retention: WorktreeRetention, total: (usize, u64), resting: &[(u64, u64)]) -> String {
        let resting = resting.iter().map(|&(hours, bytes)| RestingWorktree {
            task: format!("t{hours}"),
            rests: Duration::from_secs(hours * HOUR),
            bytes,
        });
        let (count, bytes) = total;
        retention.due(WorktreeTotals { count, bytes }, resting.collect()).join(" ")
    }

    fn keep(hours: Option<u64>, keep_most: Option<usize>) -> WorktreeRetention {
        let keep = hours.map(|hours| Duration::from_secs(hours * HOUR));
        WorktreeRetention { keep, keep_count: keep_most, keep_bytes: None }
    }

    #[test]
    fn old_and_surplus_worktrees_are_due() {
        let all = &[(1, 0), (2, 0), (3, 0)];
        assert_eq!(due(keep(None, None), (9, 0), all), "");
        assert_eq!(due(keep(Some(2), None), (9, 0), all), "t3 t2");
        assert_eq!(due(keep(None, Some(2)), (3, 0), all), "t3");
        assert_eq!(due(keep(Some(3), Some(1)), (3, 0), all), "t3 t2");
        // Those at work count, and stay.
        assert_eq!(due(keep(None, Some(2)), (9, 0), &[(1, 0), (2, 0)]), "t2 t1");
        assert_eq!(due(keep(None, Some(0)), (1, 0), &[]), "");
    }

    #[test]
    fn oldest_worktrees_make_room_on_disk() {
        let all = &[(1, 50), (2, 30), (3, 20)];
        let keep = |most| WorktreeRetention { keep_bytes: Some(most), ..keep(None, None) };
        assert_eq!(due(keep(100), (3, 100), all), "");
        assert_eq!(due(keep(99), (3, 100), all), "t3");
        assert_eq!(due(keep(79), (3, 100), all), "t3 t2");
        assert_eq!(due(keep(0), (3, 100), all), "t3 t2 t1");
        // Those at work count, and stay.
        assert_eq!(due(keep(100), (4, 140), all), "t3 t2");
        // What goes for its age makes room for the others.
        let both = WorktreeRetention { keep: Some(Duration::from_secs(3 * HOUR)), ..keep(80) };
        assert_eq!(due(both, (3, 100), all), "t3");
    }
}
