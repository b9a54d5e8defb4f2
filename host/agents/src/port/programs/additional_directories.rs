//! Errors about the additional directories of a task.

use a2a_hub_protocol::hub_metadata::ADDITIONAL_DIRECTORIES;
use a2a_hub_runtime::Failure;
use std::path::Path;

/// Failure about an additional directory.
pub(super) fn of_additional(why: Failure) -> Failure {
    if let Failure::Denied(why) = why {
        Failure::Denied(format!("`{ADDITIONAL_DIRECTORIES}`: {why}"))
    } else {
        why
    }
}

/// Refuses an additional directory that is named by a link. The link may have taken the place of a
/// directory that was judged, and a confined program does not see links outside of its directories.
pub(super) fn require_no_link(named: &str, path: &Path) -> Result<(), Failure> {
    if Path::new(named) == path {
        return Ok(());
    }
    Err(of_additional(Failure::Denied(format!(
        "work in `{named}`: a link leads from there to `{}`; name the latter",
        path.display()
    ))))
}
