//! Requests and answers that all transports share: JSON-RPC, the dispatcher and event streams.

pub(super) mod begun_tasks;
pub(super) mod catch_panic;
pub(super) mod dispatcher;
pub(super) mod jsonrpc;
pub(super) mod line_reader;
pub(super) mod message_builder;
pub(super) mod question_view;
pub(super) mod task_stream;
pub(super) mod write_timeout;
