//! Reasons why a file of the plugins folder is not an agent.

use super::pending_approval_error::PendingApprovalError;
use crate::registry::JoinError;
use a2a_hub_config::ConfigError;
use a2a_hub_core::plugin::signature::Untrusted;
use std::io;

/// Reason why a file is not an agent.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file's name is not a valid agent id.
    #[error("its name cannot name an agent: {0}")]
    Name(#[from] a2a_hub_protocol::id::InvalidAgentId),
    /// The file is a link or not a regular file.
    #[error("it is a link, or no plain file; copy the component itself into the folder")]
    NotPlain,
    /// The signature file cannot be used.
    #[error("its signature (the `.minisig` beside it) cannot be used: {0}")]
    Signature(Box<Self>),
    /// The operator's signature policy refuses the component.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The operator's keys cannot be used.
    #[error(transparent)]
    Keys(#[from] ConfigError),
    /// The file belongs to another user.
    #[error("it belongs to another user; only your own files are loaded")]
    Foreign,
    /// Other users may write to the file.
    #[error("others may write to it; run `chmod go-w` on it")]
    Writable,
    /// The file changed or vanished while it was read.
    #[error("it changed, or went, while it was read; the file that is there now is read by itself")]
    Changed,
    /// The file exceeds the size limit.
    #[error("it is larger than {0} bytes")]
    Large(u64),
    /// The file cannot be read.
    #[error("read it: {0}")]
    Io(#[from] io::Error),
    /// The file of grants cannot be read.
    #[error("{0}; until then no plug-in is loaded, and loaded ones stay as they are")]
    Grants(String),
    /// The component awaits approval, and no granted one runs instead.
    #[error(transparent)]
    PendingApproval(Box<PendingApprovalError>),
    /// The flow file has errors: their text, with line and column.
    #[error("{0}")]
    Flow(String),
    /// The operator does not trust the flow file, which needs more than other flows.
    #[error(
        "held back until you trust it: {needs}; {state}; `a2a-hub flow trust {name}` shows the file and lets it in"
    )]
    FlowPendingApproval {
        /// Name of the flow.
        name: String,
        /// Rights that the file needs.
        needs: String,
        /// State of the flow until then.
        state: &'static str,
    },
    /// The agent may not join.
    #[error(transparent)]
    Join(#[from] JoinError),
}

impl From<PendingApprovalError> for FileError {
    fn from(why: PendingApprovalError) -> Self {
        Self::PendingApproval(Box::new(why))
    }
}
