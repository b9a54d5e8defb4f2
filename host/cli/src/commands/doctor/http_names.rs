//! Findings about the names under which the hub is called over HTTP.

use super::finding::{CheckResult, ok, warn};
use a2a_hub_config::Config;

/// Findings about `http.names` and `public_url`; none for a hub that has only its own address.
pub(super) fn http_names(config: &Config) -> Vec<CheckResult> {
    if !config.http.enabled {
        return Vec::new();
    }
    let names = config.http_names();
    let texts: Vec<_> = names.iter().map(ToString::to_string).collect();
    let (texts, mut findings) = (texts.join(", "), Vec::new());
    if names.iter().any(|name| !name.is_loopback()) {
        let found =
            format!("{texts}: reached from other machines, so each client over HTTP shows a token");
        findings.push(ok("http names", found));
    } else if !names.is_empty() {
        findings.push(ok("http names", texts));
    }
    for name in names.iter().filter(|name| !name.is_tls() && !name.is_loopback()) {
        let found = format!("{name} has no TLS, so everybody on the way reads the tokens");
        let fix = "let a web server with TLS pass requests on, and name it by https://";
        findings.push(warn("http names", found, fix));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_names_are_reported() {
        let told = |text: &str| {
            let config = toml::from_str(text).unwrap();
            let findings = http_names(&config).into_iter();
            let findings = findings.map(|it| format!("{} {}", it.verdict.word(), it.found));
            findings.collect::<Vec<_>>().join("; ")
        };
        assert_eq!(told(""), "");
        assert_eq!(told("http.names = ['http://localhost:9000']"), "ok http://localhost:9000");
        assert_eq!(
            told("public_url = 'https://hub.example/x'\nhttp.names = ['http://10.0.0.1']"),
            "ok http://10.0.0.1, https://hub.example: reached from other machines, so each client over HTTP shows a token; \
             warn http://10.0.0.1 has no TLS, so everybody on the way reads the tokens"
        );
        assert_eq!(told("http.enabled = false\nhttp.names = ['https://hub.example']"), "");
    }
}
