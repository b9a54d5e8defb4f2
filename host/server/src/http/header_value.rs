//! Values of headers that must not be repeated.

use axum::http::{HeaderMap, HeaderName};

/// Header that browsers send with each request of a page (Fetch Metadata Request Headers).
pub(super) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Single value of a header; an error if it is repeated or not text.
pub(crate) fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(());
    }
    value.to_str().map(Some).map_err(|_| ())
}
