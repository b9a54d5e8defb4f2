//! Behaviours that reach for files by WASI.

use crate::{argument, number};
use a2a_hub_sdk::prelude::*;
use std::{
    fs::{self, File},
    io::{self, Write as _},
};

fn told(ctx: &Context, attempt: io::Result<String>) -> Run {
    ctx.done(attempt.unwrap_or_else(|why| format!("refused: {}", why.kind())))
}

/// `list PATH`: the names in a directory.
pub(crate) fn list(ctx: &Context, task: &Task) -> Run {
    let listed = fs::read_dir(argument(task)).and_then(|entries| {
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names.join(" "))
    });
    told(ctx, listed)
}

/// `show PATH`: the text of a file.
pub(crate) fn show(ctx: &Context, task: &Task) -> Run {
    told(ctx, fs::read_to_string(argument(task)))
}

/// `write PATH TEXT`
pub(crate) fn write(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (path, text) = argument.split_once(' ').unwrap_or((&argument, ""));
    told(ctx, fs::write(path, text).map(|()| format!("{} bytes", text.len())))
}

/// `write-on MEBIBYTES`: writes to one file until it is that long, or no more is taken.
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

/// `make-many N`: N empty files.
pub(crate) fn make_many(ctx: &Context, task: &Task) -> Run {
    let count = number(task)?;
    let made = (0..count).try_for_each(|n| File::create(format!("/workspace/f{n}")).map(drop));
    told(ctx, made.map(|()| format!("{count} files")))
}

/// `link TARGET PATH`: a symbolic link.
pub(crate) fn link(ctx: &Context, task: &Task) -> Run {
    let argument = argument(task);
    let (target, path) = argument.split_once(' ').unwrap_or((&argument, ""));
    told(ctx, system::link(target, path).map(|()| "linked".to_owned()))
}

#[cfg(target_arch = "wasm32")]
mod system {
    use std::io;
    use wasip2::filesystem::preopens::get_directories;

    /// As no language's own functions make it: where it leads is not looked at on this side.
    pub(super) fn link(target: &str, path: &str) -> io::Result<()> {
        let preopens = get_directories();
        let (directory, _) = preopens.first().ok_or(io::ErrorKind::NotFound)?;
        directory.symlink_at(target, path).map_err(|_| io::ErrorKind::PermissionDenied.into())
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod system {
    use std::io;

    pub(super) fn link(_: &str, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
