//! Settings of the user's git, as values: git itself never reads these files here.
//!
//! Read are `/etc/gitconfig`, the user's own files with what they include, and those of the
//! repository (git-config(1)). A repository may have been written by an agent, so what its own
//! files say counts for little: they name no program, and no file outside of it.

use crate::reader::{OpenDirectory, line};
use gix_config::{File as ConfigFile, file::Metadata};
use gix_glob::wildmatch::Mode as Wildmatch;
use std::{
    fs::File,
    io::Read as _,
    os::unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// Largest file of settings or rules that is read, in bytes.
const FILE_LIMIT: u64 = 1 << 20;

/// Deepest chain of included files (git has the same limit).
const MAX_DEPTH: usize = 10;

/// Most files that are read for one repository.
const MAX_FILES: usize = 64;

/// Home directory of the user, with the user's settings of git.
#[derive(Clone, Debug, Default)]
pub struct GitHome {
    /// The home directory; without it, only the repository's settings count.
    pub home: Option<PathBuf>,
    /// Directory of settings, if it is not `~/.config` (`XDG_CONFIG_HOME`).
    pub config: Option<PathBuf>,
}

/// Line ends of text files in a checkout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AutoCrlf {
    #[default]
    Off,
    /// Text files have CRLF in the checkout, and LF in the repository.
    On,
    /// CRLF becomes LF on the way to the repository.
    Input,
}

/// Settings of git that count for a checkout.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitSettings {
    pub(crate) name: Option<String>,
    pub(crate) email: Option<String>,
    /// False on file systems without executable bits: the index says which files are executable.
    pub(crate) ignores_file_mode: bool,
    pub(crate) autocrlf: AutoCrlf,
    /// True if text files have CRLF in the checkout (`core.eol`).
    pub(crate) eol_is_crlf: bool,
    /// True if no reflog is to be begun.
    pub(crate) has_no_reflog: bool,
    /// Directory of the files, as a submodule's repository names it.
    pub(crate) work_tree: Option<String>,
    /// Format of the refs, if it is not one file each.
    pub(crate) ref_storage: Option<String>,
    /// True if ids are SHA-256.
    pub(crate) is_sha256: bool,
    has_worktree_config: bool,
    excludes_file: Option<PathBuf>,
    attributes_file: Option<PathBuf>,
    /// Rules of the user's file of excludes.
    pub(crate) excludes: Vec<u8>,
    /// Rules of the user's file of attributes.
    pub(crate) attributes: Vec<u8>,
}

/// Directories with the settings of a repository, and what conditions in them ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettingsPaths<'r> {
    /// Git directory of the checkout.
    pub(crate) git_dir: &'r Path,
    /// Git directory with objects and refs.
    pub(crate) common: &'r Path,
    pub(crate) checkout: Option<&'r Path>,
    /// Branch that is checked out, if one is.
    pub(crate) branch: Option<&'r str>,
}

/// Writer of a file of settings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SettingsOrigin {
    User,
    Repository,
}

impl GitSettings {
    /// Settings for a checkout. A file that cannot be read, or that is no configuration, counts
    /// for nothing. Blocks on the disk.
    pub(crate) fn for_checkout(home: &GitHome, repository: &SettingsPaths<'_>) -> Self {
        let mut reading = Reading::new(home, repository);
        let user = reading.user_directory();
        reading.user_file(Path::new("/etc/gitconfig"), 0);
        if let Some(user) = &user {
            reading.user_file(&user.join("config"), 0);
        }
        if let Some(home) = &home.home {
            reading.user_file(&home.join(".gitconfig"), 0);
        }
        reading.repository_files();
        let Reading { mut settings, .. } = reading;
        let named = |file: &Option<PathBuf>, name: &str| {
            file.clone().or_else(|| user.as_ref().map(|user| user.join(name)))
        };
        settings.excludes =
            named(&settings.excludes_file, "ignore").and_then(plain_file).unwrap_or_default();
        settings.attributes =
            named(&settings.attributes_file, "attributes").and_then(plain_file).unwrap_or_default();
        settings
    }

    /// Settings that the repository's own files say: its form.
    pub(crate) fn of_repository(repository: &SettingsPaths<'_>) -> Self {
        let home = GitHome::default();
        let mut reading = Reading::new(&home, repository);
        reading.repository_files();
        reading.settings
    }

    /// Name and address for commits; none if the user has not named both.
    pub(crate) fn author(&self) -> Option<(String, String)> {
        let plain = |text: &String| {
            let text = text.replace(['<', '>', '\n', '\0'], "").trim().to_owned();
            (!text.is_empty()).then_some(text)
        };
        Some((plain(self.name.as_ref()?)?, plain(self.email.as_ref()?)?))
    }
}

struct Reading<'r> {
    home: &'r GitHome,
    repository: &'r SettingsPaths<'r>,
    /// Addresses of remotes, for `includeIf "hasconfig:remote.*.url:…"`.
    remotes: Vec<String>,
    files: usize,
    settings: GitSettings,
}

