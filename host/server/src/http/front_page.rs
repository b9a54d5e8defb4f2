//! `GET /`: leads a browser to the web page, and tells other clients what this address is. The text
//! holds nothing of the hub but its version, no script and no form.

use super::paths::PAGE as WEB_PAGE;
use axum::{
    http::{HeaderMap, header},
    response::{Html, IntoResponse, Redirect, Response},
};

/// Text of the page; `VERSION` stands for the hub's.
const PAGE: &str = include_str!("front_page.html");

/// Leads a browser, which asks for HTML by name, to the web page; answers others with a text.
pub(super) async fn front_page(headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/html")) {
        return Redirect::to(WEB_PAGE).into_response();
    }
    let headers = [
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, Html(PAGE.replace("VERSION", env!("CARGO_PKG_VERSION")))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;

    #[tokio::test]
    async fn front_page_names_version_and_paths() {
        let browser = HeaderMap::from_iter([(
            header::ACCEPT,
            "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8".parse().unwrap(),
        )]);
        let led = front_page(browser).await;
        assert_eq!(
            (led.status().as_u16(), &led.headers()[header::LOCATION]),
            (303, &"/ui/".parse().unwrap())
        );
        let page = front_page(HeaderMap::new()).await;
        assert_eq!(page.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        assert!(
            page.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().contains("'none'")
        );
        let text = to_bytes(page.into_body(), 1 << 16).await.unwrap();
        let text = String::from_utf8(text.to_vec()).unwrap();
        for part in
            [env!("CARGO_PKG_VERSION"), "/.well-known/agent-card.json", "/health", "a2a-hub man"]
        {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("<script") && !text.contains("VERSION"), "{text}");
    }
}
