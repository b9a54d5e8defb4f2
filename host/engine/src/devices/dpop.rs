//! A DPoP proof (RFC 9449, section 4.2): a JWT that is signed with ES256 by the key in its header.

use a2a_hub_core::devices::proof::{InvalidProof, ProofClaims};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use ring::{
    digest::{SHA256, digest},
    signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey},
};
use serde::Deserialize;

/// Longest proof, in bytes.
const MAX_PROOF: usize = 4_096;

/// Bytes of a coordinate of a point of P-256.
const COORDINATE: usize = 32;

/// DpopProof whose signature is right. Its claims are not checked yet.
pub(super) struct DpopProof {
    /// SHA-256 thumbprint of the key (RFC 7638), in hexadecimal digits.
    pub(super) thumbprint: String,
    /// Claims.
    pub(super) claims: ProofClaims,
}

/// Header of a proof. A member that changes the meaning, such as `crit`, is none of these.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProofHeader {
    typ: String,
    alg: String,
    jwk: ProofKey,
}

/// Public key of P-256 (RFC 7518, section 6.2.1). A private member is none of these.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProofKey {
    kty: String,
    crv: String,
    x: String,
    y: String,
}

/// Base64 for URLs, without padding (RFC 7515, section 2).
pub(super) fn base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

impl DpopProof {
    /// Parses a proof, and verifies its signature.
    pub(super) fn parse(text: &str) -> Result<Self, InvalidProof> {
        if text.len() > MAX_PROOF {
            return Err(InvalidProof::Form);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(InvalidProof::Form)?;
        let (header, claims) = signed.split_once('.').ok_or(InvalidProof::Form)?;
        let header: ProofHeader = part(header)?;
        if header.typ != "dpop+jwt" || header.alg != "ES256" {
            return Err(InvalidProof::Form);
        }
        let ProofKey { kty, crv, x, y } = &header.jwk;
        if kty != "EC" || crv != "P-256" {
            return Err(InvalidProof::Form);
        }
        let coordinates = (bytes(x)?, bytes(y)?);
        if coordinates.0.len() != COORDINATE || coordinates.1.len() != COORDINATE {
            return Err(InvalidProof::Form);
        }
        // Uncompressed point (SEC 1, section 2.3.3). Decoding is strict, so each key has one text.
        let point = [&[4][..], &coordinates.0, &coordinates.1].concat();
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
            .verify(signed.as_bytes(), &bytes(signature)?)
            .map_err(|_| InvalidProof::Signature)?;
        let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let thumbprint = hex::encode(digest(&SHA256, canonical.as_bytes()));
        Ok(Self { thumbprint, claims: part(claims)? })
    }
}

fn bytes(text: &str) -> Result<Vec<u8>, InvalidProof> {
    BASE64.decode(text).map_err(|_| InvalidProof::Form)
}

fn part<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, InvalidProof> {
    serde_json::from_slice(&bytes(text)?).map_err(|_| InvalidProof::Form)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ring::{
        rand::SystemRandom,
        signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
    };
    use serde_json::{Value, json};

    /// Key of a browser in a test.
    pub(crate) struct BrowserKey(EcdsaKeyPair);

    impl BrowserKey {
        pub(crate) fn new() -> Self {
            let (form, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
            let private = EcdsaKeyPair::generate_pkcs8(form, &random).unwrap();
            Self(EcdsaKeyPair::from_pkcs8(form, private.as_ref(), &random).unwrap())
        }

        pub(crate) fn header(&self) -> Value {
            let point = self.0.public_key().as_ref();
            let (x, y) = (base64(&point[1..33]), base64(&point[33..]));
            let jwk = json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y });
            json!({ "typ": "dpop+jwt", "alg": "ES256", "jwk": jwk })
        }

        pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
            let part = |value: &Value| base64(value.to_string().as_bytes());
            let signed = format!("{}.{}", part(header), part(claims));
            let signature = self.0.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
            format!("{signed}.{}", base64(signature.as_ref()))
        }
    }

    fn claims() -> Value {
        json!({ "jti": "1", "htm": "POST", "htu": "http://127.0.0.1:1/", "iat": 1, "more": true })
    }

    #[test]
    fn only_proof_by_own_key_is_parsed() {
        let (key, other) = (BrowserKey::new(), BrowserKey::new());
        let proof = key.sign(&key.header(), &claims());
        let parsed = DpopProof::parse(&proof).unwrap();
        assert_eq!((&*parsed.claims.jti, parsed.thumbprint.len()), ("1", 64));
        let why = |text: &str| DpopProof::parse(text).err();
        assert_eq!(why(&key.sign(&other.header(), &claims())), Some(InvalidProof::Signature));
        let header = |name: &str, value: Value| {
            let mut header = key.header();
            header.as_object_mut().unwrap().insert(name.to_owned(), value);
            why(&key.sign(&header, &claims()))
        };
        let jwk = |name: &str, value: &str| {
            let mut jwk = key.header().get("jwk").unwrap().clone();
            jwk.as_object_mut().unwrap().insert(name.to_owned(), json!(value));
            header("jwk", jwk)
        };
        for refused in [
            header("alg", json!("none")),
            header("alg", json!("HS256")),
            header("alg", json!("es256")),
            header("typ", json!("JWT")),
            header("crit", json!(["exp"])),
            header("jku", json!("http://evil.example/keys")),
            header("kid", json!("1")),
            header("jwk", json!(null)),
            jwk("d", "AA"),
            jwk("crv", "P-384"),
            jwk("kty", "oct"),
            jwk("x", "AA"),
            jwk("y", "="),
            why(""),
            why("a.b"),
            why("a.b.c"),
            why("a.b.c.d"),
            why(&proof.replace('.', "")),
            why(&format!("{proof}=")),
            why(&"x".repeat(MAX_PROOF + 1)),
            why(&key.sign(&key.header(), &json!({ "jti": "1" }))),
            why(&key.sign(&key.header(), &json!("text"))),
            why(&key
                .sign(&key.header(), &json!({ "jti": 1, "htm": "POST", "htu": "/", "iat": -1 }))),
        ] {
            assert_eq!(refused, Some(InvalidProof::Form));
        }
        let (signed, signature) = proof.rsplit_once('.').unwrap();
        let zero = base64(&[0; 64]);
        for wrong in [&*zero, &signature[..40], ""] {
            let why = DpopProof::parse(&format!("{signed}.{wrong}")).err();
            assert!(matches!(why, Some(InvalidProof::Signature | InvalidProof::Form)), "{wrong}");
        }
    }
}
