//! Fetches a component and its detached signature over HTTPS, without redirects and with a size
//! limit.

use crate::{block_on, ui::failure::CommandError};
use a2a_hub_authoring::MAX_BYTES;
use a2a_hub_client::Outbound;
use a2a_hub_core::{
    plugin::signature::MAX_BYTES as SIGNATURE_BYTES, push::address_scope::loopback_of,
};
use bytes::Bytes;
use http::{Request, StatusCode, Uri, header, uri::Authority};
use http_body_util::{BodyExt as _, Full, Limited};
use std::time::Duration;
use tokio::time::timeout;

/// Timeout of the response's head.
const HEAD: Duration = Duration::from_secs(30);

/// Timeout of the whole download.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// A component, and the text of its detached signature.
pub(super) struct Fetched {
    pub(super) component: Vec<u8>,
    pub(super) signature: Option<String>,
}

/// Reason of a failure: the component could not be downloaded.
const NOT_FETCHED: &str = "COMPONENT_NOT_FETCHED";

/// Fetches the component at `url`, and its signature at `url.minisig`.
pub(super) fn fetch(url: &str) -> anyhow::Result<Fetched> {
    require_private_url(url)?;
    block_on(async {
        let outbound = Outbound::unguarded();
        let component = get(&outbound, url, MAX_BYTES).await?.ok_or_else(|| {
            CommandError::new(
                NOT_FETCHED,
                format!("fetch {url}: the server has no such file (404)"),
            )
        })?;
        let signature_url = format!("{url}.minisig");
        let signature = get(&outbound, &signature_url, SIGNATURE_BYTES as u64).await?;
        let signature = signature.map(|text| String::from_utf8_lossy(&text).into_owned());
        Ok(Fetched { component: component.to_vec(), signature })
    })
}

/// Refuses a URL on which a third party could replace the component: only HTTPS and loopback
/// addresses pass.
fn require_private_url(url: &str) -> Result<(), CommandError> {
    let uri = url.parse::<Uri>().unwrap_or_default();
    let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
    let host = authority.map(Authority::host).unwrap_or_default();
    let is_private = match uri.scheme_str() {
        Some("https") => !host.is_empty(),
        Some("http") => loopback_of(host).is_some(),
        Some(_) | None => false,
    };
    if is_private {
        return Ok(());
    }
    Err(CommandError::usage(format!(
        "fetch {url}: only https is allowed, because others could replace the component on the \
         way; give an https URL or a local file"
    )))
}

/// Downloads up to `max_bytes` bytes; `None` if the server answers 404 or 410.
async fn get(outbound: &Outbound, url: &str, max_bytes: u64) -> anyhow::Result<Option<Bytes>> {
    let failed = |why: String| CommandError::new(NOT_FETCHED, format!("fetch {url}: {why}"));
    let request = Request::get(url).header(header::ACCEPT, "application/wasm, */*");
    let request = request.body(Full::new(Bytes::new()));
    let request = request.map_err(|why| failed(why.to_string()))?;
    let answer = outbound.ask(request, HEAD).await.map_err(|why| failed(why.to_string()))?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND | StatusCode::GONE => return Ok(None),
        status if status.is_redirection() => {
            let to = answer.headers().get(header::LOCATION).and_then(|to| to.to_str().ok());
            let to = to.unwrap_or("an unnamed URL");
            return Err(failed(format!(
                "the server redirects to {to}; redirects are not followed, so give that URL if you \
                 trust it"
            ))
            .into());
        }
        status => return Err(failed(format!("the server answered {status}")).into()),
    }
    let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let body =
        timeout(DOWNLOAD_TIMEOUT, Limited::new(answer.into_body(), max_bytes).collect()).await;
    let body = body.map_err(|_| {
        failed(format!("the download took longer than {} s", DOWNLOAD_TIMEOUT.as_secs()))
    })?;
    let body = body.map_err(|why| failed(format!("{why}; the limit is {max_bytes} bytes")))?;
    Ok(Some(body.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn download_requires_https_or_loopback() {
        for url in [
            "https://host/x.wasm",
            "http://127.0.0.1:8080/x.wasm",
            "http://LocalHost./x.wasm",
            "http://[::1]/x",
        ] {
            require_private_url(url).unwrap();
        }
        for url in [
            "http://host/x.wasm",
            "http://127.0.0.1.host/x.wasm",
            "ftp://host/x",
            "file:///x.wasm",
            "http://localhost@host/x",
            "http://localhost:80@host/x",
            "https://",
        ] {
            assert!(require_private_url(url).is_err(), "{url}");
        }
    }
}
