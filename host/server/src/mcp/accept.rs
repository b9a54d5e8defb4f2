//! Content negotiation of MCP over HTTP. The SDK wants both media types of a response by name; a
//! client that accepts anything accepts them as well (RFC 9110, section 12.5.1).

use http::{HeaderMap, HeaderValue, Method, header::ACCEPT};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Names the media types that the ranges in the request's `Accept` include. A request without
/// `Accept` accepts anything.
pub(super) fn name_accepted(method: &Method, headers: &mut HeaderMap) {
    let ranges = || headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_silent = ranges().all(|value| value.trim().is_empty());
    let accepts =
        |media| is_silent || ranges().flat_map(|v| v.split(',')).any(|r| includes(r, media));
    let accepted = match (accepts(JSON), accepts(EVENTS)) {
        (true, true) => "application/json, text/event-stream",
        // Only events answer `GET`.
        (false, true) if method == Method::GET => EVENTS,
        _ => return,
    };
    headers.insert(ACCEPT, HeaderValue::from_static(accepted));
}

/// True if a media range includes the media type.
fn includes(range: &str, media: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
    let is_refused = parts.any(|parameter| {
        let parameter = parameter.to_ascii_lowercase();
        let quality = parameter.strip_prefix("q=").and_then(|q| q.trim().parse::<f32>().ok());
        quality.is_some_and(|quality| quality <= 0.0)
    });
    let kind = media.split('/').next().unwrap_or_default();
    !is_refused && (essence == media || essence == "*/*" || essence == format!("{kind}/*"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(method: &Method, accept: Option<&'static str>) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.extend(accept.map(|accept| (ACCEPT, HeaderValue::from_static(accept))));
        name_accepted(method, &mut headers);
        headers.get(ACCEPT).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn ranges_include_both_media_types() {
        let both = "application/json, text/event-stream";
        for accept in [
            None,
            Some(""),
            Some("*/*"),
            Some("text/html, */*;q=0.1"),
            Some("application/*, text/*"),
            Some("Application/JSON;charset=utf-8, text/event-stream"),
        ] {
            assert_eq!(named(&Method::POST, accept).as_deref(), Some(both), "{accept:?}");
            assert_eq!(named(&Method::GET, accept).as_deref(), Some(both), "{accept:?}");
        }
        for accept in ["application/json", "text/html", "*/*;q=0", "text/*"] {
            assert_eq!(named(&Method::POST, Some(accept)).as_deref(), Some(accept));
        }
        assert_eq!(named(&Method::GET, Some("text/*")).as_deref(), Some(EVENTS));
    }
}
