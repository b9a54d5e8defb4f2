//! Repetition of requests that a server did not handle, because it is busy or restarts.

use a2a_hub_clock as clock;
use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use std::time::Duration;

/// Most repetitions of one request.
pub(crate) const MAX_RETRIES: usize = 3;

/// Longest pause before a repetition. A caller waits meanwhile, and a server may name any time.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Shortest pause before a repetition: the named time may have passed on this machine's clock.
const MIN_PAUSE: Duration = Duration::from_millis(250);

/// Pause before a request is repeated: the server's `Retry-After` (RFC 9110, section 10.2.3),
/// within limits. `None` if the response is final. Only 429 and 503 say that the request was not
/// handled, so a message is never delivered twice.
pub(crate) fn pause(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let delay = clock::retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?)?;
    Some(delay.clamp(MIN_PAUSE, MAX_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn retry_pause_follows_header_within_limits() {
        let pause = |status: u16, said: Option<&'static str>| {
            let said = said.map(|said| (RETRY_AFTER, HeaderValue::from_static(said)));
            pause(StatusCode::from_u16(status).unwrap(), &said.into_iter().collect())
        };
        for (status, said, expected) in [
            (503, Some("2"), Some(Duration::from_secs(2))),
            (429, Some("2"), Some(Duration::from_secs(2))),
            (503, Some("0"), Some(MIN_PAUSE)),
            (503, Some("86400"), Some(MAX_PAUSE)),
            (503, Some("99999999999999999999"), Some(MAX_PAUSE)),
            (503, Some("Sun, 06 Nov 1994 08:49:37 GMT"), Some(MIN_PAUSE)),
            (503, Some("Fri, 31 Dec 2100 23:59:59 GMT"), Some(MAX_PAUSE)),
            (503, Some("soon"), None),
            (503, None, None),
            (500, Some("2"), None),
            (502, Some("2"), None),
            (200, Some("2"), None),
        ] {
            assert_eq!(pause(status, said), expected, "{status} {said:?}");
        }
    }
}
