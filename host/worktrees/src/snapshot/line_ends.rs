//! Line ends of text files, by attributes (gitattributes(5)) and settings. Programs that a
//! repository names as filters never run.

use crate::{
    reader::{OpenDirectory, as_path},
    repository::settings::{AutoCrlf, GitSettings},
    snapshot::ignore::{RULES_LIMIT, cheap_rules},
};
use gix_attributes::{
    Search, StateRef,
    search::{MetadataCollection, Outcome},
};
use gix_glob::pattern::Case;
use std::path::{Path, PathBuf};

/// Attributes that decide about the bytes of a file.
const NAMES: [&str; 6] = ["text", "crlf", "eol", "filter", "ident", "working-tree-encoding"];

/// Stands for the top directory in sources of rules.
const TOP: &str = "/t";

/// Line ends that a file has in a checkout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    Lf,
    Crlf,
}

/// Difference between the bytes of a file in a checkout and in the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// Not at all.
    Binary,
    /// By the line ends of a text file. If `is_guessed`, the content decides whether it is text.
    Text { is_guessed: bool, is_crlf: bool },
    /// By a program, an encoding or a keyword, which this host does not do.
    Other(String),
}

/// Attributes of the files of one directory tree. Files are asked for in the order of their paths.
pub(crate) struct Attributes<'d> {
    top: &'d OpenDirectory,
    /// The repository's own rules, which are the strongest.
    info: Search,
    search: Search,
    names: MetadataCollection,
    /// Directories whose rules were added, with the number of lists before each.
    entered: Vec<(Vec<u8>, bool)>,
    autocrlf: AutoCrlf,
    is_crlf: bool,
}

impl<'d> Attributes<'d> {
    /// Attributes by the files of `top`. `info` has the repository's own rules. `settings` says how
    /// the user wants line ends; without it, they are LF.
    pub(crate) fn new(top: &'d OpenDirectory, info: &[u8], settings: Option<&GitSettings>) -> Self {
        let mut attributes = Self {
            top,
            info: Search::default(),
            search: Search::default(),
            names: MetadataCollection::default(),
            entered: Vec::new(),
            autocrlf: settings.map(|it| it.autocrlf).unwrap_or_default(),
            is_crlf: settings.is_some_and(|it| it.eol_is_crlf),
        };
        attributes.add(b"", b"[attr]binary -diff -merge -text\n", true);
        if let Some(settings) = settings {
            attributes.add(b"", &settings.attributes.clone(), true);
        }
        attributes.enter(b"");
        std::mem::swap(&mut attributes.info, &mut attributes.search);
        attributes.add(b"", info, true);
        std::mem::swap(&mut attributes.info, &mut attributes.search);
        attributes
    }

    fn add(&mut self, at: &[u8], rules: &[u8], has_macros: bool) {
        let source = PathBuf::from(TOP).join(as_path(at)).join(".gitattributes");
        let rules = cheap_rules(rules);
        let (names, top) = (&mut self.names, Some(Path::new(TOP)));
        if let Err(why) = self.search.add_patterns_buffer(&rules, source, top, names, has_macros) {
            tracing::debug!(%why, "`.gitattributes` of a directory ignored");
        }
    }

    /// Adds the rules of a directory and of those above it, and forgets those of others.
    fn enter(&mut self, at: &[u8]) {
        let is_ancestor = |ancestor: &[u8]| {
            ancestor.is_empty()
                || at == ancestor
                || at.strip_prefix(ancestor).is_some_and(|it| it.starts_with(b"/"))
        };
        while let Some((last, has_rules)) = self.entered.pop_if(|(last, _)| !is_ancestor(last)) {
            debug_assert!(!last.is_empty(), "the top contains all");
            if has_rules {
                self.search.pop_pattern_list();
            }
        }
        let known = self.entered.len();
        let ends = at.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        let boundaries = std::iter::once(0).chain(ends).chain((!at.is_empty()).then_some(at.len()));
        for end in boundaries.skip(known) {
            let directory = at[..end].to_vec();
            let rules = self.top.bytes(as_path(&directory).join(".gitattributes"), RULES_LIMIT);
            let rules = rules.ok().flatten();
            if let Some(rules) = &rules {
                self.add(&directory, rules, directory.is_empty());
            }
            self.entered.push((directory, rules.is_some()));
        }
    }

