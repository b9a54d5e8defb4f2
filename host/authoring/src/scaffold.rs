//! Files of a new project: a template with its placeholders filled in, and in `vendor/` the
//! contract and the SDK.

use crate::{
    error::{AuthoringError, Doing as _, FailureKind},
    guide,
    language::Language,
    packed::Packed,
    vendored,
};
use a2a_hub_protocol::id::AgentId;
use std::{collections::BTreeMap, path::PathBuf};

/// Suffix of template files that tools would interpret in the template's folder; projects have them
/// without the suffix.
const STORED: &str = ".in";

/// Replacement of a leading dot in a template's file names.
const DOT: &str = "dot-";

/// Returns all files of the project of an agent called `name`, by their paths.
pub(crate) fn project(
    packed: &Packed,
    language: Language,
    name: &AgentId,
) -> Result<BTreeMap<PathBuf, Vec<u8>>, AuthoringError> {
    let template = format!("templates/{}/", language.folder());
    let sdk = format!("{}/", language.sdk());
    let mut files = BTreeMap::new();
    let blanks = Blanks::for_agent(name);
    for (path, bytes) in packed {
        if let Some(path) = path.strip_prefix(&template) {
            files.insert(project_path(&blanks.fill(path)), blanks.filled(bytes));
        } else if path.starts_with("wit/") || path.starts_with(&sdk) || path == "LICENSE" {
            files.insert(PathBuf::from("vendor").join(path), bytes.clone());
        }
    }
    let has_sdk = files.keys().any(|path| path.starts_with(format!("vendor/{}", language.sdk())));
    let has_template = packed.keys().any(|path| path.starts_with(&template));
    if !has_sdk || !has_template {
        let why =
            "this program carries no template for this language; `--lang rust` is always there";
        return Err(AuthoringError::new(FailureKind::Other, why));
    }
    if let Some(guide) = guide::compose(packed, language) {
        files.insert(guide::FILE.into(), guide.into_bytes());
    }
    if language == Language::Rust {
        let text = |path: &str| {
            let bytes = packed.get(path).map(Vec::as_slice).unwrap_or_default();
            str::from_utf8(bytes).doing(|| format!("read {path} of this program"))
        };
        let manifest =
            vendored::standalone_sdk_manifest(text("sdk/Cargo.toml")?, text("Cargo.toml")?)?;
        let lock = vendored::lock(name.as_str(), &manifest, text("Cargo.lock")?)?;
        let manifest =
            toml::to_string(&manifest).doing(|| "write the SDK's manifest".to_owned())?;
        files.insert("vendor/sdk/Cargo.toml".into(), manifest.into_bytes());
        files.extend(lock.map(|lock| ("Cargo.lock".into(), lock.into_bytes())));
    }
    Ok(files)
}

/// Path of a template's file in a project.
fn project_path(path: &str) -> PathBuf {
    let path = path.strip_suffix(STORED).unwrap_or(path);
    let dotted = |part: &str| match part.strip_prefix(DOT) {
        Some(rest) => format!(".{rest}"),
        None => part.to_owned(),
    };
    let dots =
        |part: &str| if part == "gitignore" { ".gitignore".to_owned() } else { dotted(part) };
    path.split('/').map(dots).collect()
}

