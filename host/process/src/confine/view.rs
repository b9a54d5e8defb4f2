//! File system view of a confined program: an empty root into which its readable and writable files
//! are mounted (`bind`), at their outside paths.
//!
//! Each source is first opened by a path without links (`RESOLVE_NO_SYMLINKS`) and kept as a
//! detached mount (`open_tree`), so that a concurrent rename cannot substitute another. The mount
//! points are opened the same way.

use super::{
    Confinement,
    step::{NotConfined, Step},
    system, user,
};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, symlinkat},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags,
        MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount,
        fsopen, mount, mount_bind, mount_change, mount_remount, move_mount, open_tree, unmount,
    },
    process::{chdir, pivot_root},
};
use std::{
    ffi::CStr,
    fs,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

/// Options of a directory in memory, such as `/dev/shm`: mode and size.
const IN_MEMORY: [(&str, &str); 2] = [("mode", "0755"), ("size", "256m")];

/// Content of one path of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PathContent {
    /// Same content as outside, with all mounts below. A missing source is skipped, unless it is to
    /// be writable.
    Same { source: PathBuf, writable: bool },
    /// A link.
    Link(PathBuf),
    /// An empty replacement.
    Hidden,
    /// An empty writable directory.
    Scratch,
}

/// Visible files, by path.
type View = Vec<(PathBuf, PathContent)>;

/// A part of the view with an open handle, independent of later changes of its path.
struct OpenedPart {
    at: PathBuf,
    content: PathContent,
    tree: Option<(OwnedFd, FileType)>,
}

/// Builds the view and enters it. Requires an own mount namespace; `/proc` becomes that of the
/// current PID namespace.
pub(super) fn enter(confinement: &Confinement, cwd: &Path) -> Result<(), NotConfined> {
    let root = &confinement.temporary;
    let on = |path: &Path| NotConfined::on(Step::View, path);
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).map_err(on(Path::new("/")))?;
    let parts = view(confinement)
        .into_iter()
        .filter_map(|(at, content)| open_part(at, content).transpose());
    let parts: Vec<OpenedPart> = parts.collect::<Result<_, _>>()?;
    let devices = system::DEVICES.iter().map(|name| Path::new("/dev").join(name));
    let devices = devices.filter_map(|at| {
        let content = PathContent::Same { source: at.clone(), writable: true };
        at.exists().then(|| open_part(at, content)).and_then(Result::transpose)
    });
    let devices: Vec<OpenedPart> = devices.collect::<Result<_, _>>()?;

    let at = open(root).map_err(on(root))?;
    attach(&in_memory().map_err(on(root))?, &at).map_err(on(root))?;
    // The tmpfs that is now mounted there.
    let new = open(root).map_err(on(root))?;
    for mount_point in ["/proc", "/dev/pts", "/dev/shm"] {
        directory(&new, Path::new(mount_point)).map_err(on(Path::new(mount_point)))?;
    }
    // Mounted while the outer `/proc` is still visible: a process that sees none may mount none.
    let no_programs = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let proc = mount("proc", root.join("proc"), "proc", no_programs, None::<&CStr>);
    proc.map_err(NotConfined::on(Step::Proc, Path::new("/proc")))?;
    for piece in devices.iter().chain(&parts) {
        mount_part(&new, piece).map_err(on(&piece.at))?;
    }
    furnish_devices(root, &new)?;
    make_read_only(root, &parts).map_err(on(root))?;
    chdir(root).map_err(on(root))?;
    pivot_root(".", ".").map_err(on(root))?;
    unmount(".", UnmountFlags::DETACH).map_err(on(root))?;
    chdir("/").map_err(on(root))?;
    chdir(cwd).map_err(on(cwd))
}

/// Makes read-only what the init had to write until now: the root, and the machine-wide parts of
/// `/proc`.
pub(super) fn seal() -> Result<(), NotConfined> {
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    let root = Path::new("/");
    mount_remount(root, flags, "").map_err(NotConfined::on(Step::View, root))?;
    if !user::is_superuser() {
        return Ok(()); // only the superuser may write there
    }
    for name in system::MACHINES_PROC {
        let path = Path::new("/proc").join(name);
        if path.exists() {
            let sealed = mount_bind(&path, &path)
                .and_then(|()| mount_remount(&path, flags | MountFlags::NOEXEC, ""));
            sealed.map_err(NotConfined::on(Step::Proc, &path))?;
        }
    }
    for name in system::SECRET_PROC {
        let path = Path::new("/proc").join(name);
        if path.exists() {
            mount_bind("/dev/null", &path).map_err(NotConfined::on(Step::Proc, &path))?;
        }
    }
    Ok(())
}