    /// Conversion of a file.
    pub(crate) fn conversion(&mut self, path: &[u8]) -> Conversion {
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        self.enter(&path[..end]);
        let mut found = Outcome::default();
        found.initialize_with_selection(&self.names, NAMES);
        for search in [&self.info, &self.search] {
            search.pattern_matching_relative_path(
                path.into(),
                Case::Sensitive,
                Some(false),
                &mut found,
            );
        }
        let mut values: [Option<String>; 6] = Default::default();
        for one in found.iter_selected() {
            let name = one.assignment.name.as_str();
            let slot = NAMES.iter().position(|known| *known == name);
            let Some(value) = slot.and_then(|slot| values.get_mut(slot)) else { continue };
            *value = match one.assignment.state {
                StateRef::Set => Some("set".to_owned()),
                StateRef::Unset => Some("unset".to_owned()),
                StateRef::Value(value) => Some(value.as_bstr().to_string()),
                StateRef::Unspecified => None,
            };
        }
        self.conversion_by(&values)
    }

    /// The rules of git (convert_attrs of its convert.c).
    fn conversion_by(&self, values: &[Option<String>; 6]) -> Conversion {
        let [text, crlf, eol, filter, ident, encoding] = values.each_ref().map(Option::as_deref);
        let named = |value: Option<&str>| {
            value.filter(|value| !matches!(*value, "unset" | "set")).map(str::to_owned)
        };
        if let Some(filter) = named(filter) {
            return Conversion::Other(format!("filter `{filter}`"));
        }
        if ident == Some("set") {
            return Conversion::Other("keyword `ident`".to_owned());
        }
        if let Some(encoding) = named(encoding).filter(|it| !it.eq_ignore_ascii_case("utf-8")) {
            return Conversion::Other(format!("encoding `{encoding}`"));
        }
        // (Is it text at all, is that guessed, the line end if it is named.)
        let (is_text, is_guessed, mut end) = match text.or(crlf) {
            Some("set") => (true, false, None),
            Some("unset") => return Conversion::Binary,
            Some("auto") => (true, true, None),
            Some("input") => (true, false, Some(LineEnd::Lf)),
            _ => (false, false, None),
        };
        let is_named = match eol {
            Some("lf") => {
                end = Some(LineEnd::Lf);
                true
            }
            Some("crlf") => {
                end = Some(LineEnd::Crlf);
                true
            }
            _ => false,
        };
        let default = match self.autocrlf {
            AutoCrlf::On => LineEnd::Crlf,
            AutoCrlf::Input => LineEnd::Lf,
            AutoCrlf::Off if self.is_crlf => LineEnd::Crlf,
            AutoCrlf::Off => LineEnd::Lf,
        };
        if !is_text && !is_named {
            return match self.autocrlf {
                AutoCrlf::Off => Conversion::Binary,
                AutoCrlf::On | AutoCrlf::Input => {
                    Conversion::Text { is_guessed: true, is_crlf: default == LineEnd::Crlf }
                }
            };
        }
        Conversion::Text { is_guessed, is_crlf: end.unwrap_or(default) == LineEnd::Crlf }
    }
}

/// Counts of a file's bytes, by which git guesses whether it is text.
#[derive(Debug, Default)]
struct ByteCounts {
    crlf: usize,
    lone_cr: usize,
    lone_lf: usize,
    nul: usize,
    printable: usize,
    other: usize,
}

impl ByteCounts {
    fn from_bytes(bytes: &[u8]) -> Self {
        let mut counts = Self::default();
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            match byte {
                b'\r' if bytes.get(at) == Some(&b'\n') => {
                    counts.crlf += 1;
                    at += 1;
                }
                b'\r' => counts.lone_cr += 1,
                b'\n' => counts.lone_lf += 1,
                0 => {
                    counts.nul += 1;
                    counts.other += 1;
                }
                b'\x08' | b'\t' | b'\x1b' | b'\x0c' => counts.printable += 1,
                127 | 1..32 => counts.other += 1,
                _ => counts.printable += 1,
            }
        }
        if bytes.last() == Some(&0x1a) {
            counts.other = counts.other.saturating_sub(1);
        }
        counts
    }

    const fn is_binary(&self) -> bool {
        self.lone_cr > 0 || self.nul > 0 || (self.printable >> 7) < self.other
    }
}

impl Conversion {
    /// True if the content decides whether the file is text.
    pub(crate) const fn is_guessed(&self) -> bool {
        matches!(self, Self::Text { is_guessed: true, .. })
    }

    /// True if the content in the repository decides too: a file that has CRLF there keeps it.
    pub(crate) fn needs_old(&self, bytes: &[u8]) -> bool {
        self.is_guessed() && has_crlf(bytes)
    }

    /// Bytes for the repository. `old` is what it has now.
    pub(crate) fn to_git(&self, bytes: Vec<u8>, old: Option<&[u8]>) -> Vec<u8> {
        let Self::Text { is_guessed, .. } = self else { return bytes };
        if !has_crlf(&bytes) {
            return bytes;
        }
        if *is_guessed && (ByteCounts::from_bytes(&bytes).is_binary() || old.is_some_and(has_crlf))
        {
            return bytes;
        }
        let mut converted = Vec::with_capacity(bytes.len());
        for (at, byte) in bytes.iter().enumerate() {
            if *byte != b'\r' || bytes.get(at + 1) != Some(&b'\n') {
                converted.push(*byte);
            }
        }
        converted
    }

