//! Files that programs obey: an agent that writes one of them may run something later, outside its
//! sandbox, when a person or a tool opens, builds or tests the checkout.

use crate::listing::{EXECUTABLE, FILE, LINK, SUBMODULE};

/// Directories, anywhere in the repository, whose files programs obey.
const DIRECTORIES: &[(&str, &[&str])] = &[
    ("git", &[".git"]),
    ("git hook", &[".githooks", ".husky", ".lefthook"]),
    (
        "continuous integration",
        &[
            ".github",
            ".gitlab",
            ".forgejo",
            ".gitea",
            ".circleci",
            ".buildkite",
            ".woodpecker",
            ".azure-pipelines",
        ],
    ),
    (
        "editor",
        &[
            ".vscode",
            ".idea",
            ".zed",
            ".nvim",
            ".vim",
            ".devcontainer",
            ".fleet",
            ".vs",
            ".settings",
        ],
    ),
    (
        "build settings",
        &[".cargo", ".mvn", ".gradle", ".yarn", ".bundle", ".config", ".mise", ".direnv"],
    ),
    (
        "agent settings",
        &[
            ".claude",
            ".codex",
            ".cursor",
            ".gemini",
            ".vibe",
            ".opencode",
            ".agents",
            ".aider",
            ".amp",
            ".clinerules",
            ".continue",
            ".kiro",
            ".qwen",
            ".roo",
            ".windsurf",
            ".goose",
            ".crush",
        ],
    ),
    ("flows and settings of this hub", &[".a2a-hub"]),
];

