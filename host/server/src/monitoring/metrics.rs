//! Metrics endpoint with content negotiation: OpenMetrics 1.0, or Prometheus' text format 0.0.4,
//! which every collector reads.

use crate::{http::reply, rpc::dispatcher::Dispatcher};
use a2a_hub_core::access_control::Principal;
use a2a_hub_engine::Reply;
use a2a_hub_protocol::operation::{Answer, Operation};
use axum::{
    Extension, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

/// Media type of OpenMetrics, without parameters.
const OPEN_METRICS: &str = "application/openmetrics-text";

/// Version of OpenMetrics.
const OPEN_METRICS_VERSION: &str = "1.0.0";

/// Content type of Prometheus' text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Route of the metrics.
pub(crate) fn routes() -> Router<Dispatcher> {
    Router::new().route("/metrics", get(metrics))
}

async fn metrics(
    State(dispatcher): State<Dispatcher>,
    Extension(principal): Extension<Principal>,
    headers: HeaderMap,
) -> Response {
    let read = Operation::ReadMetrics { streams: dispatcher.streams() };
    match dispatcher.hub().handle(&principal, None, read).await {
        Ok(Reply::One(Answer::Metrics(text))) => {
            let accepted = headers.get_all(header::ACCEPT).iter();
            let accepted: Vec<_> = accepted.filter_map(|accept| accept.to_str().ok()).collect();
            let (form, text) = if wants_open_metrics(&accepted.join(",")) {
                let form = format!("{OPEN_METRICS}; version={OPEN_METRICS_VERSION}; charset=utf-8");
                (form, text)
            } else {
                (PROMETHEUS.to_owned(), prometheus_text(&text))
            };
            let head = [(header::CONTENT_TYPE, form), (header::VARY, "Accept".to_owned())];
            (head, text).into_response()
        }
        Ok(Reply::One(_) | Reply::Stream(_)) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Err(why) => (reply::status(&why), why.to_string()).into_response(),
    }
}

/// True if an `Accept` header names OpenMetrics and does not prefer the text format.
fn wants_open_metrics(accept: &str) -> bool {
    let ranges = || accept.split(',').filter_map(Range::read);
    let weight = |of: fn(&Range<'_>) -> bool| {
        ranges().filter(of).map(|range| range.weight).fold(0.0, f32::max)
    };
    let open = weight(|range| {
        range.media.eq_ignore_ascii_case(OPEN_METRICS)
            && range.version.is_none_or(|version| version == OPEN_METRICS_VERSION)
    });
    let text = weight(|range| {
        ["text/plain", "text/*"].iter().any(|media| range.media.eq_ignore_ascii_case(media))
            && range.version.is_none_or(|version| version == "0.0.4")
    });
    open > 0.0 && open >= text
}

/// Media range of an `Accept` header (RFC 9110, section 12.5.1).
struct Range<'a> {
    media: &'a str,
    version: Option<&'a str>,
    /// Quality value: from 0, not acceptable, to 1.
    weight: f32,
}

impl<'a> Range<'a> {
    fn read(range: &'a str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().filter(|media| !media.is_empty())?;
        let (mut version, mut weight) = (None, 1.0);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim() {
                "version" => version = Some(value),
                // An invalid weight counts as 0, not as the default of 1.
                "q" | "Q" => weight = value.parse().unwrap_or(0.0),
                _ => {}
            }
        }
        Some(Self { media, version, weight })
    }
}

/// Converts OpenMetrics to Prometheus' text format, which has no units, no end marker, and no type
/// `info`; an `info` becomes a gauge with the name of its sample.
fn prometheus_text(open_metrics: &str) -> String {
    let mut told = String::with_capacity(open_metrics.len());
    let is_info = |name: &str| {
        open_metrics
            .lines()
            .any(|line| line.strip_prefix("# TYPE ") == Some(&format!("{name} info")))
    };
    for line in open_metrics.lines() {
        let words = line.strip_prefix("# ").map(|rest| rest.splitn(3, ' ').collect::<Vec<_>>());
        let line = match words.as_deref() {
            Some(["UNIT" | "EOF", ..]) => continue,
            Some(["TYPE", name, "info"]) => format!("# TYPE {name}_info gauge"),
            Some(["HELP", name, help]) if is_info(name) => format!("# HELP {name}_info {help}"),
            Some(_) | None => line.to_owned(),
        };
        told += &line;
        told.push('\n');
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_requires_explicit_accept() {
        let prometheus_2 = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for wants in [
            prometheus_2,
            "application/openmetrics-text",
            "Application/OpenMetrics-Text; version=\"1.0.0\"; charset=utf-8",
            "text/plain;q=0.5, application/openmetrics-text",
        ] {
            assert!(wants_open_metrics(wants), "{wants}");
        }
        for does_not in [
            "",
            "*/*",
            "text/plain;version=0.0.4;q=1,*/*;q=0.1",
            "text/html,application/xhtml+xml,*/*;q=0.8",
            "application/openmetrics-text;version=2.0.0",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=x",
            "application/openmetrics-text;q=0.2,text/plain;q=0.9",
            "application/json, ;;q=,",
        ] {
            assert!(!wants_open_metrics(does_not), "{does_not}");
        }
    }

    #[test]
    fn prometheus_text_drops_openmetrics_features() {
        let open = "# HELP a_build The version.\n# TYPE a_build info\na_build_info{version=\"1\"} 1\n\
            # HELP a_up_seconds Since it started.\n# TYPE a_up_seconds gauge\n# UNIT a_up_seconds seconds\na_up_seconds 1.5\n\
            # HELP a_build_more Not that one.\n# TYPE a_build_more gauge\na_build_more 2\n# EOF\n";
        let told = "# HELP a_build_info The version.\n# TYPE a_build_info gauge\na_build_info{version=\"1\"} 1\n\
            # HELP a_up_seconds Since it started.\n# TYPE a_up_seconds gauge\na_up_seconds 1.5\n\
            # HELP a_build_more Not that one.\n# TYPE a_build_more gauge\na_build_more 2\n";
        assert_eq!(prometheus_text(open), told);
    }
}
