//! Keys by which an operator trusts cards, and verification of signatures with them.

use crate::{
    answer::{QUICK, body},
    card::MAX_CARD,
    error::ClientError,
    outbound::{Outbound, OutboundError},
    signed_card::{Algorithm, Signature, UnreadableSignature, signatures},
};
use a2a_hub_protocol::{
    card::{SignedCard, signed_cards},
    foreign,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use http::{Request, StatusCode};
use http_body_util::Full;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject as _};
use serde::Deserialize;
use serde_json::Value;
use spki::{ObjectIdentifier, SubjectPublicKeyInfoRef, der::Decode as _};
use std::{io, path::Path};
use url::{Host, Url};

/// Object identifiers of keys in PEM: RFC 5480, RFC 8410, RFC 3279.
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const EDWARDS: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// Keys that an operator trusts.
#[derive(Debug)]
pub struct Keys(Vec<NamedKey>);

#[derive(Debug)]
struct NamedKey {
    /// Key id, if the key has one.
    id: Option<String>,
    public: VerifyingKey,
}

#[derive(Debug)]
enum VerifyingKey {
    /// Uncompressed point of P-256 (SEC 1, section 2.3.3).
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
    /// RSA modulus and exponent, without leading zeros.
    Rsa(Vec<u8>, Vec<u8>),
    /// RSA key in the form of PKCS #1.
    RsaDer(Vec<u8>),
}

/// Error of loading an operator's keys.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file cannot be read.
    #[error("read the keys in {path}: {why}")]
    File {
        /// Path of the file.
        path: String,
        /// Error of the system.
        why: io::Error,
    },
    /// The text is not a source of keys.
    #[error(
        "read the keys {0:?}: name a file by its absolute path, an https:// URL, or give a JWK, a JWK set or PEM"
    )]
    NoSource(String),
    /// The keys cannot be fetched now.
    #[error("fetch the keys at {url}: {why}")]
    Fetch {
        /// URL of the keys.
        url: String,
        /// Reason why the server cannot be reached.
        why: OutboundError,
    },
    /// The server has no keys at this URL.
    #[error("fetch the keys at {url}: it answers with HTTP status {status}")]
    Status {
        /// URL of the keys.
        url: String,
        /// HTTP status of the response.
        status: StatusCode,
    },
    /// The keys cannot be fetched completely.
    #[error("fetch the keys at {url}: {why}")]
    Broken {
        /// URL of the keys.
        url: String,
        /// Error of the response's body.
        why: Box<ClientError>,
    },
    /// No usable key was found.
    #[error("read the keys in {location}: {why}")]
    Useless {
        /// File, URL, or the configuration.
        location: String,
        /// Reason why no key is usable.
        why: &'static str,
    },
}

impl KeyError {
    /// True if a retry may succeed.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Fetch { .. } | Self::Broken { .. } => true,
            Self::Status { status, .. } => status.is_server_error(),
            Self::File { .. } | Self::NoSource(_) | Self::Useless { .. } => false,
        }
    }
}

/// Error of a card without a valid signature.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// The card has no signature.
    #[error("it is not signed, and `keys` names who must have signed it")]
    Unsigned,
    /// No signature is valid, each for its reason.
    #[error("no signature of it counts: {}", .0.join("; "))]
    Bad(Vec<String>),
}

/// Reason why one signature is not valid.
#[derive(Debug, thiserror::Error)]
enum Flaw {
    #[error(transparent)]
    Unreadable(#[from] UnreadableSignature),
    #[error("it does not name its key (`kid`), and there are {0} keys")]
    Nameless(usize),
    #[error("it is by {0:?}, which is not among the `keys`{1}")]
    Unknown(String, String),
    #[error("the key is for another algorithm than {}", .0.name())]
    OtherKind(Algorithm),
    #[error("the card is not what was signed")]
    Wrong,
}

impl Keys {
    /// Loads the keys from files, URLs, or the texts themselves.
    pub async fn load(places: &[String], outbound: &Outbound) -> Result<Self, KeyError> {
        let mut keys = Vec::new();
        for location in places {
            let (text, name) = if location.trim_start().starts_with(['{', '-']) {
                (location.clone().into_bytes(), "the configuration")
            } else if location.contains("://") {
                (fetch(location, outbound).await?, location.as_str())
            } else if Path::new(location).is_absolute() {
                let read = tokio::fs::read(location).await;
                (
                    read.map_err(|why| KeyError::File { path: location.clone(), why })?,
                    location.as_str(),
                )
            } else {
                return Err(KeyError::NoSource(location.clone()));
            };
            let useless = |why| KeyError::Useless { location: name.to_owned(), why };
            keys.extend(read(&text).map_err(useless)?);
        }
        Ok(Self(keys))
    }

