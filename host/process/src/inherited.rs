//! Descriptors that this process inherited without close-on-exec, and that its own children must
//! not keep open.

use command_fds::{CommandFdExt as _, FdMapping};
use std::{fs, fs::File, io, os::fd::RawFd, process::Command};

/// Flag in `/proc/*/fdinfo` of a descriptor that closes on exec.
const CLOSE_ON_EXEC: u32 = rustix::fs::OFlags::CLOEXEC.bits();

/// Numbers of the inherited descriptors from 3 up.
pub(crate) struct InheritedDescriptors(Vec<RawFd>);

impl InheritedDescriptors {
    /// Finds the descriptors that a child would inherit now.
    pub(crate) fn of_now() -> io::Result<Self> {
        let mut inherited = Vec::new();
        for entry in fs::read_dir("/proc/self/fd")? {
            let name = entry?.file_name();
            let Some(fd) = name.to_str().and_then(|name| name.parse().ok()).filter(|fd| *fd > 2)
            else {
                continue;
            };
            let info = match fs::read_to_string(format!("/proc/self/fdinfo/{fd}")) {
                // Another thread closed it meanwhile.
                Err(why) if why.kind() == io::ErrorKind::NotFound => continue,
                info => info?,
            };
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags =
                flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok()).unwrap_or(0);
            if flags & CLOSE_ON_EXEC == 0 {
                inherited.push(fd);
            }
        }
        Ok(Self(inherited))
    }

    /// Replaces the descriptors with /dev/null in the child: a lock, a pipe or a socket of whoever
    /// started this process is then free once its owner closes it.
    pub(crate) fn withhold_from(&self, command: &mut Command) -> io::Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        let blank =
            |&child_fd| Ok(FdMapping { parent_fd: File::open("/dev/null")?.into(), child_fd });
        let blanks = self.0.iter().map(blank).collect::<io::Result<_>>()?;
        command.fd_mappings(blanks).map(drop).map_err(io::Error::other)
    }
}
