//! The card of an agent elsewhere: where it is looked for.

use super::{QUICK, RemoteError, body, signed};
use crate::outbound::Outbound;
use a2a_hub_protocol::push::Secret;
use http::{Request, StatusCode, header::ACCEPT};
use http_body_util::Full;
use serde_json::Value;
use url::Url;

/// Where a card is, below the URL of its agent: today, and before 0.3.
const CARD_PATHS: [&str; 2] = [".well-known/agent-card.json", ".well-known/agent.json"];

/// The card of the agent at `base`, which may also be the URL of the card itself.
pub(super) async fn fetch(
    outbound: &Outbound,
    base: &Url,
    token: Option<&Secret>,
) -> Result<Value, RemoteError> {
    let below = base.as_str().trim_end_matches('/');
    let places = match below.ends_with(".json") {
        true => vec![below.to_owned()],
        false => CARD_PATHS.iter().map(|path| format!("{below}/{path}")).collect(),
    };
    let mut why = String::new();
    for place in places {
        let asked =
            Request::get(&place).header("A2A-Version", "1.0").header(ACCEPT, "application/json");
        let asked = signed(asked, token)?.body(Full::default())?;
        let answer = outbound.ask(asked, QUICK).await?;
        let status = answer.status();
        if status.is_success() {
            let card = serde_json::from_slice(&body(answer, QUICK).await?);
            return card.map_err(|why| RemoteError::NoCard { url: place, why: why.to_string() });
        }
        why = format!("{place} answers with HTTP status {status}");
        if status != StatusCode::NOT_FOUND {
            break;
        }
    }
    Err(RemoteError::NoCard { url: base.to_string(), why })
}