/// Directories that the program can write to.
pub(super) fn writable(confinement: &Confinement) -> Vec<PathBuf> {
    let builtin = [PathBuf::from("/tmp"), PathBuf::from("/dev/shm"), PathBuf::from("/dev/pts")];
    let named = confinement.write.iter().chain(&confinement.scratch);
    named.cloned().chain(builtin).collect()
}

/// Parts of the view: deeper paths come later and cover those above.
fn view(confinement: &Confinement) -> View {
    let Confinement { read, write, hidden, scratch, temporary, .. } = confinement;
    let same = |source: &Path, writable| PathContent::Same { source: source.to_owned(), writable };
    let mut view = system_view();
    // A writable directory stays writable even if it contains the program itself.
    let is_written = |path: &PathBuf| {
        write.iter().any(|dir| {
            let within = |hidden: &&PathBuf| path.starts_with(hidden) && hidden.starts_with(dir);
            path.starts_with(dir) && !hidden.iter().any(|one| within(&one))
        })
    };
    // System paths are part of the view already.
    let is_system = |path: &PathBuf| {
        let holds = |(at, content): &(PathBuf, PathContent)| {
            path.starts_with(at) && matches!(content, PathContent::Same { .. }) && at.is_dir()
        };
        system_view().iter().any(holds)
    };
    view.extend(
        read.iter()
            .filter(|path| !is_written(path) && !is_system(path))
            .map(|path| (path.clone(), same(path, false))),
    );
    view.extend(write.iter().map(|path| (path.clone(), same(path, true))));
    view.push(("/tmp".into(), same(temporary, true)));
    // The own `/tmp` replaces the outside one and shows none of its content.
    let is_same = |(at, content): &(PathBuf, PathContent)| matches!(content, PathContent::Same { source, .. } if source == at);
    let visible: Vec<_> =
        view.iter().filter(|piece| is_same(piece)).map(|(at, _)| at.clone()).collect();
    let is_visible = |path: &&PathBuf| visible.iter().any(|at| path.starts_with(at) && *path != at);
    for path in hidden.iter().filter(is_visible) {
        // The directories in between are mounted as well: a mount point cannot be renamed away from
        // above a hidden path.
        let within = write.iter().filter(|dir| path.starts_with(dir) && path != *dir);
        let between = within.flat_map(|dir| {
            path.ancestors().skip(1).take_while(move |ancestor| ancestor != dir).map(Path::to_owned)
        });
        view.extend(between.map(|ancestor| (ancestor.clone(), same(&ancestor, true))));
        view.push((path.clone(), PathContent::Hidden));
    }
    view.extend(scratch.iter().map(|path| (path.clone(), PathContent::Scratch)));
    // For equal paths, the writable one comes last.
    view.sort_by_key(|(at, content)| {
        (at.components().count(), matches!(content, PathContent::Same { writable: true, .. }))
    });
    view
}

/// System files visible to every program.
fn system_view() -> View {
    let mut view = View::new();
    for directory in system::DIRECTORIES.iter().map(Path::new) {
        if let Ok(target) = fs::read_link(directory) {
            view.push((directory.to_owned(), PathContent::Link(target)));
        } else if directory.exists() {
            let content = PathContent::Same { source: directory.to_owned(), writable: false };
            view.push((directory.to_owned(), content));
        }
    }
    for at in system::CONFIGURATION.iter().map(|name| Path::new("/etc").join(name)) {
        // A dangling link is skipped.
        if let Ok(source) = at.canonicalize() {
            view.push((at, PathContent::Same { source, writable: false }));
        }
    }
    view
}

