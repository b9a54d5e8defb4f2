//! Files of the page. A path below `/ui` that names none is a view of the page, which begins with
//! the same file. They hold nothing of the hub, so a browser gets them without a key.

use crate::http::paths::PAGE;
use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// First file of each view.
const INDEX: &str = "index.html";

/// Folder of the files whose names change with their content.
const ASSETS: &str = "assets/";

/// Policy of the page (Content Security Policy 3, Trusted Types): a browser runs its own scripts,
/// and talks to the hub. No text can become a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data: blob:; connect-src 'self'; form-action 'none'; base-uri 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of each file.
const HEADERS: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// File of the page.
struct PageFile {
    path: &'static str,
    /// Weak entity tag (RFC 9110, section 8.8.3), of both forms.
    tag: &'static str,
    plain: &'static [u8],
    /// Compressed as `deflate` (RFC 1950).
    compressed: &'static [u8],
}

/// Answers with the file at a path.
pub(super) async fn file(request: Request) -> Response {
    let path = request.uri().path().strip_prefix(PAGE).unwrap_or_default();
    let found = FILES.iter().find(|file| file.path == path);
    let is_view = !path.starts_with(ASSETS);
    let index = || FILES.iter().find(|file| file.path == INDEX);
    let Some(file) = found.or_else(|| is_view.then(index).flatten()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let header =
        |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let lifetime = if is_view { "no-cache" } else { "public, max-age=31536000, immutable" };
    let caching = [
        (header::ETAG, file.tag),
        (header::CACHE_CONTROL, lifetime),
        (header::VARY, "accept-encoding"),
    ];
    let is_known = header(header::IF_NONE_MATCH)
        .is_some_and(|tags| tags.split(',').any(|tag| tag.trim() == file.tag));
    if is_known {
        return (StatusCode::NOT_MODIFIED, HEADERS, caching).into_response();
    }
    let is_deflate = |coding: &str| coding.trim().eq_ignore_ascii_case("deflate");
    let takes_deflate =
        header(header::ACCEPT_ENCODING).is_some_and(|all| all.split(',').any(is_deflate));
    let media = [(header::CONTENT_TYPE, media_type(file.path))];
    if takes_deflate {
        let coding = [(header::CONTENT_ENCODING, "deflate")];
        return (HEADERS, caching, media, coding, file.compressed).into_response();
    }
    (HEADERS, caching, media, file.plain).into_response()
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json" | "webmanifest") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, to_bytes};

    async fn answer(path: &str, headers: &[(HeaderName, &str)]) -> Response {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        file(request.body(Body::empty()).unwrap()).await
    }

    fn head<'r>(response: &'r Response, name: &HeaderName) -> &'r str {
        response.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[tokio::test]
    async fn every_view_begins_with_first_file() {
        for path in ["/ui/", "/ui/tasks", "/ui/tasks/0190?x=1", "/ui/../secret", "/ui/%2e%2e/x"] {
            let response = answer(path, &[]).await;
            assert_eq!(
                head(&response, &header::CONTENT_TYPE),
                "text/html; charset=utf-8",
                "{path}"
            );
            assert_eq!(head(&response, &header::CACHE_CONTROL), "no-cache");
            let policy = head(&response, &header::CONTENT_SECURITY_POLICY).to_owned();
            for part in ["default-src 'none'", "frame-ancestors 'none'", "trusted-types 'none'"] {
                assert!(policy.contains(part), "{part}");
            }
            assert!(!policy.contains("unsafe"), "{policy}");
            let text = to_bytes(response.into_body(), 1 << 20).await.unwrap();
            let text = String::from_utf8(text.to_vec()).unwrap();
            assert!(text.contains("/ui/assets/") && !text.contains("://"), "{text}");
        }
        assert_eq!(answer("/ui/assets/none.js", &[]).await.status(), StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn files_are_cached_and_compressed() {
        for file in FILES {
            let path = format!("/ui/{}", file.path);
            let plain = answer(&path, &[]).await;
            assert!(head(&plain, &header::CONTENT_ENCODING).is_empty());
            let tag = head(&plain, &header::ETAG).to_owned();
            let packed = answer(&path, &[(header::ACCEPT_ENCODING, "gzip, deflate, br")]).await;
            assert_eq!(head(&packed, &header::CONTENT_ENCODING), "deflate");
            let known = answer(&path, &[(header::IF_NONE_MATCH, &tag)]).await;
            assert_eq!(known.status(), StatusCode::NOT_MODIFIED);
            assert!(!head(&known, &header::CONTENT_SECURITY_POLICY).is_empty());
        }
    }

    /// The first view is small enough for a slow line, too.
    #[test]
    fn first_view_is_below_80_kb() {
        let total: usize = FILES.iter().map(|file| file.compressed.len()).sum();
        assert!(total < 80_000, "{total} bytes");
    }
}
