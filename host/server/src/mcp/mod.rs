//! The Model Context Protocol: each agent is a tool of its client, and a call of a tool is an ordinary message on behalf of
//! whoever calls.
//!
//! ```text
//! unix socket   hub/speak { protocol: mcp }      lines ──┐
//!                                                        ├── session ── call ── Dispatcher ── Hub
//! HTTP          /mcp, behind the guard of all    http ───┘      │         │
//!                                                    tools, resources   outcome, question, narration: MCP's words
//! ```
//!
//! The SDK speaks the protocol, in all its versions; what stands here turns its words into operations and back. The files that
//! do are pure: `capabilities` (what a caller is offered), `tools` (what there is to call, and what was called), `outcome` (what came of it), `question` (what a task asks, as a
//! form), `narration` (what is told meanwhile), `resources`.

mod call;
mod capabilities;
mod http;
mod lines;
mod narration;
mod outcome;
mod question;
mod request_ids;
mod resources;
mod session;
mod sessions;
mod tools;
mod watch;

pub(super) use http::McpHttp;
pub(super) use lines::serve;
