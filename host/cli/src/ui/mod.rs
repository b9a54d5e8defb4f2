//! Output of the command line: the crate `a2a-hub-terminal`, and the errors and exit status of
//! `a2a-hub-socket-client`.

pub(super) use a2a_hub_socket_client::{exit, failure};
pub(super) use a2a_hub_terminal::{
    console, dialogue, interactive, markdown_stream, pager, render, table, text, tool_calls, width,
};
#[cfg(feature = "hub")]
pub(super) use a2a_hub_terminal::{difference, markdown};
