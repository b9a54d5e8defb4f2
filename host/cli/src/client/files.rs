//! File attachments of a message.

use a2a_hub_core::text::media_type::media_type;
use a2a_hub_protocol::{MAX_CONTENT, id::MAX_ID};
use anyhow::{Context as _, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::Read as _,
    path::Path,
};

/// Reads a file as a part of a message. Fails if the encoded part exceeds `free_bytes` bytes, else
/// subtracts its size from `free_bytes`.
pub(crate) fn part(path: &Path, free_bytes: &mut usize) -> anyhow::Result<Value> {
    let shown = path.display();
    // Checked before the file is opened: opening a pipe blocks until another process writes to it.
    if !fs::metadata(path).with_context(|| format!("attach {shown}"))?.is_file() {
        bail!("attach {shown}: it is not a file");
    }
    let file = File::open(path).with_context(|| format!("attach {shown}"))?;
    let mut bytes = Vec::new();
    // Base64 encodes three bytes as four.
    let max_bytes = (*free_bytes).min(MAX_CONTENT) / 4 * 3;
    let read = file.take(max_bytes as u64 + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("attach {shown}"))?;
    if bytes.len() > max_bytes {
        let kib = max_bytes >> 10;
        let reason = match *free_bytes < MAX_CONTENT {
            true => format!("a message has room for {kib} KiB more"),
            false => format!("a file in a message may have {kib} KiB"),
        };
        bail!("attach {shown}: {reason}; leave the file in a workspace and name its path instead");
    }
    let name: String =
        path.file_name().unwrap_or_default().to_string_lossy().chars().take(MAX_ID).collect();
    let encoded = STANDARD.encode(&bytes);
    *free_bytes -= encoded.len();
    Ok(json!({
        "kind": "file",
        "file": { "name": name, "mimeType": media_type(path, &bytes), "bytes": encoded },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_a_part() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("Notes.MD");
        fs::write(&path, "hi").unwrap();
        let mut room = 8;
        let made = part(&path, &mut room).unwrap();
        insta::assert_snapshot!(made, @r#"{"file":{"bytes":"aGk=","mimeType":"text/markdown","name":"Notes.MD"},"kind":"file"}"#);
        assert_eq!(room, 4);
        assert!(part(&path, &mut room).is_ok());
        let full = part(&path, &mut room).unwrap_err().to_string();
        assert!(full.contains("has room for 0 KiB more"), "{full}");
        assert!(part(dir.path(), &mut room).unwrap_err().to_string().contains("not a file"));
    }
}
