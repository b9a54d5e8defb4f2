//! `GET /`: a page for people who open the hub's address in a browser. It holds nothing of the hub
//! but its version, no script and no form.

use axum::{
    http::header,
    response::{Html, IntoResponse},
};

/// Text of the page; `VERSION` stands for the hub's.
const PAGE: &str = include_str!("front_page.html");

/// Answers with the page, in which a browser runs and loads nothing.
pub(super) async fn front_page() -> impl IntoResponse {
    let headers = [
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, Html(PAGE.replace("VERSION", env!("CARGO_PKG_VERSION"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;

    #[tokio::test]
    async fn front_page_names_version_and_paths() {
        let page = front_page().await.into_response();
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