/// Opens a file or directory, and fails if its path contains a link.
fn open(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

/// Detached mount of an open file or directory, with all mounts below.
fn clone_tree(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(file, "", flags)
}

/// Opens a part of the view; none if it is missing and optional.
fn open_part(at: PathBuf, content: PathContent) -> Result<Option<OpenedPart>, NotConfined> {
    let PathContent::Same { source, writable } = &content else {
        return Ok(Some(OpenedPart { at, content, tree: None }));
    };
    let opened = open(source).and_then(|file| {
        let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
        Ok((clone_tree(&file)?, kind))
    });
    match opened {
        Ok(tree) => Ok(Some(OpenedPart { at, content, tree: Some(tree) })),
        Err(Errno::NOENT) if !writable => Ok(None),
        Err(why) => Err(NotConfined::on(Step::View, source)(why)),
    }
}

/// Mounts one part below `root`, without following links: its parent directory may be writable by
/// another program.
fn mount_part(root: &OwnedFd, piece: &OpenedPart) -> Result<(), Errno> {
    let OpenedPart { at, content, tree } = piece;
    match (content, tree) {
        (PathContent::Link(to), _) => {
            let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else { return Ok(()) };
            symlinkat(to, directory(root, parent)?, name)
        }
        (PathContent::Same { .. }, Some((tree, FileType::Directory))) => {
            attach(tree, &directory(root, at)?)
        }
        (PathContent::Same { .. }, Some((tree, _))) => attach(tree, &file(root, at)?),
        (PathContent::Same { .. }, None) => Ok(()),
        // A hidden path must exist: otherwise the program is not started.
        (PathContent::Hidden, _) => {
            let target = open_beneath(root, at, OFlags::empty())?;
            let is_directory = FileType::from_raw_mode(fstat(&target)?.st_mode).is_dir();
            let nothing =
                if is_directory { in_memory() } else { clone_tree(&open(Path::new("/dev/null"))?) };
            attach(&nothing?, &target)
        }
        (PathContent::Scratch, _) => attach(&in_memory()?, &directory(root, at)?),
    }
}

/// Attaches a detached mount to the target of a handle.
fn attach(tree: &OwnedFd, target: &OwnedFd) -> Result<(), Errno> {
    let by_handles =
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(tree, "", target, "", by_handles)
}

/// Opens an existing path of the view.
fn open_beneath(root: &OwnedFd, at: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = at.strip_prefix("/").unwrap_or(at);
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    openat2(root, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH)
}

/// Opens a directory of the view, and creates it if necessary.
fn directory(root: &OwnedFd, at: &Path) -> Result<OwnedFd, Errno> {
    let mut here = open_beneath(root, Path::new("."), OFlags::DIRECTORY)?;
    for name in at.components().skip(1) {
        let name = Path::new(name.as_os_str());
        let found = open_beneath(&here, name, OFlags::DIRECTORY);
        here = match found {
            Err(Errno::NOENT) => {
                mkdirat(&here, name, Mode::from_raw_mode(0o755))?;
                open_beneath(&here, name, OFlags::DIRECTORY)?
            }
            found => found?,
        };
    }
    Ok(here)
}

/// Opens a file of the view, and creates it if necessary.
fn file(root: &OwnedFd, at: &Path) -> Result<OwnedFd, Errno> {
    let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else {
        return Err(Errno::INVAL);
    };
    let parent = directory(root, parent)?;
    match open_beneath(&parent, Path::new(name), OFlags::empty()) {
        Err(Errno::NOENT) => {
            let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            openat(&parent, name, new, Mode::from_raw_mode(0o644))?;
            open_beneath(&parent, Path::new(name), OFlags::empty())
        }
        found => found,
    }
}

/// Detached tmpfs.
fn in_memory() -> Result<OwnedFd, Errno> {
    let filesystem = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in IN_MEMORY {
        fsconfig_set_string(&filesystem, name, value)?;
    }
    fsconfig_create(&filesystem)?;
    let plain = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&filesystem, FsMountFlags::FSMOUNT_CLOEXEC, plain)
}

/// Creates the devices of the view: own terminals, shared memory and links.
fn furnish_devices(path: &Path, root: &OwnedFd) -> Result<(), NotConfined> {
    let on = |path: &str| NotConfined::on(Step::View, Path::new(path));
    let terminals = c"newinstance,ptmxmode=0666,mode=620";
    let no_programs = MountFlags::NOSUID | MountFlags::NOEXEC;
    let pts = path.join("dev/pts");
    mount("devpts", pts, "devpts", no_programs, terminals).map_err(on("/dev/pts"))?;
    let scratch = OpenedPart { at: "/dev/shm".into(), content: PathContent::Scratch, tree: None };
    mount_part(root, &scratch).map_err(on("/dev/shm"))?;
    for (name, to) in system::DEVICE_LINKS {
        let link = OpenedPart {
            at: Path::new("/dev").join(name),
            content: PathContent::Link(to.into()),
            tree: None,
        };
        mount_part(root, &link).map_err(on("/dev"))?;
    }
    Ok(())
}

/// Makes the mounts of read-only parts read-only. Their other restrictions are kept, because
/// another namespace has locked them.
fn make_read_only(root: &Path, parts: &[OpenedPart]) -> Result<(), Errno> {
    let table = fs::read_to_string("/proc/self/mountinfo");
    let table = table.map_err(|why| Errno::from_io_error(&why).unwrap_or(Errno::IO))?;
    for (mount_point, flags) in table.lines().filter_map(mounted) {
        let Ok(at) = mount_point.strip_prefix(root) else { continue };
        let at = Path::new("/").join(at);
        // The deepest part comes last and determines the mount.
        let whose = parts.iter().rev().find(|piece| at.starts_with(&piece.at));
        let is_read_only = |piece: &OpenedPart| {
            matches!(piece.content, PathContent::Same { writable: false, .. } | PathContent::Hidden)
        };
        if whose.is_some_and(is_read_only) {
            mount_remount(&mount_point, flags | MountFlags::BIND | MountFlags::RDONLY, "")?;
        }
    }
    Ok(())
}

