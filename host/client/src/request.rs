//! What every request of this client carries: who asks, and the token that is shown.

use a2a_hub_protocol::push::Secret;
use http::{
    HeaderValue,
    header::{AUTHORIZATION, USER_AGENT},
};

/// The request with the name of this client, and with `token` as a bearer token (RFC 6750) that no log shows.
pub(crate) fn signed(
    request: http::request::Builder,
    token: Option<&Secret>,
) -> Result<http::request::Builder, http::Error> {
    let request = request.header(USER_AGENT, concat!("a2a-hub/", env!("CARGO_PKG_VERSION")));
    let Some(token) = token else { return Ok(request) };
    let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))?;
    value.set_sensitive(true);
    Ok(request.header(AUTHORIZATION, value))
}
