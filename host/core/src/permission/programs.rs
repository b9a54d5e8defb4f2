//! Programs whose name and arguments do not say what they run.
//!
//! The lists are data, and never complete: a program that is absent is believed to do only what its
//! arguments say. The people who make a rule decide about such a program; for those in the lists,
//! the hub requires more of the rule.

use std::iter;

/// Names of programs, with the reason why their arguments say too little.
type Reasons = &'static [(&'static [&'static str], &'static str)];

/// Programs that only start another program: a request for them is one for anything.
#[rustfmt::skip]
const LAUNCHERS: Reasons = &[
    (&["ash", "bash", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "oksh", "osh", "pwsh",
        "powershell", "rbash", "rc", "sh", "tcsh", "xonsh", "yash", "zsh"], "runs a script"),
    (&["busybox", "toybox"], "runs one of many programs"),
    (&["chroot", "doas", "gosu", "nsenter", "pkexec", "run0", "runuser", "setpriv", "su",
        "su-exec", "sudo", "unshare"], "runs another program with other rights"),
    (&["bwrap", "firejail", "flatpak-spawn", "host-spawn", "proot", "systemd-nspawn"],
        "runs another program in another sandbox"),
    (&["at", "batch", "cron", "crontab", "launchctl", "nohup", "setsid", "start-stop-daemon",
        "systemd-run", "task-spooler", "ts", "tsp"], "runs another program later"),
    (&["chrt", "command", "cpulimit", "dbus-run-session", "direnv", "dotenv", "entr", "env",
        "envdir", "eval", "exec", "expect", "faketime", "flock", "gdb", "hyperfine", "ionice",
        "ld.so", "linux32", "linux64", "lldb", "ltrace", "mise", "nice", "numactl", "op",
        "parallel", "perf", "prlimit", "rlwrap", "script", "setarch", "ssh-agent", "stdbuf",
        "strace", "taskset", "time", "timeout", "unbuffer", "valgrind", "watch", "watchexec",
        "with-contenv", "x-terminal-emulator", "xargs", "xvfb-run"], "runs another program"),
    (&["dbclient", "mosh", "rsh", "ssh", "telnet"],
        "runs programs on another machine"),
    (&["screen", "tmux", "zellij"], "runs programs in another session"),
];

/// Programs that run code from the repository, which the agent may have changed.
#[rustfmt::skip]
const WORKSPACE: Reasons = &[
    (&["cargo", "cross", "rustup", "trunk", "wasm-pack"],
        "runs build scripts, macros, tests and settings of the repository"),
    (&["rustc", "rustdoc"], "runs macros of the repository"),
    (&["bower", "bun", "bunx", "corepack", "deno", "eslint", "gulp", "grunt", "jest", "karma",
        "lerna", "mocha", "next", "node", "nodejs", "npm", "npx", "nx", "playwright", "pnpm",
        "pnpx", "prettier", "rollup", "rush", "stylelint", "tsx", "ts-node", "turbo", "vite",
        "vitest", "vue", "webpack", "yarn", "yarnpkg"],
        "runs scripts and settings of the repository"),
    (&["buildah", "docker", "docker-compose", "lima", "nerdctl", "podman", "podman-compose",
        "vagrant"], "builds and runs what the repository says, with other rights"),
    (&["ant", "bazel", "bazelisk", "buck", "buck2", "cmake", "ctest", "gmake", "gradle", "gradlew",
        "jake", "just", "make", "meson", "mvn", "mvnd", "mvnw", "ninja", "pants", "redo", "samu",
        "sbt", "scons", "task", "tup", "waf"],
        "runs the commands of build files of the repository"),
    (&["autoconf", "automake", "autoreconf", "configure", "m4", "qmake"],
        "runs macros of the repository"),
    (&["black", "celery", "conda", "coverage", "django-admin", "flake8", "flask", "gunicorn",
        "hatch", "invoke", "ipython", "jupyter", "mamba", "mypy", "nose2", "nox", "pdm", "pip",
        "pipenv", "pipx", "poetry", "py", "py.test", "pylint", "pypy", "pyright", "pytest",
        "python", "pythonw", "rye", "sphinx-build", "tox", "twine", "uv", "uvicorn", "uvx"],
        "runs modules, plug-ins and settings of the repository"),
    (&["bundle", "bundler", "gem", "irb", "jekyll", "rails", "rake", "rspec", "rubocop", "ruby"],
        "runs Ruby code of the repository"),
    (&["artisan", "composer", "pest", "php", "phpunit", "phpstan", "psalm"],
        "runs PHP code of the repository"),
    (&["dlv", "go", "gofmt", "golangci-lint", "goreleaser", "mage", "tinygo"],
        "runs generators, tests and tools of the repository"),
    (&["elixir", "erl", "iex", "mix", "rebar", "rebar3"],
        "runs Elixir or Erlang of the repository"),
    (&["fastlane", "pod", "swift", "swiftc", "xcodebuild", "xcrun"],
        "runs build phases and plug-ins of the repository"),
    (&["csc", "dotnet", "fsi", "msbuild", "nuget"], "runs build tasks of the repository"),
    (&["dart", "flutter", "melos", "pub"], "runs Dart code of the repository"),
    (&["amm", "clj", "clojure", "groovy", "java", "javac", "jbang", "jshell", "kotlin", "kotlinc",
        "lein", "mill", "scala", "scala-cli"], "runs classes and processors of the repository"),
    (&["cabal", "crystal", "dune", "esy", "ghc", "ghci", "julia", "nim", "nimble", "ocaml", "opam",
        "R", "Rscript", "runghc", "runhaskell", "shards", "stack", "v", "zig"],
        "runs build code of the repository"),
    (&["lua", "luajit", "luarocks", "perl", "prove", "cpan", "cpanm", "tclsh", "wish"],
        "runs scripts of the repository"),
    (&["ansible", "ansible-playbook", "chef", "helm", "pulumi", "puppet", "salt-call", "terraform",
        "terragrunt", "tofu"], "runs plug-ins and settings of the repository"),
    (&["nix", "nix-build", "nix-shell", "nix-env", "guix", "devbox", "devenv"],
        "runs expressions of the repository"),
    (&["git", "git-lfs", "gh", "glab", "hg", "jj", "sl", "svn"],
        "runs programs that the repository's configuration and hooks name"),
    (&["act", "husky", "lefthook", "lint-staged", "pre-commit", "prek"],
        "runs hooks of the repository"),
    (&["as", "c++", "c99", "cc", "clang", "clang++", "clang-tidy", "g++", "gcc", "ld"],
        "reads compiler plug-ins and arguments that name programs"),
    (&["aider", "claude", "codex", "gemini", "goose", "opencode", "vibe"],
        "runs an agent with settings of the repository"),
    (&["a2a-hub"], "starts agents and flows"),
];

