//! Parser for the signatures of a card (A2A 1.0, section 8.4), as JWS (RFC 7515).
//! [`keys`](crate::keys) verifies them.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde::Deserialize;
use serde_json::Value;

/// Supported signature algorithm (RFC 7518, RFC 8037). All are asymmetric, so a verifier cannot
/// forge signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// EdDSA over Ed25519 (RFC 8037).
    EdDsa,
    /// RSA, PKCS #1 v1.5, with SHA-256.
    Rs256,
}

impl Algorithm {
    /// Name of the algorithm in the `alg` of a JWS.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
            Self::Rs256 => "RS256",
        }
    }
}

/// A signature of a card (A2A 1.0, section 4.4.7): a JSON Web Signature (RFC 7515).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    /// Signature algorithm.
    pub algorithm: Algorithm,
    /// Key id (`kid`).
    pub key: Option<String>,
    /// Key URL (`jku`). The signer chose it, so the hub must not fetch it.
    pub key_url: Option<String>,
    /// Encoded header, which is the first part of the signed text.
    protected: String,
    /// Bytes of the signature, decoded from base64url.
    pub bytes: Vec<u8>,
}

/// Reason for ignoring a signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnreadableSignature {
    /// The signature does not match A2A's format.
    #[error(
        "it is no JWS: `protected` must be a JSON object and `signature` bytes, both in base64url without padding"
    )]
    Malformed,
    /// The algorithm is unknown or allows forgery.
    #[error("its `alg` is {0:?}; ES256, EdDSA and RS256 are taken")]
    Algorithm(String),
    /// The header demands an unsupported extension.
    #[error("its `crit` names unknown extensions: {}", .0.join(", "))]
    Critical(Vec<String>),
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    jku: Option<String>,
    crit: Option<Vec<String>>,
}

impl Signature {
    fn read(signature: &Value) -> Result<Self, UnreadableSignature> {
        let text = |member: &str| signature.get(member).and_then(Value::as_str);
        let bytes = |member: &str| text(member).and_then(|text| BASE64.decode(text).ok());
        let header: Option<Header> =
            bytes("protected").and_then(|header| serde_json::from_slice(&header).ok());
        let (Some(header), Some(protected), Some(bytes)) =
            (header, text("protected"), bytes("signature"))
        else {
            return Err(UnreadableSignature::Malformed);
        };
        // The reader must support all extensions in `crit` (RFC 7515, section 4.1.11); this one
        // supports none.
        if let Some(demands) = header.crit {
            return Err(UnreadableSignature::Critical(demands));
        }
        let algorithm = match header.alg.as_str() {
            "ES256" => Algorithm::Es256,
            "EdDSA" | "Ed25519" => Algorithm::EdDsa,
            "RS256" => Algorithm::Rs256,
            _ => return Err(UnreadableSignature::Algorithm(header.alg)),
        };
        let (key, key_url) = (header.kid, header.jku);
        Ok(Self { algorithm, key, key_url, protected: protected.to_owned(), bytes })
    }

    /// Signing input for a payload.
    pub(crate) fn message(&self, payload: &[u8]) -> Vec<u8> {
        format!("{}.{}", self.protected, BASE64.encode(payload)).into_bytes()
    }
}

/// Parses all signatures of a card.
pub(crate) fn signatures(card: &Value) -> Vec<Result<Signature, UnreadableSignature>> {
    let all = card.get("signatures").and_then(Value::as_array);
    all.into_iter().flatten().map(Signature::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::reshaped;
    use a2a_hub_protocol::card::signed_cards;
    use serde_json::json;

    #[test]
    fn forgeable_signatures_are_ignored() {
        let signature = |header: Value| json!({"protected": BASE64.encode(header.to_string()), "signature": "AA"});
        let read = |signature| match &signatures(&json!({ "signatures": [signature] }))[..] {
            [Ok(it)] => format!("{:?} by {:?}, at {:?}", it.algorithm, it.key, it.key_url),
            [Err(why)] => why.to_string(),
            _ => panic!("it is one"),
        };
        let told = [
            signature(json!({"alg": "ES256", "kid": "k", "jku": "https://x/"})),
            signature(json!({"alg": "EdDSA", "typ": "JOSE"})),
            signature(json!({"alg": "none", "kid": "k"})),
            signature(json!({"alg": "HS256"})),
            signature(json!({"alg": "ES256", "crit": ["b64"], "b64": false})),
            signature(json!({"kid": "k"})),
            json!({"protected": "e30=", "signature": "AA"}),
            json!({"protected": "e30", "signature": "?"}),
            json!("x"),
        ]
        .map(read);
        insta::assert_snapshot!(told.join("\n"), @r#"
        Es256 by Some("k"), at Some("https://x/")
        EdDsa by None, at None
        its `alg` is "none"; ES256, EdDSA and RS256 are taken
        its `alg` is "HS256"; ES256, EdDSA and RS256 are taken
        its `crit` names unknown extensions: b64
        it is no JWS: `protected` must be a JSON object and `signature` bytes, both in base64url without padding
        it is no JWS: `protected` must be a JSON object and `signature` bytes, both in base64url without padding
        it is no JWS: `protected` must be a JSON object and `signature` bytes, both in base64url without padding
        it is no JWS: `protected` must be a JSON object and `signature` bytes, both in base64url without padding
        "#);
        assert!(signatures(&json!({})).is_empty());
    }

    #[test]
    fn reshaped_cards_are_read_without_panic() {
        for interfaces in ["supportedInterfaces", "additionalInterfaces"] {
            let card = json!({
                "name": "n", "version": "1", "protocolVersion": "0.3.0", "url": "http://a/",
                "capabilities": { "streaming": true, "extensions": [{ "uri": "urn:x" }] },
                "skills": [{ "id": "s", "name": "S", "description": "does", "tags": ["t"] }],
                "signatures": [{ "protected": "e30", "signature": "AA", "header": {} }],
                "securitySchemes": { "x": { "type": "http" } }, "security": [{ "x": [] }],
                interfaces: [{ "url": "http://a/", "protocolBinding": "JSONRPC", "transport": "JSONRPC" }],
            });
            for other in reshaped(&card) {
                assert!(!signed_cards(&other).is_empty(), "{other}");
                assert!(signatures(&other).len() <= 1, "{other}");
            }
        }
    }
}
