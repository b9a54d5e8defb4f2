//! Languages of agents, with their files in the repository and in projects.

use crate::error::{AuthoringError, FailureKind};
use std::path::Path;

/// Language of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Rust, compiled by cargo.
    Rust,
    /// JavaScript or TypeScript, by componentize-qjs.
    Js,
    /// Python, by componentize-py.
    Python,
}

impl Language {
    /// Folder of the template.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Js => "js",
            Self::Python => "python",
        }
    }

    /// Folder of the SDK.
    pub(crate) fn sdk(self) -> &'static str {
        match self {
            Self::Rust => "sdk",
            Self::Js => "sdk-js",
            Self::Python => "sdk-python",
        }
    }
}

impl Language {
    /// All languages.
    pub(crate) const ALL: [Self; 3] = [Self::Rust, Self::Js, Self::Python];

    /// Determines the language of the project in this directory.
    ///
    /// # Errors
    /// If the directory has no project ([`FailureKind::NoProject`]).
    pub fn detect(dir: &Path) -> Result<Self, AuthoringError> {
        let file = |language: &Self| match language {
            Self::Rust => "Cargo.toml",
            Self::Python => "pyproject.toml",
            Self::Js => "package.json",
        };
        let found = Self::ALL.into_iter().find(|language| dir.join(file(language)).is_file());
        found.ok_or_else(|| {
            let fix = "a2a-hub plugin docs --lang python";
            let why = format!(
                "print the guide: {} has no project that tells the language; name it, for example \
                 `{fix}`",
                dir.display()
            );
            AuthoringError::new(FailureKind::NoProject, why).mended_by(fix)
        })
    }

    /// Value of the option `--lang`.
    pub fn option(self) -> &'static str {
        self.folder()
    }

    /// Name in headings and in the names of the documentation's pages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Js => "JavaScript",
            Self::Python => "Python",
        }
    }

    /// Path of the page about the SDK.
    pub(crate) fn page(self) -> String {
        format!("docs/reference/sdk-{}.md", self.title().to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn project_files_tell_language() {
        let dir = tempfile::tempdir().unwrap();
        let why = Language::detect(dir.path()).unwrap_err();
        assert!(why.to_string().contains("plugin docs --lang"), "{why}");
        fs::write(dir.path().join("package.json"), "{}").unwrap();
        assert_eq!(Language::detect(dir.path()).unwrap(), Language::Js);
    }
}
