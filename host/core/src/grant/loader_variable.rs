//! Environment variables that make a program load or run other code (environment variable
//! injection, CWE-426 and CWE-427): variables of loaders, interpreters, and programs that start
//! programs. A manifest's request for such a variable is not covered by a general grant: the
//! operator must name each one.

/// Variables that make a program load code, or an interpreter run code, independent of who sets
/// them. A `*` matches any text.
const LOADERS: &[&str] = &[
    // Dynamic loader and C library.
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
    // Programs that git and others start, and their configuration.
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

/// Variables that are harmless with the operator's value, and dangerous with another one: they
/// determine the location of other programs, configuration and servers.
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
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSH_AUTH_SOCK",
    "DBUS_*",
    "DOCKER_*",
    "TMUX*",
];

/// True if this variable can make a program load or run other code. A pattern such as `GIT_*`, or a
/// request without an explicit grant, does not pass it on.
pub fn loads_code(variable: &str) -> bool {
    LOADERS.iter().any(|pattern| fits(pattern, variable))
}

/// True if a guest that sets this variable could make a program load, run or trust something that
/// the operator does not expect.
pub fn leads_astray(variable: &str) -> bool {
    loads_code(variable) || GUIDES.iter().any(|pattern| fits(pattern, variable))
}

/// True if `variable` matches `pattern`, in which one `*` matches any text.
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
    fn loader_and_interpreter_variables_are_recognised() {
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
        for name in [
            "PATH",
            "SHELL",
            "PAGER",
            "EDITOR",
            "HOME",
            "XDG_CONFIG_HOME",
            "HTTPS_PROXY",
            "no_proxy",
        ] {
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
    fn inner_star_requires_prefix_and_suffix() {
        assert!(fits("GIT_*_COMMAND", "GIT_SSH_COMMAND"));
        assert!(!fits("GIT_*_COMMAND", "GIT_COMMAND"));
        assert!(fits("*_PRELOAD", "_PRELOAD"));
        assert!(!fits("LD_*", "OLD_X"));
    }
}
