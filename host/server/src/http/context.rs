//! Request context from HTTP headers and the query string.

use a2a_hub_core::{access_control::Principal, http_name::HostPort};
use a2a_hub_protocol::{
    binding::{jsonrpc::ParamsSource, service_params},
    card::Endpoints,
    dialect::Dialect,
    id::AgentId,
    interface::check_version,
    trace::{TRACESTATE, TraceContext},
};
use a2a_hub_rpc::dispatcher::{Active, Dispatcher, RequestContext};
use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::Response,
};

/// Header or query parameter with the client's version.
pub(crate) const VERSION: HeaderName = HeaderName::from_static(service_params::VERSION);

/// Headers with the requested extensions, in 1.0 and in 0.3.
const EXTENSIONS: [HeaderName; 2] = [
    HeaderName::from_static(service_params::EXTENSIONS[0]),
    HeaderName::from_static(service_params::EXTENSIONS[1]),
];

/// Id of the last event that a reconnecting client received (`Last-Event-ID`).
pub(crate) fn last_event(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("last-event-id")?.to_str().ok()?.trim().to_owned())
}

/// Adds version, extensions and trace context of the headers to a context of the hub's endpoint,
/// where clients may speak 1.0 as well.
pub(crate) fn with_headers<'a>(
    of: RequestContext<'a>,
    headers: &HeaderMap,
    query: Option<&str>,
) -> RequestContext<'a> {
    let version = check_version(version(headers, query));
    RequestContext { extensions: extensions(headers), version, trace: trace(headers), ..of }
}

/// Version that the client requests.
pub(crate) fn version<'a>(headers: &'a HeaderMap, query: Option<&'a str>) -> Option<&'a str> {
    let named = |pair: &'a str| {
        let (name, value) = pair.split_once('=')?;
        name.eq_ignore_ascii_case(VERSION.as_str()).then_some(value)
    };
    let header = headers.get(&VERSION).map(|version| version.to_str().unwrap_or("?"));
    header.or_else(|| query?.split('&').find_map(named))
}

/// Context of a request to the endpoint of an agent or the hub.
pub(crate) fn context<'a>(
    caller: Principal,
    url: &'a str,
    endpoints: Endpoints,
    agent: Option<AgentId>,
    spelled: Dialect,
    headers: &HeaderMap,
    query: Option<&str>,
) -> RequestContext<'a> {
    RequestContext {
        caller,
        url,
        last_event_id: last_event(headers),
        spelled,
        endpoints: Some(endpoints),
        agent,
        extensions: extensions(headers),
        active: Active::default(),
        version: check_version(version(headers, query)),
        source: ParamsSource::Headers,
        trace: trace(headers),
    }
}

/// Trace context from the headers. A repeated header is ambiguous and ignored, except `tracestate`,
/// whose values form one list (W3C Trace Context, section 3.3).
pub(crate) fn trace(headers: &HeaderMap) -> TraceContext {
    TraceContext::read(|name| {
        let mut values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        if name == TRACESTATE {
            let all: Vec<_> = values.collect();
            return (!all.is_empty()).then(|| all.join(","));
        }
        let value = values.next()?;
        values.next().is_none().then(|| value.to_owned())
    })
}

/// Extensions that the client requests.
pub(crate) fn extensions(headers: &HeaderMap) -> Vec<String> {
    let named = EXTENSIONS.into_iter().flat_map(|name| headers.get_all(name));
    named.filter_map(|value| value.to_str().ok()).flat_map(service_params::listed).collect()
}

/// Header in which the client requested extensions, if any.
pub(crate) fn extensions_header(headers: &HeaderMap) -> Option<HeaderName> {
    EXTENSIONS.into_iter().find(|name| headers.contains_key(name))
}

/// Adds the activated extensions to a response, in the header that the client used.
pub(crate) fn with_extensions(
    mut response: Response,
    active: &Active,
    named_in: Option<HeaderName>,
) -> Response {
    response.headers_mut().extend(activated(active, named_in));
    response
}

