//! System limits of the hub's own process: the limit on open files, on file sizes and on addresses.

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Least limit on open files for a usable hub: the hub itself needs some 60, each client one, and
/// each program six.
const MIN_FILES: u64 = 256;

/// Limit on open files that suffices for any hub: all admitted clients, and thousands of programs.
const DESIRED_FILES: u64 = 65_536;

/// Least limit on open files for a program, if the system allows it: shells and runtimes abort with
/// fewer.
const PROGRAM_FILES: u64 = 1_024;

/// Error of a hub that cannot work under its limits.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// The limit on open files is too low.
    #[error(
        "open files: at most {0} may be open at once, and the hub and its programs need {MIN_FILES}; raise the limit \
         (`ulimit -n 4096`; under systemd, `LimitNOFILE=`)"
    )]
    Files(u64),
    /// The system does not raise the limit.
    #[error("raise the limit on open files: {0}")]
    Raise(io::Error),
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) fail, like a write to a full disk.
/// Without it, the signal SIGXFSZ would end the hub. A handler is not inherited: programs have the
/// default action. Must be called within a runtime.
pub fn survive_large_files() -> io::Result<()> {
    // The handler stays installed, and its notifications are not needed.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

/// Raises the hub's limit on open files as far as the system allows, and returns the limit for its
/// programs: the hub's original one, because some programs iterate over all possible descriptors.
pub fn raise_open_files() -> Result<u64, LimitError> {
    let original = getrlimit(Resource::Nofile);
    let (hub, programs) = files(original.current, original.maximum)?;
    if original.current.is_some_and(|soft| soft < hub) {
        let raised = Rlimit { current: Some(hub), maximum: original.maximum };
        setrlimit(Resource::Nofile, raised).map_err(|why| LimitError::Raise(why.into()))?;
    }
    Ok(programs)
}

/// Limits on open files for the hub and for its programs, from the process's soft and hard limits;
/// none means no limit.
fn files(soft: Option<u64>, hard: Option<u64>) -> Result<(u64, u64), LimitError> {
    let (soft, hard) = (soft.unwrap_or(DESIRED_FILES), hard.unwrap_or(u64::MAX));
    let hub = soft.max(DESIRED_FILES).min(hard);
    if hub < MIN_FILES {
        return Err(LimitError::Files(hub));
    }
    Ok((hub, soft.max(PROGRAM_FILES).min(hard)))
}

/// Limit on open files of this process, if any.
pub fn open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Limit on the hub's address space (`ulimit -v`) in bytes, if any.
pub fn address_space() -> Option<u64> {
    getrlimit(Resource::As).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_file_limit_rises_for_hub_only() {
        let told = |soft, hard| files(soft, hard).map_err(|why| why.to_string());
        assert_eq!(told(Some(1_024), Some(524_288)), Ok((65_536, 1_024)), "as systemd has it");
        assert_eq!(told(Some(64), Some(4_096)), Ok((4_096, 1_024)));
        assert_eq!(told(Some(300), Some(300)), Ok((300, 300)));
        assert_eq!(told(Some(1_048_576), Some(1_048_576)), Ok((1_048_576, 1_048_576)));
        assert_eq!(told(None, None), Ok((65_536, 65_536)));
        assert_eq!(
            told(Some(64), Some(64)).unwrap_err(),
            "open files: at most 64 may be open at once, and the hub and its programs need 256; raise the limit \
             (`ulimit -n 4096`; under systemd, `LimitNOFILE=`)"
        );
    }
}