/// Files, anywhere in the repository, that programs obey.
const FILES: &[(&str, &[&str])] = &[
    ("direnv", &[".envrc"]),
    ("git", &[".gitattributes", ".gitmodules", ".gitconfig"]),
    (
        "shell startup",
        &[
            ".bashrc",
            ".bash_profile",
            ".bash_login",
            ".bash_logout",
            ".bash_aliases",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".zlogout",
            ".inputrc",
            ".xprofile",
            ".xinitrc",
            ".xsession",
            ".tmux.conf",
            ".screenrc",
            ".kshrc",
            ".mkshrc",
            ".cshrc",
            ".tcshrc",
            ".login",
            ".env",
            "config.fish",
        ],
    ),
    (
        "start of a program",
        &[
            ".gdbinit",
            ".lldbinit",
            ".irbrc",
            ".pryrc",
            ".rprofile",
            ".renviron",
            ".pythonrc",
            ".pythonrc.py",
            "sitecustomize.py",
            "usercustomize.py",
            ".wgetrc",
            ".curlrc",
            ".psqlrc",
            ".sqliterc",
            ".ripgreprc",
            ".ackrc",
            ".julia",
            ".octaverc",
            ".perltidyrc",
            ".ghci",
        ],
    ),
    (
        "continuous integration",
        &[
            ".gitlab-ci.yml",
            ".travis.yml",
            "azure-pipelines.yml",
            "jenkinsfile",
            ".drone.yml",
            "appveyor.yml",
            ".appveyor.yml",
            "bitbucket-pipelines.yml",
            ".cirrus.yml",
            "cloudbuild.yaml",
        ],
    ),
    (
        "git hook",
        &[
            ".pre-commit-config.yaml",
            ".pre-commit-config.yml",
            ".pre-commit-hooks.yaml",
            "lefthook.yml",
            "lefthook.yaml",
            "lefthook.toml",
            "lefthook.json",
            ".lefthook.yml",
            ".lintstagedrc",
            ".lintstagedrc.json",
            ".huskyrc",
        ],
    ),
    (
        "agent settings",
        &[
            ".mcp.json",
            "mcp.json",
            "claude.md",
            "claude.local.md",
            "agents.md",
            "agents.override.md",
            "agent.md",
            "gemini.md",
            "qwen.md",
            "crush.md",
            "copilot.md",
            "warp.md",
            ".cursorrules",
            ".windsurfrules",
            ".clinerules",
            ".roorules",
            ".goosehints",
            ".aider.conf.yml",
            "opencode.json",
            "opencode.jsonc",
            "crush.json",
            ".crush.json",
        ],
    ),
    (
        "editor",
        &[
            ".exrc",
            ".nvimrc",
            ".vimrc",
            ".gvimrc",
            ".nvim.lua",
            ".lvimrc",
            ".dir-locals.el",
            ".dir-locals-2.el",
            ".emacs",
            ".ycm_extra_conf.py",
            ".clangd",
            ".sublime-project",
            ".projectile",
        ],
    ),
    (
        "build settings",
        &[
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pnpmfile.cjs",
            ".pnpmfile.js",
            "pnpmfile.js",
            "pnpm-workspace.yaml",
            ".pnp.cjs",
            ".pnp.js",
            ".pnp.loader.mjs",
            ".nvmrc",
            ".node-version",
            ".tool-versions",
            "mise.toml",
            ".mise.toml",
            "rust-toolchain",
            "rust-toolchain.toml",
            "rustfmt.toml",
            "clippy.toml",
            ".bazelrc",
            ".bazelversion",
            ".python-version",
            ".ruby-version",
            ".sdkmanrc",
            "pip.conf",
            "uv.toml",
            ".condarc",
            "nuget.config",
            "global.json",
            "bunfig.toml",
            "deno.json",
            "deno.jsonc",
            ".swcrc",
            ".babelrc",
            ".eslintrc",
            ".buckconfig",
            ".terraformrc",
        ],
    ),
    (
        "build script",
        &[
            "makefile",
            "gnumakefile",
            "bsdmakefile",
            "justfile",
            ".justfile",
            "taskfile.yml",
            "taskfile.yaml",
            "rakefile",
            "gemfile",
            "vagrantfile",
            "podfile",
            "fastfile",
            "brewfile",
            "procfile",
            "tiltfile",
            "earthfile",
            "snakefile",
            "sconstruct",
            "sconscript",
            "wscript",
            "cmakelists.txt",
            "cmakepresets.json",
            "cmakeuserpresets.json",
            "meson.build",
            "configure",
            "configure.ac",
            "build.rs",
            "build.zig",
            "build.ninja",
            "package.json",
            "setup.py",
            "setup.cfg",
            "pyproject.toml",
            "conftest.py",
            "noxfile.py",
            "tox.ini",
            "pytest.ini",
            "tasks.py",
            "fabfile.py",
            "dodo.py",
            "manage.py",
            "cargo.toml",
            "pom.xml",
            "build.xml",
            "gradlew",
            "gradlew.bat",
            "mvnw",
            "mvnw.cmd",
            "gradle.properties",
            "build.sbt",
            "build.sc",
            "project.clj",
            "deps.edn",
            "shadow-cljs.edn",
            "mix.exs",
            "rebar.config",
            "composer.json",
            "package.swift",
            "setup.hs",
            "dune",
            "flake.nix",
            "shell.nix",
            "default.nix",
            "devenv.nix",
            "guix.scm",
            "workspace",
            "workspace.bazel",
            "module.bazel",
            "build.bazel",
            "build",
            "buck",
            "dockerfile",
            "containerfile",
            "docker-compose.yml",
            "docker-compose.yaml",
            "compose.yml",
            "compose.yaml",
            "gulpfile.js",
            "gruntfile.js",
            "jakefile",
            "magefile.go",
            "tools.go",
        ],
    ),
];

/// Endings of files that programs obey.
const ENDINGS: &[(&str, &[&str])] = &[
    ("editor", &[".code-workspace", ".sublime-project", ".iml"]),
    ("start of a program", &[".pth"]),
    (
        "build script",
        &[
            ".gradle",
            ".gradle.kts",
            ".mk",
            ".cmake",
            ".csproj",
            ".vbproj",
            ".fsproj",
            ".vcxproj",
            ".props",
            ".targets",
            ".gemspec",
            ".podspec",
            ".cabal",
            ".bzl",
            ".config.js",
            ".config.cjs",
            ".config.mjs",
            ".config.ts",
            ".config.mts",
            ".config.cts",
        ],
    ),
    ("build settings", &["rc.js", "rc.cjs", "rc.mjs"]),
];

