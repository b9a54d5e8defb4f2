//! Why a file of the plugins folder is not an agent.

use super::{JoinError, held_back::HeldBackError};
use a2a_hub_config::ConfigError;
use a2a_hub_core::signature::Untrusted;
use std::io;

/// Why a file is not an agent.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It is called as no agent can be.
    #[error("its name cannot name an agent: {0}")]
    Name(#[from] a2a_hub_protocol::id::InvalidAgentId),
    /// It is not the file itself.
    #[error("it is a link, or no plain file; copy the component itself into the folder")]
    NotPlain,
    /// Something is wrong with the file of its signature.
    #[error("its signature (the `.minisig` beside it) cannot be used: {0}")]
    Signature(Box<Self>),
    /// It is not signed as the operator wants it.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The operator's keys cannot be used.
    #[error(transparent)]
    Keys(#[from] ConfigError),
    /// Somebody else put it there.
    #[error("it belongs to another user; only your own files are loaded")]
    Foreign,
    /// Somebody else may change it.
    #[error("others may write to it; run `chmod go-w` on it")]
    Writable,
    /// It is not what it was when it began to be read.
    #[error("it changed, or went, while it was read; the file that is there now is read by itself")]
    Changed,
    /// It is larger than anything of its kind.
    #[error("it is larger than {0} bytes")]
    Large(u64),
    /// The system would not let it be read.
    #[error("read it: {0}")]
    Io(#[from] io::Error),
    /// What it was granted cannot be found out.
    #[error("{0}; until then no plug-in joins, and those that are there go on as they are")]
    Grants(String),
    /// It waits for the operator, and nothing serves in its place.
    #[error(transparent)]
    HeldBack(Box<HeldBackError>),
    /// It may not join.
    #[error(transparent)]
    Join(#[from] JoinError),
}

impl From<HeldBackError> for FileError {
    fn from(why: HeldBackError) -> Self {
        Self::HeldBack(Box::new(why))
    }
}
