//! Budgets of task trees: limits on the child tasks that follow from one task.
//!
//! The depth and the number of descendants are reserved at the creation of a child, in every
//! ancestor. Usage of tokens and money is known only afterwards, so a tree may exceed that limit by
//! the usage of the runs in progress.

use a2a_hub_protocol::{budget::Budget, id::TaskId, message::Metadata};
use serde_json::json;
use std::collections::HashMap;

/// Metadata member with the usage of a task's runs before the latest one: `tokens` and `costUsd`.
pub const EARLIER_USAGE: &str = "earlierUsage";

/// Members of a task's metadata in which an agent reports its run's usage.
pub(crate) const USAGE: &str = "usage";
pub(crate) const COST_USD: &str = "cost_usd";

/// Limits of the tree below one task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeLimits {
    /// Maximum depth of the tree below it.
    pub depth: u32,
    /// Maximum number of descendants, including finished ones.
    pub tasks: u32,
    /// Limit of tokens that the descendants use, input and output together, as their agents report
    /// them; `None` is unlimited.
    pub tokens: Option<u64>,
    /// Limit in dollars of the descendants' cost, as their agents report it; `None` is unlimited.
    pub cost_usd: Option<f64>,
}

impl Default for TreeLimits {
    /// Larger than any plan that a person reads, and small enough to catch a loop.
    fn default() -> Self {
        Self { depth: 8, tasks: 256, tokens: None, cost_usd: None }
    }
}

impl TreeLimits {
    /// Applies the budget: each limit becomes the smaller of both.
    #[must_use]
    pub fn narrowed(self, budget: Budget) -> Self {
        let smaller = |limit: Option<u64>, budget: Option<u64>| match (limit, budget) {
            (Some(limit), Some(budget)) => Some(limit.min(budget)),
            (limit, budget) => limit.or(budget),
        };
        Self {
            depth: self.depth.min(budget.depth.unwrap_or(u32::MAX)),
            tasks: self.tasks.min(budget.tasks.unwrap_or(u32::MAX)),
            tokens: smaller(self.tokens, budget.tokens),
            cost_usd: match (self.cost_usd, budget.cost_usd) {
                (Some(limit), Some(budget)) => Some(limit.min(budget)),
                (limit, budget) => limit.or(budget),
            },
        }
    }
}

/// Resources that tasks have used, as their agents report them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Tokens, input and output together.
    pub tokens: u64,
    /// Cost in dollars.
    pub cost_usd: f64,
}

impl Usage {
    /// Usage of all runs of a task, from its metadata: `usage.input_tokens`, `usage.output_tokens`
    /// and `cost_usd` of the latest run, and [`EARLIER_USAGE`] of the runs before it.
    pub fn from_metadata(facts: Option<&Metadata>) -> Self {
        let Some(facts) = facts else { return Self::default() };
        let member = |of: &str, name: &str| facts.get(of).and_then(|of| of.get(name));
        let tokens = |of, name| member(of, name).and_then(|value| value.as_u64()).unwrap_or(0);
        let dollars = |cost: f64| if cost.is_finite() { cost.max(0.0) } else { 0.0 };
        let cost = facts.get(COST_USD).and_then(|value| value.as_f64());
        let cost_before = member(EARLIER_USAGE, "costUsd").and_then(|value| value.as_f64());
        let mut used = Self {
            tokens: tokens(USAGE, "input_tokens").saturating_add(tokens(USAGE, "output_tokens")),
            cost_usd: cost.map_or(0.0, dollars),
        };
        used.add(Self {
            tokens: tokens(EARLIER_USAGE, "tokens"),
            cost_usd: cost_before.map_or(0.0, dollars),
        });
        used
    }

