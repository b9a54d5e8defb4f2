//! Media types of files.

use std::path::Path;

/// Media type by the file name's extension, or else by the content.
pub fn media_type(path: &Path, bytes: &[u8]) -> &'static str {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    match extension.as_str() {
        "css" => "text/css",
        "csv" => "text/csv",
        "gif" => "image/gif",
        "gz" => "application/gzip",
        "htm" | "html" => "text/html",
        "jpeg" | "jpg" => "image/jpeg",
        "js" | "mjs" => "text/javascript",
        "json" => "application/json",
        "md" => "text/markdown",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "tar" => "application/x-tar",
        "toml" => "application/toml",
        "wasm" => "application/wasm",
        "wav" => "audio/wav",
        "webp" => "image/webp",
        "xml" => "application/xml",
        "yaml" | "yml" => "application/yaml",
        "zip" => "application/zip",
        _ if std::str::from_utf8(bytes).is_ok() => "text/plain",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_extension_is_detected_by_content() {
        let of = |name: &str, bytes: &[u8]| media_type(Path::new(name), bytes);
        assert_eq!(of("main.rs", b"fn main() {}"), "text/plain");
        assert_eq!(of("core", &[0xff, 0xfe]), "application/octet-stream");
    }
}