/// Mount point and restrictions in a line of `mountinfo`: `36 35 98:0 /root /at rw,nosuid … - …`.
fn mounted(line: &str) -> Option<(PathBuf, MountFlags)> {
    let mut fields = line.split(' ').skip(4);
    let (at, options) = (fields.next()?, fields.next()?);
    let flags = options.split(',').map(|option| match option {
        "ro" => MountFlags::RDONLY,
        "nosuid" => MountFlags::NOSUID,
        "nodev" => MountFlags::NODEV,
        "noexec" => MountFlags::NOEXEC,
        "noatime" => MountFlags::NOATIME,
        "nodiratime" => MountFlags::NODIRATIME,
        "relatime" => MountFlags::RELATIME,
        _ => MountFlags::empty(),
    });
    Some((unescaped(at), flags.fold(MountFlags::NOSUID, MountFlags::union)))
}

/// Decodes a path of `mountinfo`: space, tab, newline and backslash are octal escapes.
fn unescaped(path: &str) -> PathBuf {
    let [space, tab, newline, backslash] = ["\\040", "\\011", "\\012", "\\134"];
    // The backslash last, so that its result is not decoded again.
    let path = path.replace(space, " ").replace(tab, "\t").replace(newline, "\n");
    path.replace(backslash, "\\").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }

    /// Kind of each path of the view that is not part of the system.
    fn told(confinement: &Confinement) -> Vec<String> {
        let own = view(confinement).into_iter().filter(|(at, _)| at.starts_with("/w"));
        let word = |what| match what {
            PathContent::Same { writable: true, .. } => "write",
            PathContent::Same { writable: false, .. } => "read",
            PathContent::Link(_) => "link",
            PathContent::Hidden => "hidden",
            PathContent::Scratch => "scratch",
        };
        own.map(|(at, what)| format!("{} {}", word(what), at.display())).collect()
    }

    #[test]
    fn deeper_paths_override_shallower_ones() {
        let confinement = Confinement {
            read: paths(&["/w/data/bin", "/w/project/node_modules", "/w/tool"]),
            write: paths(&["/w/project", "/w/project/hub/home"]),
            hidden: paths(&["/w/project/hub", "/w/project/deep/er/secret", "/w/other", "/w/tool"]),
            scratch: paths(&["/w/home"]),
            ..Confinement::default()
        };
        let expected = [
            "read /w/tool",
            "scratch /w/home",
            "write /w/project",
            "read /w/data/bin",
            "hidden /w/project/hub",
            "write /w/project/hub/home",
            "write /w/project/deep",
            "write /w/project/deep/er",
            "hidden /w/project/deep/er/secret",
        ];
        let mut told = told(&confinement);
        let depth = |line: &String| line.matches('/').count();
        assert!(told.is_sorted_by_key(depth), "{told:?}");
        let mut expected = expected.map(str::to_owned);
        told.sort();
        expected.sort();
        assert_eq!(told, expected);
    }

    #[test]
    fn program_in_hidden_directory_is_visible() {
        let confinement = Confinement {
            read: paths(&["/w/hub/tool"]),
            write: paths(&["/w"]),
            hidden: paths(&["/w/hub"]),
            ..Confinement::default()
        };
        assert_eq!(told(&confinement), ["write /w", "hidden /w/hub", "read /w/hub/tool"]);
    }

    #[test]
    fn view_excludes_system_secrets() {
        let seen: Vec<_> = system_view().into_iter().map(|(at, _)| at).collect();
        for secret in [
            "/etc/shadow",
            "/etc/ssh/ssh_host_rsa_key",
            "/etc/ssl/private",
            "/root",
            "/run",
            "/var/run/docker.sock",
        ] {
            assert!(!seen.iter().any(|at| Path::new(secret).starts_with(at)), "{secret}");
        }
        assert!(seen.contains(&"/usr".into()) && seen.contains(&"/etc/passwd".into()));
    }

    #[test]
    fn mountinfo_line_is_parsed() {
        let line = r"36 35 98:0 /mnt /a\040b rw,nodev,noatime,idmapped master:1 - ext4 /dev/x rw";
        let (at, flags) = mounted(line).unwrap();
        assert_eq!(at, Path::new("/a b"));
        assert_eq!(flags, MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME);
        assert_eq!(mounted("36 35"), None);
    }
}
