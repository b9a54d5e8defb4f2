//! Environment variables by which a program is made to load or run something else (environment variable injection, CWE-426 and
//! CWE-427): loaders, interpreters, and the programs that programs start. A manifest that asks for one is not granted it along
//! with the rest: the operator names each by itself.

/// Variables that load code into a program, or have an interpreter run some, whoever set them. A `*` stands for any text.
const LOADERS: &[&str] = &[
    // The dynamic loader and the C library.
    "LD_*",
    "DYLD_*",
    "*_PRELOAD",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "LOCPATH",
    "NLSPATH",
    "MALLOC_*",
    "HOSTALIASES",
    "RESOLV_HOST_CONF",
    // Interpreters.
    "PYTHON*",
    "PERL5*",
    "PERLLIB",
    "PERL_*",
    "RUBY*",
    "GEM_*",
    "BUNDLE_*",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_*",
    "NODE_CHANNEL_FD",
    "ELECTRON_*",
    "BUN_*",
    "DENO_*",
    "NPM_CONFIG_*",
    "npm_config_*",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "CLASSPATH",
    "LUA_*",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "DOTNET_STARTUP_HOOKS",
    "DOTNET_ADDITIONAL_DEPS",
    "CORECLR_*",
    "COR_*",
    "ERL_*FLAGS",
    "GUILE_*",
    "R_PROFILE*",
    "JULIA_*",
    // Shells.
    "BASH_ENV",
    "BASH_FUNC_*",
    "BASHOPTS",
    "SHELLOPTS",
    "ENV",
    "ZDOTDIR",
    "IFS",
    "PS4",
    "PROMPT_COMMAND",
    // What git and others start, and the configuration that says so.
    "GIT_SSH*",
    "GIT_CONFIG*",
    "GIT_EXEC_PATH",
    "GIT_*_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "SSH_ASKPASS*",
    "SUDO_ASKPASS",
    "RUSTC*",
    "CARGO_*",
    "MAKEFLAGS",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "OPENSSL_ENGINES",
    "GTK_MODULES",
    "GTK_PATH",
    "GIO_*",
    "QT_PLUGIN_PATH",
    "LIBGL_DRIVERS_PATH",
    "TERMINFO*",
    "TERMCAP",
];

/// Variables that are harmless as the operator has them, and lead a program astray where somebody else sets them: where it finds
/// other programs, its configuration and its servers.
const GUIDES: &[&str] = &[
    "PATH",
    "SHELL",
    "HOME",
    "USERPROFILE",
    "CDPATH",
    "XDG_*",
    "PAGER",
    "*_PAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "LESSKEY*",
    "LESS",
    "EDITOR",
    "*_EDITOR",
    "VISUAL",
    "BROWSER",
    "*_ASKPASS",
    "SSL_CERT_*",
    "*_CA_BUNDLE",
    "*_CA_CERT*",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "SSH_AUTH_SOCK",
    "DBUS_*",
    "DOCKER_*",
    "TMUX*",
];

/// Whether a program that is given this variable may load or run something else by it, so that a word such as `GIT_*`, or an
/// unanswered ask, does not pass it on.
pub fn loads_code(variable: &str) -> bool {
    LOADERS.iter().any(|pattern| fits(pattern, variable))
}

/// Whether a guest that sets this variable could have a program load, run or trust something else than the operator expects.
pub fn leads_astray(variable: &str) -> bool {
    loads_code(variable) || GUIDES.iter().any(|pattern| fits(pattern, variable))
}

/// Whether `variable` is of the form `pattern`, in which one `*` stands for any text.
fn fits(pattern: &str, variable: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == variable,
        Some((begin, end)) => {
            variable.len() >= begin.len() + end.len()
                && variable.starts_with(begin)
                && variable.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_and_interpreters_are_known_by_their_variables() {
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PERL5OPT",
            "RUBYOPT",
            "NODE_OPTIONS",
            "NODE_PATH",
            "BASH_ENV",
            "BASH_FUNC_ls%%",
            "ENV",
            "IFS",
            "GIT_SSH",
            "GIT_SSH_COMMAND",
            "GIT_CONFIG_COUNT",
            "GIT_CONFIG_GLOBAL",
            "GIT_EXEC_PATH",
            "GIT_PROXY_COMMAND",
            "GIT_EXTERNAL_DIFF",
            "MY_PRELOAD",
            "JAVA_TOOL_OPTIONS",
            "GLIBC_TUNABLES",
            "GCONV_PATH",
        ] {
            assert!(loads_code(name) && leads_astray(name), "{name}");
        }
        for name in ["PATH", "SHELL", "PAGER", "EDITOR", "HOME", "XDG_CONFIG_HOME", "HTTPS_PROXY"] {
            assert!(!loads_code(name), "the operator's own {name} loads nothing");
            assert!(leads_astray(name), "{name}");
        }
        for name in
            ["LC_ALL", "LANG", "NO_COLOR", "MY_WORD", "OLD_X", "ENVIRONMENT", "GIT_AUTHOR_NAME"]
        {
            assert!(!leads_astray(name), "{name}");
        }
    }

    #[test]
    fn a_star_in_the_middle_needs_both_ends() {
        assert!(fits("GIT_*_COMMAND", "GIT_SSH_COMMAND"));
        assert!(!fits("GIT_*_COMMAND", "GIT_COMMAND"));
        assert!(fits("*_PRELOAD", "_PRELOAD"));
        assert!(!fits("LD_*", "OLD_X"));
    }
}
