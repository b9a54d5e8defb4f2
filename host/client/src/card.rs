//! Fetching of a remote agent's card.

use crate::{
    answer::{QUICK, body},
    error::ClientError,
    outbound::{Incoming, Outbound},
    request::signed,
};
use a2a_hub_protocol::{card::without_signatures, foreign, push::Secret};
use http::{
    Request, Response, StatusCode,
    header::{ACCEPT, LOCATION},
};
use http_body_util::Full;
use ring::digest;
use serde_json::Value;
use url::Url;

/// Paths of a card below its agent's URL: the current one, and the one before A2A 0.3.
const CARD_PATHS: [&str; 2] = [".well-known/agent-card.json", ".well-known/agent.json"];

/// Maximum size of a card in bytes: the hub stores it, and people read it.
pub const MAX_CARD: usize = 256 << 10;

/// Parses the URL of an agent.
pub fn base(url: &str) -> Result<Url, ClientError> {
    let base = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    base.ok_or_else(|| ClientError::NotUrl(url.to_owned()))
}

/// Fetches the card of the agent at `base`, which may also be the URL of the card itself.
pub async fn fetch(
    outbound: &Outbound,
    base: &Url,
    token: Option<&Secret>,
) -> Result<Value, ClientError> {
    let url = base.as_str().trim_end_matches('/');
    let places = match url.ends_with(".json") {
        true => vec![url.to_owned()],
        false => CARD_PATHS.iter().map(|path| format!("{url}/{path}")).collect(),
    };
    let none = |why: String| ClientError::NoCard { url: base.to_string(), why };
    for card_url in &places {
        let request =
            Request::get(card_url).header("A2A-Version", "1.0").header(ACCEPT, "application/json");
        let request = signed(request, token)?.body(Full::default())?;
        let answer = outbound.ask(request, QUICK).await;
        let answer = answer.map_err(|why| {
            none(format!(
                "nobody answers there ({why}); look at host and port, and whether the agent runs"
            ))
        })?;
        match answer.status() {
            status if status.is_success() => {
                return read(&body(answer, QUICK).await?, card_url).map_err(none);
            }
            StatusCode::NOT_FOUND => {}
            _ => return Err(none(refused(&answer, card_url, token.is_some()))),
        }
    }
    Err(none(format!(
        "there is none at {}; give the URL of the agent itself, or that of its card",
        places.join(" or ")
    )))
}

fn read(text: &[u8], card_url: &str) -> Result<Value, String> {
    if text.len() > MAX_CARD {
        return Err(format!(
            "what is at {card_url} is larger than the {} KiB of a card",
            MAX_CARD >> 10
        ));
    }
    // Editors of some systems write a byte order mark; JSON has none (RFC 8259, section 8.1).
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    if text.trim_ascii_start().starts_with(b"<") {
        return Err(format!(
            "a web page is at {card_url}, and no card; give the URL of the agent itself, or that of its card"
        ));
    }
    let card =
        foreign::read(text).map_err(|why| format!("what is at {card_url} is no JSON: {why}"))?;
    if card.is_object() {
        return Ok(card);
    }
    Err(format!("what is at {card_url} is JSON, but no object, as a card is"))
}

/// Text of a refusal, with the way out.
fn refused(answer: &Response<Incoming>, card_url: &str, has_token: bool) -> String {
    let status = answer.status();
    let way_out = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if has_token => {
            "it does not take the token it was shown".to_owned()
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "it wants a token; `--token-env VARIABLE` shows what that variable holds, and for `[remote.<id>]` so does `token_env`".to_owned()
        }
        _ if status.is_redirection() => {
            let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.map(|to| format!(" to {to:?}")).unwrap_or_default();
            format!("it points elsewhere{to}, and nobody is followed unseen; give that URL if it is the right one")
        }
        _ => "ask whoever runs it".to_owned(),
    };
    format!("{card_url} answers with HTTP status {status}: {way_out}")
}

/// SHA-256 digest of a card's content, in hex. The order of members and the signatures do not
/// affect it.
pub fn digest(card: &Value) -> String {
    let unsigned = without_signatures(card).to_string();
    hex::encode(digest::digest(&digest::SHA256, unsigned.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn non_card_responses_are_explained() {
        let long = vec![b' '; MAX_CARD + 1];
        let told = [b"<!doctype html>".as_slice(), b"hello", b"[]", &long]
            .map(|text| read(text, "https://x/card").unwrap_err());
        insta::assert_snapshot!(told.join("\n"), @r#"
        a web page is at https://x/card, and no card; give the URL of the agent itself, or that of its card
        what is at https://x/card is no JSON: expected value at line 1 column 1
        what is at https://x/card is JSON, but no object, as a card is
        what is at https://x/card is larger than the 256 KiB of a card
        "#);
        assert_eq!(read(b"{\"name\": 1}", "").unwrap(), json!({ "name": 1 }));
        let marked = b"\xef\xbb\xbf{\"name\": 1}";
        assert_eq!(read(marked, "").unwrap(), json!({ "name": 1 }), "a byte order mark");
    }

    #[test]
    fn digest_ignores_order_and_signatures() {
        let parsed = |text: &str| digest(&serde_json::from_str(text).unwrap());
        let one = parsed(r#"{"name":"n","version":"1"}"#);
        assert_eq!(parsed(r#"{"version":"1","signatures":[{}],"name":"n"}"#), one);
        assert_ne!(parsed(r#"{"name":"n","version":"2"}"#), one);
        assert_eq!(one.len(), 64);
    }
}
