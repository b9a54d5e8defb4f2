//! File `devices.toml` in the data directory: the paired browsers. It holds no secret, but a
//! program that can write it can pair a browser, so it counts only if no other user can.

use crate::data_dir::private_file::{self, NotPrivate};
use a2a_hub_core::devices::{Device, MAX_DEVICES, id_of};
use serde::{Deserialize, Serialize};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Name of the file.
const FILE: &str = "devices.toml";

/// Largest size of the file, in bytes.
const MAX_BYTES: u64 = 1 << 18;

/// File of the paired browsers of one data directory.
#[derive(Debug)]
pub struct DevicesFile {
    path: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredDevices {
    #[serde(default, rename = "device")]
    devices: Vec<Device>,
}

/// Error of reading the file.
#[derive(Debug, thiserror::Error)]
#[error("use the paired browsers in {path}: {why}; without that file, no browser is paired")]
pub struct DevicesFileError {
    path: PathBuf,
    why: String,
}

impl DevicesFile {
    /// File in this data directory.
    pub fn new(data_dir: &Path) -> Self {
        Self { path: data_dir.join(FILE) }
    }

    /// Reads the devices; none if the file does not exist. Blocks on disk I/O.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, others may change it, or its content is not what the hub wrote.
    pub fn read(&self) -> Result<Vec<Device>, DevicesFileError> {
        let failed = |why: String| DevicesFileError { path: self.path.clone(), why };
        let text = match private_file::read_text(&self.path, 0o022, MAX_BYTES) {
            Ok(Some(text)) => text,
            Ok(None) => return Ok(Vec::new()),
            Err(NotPrivate::Io(why)) => return Err(failed(why.to_string())),
            Err(
                NotPrivate::Link | NotPrivate::NotPlain | NotPrivate::Foreign | NotPrivate::Shared,
            ) => return Err(failed("others may write it".to_owned())),
        };
        let content: StoredDevices =
            toml::from_str(&text).map_err(|why| failed(why.to_string()))?;
        if content.devices.len() > MAX_DEVICES {
            return Err(failed(format!("it has more than {MAX_DEVICES} devices")));
        }
        let is_named = |device: &Device| device.id == id_of(&device.thumbprint);
        if !content.devices.iter().all(is_named) {
            return Err(failed("a device's id is not the beginning of its thumbprint".to_owned()));
        }
        Ok(content.devices)
    }

    /// Writes the devices. Blocks on disk I/O.
    ///
    /// # Errors
    ///
    /// Returns the error of the system with the path; the old file is then unchanged.
    pub fn write(&self, devices: Vec<Device>) -> io::Result<()> {
        let text = toml::to_string(&StoredDevices { devices }).map_err(io::Error::other)?;
        private_file::replace(&self.path, text.as_bytes()).map_err(|why| {
            io::Error::new(why.kind(), format!("write {}: {why}", self.path.display()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    fn device() -> Device {
        Device {
            id: "ab12cd34".to_owned(),
            name: "Chromium on Linux".to_owned(),
            thumbprint: "ab12cd34ff".to_owned(),
            token_digest: "00".to_owned(),
            paired_at: "2026-11-30T12:00:00.000Z".to_owned(),
            last_used_at: "2026-11-30T12:00:00.000Z".to_owned(),
        }
    }

    #[test]
    fn devices_round_trip_through_private_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = DevicesFile::new(dir.path());
        assert_eq!(file.read().unwrap(), []);
        file.write(vec![device()]).unwrap();
        assert_eq!(file.read().unwrap(), [device()]);
        assert_eq!(fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&file.path, fs::Permissions::from_mode(0o622)).unwrap();
        assert!(file.read().unwrap_err().to_string().contains("others may write it"));
        fs::set_permissions(&file.path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&file.path, "device = 1").unwrap();
        assert!(file.read().is_err(), "damaged");
        fs::remove_file(&file.path).unwrap();
        symlink(dir.path().join("other"), &file.path).unwrap();
        assert!(file.read().is_err(), "a link that somebody planted");
    }
}
