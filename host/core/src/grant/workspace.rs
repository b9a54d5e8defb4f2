//! Access of an agent itself to the files of its task's working directory, in addition to the
//! programs that it runs there.

use crate::text::one_line::OneLine;
use serde::{Deserialize, Serialize};

/// Access to the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceAccess {
    /// Reading.
    Read,
    /// Reading, writing, creating and removing.
    ReadWrite,
}

/// Request of a component to access the files of its working directory, in its manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceAsk {
    /// Requested access.
    pub access: WorkspaceAccess,
    /// Reason, in the words of the component's author.
    pub reason: Option<OneLine>,
}

/// Effective access: the smaller of the requested and the granted one.
pub fn effective(
    ask: Option<&WorkspaceAsk>,
    granted: Option<WorkspaceAccess>,
) -> Option<WorkspaceAccess> {
    Some(ask?.access.min(granted?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use WorkspaceAccess::{Read, ReadWrite};

    #[test]
    fn effective_access_is_smaller_of_both() {
        let ask = |access| WorkspaceAsk { access, reason: None };
        let cases = [
            (None, None, None),
            (None, Some(ReadWrite), None),
            (Some(ReadWrite), None, None),
            (Some(Read), Some(ReadWrite), Some(Read)),
            (Some(ReadWrite), Some(Read), Some(Read)),
            (Some(ReadWrite), Some(ReadWrite), Some(ReadWrite)),
        ];
        for (asked, granted, expected) in cases {
            assert_eq!(
                effective(asked.map(ask).as_ref(), granted),
                expected,
                "{asked:?} {granted:?}"
            );
        }
        let read: WorkspaceAsk = serde_json::from_str(r#"{"access": "read-write"}"#).unwrap();
        assert_eq!(read, ask(ReadWrite));
    }
}
