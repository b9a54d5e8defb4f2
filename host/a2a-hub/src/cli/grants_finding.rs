//! What `doctor` finds of the file of grants, whether a hub runs or not.

use super::finding::{Finding, fail, ok};
use a2a_hub_config::GrantsFile;
use std::path::Path;

/// What is granted to plug-ins: a file that cannot be followed keeps every plug-in that is not there yet from joining.
pub(super) fn grants(data_dir: &Path) -> Finding {
    let file = GrantsFile::of(data_dir);
    match file.read() {
        Ok(all) => ok("grants", format!("to {} plug-ins", all.plugins.len())),
        Err(why) => fail(
            "grants",
            why.to_string(),
            format!("mend {}; until then no plug-in joins", file.path().display()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::finding::Verdict;
    use std::fs;

    #[test]
    fn a_damaged_file_of_grants_is_told_with_the_line() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(grants(dir.path()).verdict, Verdict::Ok);
        let file = GrantsFile::of(dir.path()).path();
        fs::write(&file, "plugins = 7").unwrap();
        let found = grants(dir.path());
        assert_eq!(found.verdict, Verdict::Fail);
        assert!(found.found.contains("line 1"), "{}", found.found);
    }
}
