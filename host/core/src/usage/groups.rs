//! Sums of usage by one of its keys.

use super::meter::{MICROS, UsageAmounts, UsageEntry};
use a2a_hub_protocol::operation::{UsageFigures, UsageGroup, UsageKey, UsageReport};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// Origin of usage: the task, and what is kept of it after its deletion. Unknown parts are empty.
#[derive(Clone, Copy, Debug)]
pub struct UsageOrigin<'a> {
    /// Task; none if it was deleted.
    pub task: Option<&'a str>,
    /// Agent.
    pub agent: &'a str,
    /// Tenant; empty for the default one.
    pub tenant: &'a str,
    /// Identity of the principal that began the tree of tasks.
    pub person: &'a str,
    /// Agent at the root of the tree of tasks, such as a flow.
    pub flow: &'a str,
}

/// Sums of usage by a key, such as the day.
#[derive(Clone, Debug)]
pub struct UsageGroups {
    by: UsageKey,
    since_day: Option<String>,
    sums: BTreeMap<String, (UsageAmounts, BTreeSet<String>)>,
}

impl UsageGroups {
    /// Creates sums by this key. Days before `since_day`, such as `2026-01-31`, are left out.
    pub fn new(by: UsageKey, since_day: Option<String>) -> Self {
        Self { by, since_day, sums: BTreeMap::new() }
    }

    /// Adds the usage of a day.
    pub fn add(&mut self, of: UsageOrigin<'_>, entry: &UsageEntry) {
        if self.since_day.as_ref().is_some_and(|since| entry.day < *since) {
            return;
        }
        let key = match self.by {
            UsageKey::Day => &entry.day,
            UsageKey::Agent => of.agent,
            UsageKey::Model => &entry.model,
            UsageKey::Tenant => of.tenant,
            UsageKey::Person => of.person,
            UsageKey::Flow => of.flow,
            UsageKey::Task => of.task.unwrap_or_default(),
        };
        if !self.sums.contains_key(key) {
            self.sums.insert(key.to_owned(), <_>::default());
        }
        if let Some((sum, agents)) = self.sums.get_mut(key) {
            sum.add(entry.amounts);
            // Of a task, people recognise the agent.
            if self.by == UsageKey::Task && !key.is_empty() {
                agents.insert(of.agent.to_owned());
            }
        }
    }

    /// Report of the first `limit` groups: the latest days, or those with the greatest cost.
    /// `uncounted` tasks could not be read.
    pub fn report(self, limit: usize, uncounted: u64) -> UsageReport {
        let mut total = UsageAmounts::default();
        self.sums.values().for_each(|(amounts, _)| total.add(*amounts));
        let by = self.by;
        let mut sums: Vec<_> = self.sums.into_iter().collect();
        if by == UsageKey::Day {
            sums.reverse();
        } else {
            let cost = |of: &UsageAmounts| of.cost_micros.saturating_add(of.priced_micros);
            let tokens = |of: &UsageAmounts| of.input_tokens.saturating_add(of.output_tokens);
            sums.sort_by_key(|(_, (of, _))| Reverse((cost(of), tokens(of), of.work_ms)));
        }
        let omitted = sums.len().saturating_sub(limit) as u64;
        let groups = sums.into_iter().take(limit).map(|(key, (amounts, agents))| UsageGroup {
            key,
            agent_id: agents.into_iter().next(),
            figures: figures(amounts),
        });
        UsageReport { by, groups: groups.collect(), omitted, total: figures(total), uncounted }
    }
}

/// Figures for clients. One that no task has reported is absent.
fn figures(of: UsageAmounts) -> UsageFigures {
    let count = |amount: i64| amount.max(0).unsigned_abs();
    let has_tokens = of.input_tokens != 0 || of.output_tokens != 0 || of.tasks > of.without_tokens;
    let tokens = |amount: i64| has_tokens.then(|| count(amount));
    #[expect(clippy::cast_precision_loss, reason = "exact up to billions of dollars")]
    let dollars = |micros: i64| micros.max(0) as f64 / MICROS;
    let has_cost = of.cost_micros != 0 || of.tasks > of.without_cost;
    UsageFigures {
        tasks: count(of.tasks),
        input_tokens: tokens(of.input_tokens),
        output_tokens: tokens(of.output_tokens),
        cached_tokens: tokens(of.cached_tokens),
        cost_usd: (has_cost && (of.priced_micros == 0 || of.cost_micros != 0))
            .then(|| dollars(of.cost_micros)),
        priced_usd: (of.priced_micros != 0).then(|| dollars(of.priced_micros)),
        work_ms: count(of.work_ms),
        questions: count(of.questions),
        answered_by_rule: count(of.ruled),
        without_tokens: count(of.without_tokens),
        without_cost: count(of.without_cost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(day: &str, model: &str, cost_micros: i64) -> UsageEntry {
        let amounts = UsageAmounts {
            tasks: 1,
            without_cost: i64::from(cost_micros == 0),
            without_tokens: 1,
            cost_micros,
            ..UsageAmounts::default()
        };
        UsageEntry { day: day.to_owned(), model: model.to_owned(), amounts }
    }

    fn origin<'a>(task: Option<&'a str>, person: &'a str) -> UsageOrigin<'a> {
        UsageOrigin { task, agent: "codex", tenant: "", person, flow: "review" }
    }

    fn report(by: UsageKey, since: Option<&str>, limit: usize) -> UsageReport {
        let mut groups = UsageGroups::new(by, since.map(str::to_owned));
        groups.add(origin(Some("t1"), "operator"), &entry("2026-01-30", "m", 250_000));
        groups.add(origin(Some("t2"), "person:ada"), &entry("2026-01-31", "n", 500_000));
        groups.add(origin(None, "operator"), &entry("2026-01-31", "", 0));
        groups.report(limit, 0)
    }

    #[test]
    fn usage_is_grouped_by_each_key() {
        for (by, wanted) in [
            (UsageKey::Day, vec!["2026-01-31", "2026-01-30"]),
            (UsageKey::Agent, vec!["codex"]),
            (UsageKey::Model, vec!["n", "m", ""]),
            (UsageKey::Tenant, vec![""]),
            (UsageKey::Person, vec!["person:ada", "operator"]),
            (UsageKey::Flow, vec!["review"]),
            (UsageKey::Task, vec!["t2", "t1", ""]),
        ] {
            let report = report(by, None, 10);
            let keys: Vec<_> = report.groups.iter().map(|group| &*group.key).collect();
            assert_eq!(keys, wanted);
            assert_eq!((report.total.tasks, report.total.cost_usd), (3, Some(0.75)));
        }
    }

    #[test]
    fn limit_and_day_leave_groups_out() {
        let latest = report(UsageKey::Model, Some("2026-01-31"), 1);
        assert_eq!((latest.groups.len(), latest.omitted, latest.total.tasks), (1, 1, 2));
    }

    #[test]
    fn missing_figures_are_absent() {
        let by_model = report(UsageKey::Model, None, 10);
        let unnamed = &by_model.groups[2].figures;
        assert_eq!((unnamed.cost_usd, unnamed.input_tokens, unnamed.without_cost), (None, None, 1));
    }
}
