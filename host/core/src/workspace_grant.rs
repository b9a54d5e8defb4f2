//! Whether an agent may see the files of its task's working directory itself, beside the programs that it runs there, and
//! whether it may change them.

use crate::one_line::OneLine;
use serde::{Deserialize, Serialize};

/// What may be done with the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkspaceAccess {
    /// They may be read.
    Read,
    /// They may be read, written, made and removed.
    ReadWrite,
}

/// What a component would do with the files of its working directory, as its manifest says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceAsk {
    /// What it would do with them.
    pub access: WorkspaceAccess,
    /// Why, in the words of whoever wrote the component.
    pub reason: Option<OneLine>,
}

/// The overlap: no more than is asked, and no more than is granted.
pub fn held(
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
    fn less_of_what_is_asked_and_granted_is_held() {
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
            assert_eq!(held(asked.map(ask).as_ref(), granted), expected, "{asked:?} {granted:?}");
        }
        let read: WorkspaceAsk = serde_json::from_str(r#"{"access": "read-write"}"#).unwrap();
        assert_eq!(read, ask(ReadWrite));
    }
}
