//! Model Context Protocol, its parts without connections: what clients see of agents and tasks.
//!
//! - `resources`: tasks and artifacts as resources, and their URIs.
//! - `skill_tools`: a skill with an input schema as a tool with this schema.
//! - `question_tools`: the questions of all tasks as tools.
//! - `prompts`: agents, skills and declared prompts as prompts, and completion of their arguments.
//! - `declared_prompt`: a prompt as a skill's author declares it.
//! - `subscriptions`: resources that a client subscribed to.
//! - `progress`: events of a task as lines of progress.
//! - `request_ids`, `batch`: open requests of a client, and batches of them.
//!
//! Cards come from untrusted authors: their words are quoted, cleaned and cut, and what could make
//! a client refuse the whole list is left out.

pub(super) mod batch;
mod declared_prompt;
pub(super) mod progress;
pub(super) mod prompts;
pub(super) mod question_tools;
pub(super) mod request_ids;
pub(super) mod resources;
pub(super) mod skill_tools;
pub(super) mod subscriptions;
