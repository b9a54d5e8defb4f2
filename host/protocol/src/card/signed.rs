//! Signed content of a card (A2A 1.0, section 8.4): canonical JSON (RFC 8785) of its forms.

use super::normal_card;
use serde_json::{Map, Value};

/// A card with the bytes that a signature covers.
#[derive(Clone, Debug, PartialEq)]
pub struct SignedCard {
    /// Signed bytes.
    pub payload: Vec<u8>,
    /// Card that the signed bytes represent. Other members of the original card are unsigned and
    /// must not be trusted.
    pub card: Value,
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
pub fn signed_cards(card: &Value) -> Vec<SignedCard> {
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
pub fn without_signatures(card: &Value) -> Value {
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
}