/// Placeholders of a template, with their values.
struct Blanks([(&'static str, String); 3]);

impl Blanks {
    fn for_agent(name: &AgentId) -> Self {
        let title = name.as_str().replace('-', " ");
        let mut letters = title.chars();
        let title =
            letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str());
        Self([
            ("{{name}}", name.to_string()),
            ("{{title}}", title.unwrap_or_default()),
            ("{{crate}}", identifier(name)),
        ])
    }

    fn fill(&self, text: &str) -> String {
        let fill = |text: String, (blank, word): &(&str, String)| text.replace(blank, word);
        self.0.iter().fold(text.to_owned(), fill)
    }

    /// Fills in a text file's placeholders; returns any other file unchanged.
    fn filled(&self, bytes: &[u8]) -> Vec<u8> {
        match str::from_utf8(bytes) {
            Ok(text) => self.fill(text).into_bytes(),
            Err(_) => bytes.to_vec(),
        }
    }
}

/// Converts an agent's name to an identifier that is valid in each of the languages.
fn identifier(name: &AgentId) -> String {
    let word = name.as_str().replace('-', "_");
    if TAKEN.contains(&word.as_str()) { format!("{word}_agent") } else { word }
}

/// Reserved words of Rust, Python and JavaScript, and the names of Rust's own crates and of the
/// SDKs.
const TAKEN: &[&str] = &[
    "a2a_hub",
    "a2a_hub_sdk",
    "abstract",
    "alloc",
    "and",
    "arguments",
    "as",
    "assert",
    "async",
    "await",
    "become",
    "box",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "core",
    "crate",
    "debugger",
    "def",
    "default",
    "del",
    "delete",
    "do",
    "dyn",
    "elif",
    "else",
    "enum",
    "eval",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "final",
    "finally",
    "fn",
    "for",
    "from",
    "function",
    "gen",
    "global",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "is",
    "lambda",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "new",
    "nonlocal",
    "not",
    "null",
    "or",
    "override",
    "package",
    "pass",
    "priv",
    "private",
    "proc_macro",
    "protected",
    "pub",
    "public",
    "raise",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "switch",
    "test",
    "this",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "unsafe",
    "unsized",
    "use",
    "var",
    "virtual",
    "void",
    "where",
    "while",
    "wit_world",
    "with",
    "yield",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::unpack;

    fn name(text: &str) -> AgentId {
        AgentId::parse(text).unwrap()
    }

    fn packed(files: &[(&str, &str)]) -> Packed {
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), text.as_bytes().to_vec());
        files.iter().map(file).collect()
    }

    #[test]
    fn template_is_filled_and_sdk_vendored() {
        let packed = packed(&[
            ("templates/python/{{crate}}/app.py", "# {{title}}: {{name}} {{crate}} {other}"),
            ("templates/python/gitignore.in", "dist"),
            ("templates/python/dot-github/x.yml.in", "x"),
            ("templates/rust/src/lib.rs", ""),
            ("sdk-python/a2a_hub/__init__.py", "{{name}} stays"),
            ("sdk/src/lib.rs", ""),
            ("wit/world.wit", "world"),
        ]);
        let files = project(&packed, Language::Python, &name("my-agent")).unwrap();
        let told = files
            .iter()
            .map(|(path, bytes)| format!("{}: {}", path.display(), String::from_utf8_lossy(bytes)));
        insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @r"
        .github/x.yml: x
        .gitignore: dist
        my_agent/app.py: # My agent: my-agent my_agent {other}
        vendor/sdk-python/a2a_hub/__init__.py: {{name}} stays
        vendor/wit/world.wit: world
        ");
        assert!(project(&packed, Language::Js, &name("x")).is_err());
    }

    #[test]
    fn identifier_avoids_reserved_words() {
        assert_eq!(identifier(&name("my-agent")), "my_agent");
        assert_eq!(identifier(&name("class")), "class_agent");
        assert_eq!(identifier(&name("std")), "std_agent");
        assert!(TAKEN.is_sorted());
    }

    #[test]
    fn rust_project_is_filled_and_locked() {
        let files = project(&unpack().unwrap(), Language::Rust, &name("my-agent")).unwrap();
        for path in [
            "Cargo.toml",
            "Cargo.lock",
            "manifest.toml",
            "src/lib.rs",
            "README.md",
            "GUIDE.md",
            ".gitignore",
            "vendor/sdk/src/lib.rs",
            "vendor/sdk/Cargo.toml",
            "vendor/wit/agent.wit",
            "vendor/LICENSE",
        ] {
            assert!(files.contains_key(&PathBuf::from(path)), "{path}");
        }
        for (path, bytes) in files.iter().filter(|(path, _)| !path.starts_with("vendor")) {
            let text = str::from_utf8(bytes).unwrap();
            for blank in ["{{name}}", "{{title}}", "{{crate}}"] {
                assert!(!text.contains(blank), "{}: {blank}", path.display());
            }
        }
        let sdk = str::from_utf8(&files[&PathBuf::from("vendor/sdk/Cargo.toml")]).unwrap();
        assert!(!sdk.contains("workspace"), "{sdk}");
    }
}
