//! Saves the files that agents made: under sanitised names, inside the target directory, without
//! overwriting.

use crate::{
    client::task_snapshot::TaskStateSnapshot,
    ui::render::{list, size, text},
};
use a2a_hub_core::text::file_name;
use anyhow::{Context as _, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// Maximum number of alternative names that are tried.
const MAX_TRIES: usize = 1_000;

/// Outcome for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    /// The file was saved.
    At {
        /// Name that the agent gave the file.
        name: String,
        /// Path of the saved file.
        path: PathBuf,
        /// Size in bytes.
        bytes: usize,
    },
    /// The file has only a URL, which is not fetched.
    Elsewhere {
        /// Name that the agent gave the file.
        name: String,
        /// URL of the file.
        url: String,
    },
}

impl Saved {
    /// Writes a file of this name to `dir`.
    fn new(dir: &Path, name: String, bytes: &[u8]) -> anyhow::Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("make {}", dir.display()))?;
        let path = write_new(dir, &name, bytes)?;
        Ok(Self::At { name, path, bytes: bytes.len() })
    }

    /// Formats the outcome for people.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::At { name, path, bytes } => {
                let is_renamed =
                    path.file_name().is_none_or(|saved_name| saved_name != name.as_str());
                let suffix = if is_renamed { format!(", for `{name}`") } else { String::new() };
                format!("saved {}: {}{suffix}", path.display(), size(*bytes))
            }
            Self::Elsewhere { name, url } => {
                format!("not saved: `{name}` is at {url}, and URLs are not fetched automatically")
            }
        }
    }

    /// Formats the outcome for programs.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::At { name, path, bytes } => {
                json!({ "name": name, "path": path.display().to_string(), "bytes": bytes })
            }
            Self::Elsewhere { name, url } => json!({ "name": name, "url": url, "path": null }),
        }
    }
}

/// Saves each file of a task in `dir`, which is created if missing. No file is overwritten: a name
/// that is taken gets a number.
pub(crate) fn save(snapshot: &TaskStateSnapshot, dir: &Path) -> anyhow::Result<Vec<Saved>> {
    let mut saved = Vec::new();
    for (name, text) in named_texts(snapshot) {
        saved.push(Saved::new(dir, name, text.as_bytes())?);
    }
    let files = snapshot.parts().filter(|(_, part)| part["kind"] == "file");
    for (artifact, part) in files {
        let file = &part["file"];
        let name = file["name"].as_str().or(artifact).unwrap_or("file").to_owned();
        saved.push(match (file["uri"].as_str(), file["bytes"].as_str()) {
            (Some(url), _) => Saved::Elsewhere { name, url: url.to_owned() },
            (None, Some(encoded)) => {
                let bytes = STANDARD.decode(encoded);
                let bytes = bytes.with_context(|| format!("read the file `{name}`"))?;
                Saved::new(dir, name, &bytes)?
            }
            (None, None) => bail!("read the file `{name}`: it has neither bytes nor a URL"),
        });
    }
    Ok(saved)
}

/// Collects the texts of artifacts that have a file name, such as a report. Adjacent parts of one
/// name are one file: an artifact may have grown.
fn named_texts(snapshot: &TaskStateSnapshot) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for artifact in &snapshot.artifacts {
        let mut is_adjacent = false;
        for part in list(&artifact["parts"]) {
            let name = part["metadata"]["filename"].as_str().filter(|_| part["kind"] == "text");
            match (name, texts.last_mut()) {
                (Some(name), Some((last, all))) if is_adjacent && last == name => {
                    all.push_str(text(&part["text"]));
                }
                (Some(name), _) => texts.push((name.to_owned(), text(&part["text"]).to_owned())),
                (None, _) => {}
            }
            is_adjacent = name.is_some();
        }
    }
    texts
}

