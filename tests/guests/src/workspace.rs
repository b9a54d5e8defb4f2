//! Behaviours that access files by WASI.

use crate::input::{argument, number};
use a2a_hub_sdk::prelude::*;
use std::{
    fs::{self, File},
    io::{self, Write as _},
};

fn told(ctx: &Context, attempt: io::Result<String>) -> Run {
    ctx.done(attempt.unwrap_or_else(|why| format!("refused: {}", why.kind())))
}

/// `list PATH`: reports the names in a directory.
pub(crate) fn list(ctx: &Context, task: &Task) -> Run {
    let listed = fs::read_dir(argument(task)).and_then(|entries| {
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names.join(" "))
    });
    told(ctx, listed)
}

/// `show PATH`: reports the text of a file.
pub(crate) fn show(ctx: &Context, task: &Task) -> Run {
    told(ctx, fs::read_to_string(argument(task)))
}

/// `write PATH TEXT`: writes a file.
pub(crate) fn write(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (path, text) = argument.split_once(' ').unwrap_or((&argument, ""));
    told(ctx, fs::write(path, text).map(|()| format!("{} bytes", text.len())))
}

/// `write-on MEBIBYTES`: writes to one file up to that size, or until a write fails.
pub(crate) fn write_on(ctx: &Context, task: &Task) -> Run {
    let (mebibytes, piece) = (number(task)?, vec![b'x'; 1 << 16]);
    let written = File::create("/workspace/long").and_then(|mut file| {
        for _ in 0..mebibytes * 16 {
            file.write_all(&piece)?;
        }
        Ok(format!("{mebibytes} MiB"))
    });
    told(ctx, written)
}

/// `make-many N`: creates N empty files.
pub(crate) fn make_many(ctx: &Context, task: &Task) -> Run {
    let count = number(task)?;
    let made = (0..count).try_for_each(|n| File::create(format!("/workspace/f{n}")).map(drop));
    told(ctx, made.map(|()| format!("{count} files")))
}

/// `link TARGET PATH`: creates a symbolic link.
pub(crate) fn link(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (target, path) = argument.split_once(' ').unwrap_or((&argument, ""));
    told(ctx, system::link(target, path).map(|()| "linked".to_owned()))
}

/// `touch PATH`: sets the times of the file at a path of the workspace, following links.
pub(crate) fn touch(ctx: &Context, task: &Task) -> Run {
    told(ctx, system::touch(&argument(task)).map(|()| "touched".to_owned()))
}

/// `move FROM TO`: renames a file.
pub(crate) fn rename(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (from, to) = argument.split_once(' ').unwrap_or((&argument, ""));
    told(ctx, fs::rename(from, to).map(|()| "moved".to_owned()))
}

/// `stretch BYTES`: creates one sparse file of that size.
pub(crate) fn stretch(ctx: &Context, task: &Task) -> Run {
    let bytes = u64::try_from(number(task)?).unwrap_or(u64::MAX);
    let file = File::create("/workspace/hole").and_then(|file| file.set_len(bytes));
    told(ctx, file.map(|()| format!("{bytes} bytes")))
}

#[cfg(target_arch = "wasm32")]
mod system {
    use std::io;
    use wasip2::filesystem::preopens::get_directories;
    use wasip2::filesystem::types::{NewTimestamp, PathFlags};

    /// Uses WASI directly, unlike the functions of any language: the target is not checked on this
    /// side.
    pub(super) fn link(target: &str, path: &str) -> io::Result<()> {
        let preopens = get_directories();
        let (directory, _) = preopens.first().ok_or(io::ErrorKind::NotFound)?;
        directory.symlink_at(target, path).map_err(|_| io::ErrorKind::PermissionDenied.into())
    }

    pub(super) fn touch(path: &str) -> io::Result<()> {
        let preopens = get_directories();
        let (directory, _) = preopens.first().ok_or(io::ErrorKind::NotFound)?;
        let (follow, now) = (PathFlags::SYMLINK_FOLLOW, NewTimestamp::Now);
        let touched = directory.set_times_at(follow, path, now, now);
        touched.map_err(|_| io::ErrorKind::PermissionDenied.into())
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod system {
    use std::io;

    pub(super) fn link(_: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn touch(_: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
