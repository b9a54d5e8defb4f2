//! Manifests of the built-in agents that run a CLI: each passes on what any program needs to reach
//! a network and to speak the user's language.

use crate::sources::read;

#[test]
fn every_cli_gets_proxy_and_locale_variables() {
    for agent in ["acp", "claude-code", "codex", "gemini", "vibe"] {
        let manifest = read(&format!("guest-agents/{agent}/manifest.toml"));
        let (_, pass) = manifest.split_once("\npass = [").expect("a list of variables");
        let (pass, _) = pass.split_once(']').expect("the list's end");
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
            for name in [proxy.to_owned(), proxy.to_ascii_lowercase()] {
                assert!(pass.contains(&format!("\"{name}\"")), "{agent} gets no `{name}`");
            }
        }
        for name in ["LANG", "LC_ALL", "LC_CTYPE", "TMPDIR"] {
            assert!(pass.contains(&format!("\"{name}\"")), "{agent} gets no `{name}`");
        }
    }
}
