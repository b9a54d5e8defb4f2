//! Model Context Protocol: each agent is a tool, and a tool call is an ordinary message with the
//! caller's rights.
//!
//! ```text
//! unix socket  hub/speak { protocol: mcp }    lines ──┐
//!                                                     ├── session ── call ── Dispatcher ── Hub
//! HTTP         /mcp, behind the origin guard  http ───┘      │         │
//!            tools, skills, questions, task_requests       result, question, progress
//! ```
//!
//! The SDK implements the protocol in all its versions. `message` reads what clients send, and
//! answers what the SDK would answer wrongly or not at all. The session converts messages to
//! operations and back. The conversions are pure: `capabilities` (offered to a caller), `tools`
//! (descriptions and arguments), `result` and `structured` (of a call), `question` (a task's
//! question as a form), `tasks` (as two revisions have them) and `progress`. The module
//! `model` has those of resources, prompts, and tools of skills and of the questions of all tasks.

mod accept;
mod call;
mod capabilities;
mod failure;
mod http;
mod lines;
mod message;
mod model;
mod question;
mod questions;
mod result;
mod session;
mod session_manager;
mod sessions;
mod skills;
mod structured;
mod task_requests;
mod tasks;
mod tools;
mod watch;

pub(super) use http::McpHttp;
pub(super) use lines::serve;
pub(super) use session::SessionOffer;

use crate::mcp::model::{batch, progress, request_ids, subscriptions};