/// Writes a new file under a sanitised variant of the name `suggested`.
fn write_new(dir: &Path, suggested: &str, bytes: &[u8]) -> anyhow::Result<PathBuf> {
    let mut taken = BTreeSet::new();
    while taken.len() < MAX_TRIES {
        let name = file_name::unused(suggested, &taken);
        let path = dir.join(&name);
        // Creating a new file neither follows links nor overwrites.
        match File::create_new(&path) {
            Ok(mut file) => {
                if let Err(why) = file.write_all(bytes) {
                    // A partial file would be taken for the whole, and takes up space on a full
                    // disk.
                    let _ = fs::remove_file(&path);
                    return Err(why).with_context(|| format!("write {}", path.display()));
                }
                return Ok(path);
            }
            Err(why) if why.kind() == io::ErrorKind::AlreadyExists => taken.insert(name),
            Err(why) => return Err(why).with_context(|| format!("write {}", path.display())),
        };
    }
    bail!("save `{suggested}` in {}: {MAX_TRIES} similar names are taken", dir.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn told(files: &[Value]) -> TaskStateSnapshot {
        let parts: Vec<_> =
            files.iter().map(|file| json!({ "kind": "file", "file": file })).collect();
        let mut told = TaskStateSnapshot::default();
        told.apply(&json!({ "kind": "task", "id": "t", "status": { "state": "completed" },
            "artifacts": [{ "artifactId": "a", "name": "made", "parts": parts }] }));
        told
    }

    fn names(dir: &Path) -> String {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names.join(" ")
    }

    #[test]
    fn saved_files_stay_inside_and_never_overwrite() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("out");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("a.txt"), "mine").unwrap();
        fs::write(parent.path().join("target"), "mine").unwrap();
        symlink(parent.path().join("target"), dir.join("link")).unwrap();
        let file = |name: &str| json!({ "name": name, "bytes": "aGk=" });
        let names_said =
            ["a.txt", "../../x", "/etc/passwd", "link", ".bashrc", "a\u{202e}\x1b.md", ""];
        let told = told(&names_said.map(file));
        let saved = save(&told, &dir).unwrap();
        assert_eq!(names(&dir), "a-2.txt a.md a.txt bashrc file link link-2 passwd x");
        assert_eq!(names(parent.path()), "out target");
        assert_eq!(fs::read_to_string(dir.join("a.txt")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(parent.path().join("target")).unwrap(), "mine");
        assert_eq!(fs::read_to_string(dir.join("a-2.txt")).unwrap(), "hi");
        let text: Vec<_> = saved.iter().map(Saved::text).collect();
        let text = text.join("\n").replace(&dir.display().to_string(), "DIR");
        insta::assert_snapshot!(text.escape_debug().to_string().replace("\\n", "\n"), @r"
        saved DIR/a-2.txt: 2 bytes, for `a.txt`
        saved DIR/x: 2 bytes, for `../../x`
        saved DIR/passwd: 2 bytes, for `/etc/passwd`
        saved DIR/link-2: 2 bytes, for `link`
        saved DIR/bashrc: 2 bytes, for `.bashrc`
        saved DIR/a.md: 2 bytes, for `a\u{202e}\u{1b}.md`
        saved DIR/file: 2 bytes, for ``
        ");
    }

    #[test]
    fn named_text_artifact_becomes_file() {
        let dir = tempfile::tempdir().unwrap();
        let part = |text: &str, name: Option<&str>| {
            let metadata = name.map(|name| json!({ "filename": name, "mediaType": "text/csv" }));
            json!({ "kind": "text", "text": text, "metadata": metadata })
        };
        let parts = [part("a,b\n", Some("t.csv")), part("1,2\n", Some("t.csv")), part("x", None)];
        let mut told = TaskStateSnapshot::default();
        told.apply(&json!({ "kind": "task", "id": "t", "status": { "state": "completed" },
            "artifacts": [{ "artifactId": "a", "parts": parts }] }));
        let saved = save(&told, dir.path()).unwrap();
        assert_eq!((saved.len(), names(dir.path())), (1, "t.csv".to_owned()));
        assert_eq!(fs::read_to_string(dir.path().join("t.csv")).unwrap(), "a,b\n1,2\n");
    }

    #[test]
    fn file_url_is_reported_not_fetched() {
        let dir = tempfile::tempdir().unwrap();
        let told = told(&[json!({ "uri": "http://169.254.169.254/x" })]);
        let saved = save(&told, &dir.path().join("new")).unwrap();
        insta::assert_snapshot!(saved[0].text(), @"not saved: `made` is at http://169.254.169.254/x, and URLs are not fetched automatically");
        insta::assert_snapshot!(saved[0].to_json(), @r#"{"name":"made","path":null,"url":"http://169.254.169.254/x"}"#);
        assert_eq!(names(dir.path()), "");
    }
}
