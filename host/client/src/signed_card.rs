//! Signatures of a card (A2A 1.0, section 8.4): parsing and signed content, as JWS (RFC 7515) over
//! canonical JSON (RFC 8785). [`keys`](crate::keys) verifies them.

use a2a_hub_protocol::card::normal_card;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use serde::Deserialize;
use serde_json::{Map, Value};

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

/// A card with the bytes that a signature covers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SignedCard {
    /// Signed bytes.
    pub payload: Vec<u8>,
    /// Card that the signed bytes represent. Other members of the original card are unsigned and
    /// must not be trusted.
    pub card: Value,
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

/// Returns the forms of the card that a signature may cover. Signers agree on canonical JSON, but
/// omit different members:
///
/// 1. the normalized card without default values, as specified (section 8.4.1);
/// 2. the normalized card without any empty value, as the official Python and JavaScript SDKs sign;
/// 3. the unchanged card, as signers without protobuf and 0.3 signers use;
/// 4. for 0.3, the card without empty and default values, in ASCII, as the official Python SDK
///    signs.
///
/// Several forms do not weaken the check, because the verifier uses only the card of the verified
/// form.
pub(crate) fn signed_cards(card: &Value) -> Vec<SignedCard> {
    let unsigned = without_signatures(card);
    let mut forms = Vec::new();
    if card.get("supportedInterfaces").is_some() {
        if let Some(normal) = normal_card(&unsigned) {
            forms.push(canonical(normal.clone()));
            forms.push(canonical(without_empty(normal).unwrap_or_default()));
        }
    } else {
        forms.push(canonical(without_defaults(unsigned.clone())).map(in_ascii));
    }
    forms.push(canonical(unsigned));
    let mut known: Vec<SignedCard> = Vec::with_capacity(forms.len());
    for form in forms.into_iter().flatten() {
        if !known.iter().any(|known| known.payload == form.payload) {
            known.push(form);
        }
    }
    known
}

/// Returns the card without its signatures.
pub(crate) fn without_signatures(card: &Value) -> Value {
    let mut card = card.clone();
    card.as_object_mut().map(|members| members.remove("signatures"));
    card
}

fn canonical(card: Value) -> Option<SignedCard> {
    let payload = serde_json_canonicalizer::to_vec(&card).ok()?;
    Some(SignedCard { payload, card })
}

/// Removes empty texts, lists and objects recursively.
fn without_empty(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let non_empty =
                members.into_iter().filter_map(|(name, it)| Some((name, without_empty(it)?)));
            Some(non_empty.collect::<Map<_, _>>())
                .filter(|object| !object.is_empty())
                .map(Value::Object)
        }
        Value::Array(items) => {
            let non_empty: Vec<_> = items.into_iter().filter_map(without_empty).collect();
            Some(non_empty).filter(|list| !list.is_empty()).map(Value::Array)
        }
        Value::String(text) if text.is_empty() => None,
        Value::Null => None,
        Value::String(_) | Value::Number(_) | Value::Bool(_) => Some(value),
    }
}

fn without_defaults(mut card: Value) -> Value {
    if let Some(members) = card.as_object_mut() {
        let defaults = [("protocolVersion", "0.3.0"), ("preferredTransport", "JSONRPC")];
        members.retain(|name, value| !defaults.iter().any(|(it, of)| it == name && *value == *of));
        let schemes = members.get_mut("securitySchemes").and_then(Value::as_object_mut);
        for scheme in schemes.into_iter().flat_map(|schemes| schemes.values_mut()) {
            scheme.as_object_mut().map(|scheme| scheme.remove("type"));
        }
    }
    without_empty(card).unwrap_or_default()
}

fn in_ascii(form: SignedCard) -> SignedCard {
    let mut payload = Vec::with_capacity(form.payload.len());
    for letter in String::from_utf8_lossy(&form.payload).chars() {
        let mut units = [0; 2];
        for unit in letter.encode_utf16(&mut units) {
            match u8::try_from(*unit) {
                Ok(byte) if byte.is_ascii() => payload.push(byte),
                Ok(_) | Err(_) => payload.extend(format!("\\u{unit:04x}").bytes()),
            }
        }
    }
    SignedCard { payload, ..form }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::reshaped;
    use serde_json::json;

    fn forms(card: &Value) -> String {
        let forms = signed_cards(card).into_iter();
        forms.map(|form| String::from_utf8(form.payload).unwrap()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn signed_forms_of_card_match_signers() {
        let card = json!({
            "version": "1", "name": "Z\u{fc}rich", "description": "", "documentationUrl": "", "x": {"unknown": true},
            "capabilities": {"streaming": false, "extensions": [{"uri": "urn:x", "required": false, "params": {"n": 1.0, "e": {}}}]},
            "supportedInterfaces": [{"url": "http://x/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "skills": [{"id": "s", "name": "S", "description": "d", "tags": []}],
            "signatures": [{"protected": "e30", "signature": ""}],
        });
        insta::assert_snapshot!(forms(&card), @r#"
        {"capabilities":{"extensions":[{"params":{"e":{},"n":1},"uri":"urn:x"}],"streaming":false},"documentationUrl":"","name":"Zürich","skills":[{"description":"d","id":"s","name":"S"}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"http://x/"}],"version":"1"}
        {"capabilities":{"extensions":[{"params":{"n":1},"uri":"urn:x"}],"streaming":false},"name":"Zürich","skills":[{"description":"d","id":"s","name":"S"}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"http://x/"}],"version":"1"}
        {"capabilities":{"extensions":[{"params":{"e":{},"n":1},"required":false,"uri":"urn:x"}],"streaming":false},"description":"","documentationUrl":"","name":"Zürich","skills":[{"description":"d","id":"s","name":"S","tags":[]}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"http://x/"}],"version":"1","x":{"unknown":true}}
        "#);
        let old = json!({
            "protocolVersion": "0.3.0", "name": "Z\u{fc}rich \u{1f600}", "url": "http://x/", "preferredTransport": "JSONRPC",
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "k"}}, "skills": [], "capabilities": {},
        });
        insta::assert_snapshot!(forms(&old), @r#"
        {"name":"Z\u00fcrich \ud83d\ude00","securitySchemes":{"key":{"in":"header","name":"k"}},"url":"http://x/"}
        {"capabilities":{},"name":"Zürich 😀","preferredTransport":"JSONRPC","protocolVersion":"0.3.0","securitySchemes":{"key":{"in":"header","name":"k","type":"apiKey"}},"skills":[],"url":"http://x/"}
        "#);
    }

    /// Test vectors of RFC 8785: appendix B, and the order of section 3.2.3.
    #[test]
    fn canonical_json_matches_rfc_8785() {
        let text = |value: Value| String::from_utf8(canonical(value).unwrap().payload).unwrap();
        for (bits, written) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
        ] {
            assert_eq!(text(json!(f64::from_bits(bits))), written);
        }
        let members = json!({"\u{20ac}": 1, "\r": 2, "\u{fb33}": 3, "1": 4, "\u{1f600}": 5, "\u{80}": 6, "\u{f6}": 7});
        assert_eq!(
            text(members),
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}"
        );
        assert_eq!(text(json!("\u{0}\u{1f}\"\\\u{7f}/")), "\"\\u0000\\u001f\\\"\\\\\u{7f}/\"");
    }

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