/// Programs with options that run other programs or write any file. A pattern's free word could be
/// such an option, so only their exact arguments can be allowed.
#[rustfmt::skip]
const OPTIONS: Reasons = &[
    (&["bsdtar", "cpio", "gtar", "star", "tar", "rar", "unzip", "zip", "7z", "7za", "7zz"],
        "has options that run programs, such as --to-command"),
    (&["fd", "fdfind", "find", "gfind"], "has options that run programs, such as -exec"),
    (&["ag", "rg", "ugrep", "ug"], "has options that run programs, such as --pre"),
    (&["git", "git-lfs", "gh", "glab", "hg", "jj", "sl", "svn"],
        "has options and settings that run programs, such as -c"),
    (&["cargo", "rustc", "rustdoc", "rustup"],
        "has options that run programs, such as --config"),
    (&["gsed", "sed", "ssed"], "has scripts that run programs and write files, such as e and w"),
    (&["awk", "busybox-awk", "gawk", "goawk", "mawk", "nawk", "original-awk"],
        "has scripts that run programs"),
    (&["bc", "dc", "ed", "emacs", "emacsclient", "ex", "gvim", "helix", "hx", "kak", "less", "man",
        "micro", "more", "most", "nano", "nvim", "pg", "rview", "vi", "view", "vim", "vimdiff"],
        "has commands that run programs"),
    (&["amm", "bun", "bunx", "deno", "elixir", "erl", "ghc", "groovy", "iex", "irb", "java",
        "julia", "jshell", "lua", "luajit", "node", "nodejs", "npx", "ocaml", "perl", "php", "pnpx",
        "py", "pypy", "python", "pythonw", "R", "Rscript", "ruby", "runghc", "scala", "tclsh",
        "tsx", "ts-node", "uvx", "wish"], "runs code or packages that its arguments name"),
    (&["buildah", "docker", "docker-compose", "lima", "nerdctl", "podman", "podman-compose",
        "vagrant"], "has options that run programs and give access to any file"),
    (&["gmake", "make"], "has options that run programs, such as --eval"),
    (&["as", "c++", "c99", "cc", "clang", "clang++", "g++", "gcc", "ld"],
        "has options that run programs, such as -wrapper"),
    (&["curl", "ftp", "lftp", "ncftp", "rclone", "rsync", "scp", "sftp", "wget"],
        "has options that run programs, or that read and write any file"),
    (&["nc", "ncat", "netcat", "openssl", "socat"], "has options that run programs"),
    (&["sort", "split", "csplit", "shuf"], "has options that run programs, or that write any file"),
    (&["mysql", "psql", "sqlite3", "duckdb"], "has commands that run programs"),
    (&["ansible", "nix", "nix-build", "nix-shell", "nix-env", "terraform"],
        "runs code that its arguments name"),
    (&["tcpdump", "zsh-tcpdump", "logrotate", "run-parts", "dpkg", "apt", "apt-get", "rpm", "yum",
        "dnf", "brew", "pacman", "snap"], "has options and packages that run programs"),
    (&["cp", "dd", "install", "ln", "mv", "patch", "tee", "truncate", "yq"],
        "writes any file that its arguments name"),
    (&["aws", "az", "gcloud", "helm", "kubectl"], "has commands that run programs elsewhere"),
];