    /// Bytes for the checkout.
    pub(crate) fn to_checkout(&self, bytes: Vec<u8>) -> Vec<u8> {
        let Self::Text { is_guessed, is_crlf: true } = self else { return bytes };
        let counts = ByteCounts::from_bytes(&bytes);
        let is_preserved =
            *is_guessed && (counts.lone_cr > 0 || counts.crlf > 0 || counts.is_binary());
        if counts.lone_lf == 0 || is_preserved {
            return bytes;
        }
        let mut longer = Vec::with_capacity(bytes.len() + counts.lone_lf);
        for (at, byte) in bytes.iter().enumerate() {
            if *byte == b'\n' && (at == 0 || bytes[at - 1] != b'\r') {
                longer.push(b'\r');
            }
            longer.push(*byte);
        }
        longer
    }
}

fn has_crlf(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const AUTO: Conversion = Conversion::Text { is_guessed: true, is_crlf: false };
    const AUTO_CRLF: Conversion = Conversion::Text { is_guessed: true, is_crlf: true };
    const TEXT: Conversion = Conversion::Text { is_guessed: false, is_crlf: false };
    const TEXT_CRLF: Conversion = Conversion::Text { is_guessed: false, is_crlf: true };

    #[test]
    fn attributes_decide_by_directory_and_name() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("sub/deep")).unwrap();
        let top = "* text=auto\n*.bat eol=crlf\n*.png binary\n*.bin filter=lfs -text\n*.u working-tree-encoding=UTF-16\n[attr]mine text eol=crlf\nx mine\n";
        fs::write(root.join(".gitattributes"), top).unwrap();
        fs::write(root.join("sub/.gitattributes"), "*.bat -text\n/only text\n").unwrap();
        let top = OpenDirectory::open(&root).unwrap();
        let mut on = GitSettings::default();
        on.autocrlf = AutoCrlf::On;
        let mut plain = Attributes::new(&top, b"*.sec filter=crypt\n", None);
        for (path, wanted) in [
            ("a.bat", AUTO_CRLF),
            ("a.bin", Conversion::Other("filter `lfs`".to_owned())),
            ("a.png", Conversion::Binary),
            ("a.sec", Conversion::Other("filter `crypt`".to_owned())),
            ("a.txt", AUTO),
            ("a.u", Conversion::Other("encoding `UTF-16`".to_owned())),
            ("sub/a.bat", Conversion::Binary),
            ("sub/deep/a.bat", Conversion::Binary),
            ("sub/deep/only", AUTO),
            ("sub/only", TEXT),
            ("x", TEXT_CRLF),
        ] {
            assert_eq!(plain.conversion(path.as_bytes()), wanted, "{path}");
        }
        let mut users = Attributes::new(&top, b"", Some(&on));
        assert_eq!(users.conversion(b"a.txt"), AUTO_CRLF);
        assert_eq!(users.conversion(b"sub/only"), TEXT_CRLF);
        assert_eq!(users.conversion(b"a.png"), Conversion::Binary);
    }

    #[test]
    fn line_ends_become_those_of_the_place() {
        let to_git =
            |by: &Conversion, text: &str| String::from_utf8(by.to_git(text.into(), None)).unwrap();
        let out =
            |by: &Conversion, text: &str| String::from_utf8(by.to_checkout(text.into())).unwrap();
        for (by, text, wanted) in [
            (&AUTO, "a\r\nb\r\n", "a\nb\n"),
            (&AUTO_CRLF, "a\r\nb\n", "a\nb\n"),
            (&AUTO, "a\r\n\0", "a\r\n\0"),
            (&AUTO, "a\rb\r\n", "a\rb\r\n"),
            (&TEXT, "a\rb\r\n", "a\rb\n"),
            (&Conversion::Binary, "a\r\n", "a\r\n"),
        ] {
            assert_eq!(to_git(by, text), wanted, "{by:?} {text:?}");
        }
        assert_eq!(AUTO.to_git(b"a\r\n".to_vec(), Some(b"x\r\n")), b"a\r\n");
        for (by, text, wanted) in [
            (&AUTO, "a\nb\n", "a\nb\n"),
            (&AUTO_CRLF, "a\nb\n", "a\r\nb\r\n"),
            (&AUTO_CRLF, "a\r\nb\n", "a\r\nb\n"),
            (&TEXT_CRLF, "a\r\nb\n", "a\r\nb\r\n"),
            (&AUTO_CRLF, "\0\n", "\0\n"),
        ] {
            assert_eq!(out(by, text), wanted, "{by:?} {text:?}");
        }
    }
}
