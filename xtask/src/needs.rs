//! Requirements of some tests that a machine may lack: the vendors' programs, the official SDKs,
//! and agents in other languages.
//!
//! A test without its requirements fails. So `cargo xtask test` excludes these tests by name if
//! something is missing, and counts and names them at the end; CI excludes nothing.

use std::{env, path::Path};

/// Variable that makes tests without their requirements fail.
const CI: &str = "A2A_HUB_CI";

/// Requirement of some tests.
#[derive(Debug)]
pub(crate) struct Need {
    /// Name for people.
    pub(crate) name: &'static str,
    /// File or folder that proves its presence, below `target`; a file is also searched on the
    /// `PATH`.
    path: &'static str,
    /// Tests with this requirement, as a nextest filter.
    pub(crate) tests: &'static str,
    /// Command that installs it.
    pub(crate) brought_by: &'static str,
}

const CLIS: &str = "cargo xtask clis";
const SDKS: &str = "cargo xtask sdks";
const LANGUAGES: &str = "cargo xtask languages";
const DPKG: &str = "apt-get install dpkg";

/// All requirements.
const NEEDS: [Need; 18] = [
    Need {
        name: "claude",
        path: "clis/node_modules/.bin/claude",
        tests: "test(/^adapters::(claude|each_program|page|patterns|together)/)",
        brought_by: CLIS,
    },
    Need {
        name: "codex",
        path: "clis/node_modules/.bin/codex",
        tests: "test(/^adapters::(codex|each_program|page|patterns|together)/)",
        brought_by: CLIS,
    },
    Need {
        name: "gemini",
        path: "clis/node_modules/.bin/gemini",
        tests: "test(/^adapters::(gemini|each_program|patterns)/)",
        brought_by: CLIS,
    },
    Need {
        name: "vibe",
        path: "clis/vibe/bin/vibe-acp",
        tests: "test(/^adapters::(vibe|each_program|patterns)/)",
        brought_by: CLIS,
    },
    Need {
        name: "opencode",
        path: "clis/node_modules/.bin/opencode",
        tests: "test(/^adapters::opencode/)",
        brought_by: CLIS,
    },
    Need {
        name: "the Python SDK 1.x",
        path: "sdks/py1",
        tests: "test(/^sdks::.*python_1/) + test(/^clients::pushes::proof::a_receiver_in_python/)",
        brought_by: SDKS,
    },
    Need {
        name: "the Python SDK 0.3",
        path: "sdks/py0",
        tests: "test(/^sdks::.*python_0_3/)",
        brought_by: SDKS,
    },
    Need {
        name: "the JavaScript SDK 1.x",
        path: "sdks/js1",
        tests: "test(/^sdks::.*javascript_1/)",
        brought_by: SDKS,
    },
    Need {
        name: "the JavaScript SDK 0.3",
        path: "sdks/js0",
        tests: "test(/^sdks::.*javascript_0_3/)",
        brought_by: SDKS,
    },
    Need {
        name: "the Python SDK of MCP",
        path: "sdks/mcp-py",
        tests: "test(/^mcp::python/)",
        brought_by: SDKS,
    },
    Need {
        name: "the JavaScript SDK of MCP",
        path: "sdks/mcp-js",
        tests: "test(/^mcp::javascript/)",
        brought_by: SDKS,
    },
    Need {
        name: "the conformance suite of MCP",
        path: "sdks/mcp-conformance",
        tests: "test(/^mcp::conformance/)",
        brought_by: SDKS,
    },
    Need {
        name: "the JavaScript SDK of ACP",
        path: "sdks/acp-js",
        tests: "test(/^acp::javascript/)",
        brought_by: SDKS,
    },
    Need {
        name: "the Python SDK of ACP",
        path: "sdks/acp-py",
        tests: "test(/^acp::python/)",
        brought_by: SDKS,
    },
    Need {
        name: "what drives a browser",
        path: "sdks/browser",
        tests: "test(/^(web_page|adapters::page)::/)",
        brought_by: SDKS,
    },
    Need {
        name: "the packages of the web page",
        path: "web/node_modules",
        tests: "package(xtask) & test(/^web::/)",
        brought_by: SDKS,
    },
    Need {
        name: "agents in Python and JavaScript",
        path: "languages/data-analyst/dist/data-analyst.wasm",
        tests: "test(/^(languages|projects)::/)",
        brought_by: LANGUAGES,
    },
    Need {
        name: "Debian's packager",
        path: "packages/dpkg-deb",
        tests: "test(/^package::(debian|packages)/)",
        brought_by: DPKG,
    },
];

/// Requirements that are missing and may be.
pub(crate) fn missing(root: &Path) -> Vec<&'static Need> {
    if env::var_os(CI).is_some() {
        return Vec::new();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    NEEDS.iter().filter(|need| !need.is_there(root, &path)).collect()
}

impl Need {
    fn is_there(&self, root: &Path, path: &std::ffi::OsStr) -> bool {
        let location = root.join("target").join(self.path);
        let on_path = |program: &std::ffi::OsStr| {
            [CLIS, DPKG].contains(&self.brought_by)
                && env::split_paths(path).any(|dir| dir.join(program).is_file())
        };
        location.exists() || location.file_name().is_some_and(on_path)
    }
}

/// Nextest filter of the tests that need none of `missing`.
pub(crate) fn runnable(missing: &[&Need]) -> String {
    let without = missing.iter().map(|need| format!(" - ({})", need.tests));
    std::iter::once("all()".to_owned()).chain(without).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{ffi::OsStr, fs};

    #[test]
    fn requirements_are_found_below_target_or_path() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        let there = |path: &OsStr| {
            let there = NEEDS.iter().filter(|need| need.is_there(root.path(), path));
            there.map(|need| need.name).collect::<Vec<_>>()
        };
        assert!(there(OsStr::new("")).is_empty());
        fs::create_dir_all(root.path().join("target/sdks/py0")).unwrap();
        fs::create_dir_all(root.path().join("target/clis/vibe/bin")).unwrap();
        fs::write(root.path().join("target/clis/vibe/bin/vibe-acp"), "").unwrap();
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("codex"), "").unwrap();
        fs::write(bin.join("js1"), "").unwrap();
        assert_eq!(there(bin.as_os_str()), ["codex", "vibe", "the Python SDK 0.3"]);
    }

    #[test]
    fn missing_requirements_exclude_tests_by_name() {
        assert_eq!(runnable(&[]), "all()");
        assert_eq!(
            runnable(&[&NEEDS[1], &NEEDS[6]]),
            "all() - (test(/^adapters::(codex|each_program|page|patterns|together)/)) - (test(/^sdks::.*python_0_3/))"
        );
    }
}
