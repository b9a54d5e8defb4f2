//! Key of a browser that is paired with a hub: it proves requests by DPoP (RFC 9449), as the web
//! page does.

use anyhow::{Result, anyhow};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use jiff::Timestamp;
use ring::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};

/// Private key of a browser.
pub struct BrowserKey {
    pair: EcdsaKeyPair,
    proofs: AtomicU64,
}

impl BrowserKey {
    /// Makes a new key.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn generate() -> Result<Self> {
        let (form, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let private =
            EcdsaKeyPair::generate_pkcs8(form, &random).map_err(|why| anyhow!("{why}"))?;
        let pair = EcdsaKeyPair::from_pkcs8(form, private.as_ref(), &random);
        Ok(Self { pair: pair.map_err(|why| anyhow!("{why}"))?, proofs: AtomicU64::new(0) })
    }

    /// Proof of a `POST` request to `url`, with an access token unless it is for a pairing.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers.
    pub fn proof(&self, url: &str, access_token: Option<&str>) -> Result<String> {
        let point = self.pair.public_key().as_ref();
        let (x, y) = (BASE64.encode(&point[1..33]), BASE64.encode(&point[33..]));
        let jwk = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
        let header = json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": jwk });
        let now = Timestamp::now().as_second();
        let jti = format!("{x}{}", self.proofs.fetch_add(1, Ordering::Relaxed));
        let mut claims = json!({ "jti": jti, "htm": "POST", "htu": url, "iat": now });
        if let Some(token) = access_token {
            claims["ath"] = BASE64.encode(digest(&SHA256, token.as_bytes())).into();
        }
        let part = |value: &Value| BASE64.encode(value.to_string());
        let signed = format!("{}.{}", part(&header), part(&claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|why| anyhow!("{why}"))?;
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }
}
