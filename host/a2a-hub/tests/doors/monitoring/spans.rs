//! Tests of tasks as OpenTelemetry spans, and of a receiver that is down.

use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually, eventually_async, send, state},
};
use a2a_hub_tests::{Client, test_guests};
use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value as Any,
    trace::v1::{Span, status::StatusCode as Code},
};
use prost::Message as _;
use serde_json::json;
use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{net::TcpListener, task::JoinSet};

/// Exceeds the interval of a batch and of a retry.
const SOON: Duration = Duration::from_secs(40);

/// OTLP receiver that accepts spans unless `is_ill` is set.
struct Collector {
    endpoint: String,
    shared: Arc<Shared>,
    _serving: JoinSet<io::Result<()>>,
}

#[derive(Default)]
struct Shared {
    taken: Mutex<Vec<Span>>,
    services: Mutex<Vec<String>>,
    is_ill: AtomicBool,
}

impl Collector {
    async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Shared::default());
        let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&shared));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { endpoint, shared, _serving: serving })
    }

    fn spans(&self) -> Vec<Span> {
        self.shared.taken.lock().map(|taken| taken.clone()).unwrap_or_default()
    }

    async fn hub(&self) -> Result<InProcessHub> {
        let config = GRANT
            .replace("    memory = true", "    memory = true\n    delegate = ['guest', 'echo']");
        let config = format!("[telemetry.otlp]\nendpoint = '{}'\n{config}", self.endpoint);
        InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await
    }
}

async fn take(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    if shared.is_ill.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    let is_protobuf =
        headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/x-protobuf");
    let Ok(request) = ExportTraceServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST;
    };
    for resource in request.resource_spans.into_iter().filter(|_| is_protobuf) {
        let about = resource.resource.into_iter().flat_map(|resource| resource.attributes);
        let texts = about.filter_map(|it| Some((it.key, it.value?.value?)));
        if let Ok(mut services) = shared.services.lock() {
            services.extend(texts.filter_map(|(key, value)| {
                let Any::StringValue(text) = value else { return None };
                (key == "service.name").then_some(text)
            }));
        }
        if let Ok(mut taken) = shared.taken.lock() {
            taken.extend(resource.scope_spans.into_iter().flat_map(|scope| scope.spans));
        }
    }
    StatusCode::OK
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(span: &Span, name: &str) -> Option<String> {
    let found = span.attributes.iter().find(|it| it.key == name)?;
    let Any::StringValue(text) = found.value.clone()?.value? else { return None };
    Some(text)
}

#[tokio::test]
async fn task_tree_becomes_span_tree() -> Result<()> {
    let collector = Collector::start().await?;
    let hub = collector.hub().await?;
    let client = Client::http(&hub)
        .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    let root = send(&client, "guest", "call guest call echo deep").await?;
    let failed = send(&client, "guest", "fail").await?;
    eventually(SOON, || collector.spans().len() >= 4).await?;
    let spans = collector.spans();
    assert_eq!(spans.len(), 4, "one a task");
    for span in &spans {
        assert_eq!(hex(&span.trace_id), "0af7651916cd43dd8448eb211c80319c");
        assert!(
            span.end_time_unix_nano >= span.start_time_unix_nano && span.start_time_unix_nano > 0
        );
        assert!(!format!("{span:?}").contains("deep"), "nothing of what was said");
    }
    let of = |parent: &str| {
        let found = spans
            .iter()
            .find(|span| hex(&span.parent_span_id) == parent && text(span, "error.type").is_none());
        found.with_context(|| format!("no span below {parent}"))
    };
    let top = of("b7ad6b7169203331")?;
    let middle = of(&hex(&top.span_id))?;
    let bottom = of(&hex(&middle.span_id))?;
    assert_eq!(
        (top.name.as_str(), bottom.name.as_str()),
        ("invoke_agent guest", "invoke_agent echo")
    );
    assert_eq!(text(top, "a2a.task.id").as_deref(), root["id"].as_str());
    assert_eq!(text(bottom, "a2a.workflow.id").as_deref(), root["id"].as_str());
    let id = failed["id"].as_str();
    let failed = spans.iter().find(|span| text(span, "a2a.task.id").as_deref() == id);
    let failed = failed.context("no span of the task that failed")?;
    assert_eq!(failed.status.as_ref().map(|it| it.code), Some(Code::Error as i32));
    assert_eq!(text(failed, "error.type").as_deref(), Some("told-to"));
    let services = collector.shared.services.lock().map(|it| it.clone()).unwrap_or_default();
    assert!(!services.is_empty() && services.iter().all(|name| name == "a2a-hub"), "{services:?}");
    Ok(())
}

#[tokio::test]
async fn stopping_hub_flushes_spans() -> Result<()> {
    let collector = Collector::start().await?;
    let mut hub = collector.hub().await?;
    send(&Client::http(&hub), "echo", "hello").await?;
    hub.stop().await?;
    assert_eq!(collector.spans().len(), 1);
    Ok(())
}

#[tokio::test]
async fn unavailable_receiver_loses_only_spans() -> Result<()> {
    let collector = Collector::start().await?;
    collector.shared.is_ill.store(true, Ordering::Relaxed);
    let hub = collector.hub().await?;
    let client = Client::http(&hub);
    let warnings = async || {
        let status = client.call("hub/status", json!({})).await.unwrap_or_default();
        status["warnings"].to_string()
    };
    assert_eq!(state(&send(&client, "guest", "flood 1").await?), "completed");
    eventually_async(SOON, async || warnings().await.contains("spans of tasks cannot be sent"))
        .await?;
    assert_eq!(state(&send(&client, "guest", "flood 1").await?), "completed");
    eventually_async(SOON, async || warnings().await.contains("2 spans were lost")).await?;
    assert_eq!(hub.log().matches("are lost until it resumes").count(), 1, "{}", hub.log());

    collector.shared.is_ill.store(false, Ordering::Relaxed);
    send(&client, "guest", "flood 1").await?;
    eventually(SOON, || collector.spans().len() == 1).await?;
    eventually_async(SOON, async || !warnings().await.contains("spans")).await?;
    assert!(hub.log().contains("span export resumed"));
    Ok(())
}
