//! Reading of flow files: [`Definition::parse`](super::Definition::parse) reads each step, and then
//! checks the flow as a whole.

mod candidates;
mod check;
mod draft;
mod inherit;
mod next;
mod parse;
mod repetition;
mod stream;
mod undo;
mod worktree;