impl<'r> Reading<'r> {
    fn new(home: &'r GitHome, repository: &'r SettingsPaths<'r>) -> Self {
        let (files, settings) = (0, GitSettings::default());
        let mut reading = Self { home, repository, remotes: Vec::new(), files, settings };
        reading.remotes = reading.remote_urls();
        reading
    }

    /// Directory with the user's `config`, `ignore` and `attributes`.
    fn user_directory(&self) -> Option<PathBuf> {
        let GitHome { home, config } = self.home;
        let config = config.clone().or_else(|| Some(home.as_ref()?.join(".config")))?;
        Some(config.join("git"))
    }

    fn user_file(&mut self, path: &Path, depth: usize) {
        if self.files >= MAX_FILES {
            return;
        }
        self.files += 1;
        if let Some(bytes) = plain_file(path.to_owned()) {
            self.add(&bytes, path, SettingsOrigin::User, depth);
        }
    }

    fn repository_files(&mut self) {
        let SettingsPaths { common, git_dir, .. } = *self.repository;
        self.repository_file(common, "config", 0);
        if self.settings.has_worktree_config {
            self.repository_file(git_dir, "config.worktree", 0);
        }
    }

    fn repository_file(&mut self, directory: &Path, name: &str, depth: usize) {
        if self.files >= MAX_FILES {
            return;
        }
        self.files += 1;
        let bytes = OpenDirectory::open(directory).ok();
        let bytes = bytes.and_then(|it| it.bytes(name, FILE_LIMIT).ok().flatten());
        if let Some(bytes) = bytes {
            self.add(&bytes, &directory.join(name), SettingsOrigin::Repository, depth);
        }
    }

    fn add(&mut self, bytes: &[u8], path: &Path, origin: SettingsOrigin, depth: usize) {
        let Some(file) = parse(bytes) else {
            tracing::debug!(path = %path.display(), "git configuration file ignored: cannot parse it");
            return;
        };
        for section in file.sections() {
            let (header, body) = (section.header(), section.body());
            let name = header.name().to_string().to_lowercase();
            let subsection = header.subsection_name().map(|it| it.to_string());
            let value = |key: &str| body.value_implicit(key).map(|it| it.map(|it| it.to_string()));
            let is_included = match (name.as_str(), &subsection) {
                ("include", None) => true,
                ("includeif", Some(condition)) => self.holds(condition, path),
                _ => false,
            };
            if is_included {
                for included in body.values("path") {
                    self.include(&included.to_string(), path, origin, depth);
                }
            }
            self.set(&name, subsection.as_deref(), &value, path, origin);
        }
    }

    fn set(
        &mut self,
        name: &str,
        subsection: Option<&str>,
        value: &dyn Fn(&str) -> Option<Option<String>>,
        path: &Path,
        origin: SettingsOrigin,
    ) {
        let text = |key: &str| value(key).flatten();
        let flag = |key: &str| value(key).map(|it| is_true(it.as_deref()));
        let settings = &mut self.settings;
        match (name, subsection) {
            ("user", None) => {
                settings.name = text("name").or(settings.name.take());
                settings.email = text("email").or(settings.email.take());
            }
            ("core", None) => {
                if let Some(flag) = flag("fileMode") {
                    settings.ignores_file_mode = !flag;
                }
                if let Some(set) = value("autocrlf") {
                    settings.autocrlf = match set.as_deref() {
                        Some(text) if text.eq_ignore_ascii_case("input") => AutoCrlf::Input,
                        set if is_true(set) => AutoCrlf::On,
                        _ => AutoCrlf::Off,
                    };
                }
                if let Some(eol) = text("eol") {
                    settings.eol_is_crlf = eol.eq_ignore_ascii_case("crlf");
                }
                if let Some(set) = value("logAllRefUpdates") {
                    settings.has_no_reflog = !is_true(set.as_deref())
                        && set.as_deref().is_none_or(|set| !set.eq_ignore_ascii_case("always"));
                }
                if origin == SettingsOrigin::Repository {
                    settings.work_tree = text("worktree").or(settings.work_tree.take());
                }
                if let Some(named) = text("excludesFile") {
                    self.settings.excludes_file = self.named(&named, path, origin);
                }
                if let Some(named) = text("attributesFile") {
                    self.settings.attributes_file = self.named(&named, path, origin);
                }
            }
            ("extensions", None) if origin == SettingsOrigin::Repository => {
                settings.ref_storage = text("refStorage").or(settings.ref_storage.take());
                settings.is_sha256 |=
                    text("objectFormat").is_some_and(|it| it.eq_ignore_ascii_case("sha256"));
                settings.has_worktree_config |= flag("worktreeConfig").unwrap_or(false);
            }
            _ => {}
        }
    }

