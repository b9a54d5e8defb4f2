//! Files that programs obey: an agent that writes one of them may run something later, outside its
//! sandbox, when a person or a tool works in the checkout.

/// Directories, anywhere in the repository, whose files programs obey.
const DIRECTORIES: &[(&str, &str)] = &[
    (".git", "git"),
    (".githooks", "git hook"),
    (".husky", "git hook"),
    (".github", "continuous integration"),
    (".gitlab", "continuous integration"),
    (".forgejo", "continuous integration"),
    (".gitea", "continuous integration"),
    (".circleci", "continuous integration"),
    (".buildkite", "continuous integration"),
    (".vscode", "editor"),
    (".idea", "editor"),
    (".zed", "editor"),
    (".nvim", "editor"),
    (".devcontainer", "editor"),
    (".cargo", "build settings"),
    (".claude", "agent settings"),
    (".codex", "agent settings"),
    (".cursor", "agent settings"),
    (".gemini", "agent settings"),
    (".vibe", "agent settings"),
    (".opencode", "agent settings"),
    (".a2a-hub", "flows and settings of this hub"),
];

/// Files, anywhere in the repository, that programs obey.
const FILES: &[(&str, &str)] = &[
    (".envrc", "direnv"),
    (".gitattributes", "git"),
    (".gitmodules", "git"),
    (".gitconfig", "git"),
    (".gitlab-ci.yml", "continuous integration"),
    (".travis.yml", "continuous integration"),
    ("azure-pipelines.yml", "continuous integration"),
    ("jenkinsfile", "continuous integration"),
    (".pre-commit-config.yaml", "git hook"),
    ("lefthook.yml", "git hook"),
    (".mcp.json", "agent settings"),
    ("claude.md", "agent settings"),
    ("agents.md", "agent settings"),
    ("gemini.md", "agent settings"),
    (".cursorrules", "agent settings"),
    (".exrc", "editor"),
    (".nvimrc", "editor"),
    (".dir-locals.el", "editor"),
    (".npmrc", "build settings"),
    (".yarnrc.yml", "build settings"),
];

/// Reason why a changed file needs the operator's consent; none if it needs none. `old` and `new`
/// are the modes as git writes them (`000000` for a missing file).
pub(crate) fn reason(path: &str, old: &str, new: &str) -> Option<&'static str> {
    if new == "120000" {
        return Some("a link");
    }
    if new == "160000" {
        return Some("a submodule");
    }
    // File systems exist that do not distinguish case.
    let path = path.to_lowercase();
    let (above, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let of = |names: &[(&str, &'static str)], name: &str| {
        names.iter().find(|(it, _)| *it == name).map(|(_, reason)| *reason)
    };
    let by_place = above.split('/').find_map(|part| of(DIRECTORIES, part));
    by_place
        .or_else(|| of(DIRECTORIES, name))
        .or_else(|| of(FILES, name))
        .or_else(|| (new == "100755" && old != new).then_some("a new executable"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_programs_obey_have_reason() {
        let plain = |path| reason(path, "100644", "100644");
        assert_eq!(plain("src/main.rs"), None);
        assert_eq!(plain("docs/github/readme.md"), None);
        assert_eq!(plain(".envrc"), Some("direnv"));
        assert_eq!(plain("pkg/.EnvRC"), Some("direnv"));
        assert_eq!(plain(".github/workflows/ci.yml"), Some("continuous integration"));
        assert_eq!(plain("a/.vscode/tasks.json"), Some("editor"));
        assert_eq!(plain("sub/.git/hooks/post-checkout"), Some("git"));
        assert_eq!(reason("run.sh", "000000", "100755"), Some("a new executable"));
        assert_eq!(reason("run.sh", "100644", "100755"), Some("a new executable"));
        assert_eq!(reason("run.sh", "100755", "100755"), None);
        assert_eq!(reason("etc", "000000", "120000"), Some("a link"));
        assert_eq!(reason("vendor", "000000", "160000"), Some("a submodule"));
    }
}