    /// Adds the usage of a finished run to [`EARLIER_USAGE`], because the task's next run reports
    /// only its own usage.
    pub(crate) fn carry_over(facts: &mut Metadata) {
        let used = Self::from_metadata(Some(facts));
        if used == Self::default() {
            return;
        }
        facts.remove(USAGE);
        facts.remove(COST_USD);
        // Keeps the cost finite, because JSON has no infinity.
        let cost_usd = used.cost_usd.min(f64::MAX);
        let earlier = json!({ "tokens": used.tokens, "costUsd": cost_usd });
        facts.insert(EARLIER_USAGE.to_owned(), earlier);
    }

    /// Usage in addition to `before`; zero where it is smaller.
    fn beyond(self, before: Self) -> Self {
        let tokens = self.tokens.saturating_sub(before.tokens);
        Self { tokens, cost_usd: (self.cost_usd - before.cost_usd).max(0.0) }
    }

    /// Adds `other` to this usage.
    pub fn add(&mut self, other: Self) {
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.cost_usd += other.cost_usd;
    }
}

/// Reason why a task gets no more children.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoChild {
    /// A limit of an ancestor is reached.
    #[error("give another agent a task: {limit} of task `{of}` is used up; {remedy}", remedy = REMEDY)]
    Exhausted {
        /// Limit, with its number.
        limit: String,
        /// Task that the limit applies to.
        of: TaskId,
    },
    /// The task or one of its ancestors has ended or is being ended.
    #[error("give another agent a task: task `{0}` is being ended")]
    Closed(TaskId),
}

const REMEDY: &str = "the operator raises it with `[agents.<id>.limits.tree]`, or the client with a larger `metadata.budget`";

/// Budget that the descendants of a task have used up.
#[derive(Clone, Debug, PartialEq)]
pub struct Exhausted {
    /// Task that the budget applies to.
    pub of: TaskId,
    /// All running descendants of the task, deepest first; the caller ends them.
    pub descendants: Vec<TaskId>,
    /// Explanation for people, for each of these tasks.
    pub why: String,
}

/// Task that may have children.
#[derive(Clone, Debug)]
struct Node {
    parent: Option<TaskId>,
    limits: TreeLimits,
    children: Vec<TaskId>,
    /// Number of descendants so far.
    tasks: u32,
    /// Usage of its descendants.
    used: Usage,
    /// Usage of the task itself, as last reported.
    reported: Usage,
    is_closed: bool,
}

/// Trees of all running tasks. A task is in it from its start to its end.
#[derive(Clone, Debug, Default)]
pub struct Trees(HashMap<TaskId, Node>);

impl Trees {
    /// Adds a root: a task without a parent, new or restored.
    pub fn add_root(&mut self, task: TaskId, limits: TreeLimits) {
        self.insert(task, None, limits);
    }

    fn insert(&mut self, task: TaskId, parent: Option<TaskId>, limits: TreeLimits) {
        let (children, used, reported) = (Vec::new(), Usage::default(), Usage::default());
        let node = Node { parent, limits, children, tasks: 0, used, reported, is_closed: false };
        self.0.insert(task, node);
    }

    /// Adds a child of `parent` if every ancestor allows it; it counts for all of them from now on.
    pub fn add_child(
        &mut self,
        parent: &TaskId,
        child: TaskId,
        limits: TreeLimits,
    ) -> Result<(), NoChild> {
        let ancestors = self.ancestors(parent);
        if ancestors.is_empty() {
            return Err(NoChild::Closed(parent.clone()));
        }
        for (depth, id) in (1..).zip(&ancestors) {
            self.0.get(id).map_or(Ok(()), |node| node.admits(id, depth))?;
        }
        for id in &ancestors {
            if let Some(node) = self.0.get_mut(id) {
                node.tasks = node.tasks.saturating_add(1);
            }
        }
        if let Some(node) = self.0.get_mut(parent) {
            node.children.push(child.clone());
        }
        self.insert(child, Some(parent.clone()), limits);
        Ok(())
    }

