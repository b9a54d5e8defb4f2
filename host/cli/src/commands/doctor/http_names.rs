//! Findings about the names under which the hub is called over HTTP, and about its TLS files.

use super::finding::{CheckResult, fail, ok, warn};
use a2a_hub_config::{ClientAuth, Config};
use a2a_hub_core::identity::ValidityState;
use a2a_hub_tls::ServerTls;

/// Findings about `http.names`, `public_url` and `[tls]`; none for a hub that has only its own
/// address. Blocks on disk I/O.
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
    findings.extend(config.tls.is_on().then(|| tls(config)));
    findings
}

/// Finding about the files of `[tls]`.
fn tls(config: &Config) -> CheckResult {
    let status = match ServerTls::open(&config.tls) {
        Ok(tls) => tls.status(),
        Err(why) => {
            let fix = "correct `[tls]`; a hub that runs keeps its old certificate meanwhile";
            return fail("tls", why.to_string(), fix);
        }
    };
    if let Some(warning) = status.warnings().into_iter().next() {
        let fix = "renew the certificate with the tool that made it";
        return match status.state {
            ValidityState::Valid | ValidityState::ExpiresSoon => warn("tls", warning, fix),
            ValidityState::Expired | ValidityState::Future => fail("tls", warning, fix),
        };
    }
    let clients = match status.client_auth {
        None => "",
        Some(ClientAuth::Required) => "; clients need a certificate",
        Some(ClientAuth::Optional) => "; clients may have a certificate",
    };
    let names = status.names.join(", ");
    ok("tls", format!("{names}, valid until {}{clients}", status.expires_at_text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_tls_files_fail() {
        let config = toml::from_str("tls = { cert = '/no/such.pem', key = '/no/such.key' }");
        let findings = http_names(&config.unwrap());
        let found: Vec<_> = findings.iter().map(|it| (it.verdict.word(), &*it.found)).collect();
        assert_eq!(found.len(), 1);
        assert!(found[0].1.contains("read /no/such.pem"), "{found:?}");
    }

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