    /// Verifies a card, and returns the part of it that one of these keys has signed.
    pub fn verify(&self, card: &Value) -> Result<Value, SignatureError> {
        let signatures = signatures(card);
        if signatures.is_empty() {
            return Err(SignatureError::Unsigned);
        }
        let forms = signed_cards(card);
        let mut flaws = Vec::new();
        for signature in signatures {
            let checked = signature.map_err(Flaw::from).and_then(|it| self.check(&it, &forms));
            match checked {
                Ok(card) => return Ok(card),
                Err(flaw) => flaws.push(flaw.to_string()),
            }
        }
        Err(SignatureError::Bad(flaws))
    }

    fn check(&self, signature: &Signature, forms: &[SignedCard]) -> Result<Value, Flaw> {
        // A key without an id matches any id.
        let named = |key: &&NamedKey| match (&key.id, &signature.key) {
            (Some(id), Some(key)) => id == key,
            (None, _) | (_, None) => true,
        };
        let keys: Vec<_> = self.0.iter().filter(named).collect();
        if signature.key.is_none() && keys.len() > 1 {
            return Err(Flaw::Nameless(keys.len()));
        }
        if keys.is_empty() {
            let url = signature.key_url.as_ref();
            let url =
                url.map(|url| format!("; its `jku` {url:?} is not followed unless `keys` has it"));
            return Err(Flaw::Unknown(
                signature.key.clone().unwrap_or_default(),
                url.unwrap_or_default(),
            ));
        }
        let keys: Vec<_> =
            keys.into_iter().filter(|it| it.public.fits(signature.algorithm)).collect();
        if keys.is_empty() {
            return Err(Flaw::OtherKind(signature.algorithm));
        }
        let signed = |form: &&SignedCard| {
            let message = signature.message(&form.payload);
            keys.iter().any(|key| key.public.verifies(&signature.bytes, &message))
        };
        forms.iter().find(signed).map(|form| form.card.clone()).ok_or(Flaw::Wrong)
    }
}

impl VerifyingKey {
    fn fits(&self, algorithm: Algorithm) -> bool {
        match self {
            Self::P256(_) => algorithm == Algorithm::Es256,
            Self::Ed25519(_) => algorithm == Algorithm::EdDsa,
            Self::Rsa(..) | Self::RsaDer(_) => algorithm == Algorithm::Rs256,
        }
    }

    /// True if this key's private half made the signature of the message.
    fn verifies(&self, signature: &[u8], message: &[u8]) -> bool {
        let good = match self {
            Self::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Self::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
            Self::Rsa(n, e) => RsaPublicKeyComponents { n, e }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                message,
                signature,
            ),
            Self::RsaDer(key) => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key).verify(message, signature)
            }
        };
        good.is_ok()
    }

    /// Reads a public key in DER, as PEM contains it.
    fn of_der(der: &[u8]) -> Option<Self> {
        let info = SubjectPublicKeyInfoRef::from_der(der).ok()?;
        let key = info.subject_public_key.as_bytes()?.to_vec();
        let curve = || info.algorithm.parameters_oid().ok();
        match info.algorithm.oid {
            EC if curve() == Some(P256) => Some(Self::P256(key)),
            EDWARDS => Some(Self::Ed25519(key)),
            RSA => Some(Self::RsaDer(key)),
            _ => None,
        }
    }
}

/// JSON Web Key (RFC 7517), with the members that are read.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    /// Private half, which must not be here.
    d: Option<Value>,
}

impl Jwk {
    fn read(self) -> Option<NamedKey> {
        let bytes = |text: &Option<String>| BASE64.decode(text.as_ref()?).ok();
        let integer = |text| {
            let bytes = bytes(text)?;
            Some(bytes.into_iter().skip_while(|byte| *byte == 0).collect::<Vec<_>>())
        };
        let public = match (self.kty.as_str(), self.crv.as_deref()) {
            ("EC", Some("P-256")) => {
                VerifyingKey::P256([vec![4], bytes(&self.x)?, bytes(&self.y)?].concat())
            }
            ("OKP", Some("Ed25519")) => VerifyingKey::Ed25519(bytes(&self.x)?),
            ("RSA", _) => VerifyingKey::Rsa(integer(&self.n)?, integer(&self.e)?),
            _ => return None,
        };
        let signs = self.used_for.as_deref().is_none_or(|used| used == "sig");
        signs.then_some(NamedKey { id: self.kid, public })
    }
}