    /// True if a limit of costs applies to the task or to its descendants.
    pub fn limit_cost(&self, task: &TaskId) -> bool {
        let ancestors = self.ancestors(task);
        ancestors.iter().any(|id| self.0.get(id).is_some_and(|node| node.limits.cost_usd.is_some()))
    }

    /// Number and usage of a task's descendants so far; none if the task is over.
    pub fn spent(&self, task: &TaskId) -> Option<(u32, Usage)> {
        self.0.get(task).map(|node| (node.tasks, node.used))
    }

    /// Restores a child at the start of the hub: skips the limits, but counts it.
    pub fn restore_child(&mut self, parent: &TaskId, child: TaskId, limits: TreeLimits) {
        for id in self.ancestors(parent) {
            if let Some(node) = self.0.get_mut(&id) {
                node.tasks = node.tasks.saturating_add(1);
            }
        }
        if let Some(node) = self.0.get_mut(parent) {
            node.children.push(child.clone());
        }
        self.insert(child, Some(parent.clone()), limits);
    }

    /// Restores the count and usage of a task's descendants that ended before the start of the hub.
    pub fn count(&mut self, task: &TaskId, tasks: u32, used: Usage) {
        if let Some(node) = self.0.get_mut(task) {
            node.tasks = node.tasks.saturating_add(tasks);
            node.used.add(used);
        }
    }

    /// Adds a task's total usage of all its runs so far to its ancestors. Returns the topmost
    /// budget that this exceeds.
    ///
    /// Usage is known only afterwards, so a tree may exceed its limit by the usage of the runs in
    /// progress.
    pub fn report(&mut self, task: &TaskId, used: Usage) -> Option<Exhausted> {
        let node = self.0.get_mut(task)?;
        let more = used.beyond(node.reported);
        node.reported.add(more);
        if more == Usage::default() {
            return None;
        }
        let ancestors = self.ancestors(task).into_iter().skip(1);
        let mut uppermost = None;
        for id in ancestors {
            let Some(node) = self.0.get_mut(&id) else { continue };
            node.used.add(more);
            if let Some(limit) = node.overdrawn() {
                uppermost = Some((id, limit));
            }
        }
        let (of, limit) = uppermost?;
        let descendants = self.descendants(&of);
        let why = format!("{limit} of task `{of}` is used up; {REMEDY}");
        Some(Exhausted { of, descendants, why })
    }

    /// Running descendants of a task, deepest first.
    fn descendants(&self, task: &TaskId) -> Vec<TaskId> {
        let mut descendants = self.children(task);
        let mut next = 0;
        while let Some(children) = descendants.get(next).map(|id| self.children(id)) {
            descendants.extend(children);
            next += 1;
        }
        descendants.reverse();
        descendants
    }

    /// Closes the task and its descendants for new children. Returns its running children.
    pub fn close(&mut self, task: &TaskId) -> Vec<TaskId> {
        let mut pending = vec![task.clone()];
        while let Some(id) = pending.pop() {
            if let Some(node) = self.0.get_mut(&id) {
                node.is_closed = true;
                pending.extend(node.children.iter().cloned());
            }
        }
        self.children(task)
    }

    /// Running children of the task.
    pub fn children(&self, task: &TaskId) -> Vec<TaskId> {
        self.0.get(task).map(|node| node.children.clone()).unwrap_or_default()
    }

    /// Removes a task that has ended.
    pub fn remove(&mut self, task: &TaskId) {
        let Some(node) = self.0.remove(task) else { return };
        if let Some(parent_node) = node.parent.and_then(|parent| self.0.get_mut(&parent)) {
            parent_node.children.retain(|child| child != task);
        }
    }

    /// True if `task` is `root` or a descendant of it.
    pub fn holds(&self, root: &TaskId, task: &TaskId) -> bool {
        self.ancestors(task).contains(root)
    }

    /// The task and its ancestors, nearest first.
    pub fn ancestors(&self, task: &TaskId) -> Vec<TaskId> {
        let mut ancestors = Vec::new();
        let mut next = Some(task);
        while let Some(id) = next {
            let Some(node) = self.0.get(id) else { break };
            ancestors.push(id.clone());
            next = node.parent.as_ref();
        }
        ancestors
    }

