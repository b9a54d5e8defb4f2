//! Requests and answers that all transports share: the dispatcher makes operations of requests, and
//! answers and event streams of replies.
//!
//! ```text
//!  bytes ──► line_reader · connections ──► jsonrpc ──► dispatcher ──► Hub
//!                                             ▲                        │
//!  bytes ◄── write_timeout ◄── long_answers ◄─┴── task_stream ◄────────┘
//! ```

pub mod begun_tasks;
pub mod catch_panic;
pub mod connections;
pub mod dispatcher;
mod generations;
pub mod jsonrpc;
pub mod line_reader;
pub mod lineage;
pub mod long_answers;
pub mod message_builder;
pub mod peer;
pub mod question_view;
pub mod retry_after;
pub mod stream_quota;
pub mod task_stream;
pub mod write_timeout;
