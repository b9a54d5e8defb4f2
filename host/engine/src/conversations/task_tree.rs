//! Tree of tasks as it is reported: a description of each task, in depth-first order.

use a2a_hub_core::{
    task::{
        metadata::{self, REASON},
        open_questions,
        tree_budget::Usage,
    },
    text::plain_text::line,
};
use a2a_hub_protocol::{
    message::joined_text,
    operation::{TreeQuestion, TreeTask},
    question::Question,
    task::Task,
};
use a2a_hub_store::Head;

/// Maximum length, in characters, of a task's question.
const LINE: usize = 200;

/// A task found in the tree.
#[derive(Debug)]
pub struct FoundTask {
    /// Its row in the index.
    pub head: Head,
    /// Levels below the root of the tree.
    pub depth: usize,
    /// Index of its parent in the list of found tasks.
    pub parent: Option<usize>,
    /// Number of its direct children that are left out.
    pub hidden: usize,
}

impl FoundTask {
    /// Describes the task, which its parent's agent called with this key.
    pub fn described(&self, task: &Task, key: Option<String>) -> TreeTask {
        let Self { head, depth, hidden, .. } = self;
        let Usage { tokens, cost_usd } = Usage::from_metadata(task.metadata.as_ref());
        TreeTask {
            id: head.task.clone(),
            parent_id: head.parent.clone(),
            depth: *depth,
            agent_id: head.agent.clone(),
            context_id: head.context.clone(),
            key,
            reachable_agents: metadata::reachable_agents(task),
            state: task.status.state,
            created_at: head.created.clone(),
            updated_at: task.status.timestamp.clone(),
            tokens,
            cost_usd,
            reason: metadata::text(task, REASON).map(str::to_owned),
            asked: open_questions::request(task),
            question: question(task),
            hidden: *hidden,
        }
    }
}

/// Open question of a task.
fn question(task: &Task) -> Option<TreeQuestion> {
    let Question { id, kind, .. } = Question::from_metadata(task.metadata.as_ref())
        .filter(|_| task.status.state.is_interrupted())?;
    let text = task.status.message.as_ref().map(|message| joined_text(&message.parts));
    Some(TreeQuestion { id, kind, text: line(&text.unwrap_or_default(), LINE) })
}

/// Depth-first order of nodes with these parents: each node follows its parent and precedes its
/// parent's next child.
pub fn in_order(parents: impl ExactSizeIterator<Item = Option<usize>>) -> Vec<usize> {
    let mut children = vec![Vec::new(); parents.len()];
    let mut stack = Vec::new();
    for (index, parent) in parents.enumerate() {
        match parent.and_then(|parent| children.get_mut(parent)) {
            Some(children) => children.push(index),
            None => stack.push(index),
        }
    }
    let mut order = Vec::with_capacity(children.len());
    while let Some(index) = stack.pop() {
        order.push(index);
        if let Some(child_nodes) = children.get(index) {
            stack.extend(child_nodes.iter().rev());
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::in_order;

    #[test]
    fn tree_is_listed_depth_first() {
        //            0
        //     1      2      3
        //   4   5           6
        let parents = [None, Some(0), Some(0), Some(0), Some(1), Some(1), Some(3)];
        assert_eq!(in_order(parents.into_iter()), [0, 1, 4, 5, 2, 3, 6]);
        assert_eq!(in_order([None].into_iter()), [0]);
    }
}
