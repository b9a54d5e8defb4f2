//! Stories of pairing a browser, and of what its key and token give.

use super::{dpop::tests::BrowserKey, *};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// A browser with its own key.
struct Browser {
    key: BrowserKey,
    proofs: AtomicU64,
}

impl Browser {
    fn new() -> Self {
        Self { key: BrowserKey::new(), proofs: AtomicU64::new(0) }
    }

    fn proof(&self, path: &str, access_token: Option<&str>) -> String {
        let jti = self.proofs.fetch_add(1, Ordering::Relaxed).to_string();
        let mut claims = json!({
            "jti": jti,
            "htm": "POST",
            "htu": format!("http://127.0.0.1:8080{path}"),
            "iat": clock::now_ms() / 1_000,
        });
        if let Some(token) = access_token {
            claims["ath"] = Value::from(dpop::base64(digest(&SHA256, token.as_bytes()).as_ref()));
        }
        self.key.sign(&self.key.header(), &claims)
    }

    fn present(&self, devices: &Devices, token: &str) -> PresentedReport {
        let proof = self.proof("/ui/pair", None);
        let thumbprint = devices.presented_key(request(&proof, "/ui/pair")).unwrap();
        let (token, name) = (token.to_owned(), "Chromium".to_owned());
        devices.present(PresentKey { token, name, thumbprint })
    }

    /// Pairs this browser; returns its access token.
    async fn pair(&self, devices: &Arc<Devices>) -> String {
        let token = devices.offer().unwrap().token;
        let code = self.present(devices, &token).code.unwrap();
        let seen = devices.pairing(&token);
        assert_eq!((&*seen.state, seen.code.as_ref()), ("presented", Some(&code)));
        devices.accept(&token, &code).await.unwrap();
        self.present(devices, &token).access_token.unwrap()
    }
}

fn page() -> Option<String> {
    Some("http://127.0.0.1:8080/ui/".to_owned())
}

fn request<'a>(proof: &'a str, path: &'a str) -> DeviceHttpRequest<'a> {
    let is_hub = &|url: &Url| url.port() == Some(8080);
    DeviceHttpRequest { proof, method: "POST", path, is_hub }
}

fn why(identified: Result<ProvenDevice, NoDevice>) -> Option<NoDevice> {
    identified.err()
}

#[tokio::test]
async fn paired_browser_proves_each_request() {
    let devices = Arc::new(Devices::of(None, Vec::new(), page()));
    let (browser, thief) = (Browser::new(), Browser::new());
    let token = browser.pair(&devices).await;
    let proof = browser.proof("/", Some(&token));
    let proven = devices.identify(&token, request(&proof, "/")).unwrap();
    assert_eq!(proven.id, devices.list().devices[0].id);
    let again = devices.identify(&token, request(&proof, "/"));
    assert_eq!(why(again), Some(NoDevice::Proof(InvalidProof::Repeated)));
    // A copied access token without its key.
    let stolen = thief.proof("/", Some(&token));
    assert_eq!(why(devices.identify(&token, request(&stolen, "/"))), Some(NoDevice::Unknown));
    // The key of another device with this token.
    let others = thief.pair(&devices).await;
    let mixed = thief.proof("/", Some(&token));
    assert_eq!(why(devices.identify(&token, request(&mixed, "/"))), Some(NoDevice::Unknown));
    let other_token = browser.proof("/", Some(&others));
    let refused = devices.identify(&token, request(&other_token, "/"));
    assert_eq!(why(refused), Some(NoDevice::Proof(InvalidProof::AccessToken)));
    // A captured proof at another path.
    let captured = browser.proof("/", Some(&token));
    let refused = devices.identify(&token, request(&captured, "/stream"));
    assert_eq!(why(refused), Some(NoDevice::Proof(InvalidProof::Request)));
    let paired_proof = browser.proof("/", None);
    let refused = devices.identify(&token, request(&paired_proof, "/"));
    assert_eq!(why(refused), Some(NoDevice::Proof(InvalidProof::AccessToken)));
    assert_eq!(why(devices.identify("", request(&captured, "/"))), Some(NoDevice::Unknown));
}

#[tokio::test]
async fn removed_device_ends_at_once_and_stays_removed() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Arc::new(Devices::open(DevicesFile::new(dir.path()), page()).unwrap());
    let (browser, devices) = (Browser::new(), open());
    let token = browser.pair(&devices).await;
    let call = |devices: &Arc<Devices>| {
        let proof = browser.proof("/", Some(&token));
        devices.identify(&token, request(&proof, "/"))
    };
    let restarted = open();
    let proven = call(&restarted).unwrap();
    let text = std::fs::read_to_string(dir.path().join("devices.toml")).unwrap();
    assert!(!text.contains(&token), "the token is stored as its digest");
    restarted.remove(&proven.id).await.unwrap();
    assert!(proven.removed.is_cancelled(), "its streams end");
    assert_eq!(why(call(&restarted)), Some(NoDevice::Unknown));
    assert_eq!(why(call(&open())), Some(NoDevice::Unknown));
    let unknown = restarted.remove(&proven.id).await.unwrap_err().message;
    assert!(unknown.contains("a2a-hub web list"), "{unknown}");
}

/// Nothing that was not stored is reported as paired.
#[tokio::test]
async fn unstorable_device_is_not_paired() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    let devices = Arc::new(Devices::open(DevicesFile::new(&gone), page()).unwrap());
    let browser = Browser::new();
    let token = devices.offer().unwrap().token;
    let code = browser.present(&devices, &token).code.unwrap();
    devices.accept(&token, &code).await.unwrap_err();
    assert_eq!(browser.present(&devices, &token).pairing, "pending");
    assert_eq!(devices.list().devices, []);
    std::fs::create_dir(&gone).unwrap();
    devices.accept(&token, &code).await.unwrap();
    assert_eq!(browser.present(&devices, &token).pairing, "paired", "the cause is gone");
}

#[tokio::test]
async fn refused_browser_gets_nothing() {
    let devices = Arc::new(Devices::of(None, Vec::new(), page()));
    let (browser, other) = (Browser::new(), Browser::new());
    let token = devices.offer().unwrap().token;
    let code = browser.present(&devices, &token).code.unwrap();
    let refuse = DeviceRequest::Confirm { token: token.clone(), code, accept: false };
    devices.perform(refuse).await.unwrap();
    assert_eq!(browser.present(&devices, &token).pairing, "refused");
    assert_eq!(devices.pairing(&token).state, "refused");
    assert_eq!(browser.present(&devices, "unknown").pairing, "over");
    // Two browsers with one address.
    let token = devices.offer().unwrap().token;
    let code = browser.present(&devices, &token).code.unwrap();
    assert_eq!(other.present(&devices, &token).pairing, "refused");
    devices.accept(&token, &code).await.unwrap_err();
    assert_eq!(devices.list().devices, []);
    // A browser that is paired already.
    browser.pair(&devices).await;
    let token = devices.offer().unwrap().token;
    devices.end_pairing_for(&token, &devices.list().devices[0].id);
    let state = devices.pairing(&token);
    assert_eq!((&*state.state, state.name.as_deref()), ("paired-before", Some("Chromium")));
}
