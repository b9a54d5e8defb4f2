//! The limits that the system puts on the hub's own process: survived, raised or told.

use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use std::io;
use tokio::signal::unix::{SignalKind, signal};

/// Files that must be open at once for a hub that is of any use: some 60 are its own, each client takes one and each program
/// six.
const LEAST_FILES: u64 = 256;

/// All that it can have a use for: the clients that it lets in, and thousands of programs.
const MOST_FILES: u64 = 65_536;

/// What a program is given at the least, if the system lets it: shells and runtimes abort with fewer.
const PROGRAM_FILES: u64 = 1_024;

/// The hub could not work under its limits.
#[derive(Debug, thiserror::Error)]
pub enum LimitError {
    /// Too few files may be open.
    #[error(
        "open files: at most {0} may be open at once, and the hub and its programs need {LEAST_FILES}; raise the limit \
         (`ulimit -n 4096`; under systemd, `LimitNOFILE=`)"
    )]
    Files(u64),
    /// The system would not let it be raised.
    #[error("raise the limit on open files: {0}")]
    Raise(io::Error),
}

/// Has a write beyond the limit on the size of files (`ulimit -f`) fail, as one on a full disk does, where it would otherwise end
/// the hub (SIGXFSZ). A handler is not inherited: programs find the signal as it is by default. Call it within a runtime.
pub fn survive_large_files() -> io::Result<()> {
    // The handler stays, and nobody needs to hear of it.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}

/// Lets the hub have as many files open as the system allows, and returns how many its programs may: as many as the hub was
/// given, for some of them count through all they may have.
pub fn raise_open_files() -> Result<u64, LimitError> {
    let given = getrlimit(Resource::Nofile);
    let (own, programs) = files(given.current, given.maximum)?;
    if given.current.is_some_and(|given| given < own) {
        let raised = Rlimit { current: Some(own), maximum: given.maximum };
        setrlimit(Resource::Nofile, raised).map_err(|why| LimitError::Raise(why.into()))?;
    }
    Ok(programs)
}

/// How many files the hub and how many a program of its may have open, if the system allows so many, or any number.
fn files(soft: Option<u64>, hard: Option<u64>) -> Result<(u64, u64), LimitError> {
    let (soft, hard) = (soft.unwrap_or(MOST_FILES), hard.unwrap_or(u64::MAX));
    let own = soft.max(MOST_FILES).min(hard);
    if own < LEAST_FILES {
        return Err(LimitError::Files(own));
    }
    Ok((own, soft.max(PROGRAM_FILES).min(hard)))
}

/// How many bytes of addresses the hub may have (`ulimit -v`), if there is a limit.
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