/// Reads the keys of a JWK set, a JWK or PEM, and skips keys that cannot verify cards.
fn read(text: &[u8]) -> Result<Vec<NamedKey>, &'static str> {
    let none = "there is no public key for ES256, EdDSA or RS256";
    let text = &*foreign::mended(text);
    if !text.trim_ascii_start().starts_with(b"{") {
        let keys = SubjectPublicKeyInfoDer::pem_slice_iter(text).filter_map(|pem| {
            Some(NamedKey { id: None, public: VerifyingKey::of_der(pem.ok()?.as_ref())? })
        });
        let keys: Vec<_> = keys.collect();
        return if keys.is_empty() { Err(none) } else { Ok(keys) };
    }
    let mut json: Value = serde_json::from_slice(text).map_err(|_| "it is no JSON")?;
    let all = match json.get_mut("keys").map(Value::take) {
        Some(Value::Array(all)) => all,
        Some(_) => return Err("its `keys` is no list"),
        None => vec![json],
    };
    let mut keys = Vec::new();
    for jwk in all.into_iter().filter_map(|jwk| serde_json::from_value::<Jwk>(jwk).ok()) {
        if jwk.d.is_some() {
            return Err(
                "one is a private key, which belongs to who signs; give the public half of it",
            );
        }
        keys.extend(jwk.read());
    }
    if keys.is_empty() { Err(none) } else { Ok(keys) }
}

async fn fetch(location: &str, outbound: &Outbound) -> Result<Vec<u8>, KeyError> {
    // Over plain HTTP, a man in the middle could insert keys.
    let url = Url::parse(location).ok().filter(|url| url.scheme() == "https" || is_here(url));
    let url = url.ok_or_else(|| KeyError::NoSource(location.to_owned()))?;
    let (owned_location, no_request) =
        (|| location.to_owned(), |_| KeyError::NoSource(location.to_owned()));
    let request = Request::get(url.as_str()).body(Full::default()).map_err(no_request)?;
    let answer = outbound.ask(request, QUICK).await;
    let answer = answer.map_err(|why| KeyError::Fetch { url: owned_location(), why })?;
    if !answer.status().is_success() {
        return Err(KeyError::Status { url: owned_location(), status: answer.status() });
    }
    let keys = body(answer, QUICK).await;
    let keys =
        keys.map_err(|why| KeyError::Broken { url: owned_location(), why: Box::new(why) })?;
    if keys.len() > MAX_CARD {
        return Err(KeyError::Useless {
            location: owned_location(),
            why: "it is larger than any set of keys",
        });
    }
    Ok(keys.into())
}

fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(it)) => url.scheme() == "http" && it.is_loopback(),
        Some(Host::Ipv6(it)) => url.scheme() == "http" && it.is_loopback(),
        Some(Host::Domain(_)) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::reshaped;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};
    use serde_json::json;

    /// Cards signed by official SDKs, each with the public key as PEM and as JWK.
    const OFFICIAL: &str = include_str!("signed_cards.jsonl");

    fn keys(texts: &[&str]) -> Keys {
        Keys(texts.iter().flat_map(|text| read(text.as_bytes()).unwrap()).collect())
    }

    #[test]
    fn key_sets_of_unexpected_shapes_never_panic() {
        let line: Value = serde_json::from_str(OFFICIAL.lines().next().unwrap()).unwrap();
        let set = json!({ "keys": [line["jwk"], { "kty": "RSA", "n": "AA", "e": "AQAB", "use": "sig", "kid": "k" }] });
        for other in reshaped(&set) {
            let _ = read(other.to_string().as_bytes());
        }
        let marked = format!("\u{feff}{set}");
        assert_eq!(read(marked.as_bytes()).map(|keys| keys.len()), Ok(2), "a byte order mark");
        // A signed card of another shape must not panic either.
        let jwk = line["jwk"].to_string();
        for other in reshaped(&line["card"]) {
            let _ = keys(&[&jwk]).verify(&other);
        }
    }

    #[test]
    fn official_sdk_signatures_are_verified() {
        for line in OFFICIAL.lines() {
            let mut official: Value = serde_json::from_str(line).unwrap();
            let (pem, jwk) =
                (official["pem"].as_str().unwrap().to_owned(), official["jwk"].to_string());
            let set = json!({ "keys": [{"kty": "unknown"}, official["jwk"]] }).to_string();
            for key in [&pem, &jwk, &set] {
                let signed = keys(&[key]).verify(&official["card"]);
                assert_eq!(signed.unwrap()["name"], official["card"]["name"], "{line}");
            }
            official["card"]["name"] = json!("another");
            let why = keys(&[&jwk]).verify(&official["card"]).unwrap_err().to_string();
            assert_eq!(why, "no signature of it counts: the card is not what was signed", "{line}");
        }
    }

    /// Card of A2A 1.0 that is signed with `key` under this header.
    fn signed(key: &Ed25519KeyPair, header: &Value) -> Value {
        let mut card =
            json!({"name": "n", "description": "d", "version": "1", "supportedInterfaces": []});
        let payload = &signed_cards(&card)[0].payload;
        let protected = BASE64.encode(header.to_string());
        let message = format!("{protected}.{}", BASE64.encode(payload));
        let signature = BASE64.encode(key.sign(message.as_bytes()));
        card["signatures"] = json!([{ "protected": protected, "signature": signature }]);
        card
    }

    fn pair(seed: u8) -> (Ed25519KeyPair, String) {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
        let x = BASE64.encode(pair.public_key());
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": format!("k{seed}")});
        (pair, jwk.to_string())
    }

    #[test]
    fn only_known_unambiguous_signers_are_accepted() {
        let ((one, known), (_, other)) = (pair(1), pair(2));
        let both = keys(&[&known, &other]);
        let ec: Value = serde_json::from_str(OFFICIAL.lines().next().unwrap()).unwrap();
        let by = |header: Value| signed(&one, &header);
        let mut extra = by(json!({"alg": "EdDSA", "kid": "k1"}));
        extra["supportedInterfaces"] = json!([]);
        extra["url"] = json!("https://evil.example/");
        assert_eq!(both.verify(&extra).unwrap().get("url"), None, "what is not signed is not read");
        assert!(keys(&[&known]).verify(&by(json!({"alg": "EdDSA"}))).is_ok(), "there is one key");
        let mut two = by(json!({"alg": "EdDSA", "kid": "k1"}));
        let good = two["signatures"][0].take();
        two["signatures"] = json!([{"protected": "", "signature": ""}, good]);
        assert!(both.verify(&two).is_ok(), "one is enough");

        let refusals = [
            both.verify(&json!({"name": "n"})),
            both.verify(&by(json!({"alg": "EdDSA"}))),
            both.verify(&by(json!({"alg": "EdDSA", "kid": "k2"}))),
            both.verify(&by(json!({"alg": "EdDSA", "kid": "k3", "jku": "https://x/keys"}))),
            both.verify(&by(json!({"alg": "HS256", "kid": "k1"}))),
            keys(&[ec["pem"].as_str().unwrap()]).verify(&by(json!({"alg": "EdDSA", "kid": "k1"}))),
        ]
        .map(|refused| refused.unwrap_err().to_string());
        insta::assert_snapshot!(refusals.join("\n"), @r#"
        it is not signed, and `keys` names who must have signed it
        no signature of it counts: it does not name its key (`kid`), and there are 2 keys
        no signature of it counts: the card is not what was signed
        no signature of it counts: it is by "k3", which is not among the `keys`; its `jku` "https://x/keys" is not followed unless `keys` has it
        no signature of it counts: its `alg` is "HS256"; ES256, EdDSA and RS256 are taken
        no signature of it counts: the key is for another algorithm than EdDSA
        "#);
    }

    #[tokio::test]
    async fn invalid_key_sources_are_refused() {
        let outbound = Outbound::unguarded();
        let (_, known) = pair(1);
        let mut private: Value = serde_json::from_str(&known).unwrap();
        private["d"] = json!("AA");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("keys.json");
        std::fs::write(&file, &known).unwrap();
        let file = file.display().to_string();
        assert_eq!(Keys::load(&[known, file], &outbound).await.unwrap().0.len(), 2);
        let mut told = Vec::new();
        for place in [
            "keys.json",
            "http://x.example/keys",
            "{\"kty\": \"oct\", \"k\": \"AA\"}",
            "{",
            "-----BEGIN CERTIFICATE-----",
            "/no/such/file",
            "http://127.0.0.1:1/keys",
            &private.to_string(),
        ] {
            told.push(Keys::load(&[place.to_owned()], &outbound).await.unwrap_err().to_string());
        }
        insta::assert_snapshot!(told.join("\n"), @r#"
        read the keys "keys.json": name a file by its absolute path, an https:// URL, or give a JWK, a JWK set or PEM
        read the keys "http://x.example/keys": name a file by its absolute path, an https:// URL, or give a JWK, a JWK set or PEM
        read the keys in the configuration: there is no public key for ES256, EdDSA or RS256
        read the keys in the configuration: it is no JSON
        read the keys in the configuration: there is no public key for ES256, EdDSA or RS256
        read the keys in /no/such/file: No such file or directory (os error 2)
        fetch the keys at http://127.0.0.1:1/keys: Connection refused (os error 111)
        read the keys in the configuration: one is a private key, which belongs to who signs; give the public half of it
        "#);
    }
}
