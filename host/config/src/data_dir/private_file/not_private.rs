//! Refusal of a file that is not private.

use std::io;

/// Reason why a file is not private.
#[derive(Debug)]
pub enum NotPrivate {
    /// The system refused to open it.
    Io(io::Error),
    /// It is a symlink.
    Link,
    /// It is not a plain file.
    NotPlain,
    /// It belongs to another user.
    Foreign,
    /// Others have permissions that they must not have.
    Shared,
}

impl From<io::Error> for NotPrivate {
    fn from(why: io::Error) -> Self {
        Self::Io(why)
    }
}
