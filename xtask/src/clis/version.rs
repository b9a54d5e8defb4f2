//! Versions of installed programs.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result, bail};

use crate::shell::{announce, output};

/// Checks that a program runs with the pinned version. If npm blocked its install script, the
/// program exists but does not run.
pub(super) fn check(program: &Path, version: &str) -> Result<()> {
    let printed = output(Command::new(program).arg("--version")).with_context(|| {
        format!(
            "{} does not run; npm may have held back its install script: \
             see `npm config get ignore-scripts`",
            program.display()
        )
    })?;
    if !printed.contains(version) {
        bail!("{} says it is {printed}, not {version}", program.display());
    }
    announce(&format!("{} is {version}", program.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpinned_version_is_refused() {
        let error = check(Path::new("/bin/echo"), "1.2.3").unwrap_err();
        assert!(error.to_string().contains("not 1.2.3"), "{error}");
    }
}
