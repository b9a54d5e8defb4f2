//! Tests of admitted requests, and of requests that only look admissible.

use super::*;
use proptest::prelude::*;

fn held(ask: &str, grant: &str) -> EffectiveHttp {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Both {
        ask: BTreeMap<HostPattern, HttpAsk>,
        grant: HttpGrants,
    }
    let both: Both = serde_json::from_str(&format!("{{\"ask\":{ask},\"grant\":{grant}}}")).unwrap();
    EffectiveHttp::new(&both.ask, &both.grant)
}

fn told(held: &EffectiveHttp, method: &str, url: &str) -> String {
    match held.admit("poet", method, url) {
        Ok(admitted) => admitted.url,
        Err(refusal) => refusal.to_string(),
    }
}

const API: &str =
    r#"{"api.example.com": {"methods": ["GET", "POST"], "paths": ["/v1", "/files/"]}}"#;

#[test]
fn request_needs_manifest_and_grant() {
    let held = held(API, r#"{"api.example.com": {}}"#);
    let cases = [
        ("GET", "https://api.example.com/v1"),
        ("POST", "https://API.example.com:443/v1/chat?x=%2e%2e#top"),
        ("GET", "https://api.example.com/files/a"),
        ("GET", "https://api.example.com/files"),
        ("GET", "https://api.example.com/v1beta"),
        ("GET", "https://api.example.com/"),
        ("DELETE", "https://api.example.com/v1"),
        ("get", "https://api.example.com/v1"),
        ("CONNECT", "https://api.example.com/v1"),
        ("GET", "http://api.example.com/v1"),
        ("GET", "https://api.example.com:8443/v1"),
        ("GET", "https://www.example.com/v1"),
        ("GET", "https://api.example.com.evil.net/v1"),
        ("GET", "ftp://api.example.com/v1"),
    ];
    let told = cases.map(|(method, url)| told(&held, method, url));
    insta::assert_snapshot!(told.join("\n"), @r#"
    https://api.example.com/v1
    https://api.example.com/v1/chat?x=%2e%2e
    https://api.example.com/files/a
    send `GET https://api.example.com:443/files`: the agent's own manifest allows there only plain paths that begin with /v1, /files/
    send `GET https://api.example.com:443/v1beta`: the agent's own manifest allows there only plain paths that begin with /v1, /files/
    send `GET https://api.example.com:443/`: the agent's own manifest allows there only plain paths that begin with /v1, /files/
    send `DELETE https://api.example.com:443/v1`: the agent's own manifest allows there only the methods GET, POST
    send a request by this method: say one in capitals, such as `POST`; `CONNECT` and `TRACE` are never sent
    send a request by this method: say one in capitals, such as `POST`; `CONNECT` and `TRACE` are never sent
    send `GET http://api.example.com:80/v1`: the operator's `[agents.poet.grant.http]` allows there only `https:`
    send `GET https://api.example.com:8443/v1`: the operator's `[agents.poet.grant.http]` allows there only the ports 443
    send a request to `www.example.com`: this agent's manifest does not ask for it; an agent reaches only what its `[http."www.example.com"]` names
    send a request to `api.example.com.evil.net`: this agent's manifest does not ask for it; an agent reaches only what its `[http."api.example.com.evil.net"]` names
    send a request: its URL is none of HTTP; say a whole one, such as `https://api.example.com/v1`
    "#);
}

#[test]
fn ambiguous_paths_are_refused() {
    let held = held(API, r#"{"api.example.com": {}}"#);
    for path in [
        "/v1/../admin",
        "/v1/%2e%2e/admin",
        "/v1/.%2E/admin",
        "/v1/..%2fadmin",
        "/v1/%2e%2e%2fadmin",
        "/v1/%252e%252e/admin",
        "/v1/..;/admin",
        "/v1/x%3b/admin",
        "/v1//admin",
        "/v1/..%5cadmin",
        "/v1/%00",
        "//v1",
    ] {
        let url = format!("https://api.example.com{path}");
        assert!(held.admit("poet", "GET", &url).is_err(), "{url}");
    }
    assert_eq!(
        told(&held, "GET", "https://api.example.com/x/../v1/a"),
        "https://api.example.com/v1/a"
    );
}

#[test]
fn ambiguous_urls_are_refused() {
    let held = held(r#"{"*": {}}"#, r#"{"api.example.com": {}, "127.0.0.1": {}, "::1": {}}"#);
    for url in [
        "https://user@api.example.com/",
        "https://user:password@api.example.com/",
        "https://@api.example.com/",
        "https://api.example.com@evil.net/",
        "https://api.example.com./",
        "https://api.example.com\\@evil.net/",
        "https:\\\\api.example.com/",
        "https://api.example.com/\r\nHost: evil.net",
        "https://api.exa\tmple.com/",
        " https://api.example.com/",
        "https:///",
        "file:///etc/passwd",
        "//api.example.com/",
        "https://api.example.com%00.evil.net/",
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://169.254.169.254/",
    ] {
        assert!(held.admit("poet", "GET", url).is_err(), "{url}");
    }
    let long = format!("https://api.example.com/{}", "a".repeat(9_000));
    assert!(held.admit("poet", "GET", &long).is_err());
}

#[test]
fn private_address_needs_grant_for_exact_host() {
    let held = held(
        r#"{"*": {}}"#,
        r#"{"127.0.0.1": {"private": true, "scheme": "http", "ports": [8080]}, "intranet": {"private": true},
            "10.0.0.1": {"scheme": "http"}, "169.254.169.254": {"private": true}, "*.example.com": {}}"#,
    );
    assert_eq!(told(&held, "GET", "http://127.0.0.1:8080/x"), "http://127.0.0.1:8080/x");
    assert_eq!(told(&held, "GET", "http://2130706433:8080/"), "http://127.0.0.1:8080/");
    insta::assert_snapshot!(told(&held, "GET", "http://10.0.0.1/"), @"send a request to `10.0.0.1`: it is 10.0.0.1, a private address; the operator allows that with `private = true` in the grant of that very host");
    insta::assert_snapshot!(told(&held, "GET", "https://169.254.169.254/"), @"send a request to `169.254.169.254`: it is 169.254.169.254, where nothing may be sent");
    let dial = |host: &str, addresses: &[&str]| {
        let addresses: Vec<_> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        held.dial(host, &addresses).map_or_else(|why| why.to_string(), |()| "fine".to_owned())
    };
    let cases = [
        dial("api.example.com", &["8.8.8.8", "2606:4700::1111"]),
        dial("api.example.com", &["8.8.8.8", "127.0.0.1"]),
        dial("api.example.com", &["::ffff:10.0.0.1"]),
        dial("api.example.com", &[]),
        dial("Intranet", &["10.0.0.1", "8.8.8.8"]),
        dial("intranet", &["10.0.0.1", "169.254.169.254"]),
    ];
    insta::assert_snapshot!(cases.join("\n"), @"
    fine
    send a request to `api.example.com`: it is 127.0.0.1, a private address; the operator allows that with `private = true` in the grant of that very host
    send a request to `api.example.com`: it is ::ffff:10.0.0.1, a private address; the operator allows that with `private = true` in the grant of that very host
    send a request to `api.example.com`: it has no address
    fine
    send a request to `intranet`: it is 169.254.169.254, where nothing may be sent
    ");
}

#[test]
fn operator_narrows_requested_hosts() {
    let held = held(
        r#"{"*.example.com": {"methods": ["GET", "POST"], "ports": [443, 8443]}}"#,
        r#"{"api.example.com": {"methods": ["GET", "DELETE"], "paths": ["/v1"], "ports": [443, 9000]}}"#,
    );
    assert!(held.admit("poet", "GET", "https://api.example.com/v1").is_ok());
    for (method, url) in [
        ("POST", "https://api.example.com/v1"),
        ("DELETE", "https://api.example.com/v1"),
        ("GET", "https://api.example.com/v2"),
        ("GET", "https://api.example.com:8443/v1"),
        ("GET", "https://api.example.com:9000/v1"),
        ("GET", "https://www.example.com/v1"),
    ] {
        assert!(held.admit("poet", method, url).is_err(), "{method} {url}");
    }
}

#[test]
fn invalid_host_grants_are_refused() {
    let grants =
        |text: &str| serde_json::from_str::<HttpGrants>(text).map_err(|why| why.to_string());
    let said = |text: &str| grants(text).unwrap_err();
    for (grant, why) in [
        (
            r#"{"*": {"headers": {"Authorization": "Bearer secret:KEY"}}}"#,
            "send a secret to `*`: name a host",
        ),
        (r#"{"*.example.com": {"private": true}}"#, "allow private addresses for `*.example.com`"),
        (r#"{"a.com": {"headers": {"Host": "b.com"}}}"#, "set the header `Host`"),
        (r#"{"a.com": {"headers": {"X": "a\r\nb"}}}"#, "control characters"),
        (r#"{"a.com": {"methods": ["connect"]}}"#, "allow the method `connect`"),
        (r#"{"a.com": {"paths": ["/v1/../x"]}}"#, "allow the path `/v1/../x`"),
        (r#"{"https://a.com": {}}"#, "name the host `https://a.com`"),
    ] {
        assert!(said(grant).contains(why), "{grant}: {}", said(grant));
    }
    let held = held(
        r#"{"*": {}}"#,
        r#"{"api.example.com": {"headers": {"Authorization": "Bearer secret:KEY"}}, "*.example.com": {}}"#,
    );
    assert!(held.admit("poet", "GET", "https://api.example.com/").unwrap().has_secrets());
    assert!(!held.admit("poet", "GET", "https://www.example.com/").unwrap().has_secrets());
    assert_eq!(held.secrets(), ["KEY".to_owned()].into());
}

#[test]
fn requested_hosts_without_grant_are_listed() {
    let asks = r#"{"api.example.com": {}, "www.example.com": {}, "*.example.net": {}, "*": {}}"#;
    let held = held(asks, r#"{"api.example.com": {}, "a.example.net": {}}"#);
    assert_eq!(held.not_granted().collect::<Vec<_>>(), ["www.example.com"]);
}

proptest! {
    /// Removing a line from a grant never allows more.
    #[test]
    fn smaller_grant_never_allows_more(
        lines in proptest::collection::btree_map(
            prop::sample::select(vec!["a.b.c", "*.b.c", "*"]),
            (prop::sample::subsequence(vec!["GET", "POST"], 0..=2), prop::sample::subsequence(vec!["/", "/a", "/a/"], 0..=3)),
            1..4,
        ),
        method in prop::sample::select(vec!["GET", "POST"]),
        host in prop::sample::select(vec!["a.b.c", "x.b.c", "y"]),
        path in "(/[ab.]{0,2}){1,3}",
    ) {
        let grants = |without: usize| {
            let lines = lines.iter().enumerate().filter(|(nth, _)| *nth != without);
            let lines: BTreeMap<_, _> = lines.map(|(_, (host, (methods, paths)))| {
                (*host, serde_json::json!({ "methods": methods, "paths": paths }))
            }).collect();
            held(r#"{"*": {"methods": ["GET", "POST"]}}"#, &serde_json::to_string(&lines).unwrap())
        };
        let url = format!("https://{host}{path}");
        for without in 0..lines.len() {
            if grants(without).admit("a", method, &url).is_ok() {
                prop_assert!(grants(usize::MAX).admit("a", method, &url).is_ok());
            }
        }
    }

    /// Every parser reads the granted host from an admitted URL.
    #[test]
    fn admitted_url_leads_to_granted_host(text in "https:[/\\\\]{0,3}[a-z.@:%0-9\\[\\]#?]{0,12}(api\\.example\\.com)?[/@.:?#%a-z0-9]{0,10}") {
        let held = held(r#"{"*": {}}"#, r#"{"api.example.com": {"paths": ["/v1"]}}"#);
        if let Ok(admitted) = held.admit("a", "GET", &text) {
            prop_assert!(admitted.url.starts_with("https://api.example.com/v1"), "{}", admitted.url);
        }
    }
}