/// Header with the activated extensions, if any.
pub(crate) fn activated(
    active: &Active,
    named_in: Option<HeaderName>,
) -> Option<(HeaderName, HeaderValue)> {
    let name = named_in?;
    let active = active.all().join(", ");
    let active = HeaderValue::from_str(&active).ok().filter(|active| !active.is_empty())?;
    Some((name, active))
}

/// True if the media type is gRPC's. A web page cannot send it without a CORS preflight.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let media = headers.get(header::CONTENT_TYPE).and_then(|media| media.to_str().ok());
    media.is_some_and(|media| {
        let essence = media.split(';').next().unwrap_or_default().trim();
        ["application/grpc", "application/grpc+proto"].contains(&essence)
    })
}

/// URL of this hub with a trailing slash: the operator's public URL, or one made from the `Host`
/// header, which the origin guard has checked. The scheme is that of the configured name, because
/// a proxy may have ended the TLS.
pub(crate) fn hub_url(dispatcher: &Dispatcher, headers: &HeaderMap) -> String {
    let endpoints = dispatcher.public_endpoints();
    if let Some(url) = &endpoints.public_url {
        return format!("{url}/");
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // Most hubs have no further names, and a host costs as much to read as all headers together.
    let parsed = if endpoints.names.is_empty() { None } else { HostPort::parse(host) };
    let name =
        endpoints.names.iter().find(|name| parsed.as_ref().is_some_and(|it| name.is_host(it)));
    match name {
        Some(name) => format!("{name}/"),
        None if endpoints.is_tls => format!("https://{host}/"),
        None => format!("http://{host}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_read_from_header_or_query() {
        let headers = |said: Option<&'static str>| {
            said.map(|said| (VERSION, HeaderValue::from_static(said))).into_iter().collect()
        };
        let query = Some("historyLength=1&A2A-Version=99.0");
        assert_eq!(version(&headers(None), None), None);
        assert_eq!(version(&headers(None), query), Some("99.0"));
        assert_eq!(version(&headers(Some("1.0")), query), Some("1.0"));
    }

    #[test]
    fn extension_headers_are_merged() {
        let headers: HeaderMap = [
            (EXTENSIONS[0].clone(), HeaderValue::from_static("urn:a, urn:b")),
            (EXTENSIONS[1].clone(), HeaderValue::from_static("urn:c,")),
        ]
        .into_iter()
        .collect();
        assert_eq!(extensions(&headers), ["urn:a", "urn:b", "urn:c"]);
    }

    #[test]
    fn trace_is_read_from_headers() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("traceparent", "00-a"),
            ("tracestate", "a=1"),
            ("tracestate", "b=2"),
            ("x-workflow-id", "release"),
            ("x-span-id", "one"),
            ("x-span-id", "two"),
        ] {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let said = trace(&headers);
        assert_eq!(said.traceparent.as_deref(), Some("00-a"));
        assert_eq!(said.tracestate.as_deref(), Some("a=1,b=2"));
        assert_eq!(said.workflow.as_deref(), Some("release"));
        assert_eq!((said.span, said.parent_span), (None, None));
        headers.append("traceparent", HeaderValue::from_static("00-b"));
        assert_eq!(trace(&headers).traceparent, None, "nobody knows which of the two counts");
        assert_eq!(trace(&HeaderMap::new()), TraceContext::default());
    }

    #[test]
    fn last_event_id_is_read() {
        let read = |said: &'static str| {
            last_event(
                &[(HeaderName::from_static("last-event-id"), said.parse().unwrap())]
                    .into_iter()
                    .collect(),
            )
        };
        for id in ["12", "5f0c-7", "x"] {
            assert_eq!(read(id).as_deref(), Some(id));
        }
        assert_eq!(read(" 12 ").as_deref(), Some("12"));
    }

    #[test]
    fn grpc_is_recognized_by_media_type() {
        let is = |media: &'static str| {
            is_grpc(
                &[(header::CONTENT_TYPE, HeaderValue::from_static(media))].into_iter().collect(),
            )
        };
        assert!(is("application/grpc") && is("application/grpc+proto"));
        assert!(!is("application/grpc-web") && !is("application/grpc+json") && !is("text/plain"));
    }
}
