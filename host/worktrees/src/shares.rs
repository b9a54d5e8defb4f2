//! Shares of the worktrees of a hub, so that neither an agent nor a tenant can take all of them.
//!
//! | holder | at most |
//! | --- | --- |
//! | the operator | all |
//! | one tenant | half of what is not reserved |
//! | the tasks that one agent asked for | a quarter of what is not reserved |
//! | all but the operator, together | all but the reserve, a tenth |

use crate::WorktreeOwner;

/// Most worktrees of one hub.
const MAX_WORKTREES: usize = 256;

/// Worktrees for all but the operator.
const SHARED: usize = MAX_WORKTREES - MAX_WORKTREES / 10;

/// Worktrees for one tenant.
const OF_A_TENANT: usize = SHARED / 2;

/// Worktrees for the tasks that one agent asked for.
const OF_AN_AGENT: usize = SHARED / 4;

/// Refuses one more worktree above a share. `owners` are the owners of the present ones.
pub(crate) fn admit<'o>(
    new: &WorktreeOwner,
    owners: impl Iterator<Item = &'o WorktreeOwner>,
) -> Result<(), String> {
    let (mut all, mut tenant, mut agent) = (0, 0, 0);
    for owner in owners {
        all += 1;
        tenant += usize::from(owner.tenant == new.tenant);
        agent += usize::from(owner.agent.is_some() && owner.agent == new.agent);
    }
    let is_operator = new.tenant.is_empty() && new.agent.is_none();
    let remove = "remove some: `a2a-hub worktrees prune`";
    if all >= MAX_WORKTREES {
        return Err(format!("this hub has {MAX_WORKTREES} worktrees, which is the most; {remove}"));
    }
    if is_operator {
        return Ok(());
    }
    if let Some(name) = new.agent.as_ref().filter(|_| agent >= OF_AN_AGENT) {
        return Err(format!(
            "the agent `{name}` has {OF_AN_AGENT} worktrees for its tasks, which is the most of one agent; {remove}"
        ));
    }
    if !new.tenant.is_empty() && tenant >= OF_A_TENANT {
        let name = &new.tenant;
        return Err(format!(
            "the tenant `{name}` has {OF_A_TENANT} worktrees, which is the most of one tenant; {remove}"
        ));
    }
    if all >= SHARED {
        return Err(format!(
            "agents and tenants have {SHARED} worktrees, and the others are the operator's; {remove}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of the book has the same numbers: `core::scheduling::resources`.
    #[test]
    fn shares_are_those_of_the_book() {
        assert_eq!([MAX_WORKTREES, SHARED, OF_A_TENANT, OF_AN_AGENT], [256, 231, 115, 57]);
    }

    #[test]
    fn no_holder_takes_worktrees_of_others() {
        let owner = |tenant: &str, agent: Option<&str>| WorktreeOwner {
            tenant: tenant.to_owned(),
            parent: None,
            agent: agent.map(str::to_owned),
        };
        let mut held = Vec::new();
        let mut fill = |new: &WorktreeOwner| {
            let before = held.len();
            while admit(new, held.iter()).is_ok() {
                held.push(new.clone());
            }
            (held.len() - before, admit(new, held.iter()).unwrap_err())
        };
        let (count, why) = fill(&owner("", Some("greedy")));
        assert_eq!(count, OF_AN_AGENT);
        assert!(why.contains("`greedy`") && why.contains("worktrees prune"), "{why}");
        assert_eq!(fill(&owner("team", None)).0, OF_A_TENANT);
        let (count, why) = fill(&owner("", Some("other")));
        assert_eq!(count, OF_AN_AGENT);
        assert!(why.contains("`other`"), "{why}");
        let (count, why) = fill(&owner("", Some("third")));
        assert_eq!(count, SHARED - 2 * OF_AN_AGENT - OF_A_TENANT);
        assert!(why.contains("the operator's"), "{why}");
        assert_eq!(fill(&owner("", None)).0, MAX_WORKTREES - SHARED);
    }
}