/// Programs that ask a service which already runs outside of the agent's sandbox.
#[rustfmt::skip]
const SERVICES: &[&str] = &[
    "bazel", "bazelisk", "buck", "buck2", "buildah", "docker", "docker-compose", "gradle",
    "gradlew", "lima", "mvnd", "nerdctl", "nix", "nix-build", "nix-env", "nix-shell", "podman",
    "podman-compose", "sbt", "vagrant", "a2a-hub",
];

/// Reason why a program is only the start of another one.
pub fn launches(program: &str) -> Option<&'static str> {
    find(LAUNCHERS, program)
}

/// Reason why a program runs code from the repository.
pub fn runs_workspace_code(program: &str) -> Option<&'static str> {
    find(WORKSPACE, program)
}

/// True for the path of a program outside of the directories that only an administrator changes:
/// the agent may have written it.
pub fn is_private_path(program: &str) -> bool {
    const SYSTEM: [&str; 8] = [
        "/bin/",
        "/sbin/",
        "/usr/bin/",
        "/usr/sbin/",
        "/usr/local/bin/",
        "/usr/local/sbin/",
        "/opt/homebrew/bin/",
        "/nix/store/",
    ];
    program.contains('/') && !SYSTEM.iter().any(|directory| program.starts_with(directory))
}

/// Reason why no pattern may stand for an argument of a program.
pub fn takes_exact_arguments(program: &str) -> Option<&'static str> {
    find(OPTIONS, program)
}

/// True for a program that has a service act for it, which the agent's sandbox does not hold.
pub fn asks_service(program: &str) -> bool {
    names(program).any(|name| SERVICES.contains(&name.as_str()))
}

/// Name of a program without its directory.
pub fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn find(reasons: Reasons, program: &str) -> Option<&'static str> {
    names(program).find_map(|name| {
        let matches = |listed: &&str| listed.eq_ignore_ascii_case(&name);
        let found = reasons.iter().find(|(names, _)| names.iter().any(&matches));
        found.map(|(_, reason)| *reason)
    })
}

/// Names under which a program may be listed: with and without its version, as in `python3.12`,
/// `clang-19` and `gcc-12.2`, without the ending of Windows, and as a part of a larger program, as
/// in `cargo-clippy`. File systems may ignore case.
fn names(program: &str) -> impl Iterator<Item = String> {
    let name = base_name(program).to_ascii_lowercase();
    let name = name.strip_suffix(".exe").map_or_else(|| name.clone(), ToOwned::to_owned);
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    let family = ["cargo", "docker", "git"]
        .into_iter()
        .find(|family| name.strip_prefix(family).is_some_and(|part| part.starts_with('-')));
    let others = [Some(unversioned).filter(|name| !name.is_empty()), family];
    let others = others.map(|name| name.map(ToOwned::to_owned));
    iter::once(name).chain(others.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_programs_are_found_by_path() {
        for (program, launcher, workspace, exact) in [
            ("bash", true, false, false),
            ("/usr/bin/env", true, false, false),
            ("SUDO", true, false, false),
            ("xargs", true, false, false),
            ("cargo", false, true, true),
            ("python3.12", false, true, true),
            ("/opt/bin/node20", false, true, true),
            ("pytest", false, true, false),
            ("clang-19", false, true, true),
            ("git", false, true, true),
            ("find", false, false, true),
            ("7z", false, false, true),
            ("tar", false, false, true),
            ("ls", false, false, false),
            ("gitk", false, false, false),
            ("git-log", false, true, true),
            ("Rscript", false, true, true),
            ("", false, false, false),
        ] {
            let found = (
                launches(program).is_some(),
                runs_workspace_code(program).is_some(),
                takes_exact_arguments(program).is_some(),
            );
            assert_eq!(found, (launcher, workspace, exact), "{program}");
        }
    }

    #[test]
    fn services_are_outside_of_sandbox() {
        assert!(asks_service("/usr/bin/docker"));
        assert!(!asks_service("cargo"));
    }
}