/// True if programs obey a file of this path, relative to the repository.
pub fn is_sensitive_path(path: &str) -> bool {
    reason(path.as_bytes(), FILE, FILE).is_some()
}

/// Reason why a changed file needs the operator's consent; none if it needs none. `old` and `new`
/// are the modes as git has them (0 for a missing file).
pub(crate) fn reason(path: &[u8], old: u32, new: u32) -> Option<&'static str> {
    match new {
        LINK => return Some("a link"),
        SUBMODULE => return Some("a submodule"),
        _ => {}
    }
    // File systems exist that do not distinguish case.
    let path = String::from_utf8_lossy(path).to_lowercase();
    let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let named = |table: &[(&'static str, &[&str])], name: &str| {
        table.iter().find(|(_, names)| names.contains(&name)).map(|(reason, _)| *reason)
    };
    let by_ending = || {
        let has = |endings: &&[&str]| endings.iter().any(|ending| name.ends_with(ending));
        ENDINGS.iter().find(|(_, endings)| has(endings)).map(|(reason, _)| *reason)
    };
    let variant = || {
        // `.env.local`, `Dockerfile.dev`, `Makefile.am`.
        let (first, _) = name.trim_start_matches('.').split_once('.')?;
        let is_variant = match first {
            "env" => name.starts_with('.'),
            "dockerfile" | "makefile" => true,
            _ => false,
        };
        is_variant.then_some("build settings")
    };
    parent
        .split('/')
        .find_map(|part| named(DIRECTORIES, part))
        .or_else(|| named(DIRECTORIES, name))
        .or_else(|| named(FILES, name))
        .or_else(by_ending)
        .or_else(variant)
        .or_else(|| (new == EXECUTABLE && old != new).then_some("a new executable"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::FILE;

    #[test]
    fn files_that_programs_obey_have_reason() {
        let plain = |path: &str| reason(path.as_bytes(), FILE, FILE);
        for path in [
            "src/main.rs",
            "docs/github/readme.md",
            "a.txt",
            "lib/env.rs",
            "test.py",
            "index.js",
            "x.toml",
        ] {
            assert_eq!(plain(path), None, "{path}");
        }
        for (path, wanted) in [
            (".envrc", "direnv"),
            ("pkg/.EnvRC", "direnv"),
            (".github/workflows/ci.yml", "continuous integration"),
            ("a/.vscode/tasks.json", "editor"),
            ("sub/.git/hooks/post-checkout", "git"),
            ("home/.bashrc", "shell startup"),
            (".zshenv", "shell startup"),
            ("CLAUDE.local.md", "agent settings"),
            ("pkg/AGENTS.override.md", "agent settings"),
            ("Makefile", "build script"),
            ("Makefile.am", "build settings"),
            ("web/package.json", "build script"),
            ("rust-toolchain.toml", "build settings"),
            (".pnpmfile.cjs", "build settings"),
            ("vite.config.ts", "build script"),
            (".eslintrc.js", "build settings"),
            ("app/build.gradle.kts", "build script"),
            (".env.local", "build settings"),
            ("Dockerfile.dev", "build settings"),
            ("venv/evil.pth", "start of a program"),
            ("x.code-workspace", "editor"),
            ("conftest.py", "build script"),
            ("crates/x/build.rs", "build script"),
            (".gdbinit", "start of a program"),
        ] {
            assert_eq!(plain(path), Some(wanted), "{path}");
        }
        assert_eq!(reason(b"run.sh", 0, EXECUTABLE), Some("a new executable"));
        assert_eq!(reason(b"run.sh", FILE, EXECUTABLE), Some("a new executable"));
        assert_eq!(reason(b"run.sh", EXECUTABLE, EXECUTABLE), None);
        assert_eq!(reason(b"etc", 0, LINK), Some("a link"));
        assert_eq!(reason(b"vendor", 0, SUBMODULE), Some("a submodule"));
    }
}
