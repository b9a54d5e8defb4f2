//! `plugin new`: the project of a new agent, which builds, has tests, and carries what it is built with.

use super::{
    build::shown,
    component,
    scaffold::{self, Language},
};
use crate::{
    cli::{Exit, Global, failure::CommandError},
    packed::unpack,
};
use anyhow::Context as _;
use clap::Args;
use rustix::{
    fs::{CWD, RenameFlags, renameat_with},
    io::Errno,
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

/// Something stands where the project was to be.
const EXISTS: &str = "PROJECT_EXISTS";

#[derive(Debug, Args)]
pub(in crate::cli) struct New {
    /// What the agent is to be called: lower-case letters, digits and hyphens, beginning with a letter. The project is a folder of
    /// this name
    name: String,
    /// The language that it is written in
    #[arg(long, value_enum, default_value_t = Language::Rust)]
    lang: Language,
    /// Make the folder in this directory
    #[arg(long = "in", value_name = "DIR", default_value = ".")]
    within: PathBuf,
}

pub(super) fn new(global: &Global, new: &New) -> anyhow::Result<Exit> {
    let id = component::name(&new.name)?;
    component::must_be_free(&id)?;
    let place = new.within.join(id.as_str());
    let files = scaffold::project(&unpack()?, new.lang, &id)?;
    make(&new.within, &place, &files)?;
    let place = std::path::absolute(&place)?;
    let told = json!({ "agentId": id, "project": place, "files": files.len() });
    global.show(&told, || {
        let folder = shown(&place);
        let words = format!(
            "{id} is in {folder}: {} files, of which README.md comes first\n\n  cd {folder}\n  a2a-hub plugin build      the component\n  \
             a2a-hub plugin dev        into a running hub (`a2a-hub start`), and again with each change\n",
            files.len()
        );
        Ok(words.into())
    })?;
    Ok(Exit::Done)
}

/// Makes a folder with these files, whole or not at all; nothing that is there is touched.
fn make(within: &Path, place: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> anyhow::Result<()> {
    let taken = || {
        let why = format!(
            "make {}: something is there already; choose another name, or another directory with `--in`",
            place.display()
        );
        CommandError::new(EXISTS, why)
    };
    // A link that leads nowhere is something, too.
    if fs::symlink_metadata(place).is_ok() {
        return Err(taken().into());
    }
    let chance = getrandom::u32().context("name a draft")?;
    let draft = within.join(format!(".a2a-hub-new-{chance:08x}"));
    fs::create_dir(&draft).with_context(|| format!("make a folder in {}", within.display()))?;
    let filled =
        fill(&draft, files).with_context(|| format!("write the files of {}", place.display()));
    let moved = filled.and_then(|()| {
        renameat_with(CWD, &draft, CWD, place, RenameFlags::NOREPLACE).map_err(|why| match why {
            Errno::EXIST => taken().into(),
            why => anyhow::Error::from(io::Error::from(why))
                .context(format!("make {}", place.display())),
        })
    });
    if moved.is_err() {
        // What is left of it is of no use, and in nobody's way.
        let _ = fs::remove_dir_all(&draft);
    }
    moved
}

fn fill(dir: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    for (path, bytes) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap_or(dir))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_project_is_made_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let (within, place) = (dir.path(), dir.path().join("notes"));
        let files = BTreeMap::from([(PathBuf::from("src/lib.rs"), b"//! x".to_vec())]);
        make(within, &place, &files).unwrap();
        assert_eq!(fs::read(place.join("src/lib.rs")).unwrap(), b"//! x");
        let twice = make(within, &place, &files).unwrap_err().to_string();
        assert!(twice.contains("something is there already"), "{twice}");
        let link = dir.path().join("link");
        symlink("/nowhere", &link).unwrap();
        assert!(make(within, &link, &files).is_err());
        // A file where a folder is to be: nothing is left of the try.
        let torn = BTreeMap::from([("a".into(), Vec::new()), ("a/b".into(), Vec::new())]);
        assert!(make(within, &dir.path().join("torn"), &torn).is_err());
        assert_eq!(fs::read_dir(within).unwrap().count(), 2, "the project, and the link");
    }
}