    /// True if no task is running.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Node {
    fn admits(&self, id: &TaskId, depth: u32) -> Result<(), NoChild> {
        if self.is_closed {
            return Err(NoChild::Closed(id.clone()));
        }
        let TreeLimits { depth: deepest, tasks, .. } = self.limits;
        let spent = if depth > deepest {
            Some(format!("the depth of {deepest}"))
        } else if self.tasks >= tasks {
            Some(format!("the budget of {tasks} tasks"))
        } else {
            self.overdrawn()
        };
        spent.map_or(Ok(()), |limit| Err(NoChild::Exhausted { limit, of: id.clone() }))
    }

    /// Budget of tokens or money that its descendants have used up.
    fn overdrawn(&self) -> Option<String> {
        let TreeLimits { tokens, cost_usd, .. } = self.limits;
        if let Some(limit) = tokens.filter(|limit| self.used.tokens >= *limit) {
            return Some(format!("the budget of {limit} tokens"));
        }
        let limit = cost_usd.filter(|limit| self.used.cost_usd >= *limit)?;
        Some(format!("the budget of {limit} dollars"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[expect(clippy::needless_pass_by_value, reason = "numbers and words are written out")]
    fn id(name: impl ToString) -> TaskId {
        TaskId::new(name.to_string())
    }

    fn facts(value: Value) -> Metadata {
        let Value::Object(facts) = value else { panic!("{value}") };
        facts
    }

    fn limits(depth: u32, tasks: u32) -> TreeLimits {
        TreeLimits { depth, tasks, ..TreeLimits::default() }
    }

    #[test]
    fn every_ancestor_counts_its_descendants() {
        let mut trees = Trees::default();
        trees.add_root(id("a"), limits(2, 3));
        trees.add_child(&id("a"), id("b"), limits(8, 1)).unwrap();
        trees.add_child(&id("b"), id("c"), limits(8, 8)).unwrap();
        let deep = trees.add_child(&id("c"), id("d"), limits(8, 8)).unwrap_err();
        insta::assert_snapshot!(deep, @"give another agent a task: the budget of 1 tasks of task `b` is used up; the operator raises it with `[agents.<id>.limits.tree]`, or the client with a larger `metadata.budget`");
        trees.remove(&id("c"));
        assert!(
            trees.add_child(&id("b"), id("d"), limits(8, 8)).is_err(),
            "what is over counts on"
        );
        trees.add_child(&id("a"), id("e"), limits(8, 8)).unwrap();
        let full = trees.add_child(&id("a"), id("f"), limits(8, 8)).unwrap_err().to_string();
        assert!(full.contains("the budget of 3 tasks of task `a`"), "{full}");
        // State after a restart of the hub.
        let mut trees = Trees::default();
        trees.add_root(id("a"), limits(2, 3));
        trees.restore_child(&id("a"), id("b"), limits(8, 8));
        trees.count(&id("a"), 2, Usage { tokens: 7, cost_usd: 0.5 });
        assert!(
            trees.add_child(&id("b"), id("g"), limits(8, 8)).is_err(),
            "what was over counts on"
        );
    }

    #[test]
    fn tree_depth_is_limited_by_root() {
        let mut trees = Trees::default();
        trees.add_root(id(0), limits(2, 100));
        trees.add_child(&id(0), id(1), limits(100, 100)).unwrap();
        trees.add_child(&id(1), id(2), limits(100, 100)).unwrap();
        let refused = trees.add_child(&id(2), id(3), limits(100, 100)).unwrap_err().to_string();
        assert!(refused.contains("the depth of 2 of task `0`"), "{refused}");
    }

    #[test]
    fn closed_tree_refuses_children_at_any_depth() {
        let mut trees = Trees::default();
        trees.add_root(id("a"), TreeLimits::default());
        trees.add_child(&id("a"), id("b"), TreeLimits::default()).unwrap();
        assert_eq!(trees.close(&id("a")), [id("b")]);
        for parent in ["a", "b", "gone"] {
            let refused = trees.add_child(&id(parent), id("c"), TreeLimits::default());
            assert!(matches!(refused, Err(NoChild::Closed(_))), "{parent}");
        }
        assert!(trees.holds(&id("a"), &id("b")) && !trees.holds(&id("b"), &id("a")));
        trees.remove(&id("b"));
        assert_eq!(trees.close(&id("a")), []);
        trees.remove(&id("a"));
        assert!(trees.is_empty());
    }

    #[test]
    fn used_up_budget_refuses_further_children() {
        let usage =
            facts(json!({"usage": {"input_tokens": 70, "output_tokens": 40}, "cost_usd": 0.5}));
        let used = Usage::from_metadata(Some(&usage));
        assert_eq!(used, Usage { tokens: 110, cost_usd: 0.5 });
        assert_eq!(
            Usage::from_metadata(Some(&facts(json!({"usage": 3, "cost_usd": -1})))),
            Usage::default()
        );
        for (limits, refused) in [
            (TreeLimits { tokens: Some(110), ..TreeLimits::default() }, true),
            (TreeLimits { tokens: Some(111), ..TreeLimits::default() }, false),
            (TreeLimits { cost_usd: Some(0.5), ..TreeLimits::default() }, true),
            (TreeLimits { cost_usd: Some(0.6), ..TreeLimits::default() }, false),
        ] {
            let mut trees = Trees::default();
            trees.add_root(id("a"), limits);
            trees.add_child(&id("a"), id("b"), TreeLimits::default()).unwrap();
            let stopped = trees.report(&id("b"), used);
            assert_eq!(stopped.is_some(), refused, "{limits:?}");
            let next = trees.add_child(&id("a"), id("c"), TreeLimits::default());
            assert_eq!(next.is_err(), refused, "{limits:?} {next:?}");
        }
    }

    #[test]
    fn usage_of_earlier_runs_is_added() {
        let mut known =
            facts(json!({"usage": {"input_tokens": 50}, "cost_usd": 0.5, "model": "m"}));
        Usage::carry_over(&mut known);
        Usage::carry_over(&mut known);
        let earlier = json!({"earlierUsage": {"tokens": 50, "costUsd": 0.5}, "model": "m"});
        assert_eq!(json!(known), earlier, "a run counts once");
        known.extend(facts(json!({"usage": {"input_tokens": 50}, "cost_usd": 0.25})));
        let used = Usage { tokens: 100, cost_usd: 0.75 };
        assert_eq!(Usage::from_metadata(Some(&known)), used, "as much once more is more");
        let mut trees = Trees::default();
        trees.add_root(id("a"), TreeLimits { tokens: Some(60), ..TreeLimits::default() });
        trees.add_child(&id("a"), id("b"), TreeLimits::default()).unwrap();
        assert_eq!(trees.report(&id("b"), Usage { tokens: 50, cost_usd: 0.5 }), None);
        assert!(trees.report(&id("b"), used).is_some());
        let mut nothing = facts(json!({"usage": {"cached": 3}}));
        Usage::carry_over(&mut nothing);
        assert_eq!(json!(nothing), json!({"usage": {"cached": 3}}));
        let mut most = facts(json!({"cost_usd": f64::MAX}));
        Usage::carry_over(&mut most);
        most.extend(facts(json!({"cost_usd": f64::MAX})));
        Usage::carry_over(&mut most);
        assert!(Usage::from_metadata(Some(&most)).cost_usd > 1.0, "too much is not nothing");
    }

    #[test]
    fn repeated_report_counts_usage_once() {
        let tokens = |tokens| Usage { tokens, cost_usd: 0.0 };
        let mut trees = Trees::default();
        trees.add_root(id("a"), TreeLimits { tokens: Some(100), ..TreeLimits::default() });
        let most = TreeLimits { tokens: Some(30), ..TreeLimits::default() };
        trees.add_child(&id("a"), id("b"), most).unwrap();
        for (parent, child) in [("a", "c"), ("b", "d"), ("d", "e")] {
            trees.add_child(&id(parent), id(child), TreeLimits::default()).unwrap();
        }
        assert_eq!(trees.report(&id("e"), tokens(20)), None);
        assert_eq!(trees.report(&id("e"), tokens(20)), None, "the same once more");
        assert_eq!(trees.report(&id("e"), tokens(10)), None, "what is used is not given back");
        let stopped = trees.report(&id("e"), tokens(30)).unwrap();
        assert_eq!((stopped.of, stopped.descendants), (id("b"), vec![id("e"), id("d")]));
        assert!(stopped.why.starts_with("the budget of 30 tokens of task `b` is used up; the op"));
        assert_eq!(trees.report(&id("b"), tokens(69)), None);
        let stopped = trees.report(&id("c"), tokens(1)).unwrap();
        let below = vec![id("e"), id("d"), id("c"), id("b")];
        assert_eq!((stopped.of, stopped.descendants), (id("a"), below), "the uppermost counts");
        assert_eq!(trees.report(&id("gone"), tokens(1)), None);
    }

    #[test]
    fn budget_narrows_and_never_widens_limits() {
        let limits = TreeLimits { tokens: Some(1_000), ..limits(4, 10) };
        let said = facts(json!({"budget": {"depth": 9, "tasks": 2, "tokens": 5, "costUsd": 0.1}}));
        let narrowed = limits.narrowed(Budget::from_metadata(Some(&said)).unwrap());
        let expected = TreeLimits { depth: 4, tasks: 2, tokens: Some(5), cost_usd: Some(0.1) };
        assert_eq!(narrowed, expected);
        assert_eq!(limits.narrowed(Budget::from_metadata(None).unwrap()), limits);
        for wrong in [json!(3), json!({"tasks": -1}), json!({"task": 1}), json!({"costUsd": "1"})] {
            let said = facts(json!({ "budget": wrong }));
            let refused = Budget::from_metadata(Some(&said)).unwrap_err().to_string();
            assert!(refused.contains("metadata.budget"), "{refused}");
        }
    }

    proptest! {
        /// For any order of growth, usage, closing and ending, no task exceeds the limits of its
        /// tree.
        #[test]
        fn any_steps_stay_within_tree_limits(steps in proptest::collection::vec((0_u8..5, 0_u32..12, 0_u32..3, 0_u32..4), 1..120)) {
            let mut trees = Trees::default();
            trees.add_root(id(0), limits(3, 6));
            let (mut born, mut parents) = (HashMap::from([(0_u32, limits(3, 6))]), HashMap::<u32, u32>::new());
            for (n, (step, pick, depth, tasks)) in (1_u32..).zip(steps) {
                let known: Vec<_> = born.keys().copied().collect();
                let picked = known[pick as usize % known.len()];
                match step {
                    0..=2 => if trees.add_child(&id(picked), id(n), limits(depth, tasks)).is_ok() {
                        born.insert(n, limits(depth, tasks));
                        parents.insert(n, picked);
                    },
                    // A task ends only after its descendants.
                    3 => if trees.children(&id(picked)).is_empty() {
                        trees.remove(&id(picked));
                    },
                    _ => { trees.close(&id(picked)); }
                }
            }
            for (task, limits) in &born {
                let mut below = 0;
                for start in parents.keys() {
                    let (mut at, mut depth) = (*start, 0);
                    while let Some(up) = parents.get(&at) {
                        depth += 1;
                        if up == task {
                            below += 1;
                            prop_assert!(depth <= limits.depth);
                        }
                        at = *up;
                    }
                }
                prop_assert!(below <= limits.tasks);
            }
        }
    }
}