    /// Reads a file that another one includes.
    fn include(&mut self, named: &str, from: &Path, origin: SettingsOrigin, depth: usize) {
        if depth == MAX_DEPTH {
            return;
        }
        match origin {
            SettingsOrigin::User => {
                if let Some(path) = self.expanded(named, from) {
                    self.user_file(&path, depth + 1);
                }
            }
            SettingsOrigin::Repository => {
                let Some(path) = self.named(named, from, origin) else { return };
                if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                    let name = name.to_string_lossy().into_owned();
                    self.repository_file(parent, &name, depth + 1);
                }
            }
        }
    }

    /// Path of a file that a setting names. A repository names files beneath itself, and the
    /// user's files of settings: its other words could show an agent what it must not see.
    fn named(&self, named: &str, from: &Path, origin: SettingsOrigin) -> Option<PathBuf> {
        let path = self.expanded(named, from)?;
        if origin == SettingsOrigin::User {
            return Some(path);
        }
        let real = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
        let SettingsPaths { checkout, common, .. } = *self.repository;
        let is_in_repository =
            [checkout, Some(common)].iter().flatten().any(|it| real.starts_with(it));
        let is_users = self.home.home.as_ref().is_some_and(|home| {
            let is_dot_file = real.parent() == Some(home)
                && real.file_name().is_some_and(|it| it.as_bytes().starts_with(b".gitconfig"));
            is_dot_file || self.user_directory().is_some_and(|it| real.starts_with(it))
        });
        (is_in_repository || is_users).then_some(real)
    }

    fn expanded(&self, named: &str, from: &Path) -> Option<PathBuf> {
        if let Some(rest) = named.strip_prefix("~/") {
            return Some(self.home.home.as_ref()?.join(rest));
        }
        (!named.is_empty()).then(|| from.parent().unwrap_or(Path::new("/")).join(named))
    }

    /// True if the condition of a conditional include holds (git-config(1), "Conditional
    /// includes").
    fn holds(&self, condition: &str, from: &Path) -> bool {
        let Some((keyword, pattern)) = condition.split_once(':') else { return false };
        let matches = |pattern: &str, value: &[u8], mode| {
            gix_glob::wildmatch(
                pattern.into(),
                value.into(),
                Wildmatch::NO_MATCH_SLASH_LITERAL | mode,
            )
        };
        match keyword {
            "gitdir" | "gitdir/i" => {
                let mode = match keyword {
                    "gitdir/i" => Wildmatch::IGNORE_CASE,
                    _ => Wildmatch::empty(),
                };
                let Some(pattern) = self.pattern_of_directory(pattern, from) else { return false };
                matches(&pattern, self.repository.git_dir.as_os_str().as_bytes(), mode)
            }
            "onbranch" => {
                let Some(branch) = self.repository.branch else { return false };
                matches(&expand_trailing_slash(pattern), branch.as_bytes(), Wildmatch::empty())
            }
            "hasconfig" => {
                let Some(pattern) = pattern.strip_prefix("remote.*.url:") else { return false };
                self.remotes.iter().any(|url| matches(pattern, url.as_bytes(), Wildmatch::empty()))
            }
            _ => false,
        }
    }

    fn pattern_of_directory(&self, pattern: &str, from: &Path) -> Option<String> {
        let pattern = if let Some(rest) = pattern.strip_prefix("~/") {
            self.home.home.as_ref()?.join(rest).to_str()?.to_owned()
        } else if let Some(rest) = pattern.strip_prefix("./") {
            from.parent()?.join(rest).to_str()?.to_owned()
        } else if pattern.starts_with('/') {
            pattern.to_owned()
        } else {
            format!("**/{pattern}")
        };
        Some(expand_trailing_slash(&pattern))
    }

    fn remote_urls(&self) -> Vec<String> {
        let bytes = OpenDirectory::open(self.repository.common).ok();
        let bytes = bytes.and_then(|it| it.bytes("config", FILE_LIMIT).ok().flatten());
        let Some(file) = bytes.as_deref().and_then(parse) else { return Vec::new() };
        let remotes = file.sections().filter(|section| section.header().name() == "remote");
        let urls = remotes.flat_map(|section| section.body().values("url"));
        urls.map(|url| url.to_string()).collect()
    }
}

fn parse(bytes: &[u8]) -> Option<ConfigFile> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    ConfigFile::from_bytes_no_includes(bytes, Metadata::api(), Default::default()).ok()
}

/// A pattern that ends in a slash stands for all that is below.
fn expand_trailing_slash(pattern: &str) -> String {
    if pattern.ends_with('/') { format!("{pattern}**") } else { pattern.to_owned() }
}

/// True for what git takes for true. A key without a value is true.
fn is_true(value: Option<&str>) -> bool {
    let Some(value) = value else { return true };
    let value = value.to_ascii_lowercase();
    matches!(value.as_str(), "true" | "yes" | "on") || value.parse::<i64>().is_ok_and(|it| it != 0)
}

/// Content of a file of the user, which may be a link, as files of settings often are.
fn plain_file(path: PathBuf) -> Option<Vec<u8>> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= FILE_LIMIT).then_some(bytes)
}

/// Path in a file with one line, relative to the file's directory.
pub(crate) fn path_in(directory: &Path, bytes: &[u8]) -> Option<PathBuf> {
    Some(directory.join(line(bytes)?))
}
