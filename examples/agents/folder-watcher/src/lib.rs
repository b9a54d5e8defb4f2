//! Agent that waits for changes of the files in its working directory. `next` ends with the first
//! change, so that the caller can go on; `for 10m` reports all changes of that time. The setting
//! `every` is the polling interval in seconds; the default is 2.

use a2a_hub_sdk::{Part, prelude::*};
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// Mount point of the task's working directory.
const WORKSPACE: &str = "/workspace";

/// Maximum number of files: each poll reads all of them.
const MAX_FILES: usize = 5_000;

/// Directories that change all the time without being edited.
const IGNORED: &[&str] = &[".git", "node_modules", "target"];

/// Size and modification time of each file, by path.
type Files = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

/// Agent that watches a folder.
pub struct FolderWatcher;

impl Agent for FolderWatcher {
    fn card() -> Card {
        Card::new("folder-watcher", "Waits for changes of files", env!("CARGO_PKG_VERSION"))
            .skill("watch", "Watch", "Tells which files were added, changed or removed", &["files"])
            .example("next")
            .example("for 10m")
    }

    fn health(_: &Context) -> Health {
        match fs::read_dir(WORKSPACE) {
            Ok(_) => Health::healthy(),
            Err(_) => Health::unhealthy("there is no directory to watch")
                .with_fix("a2a-hub plugin grant folder-watcher --workspace read"),
        }
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let text = task.text();
        let time = match text.trim() {
            "" | "next" => None,
            request => match request.strip_prefix("for ").and_then(span) {
                Some(time) => Some(time),
                None => return ctx.reject("Say `next`, or `for 10m` (`s`, `m` or `h`)."),
            },
        };
        watch(ctx, Path::new(WORKSPACE), time)
    }
}
export!(FolderWatcher, manifest = "../manifest.toml");

/// Parses a duration such as `90s`, `10m` or `2h`.
fn span(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return None,
    };
    Some(Duration::from_secs(number.parse::<u32>().ok()?.checked_mul(seconds)?.into()))
}

fn watch(ctx: &Context, root: &Path, time: Option<Duration>) -> Run {
    let pause = ctx.setting("every").and_then(|seconds| seconds.parse().ok()).unwrap_or(2);
    let pause = Duration::from_secs(u64::from(pause.max(1_u32)));
    let Ok(mut known) = scan(root) else {
        let fix = "a2a-hub plugin grant folder-watcher --workspace read";
        return ctx.fail_with_fix("no_workspace", "I have no directory to watch.", fix);
    };
    ctx.say(format!("watches {} files", known.len()))?;
    let (mut remaining, mut reported) = (time, 0);
    while remaining != Some(Duration::ZERO) {
        let nap = remaining.map_or(pause, |remaining| remaining.min(pause));
        ctx.sleep(nap)?;
        remaining = remaining.map(|left| left.saturating_sub(nap));
        // A directory that cannot be read now is read at the next poll.
        let Ok(now) = scan(root) else { continue };
        let changes = changes(&known, &now);
        known = now;
        if changes.is_empty() {
            continue;
        }
        reported += changes.len();
        let piece = Artifact::new("changes", vec![Part::text(changes.join("\n") + "\n")]);
        match time {
            None => {
                ctx.artifact(piece)?;
                return ctx.done(changes.join("\n"));
            }
            Some(_) => ctx.append(piece, false)?,
        }
    }
    ctx.done(format!("{reported} changes"))
}

/// Files below a directory.
fn scan(root: &Path) -> io::Result<Files> {
    let (mut files, mut open) = (Files::new(), vec![root.to_owned()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let Ok(meta) = entry.metadata() else { continue };
            let is_ignored = || IGNORED.iter().any(|name| entry.file_name() == **name);
            if meta.is_dir() && !is_ignored() {
                open.push(entry.path());
            } else if meta.is_file() && files.len() < MAX_FILES {
                files.insert(entry.path(), (meta.len(), meta.modified().ok()));
            }
        }
    }
    Ok(files)
}

fn changes(before: &Files, now: &Files) -> Vec<String> {
    let line = |mark: char, path: &Path| {
        let path = path.strip_prefix(WORKSPACE).unwrap_or(path);
        format!("{mark} {}", path.display())
    };
    let new = now.iter().filter_map(|(path, meta)| match before.get(path) {
        None => Some(line('+', path)),
        Some(known) if known != meta => Some(line('~', path)),
        Some(_) => None,
    });
    let removed = before.keys().filter(|path| !now.contains_key(*path)).map(|path| line('-', path));
    new.chain(removed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_sdk::testing::ScriptedHost;

    fn files(all: &[(&str, u64)]) -> Files {
        all.iter().map(|(path, len)| (Path::new(WORKSPACE).join(path), (*len, None))).collect()
    }

    #[test]
    fn changed_files_are_listed() {
        let before = files(&[("a", 1), ("src/b", 1), ("c", 1)]);
        let now = files(&[("a", 1), ("src/b", 2), ("d", 1)]);
        assert_eq!(changes(&before, &now), ["+ d", "~ src/b", "- c"]);
        assert!(changes(&now, &now).is_empty());
    }

    #[test]
    fn durations_with_units_are_parsed() {
        let seconds = |text| span(text).map(|span| span.as_secs());
        assert_eq!(["90s", "10m", "2h"].map(seconds), [Some(90), Some(600), Some(7_200)]);
        for wrong in ["", "m", "10", "10d", "-1s", "9999999h", "1é"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn watch_ends_after_requested_duration() {
        // The scripted hub lets no time pass, so nothing changes meanwhile.
        let host = ScriptedHost::new();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let outcome = watch(&host.context(), here, Some(Duration::from_secs(7))).unwrap();
        assert_eq!(outcome.text(), "0 changes");
        assert!(host.said()[0].starts_with("watches "), "{:?}", host.said());
        let none = watch(&host.context(), Path::new("/nowhere/at/all"), None).unwrap();
        assert_eq!(none.metadata()["reason"], "no_workspace");
        assert!(host.run::<FolderWatcher>("whenever").unwrap().text().starts_with("Say `next`"));
    }
}
