//! Queries over tasks and contexts.

pub(super) mod contexts;
pub(super) mod tasks_page;
