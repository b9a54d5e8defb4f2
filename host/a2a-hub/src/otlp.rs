//! Exports spans of tasks by the OpenTelemetry Protocol (OTLP over HTTP, in Protobuf).
//!
//! ```text
//!  a task's end ──► Spans (bounded) ──► Exporter: a batch, or five seconds ──► SpanExporter
//!                                                            the receiver ◄── Outbound ◄─┘
//! ```
//!
//! If the receiver is down, its spans are lost and nothing else is affected. The outage is logged
//! once, and its end once.

use a2a_hub_client::{Outbound, fetch};
use a2a_hub_config::Otlp;
use a2a_hub_core::task::span::TaskSpan;
use a2a_hub_engine::observability::span_export::Spans;
use anyhow::Context as _;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use jiff::Timestamp;
use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks},
};
use parking_lot::Mutex;
use std::{
    str::FromStr as _,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout_at},
};

/// Maximum number of spans in a batch: some hundred kilobytes.
const BATCH: usize = 512;

/// Time that the first span of a batch waits for further ones.
const MOMENT: Duration = Duration::from_secs(5);

/// Timeout of a request to the receiver.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Time that the hub's shutdown waits for the last spans to be sent.
const LAST: Duration = Duration::from_secs(2);

/// Sends spans until their queue is closed.
pub(crate) struct Exporter {
    url: String,
    exporter: SpanExporter,
    /// Cause of the last failure, in more detail than the exporter's error.
    cause: Arc<Mutex<Option<String>>>,
    scope: InstrumentationScope,
    spans: Spans,
    from: mpsc::Receiver<TaskSpan>,
}

impl Exporter {
    /// Creates the queue of spans, and the exporter if the configuration names a receiver.
    pub(crate) fn open(otlp: &Otlp) -> anyhow::Result<(Spans, Option<Self>)> {
        let Some(url) = otlp.traces_url() else { return Ok((Spans::default(), None)) };
        let cause = Arc::default();
        let client = OtlpClient { outbound: Outbound::unguarded(), cause: Arc::clone(&cause) };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(&url)
            .with_timeout(REQUEST_TIMEOUT)
            .build();
        let mut exporter =
            exporter.with_context(|| format!("send spans to {url} (`telemetry.otlp.endpoint`)"))?;
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        exporter.set_resource(
            &Resource::builder().with_service_name("a2a-hub").with_attribute(version).build(),
        );
        let scope = InstrumentationScope::builder("a2a-hub").build();
        let (spans, from) = Spans::queue();
        Ok((spans.clone(), Some(Self { url, exporter, cause, scope, spans, from })))
    }

    /// Sends queued spans until the queue is closed.
    pub(crate) async fn run(mut self) {
        while let Some(first) = self.from.recv().await {
            let mut batch = vec![first];
            let until = Instant::now() + MOMENT;
            while batch.len() < BATCH {
                match timeout_at(until, self.from.recv()).await {
                    Ok(Some(span)) => batch.push(span),
                    Ok(None) | Err(_) => break,
                }
            }
            let end = async {
                self.spans.closed().await;
                sleep(LAST).await;
            };
            tokio::select! {
                () = self.send(&batch) => {}
                // The shutdown waits no longer.
                () = end => return,
            }
        }
    }

    async fn send(&self, batch: &[TaskSpan]) {
        let spans: Vec<_> = batch.iter().filter_map(|span| data(span, &self.scope)).collect();
        if spans.is_empty() {
            return;
        }
        match self.exporter.export(spans).await {
            Ok(()) => {
                if self.spans.note(None) {
                    let lost = self.spans.lost();
                    tracing::info!(url = self.url, lost, "span export resumed");
                }
            }
            Err(why) => {
                self.spans.lose(count(batch));
                let why = self.cause.lock().take().unwrap_or_else(|| why.to_string());
                let url = &self.url;
                let failure = format!(
                    "spans of tasks cannot be sent to {url}: {why}; see whether a receiver of OTLP listens there \
                     (`telemetry.otlp.endpoint`)"
                );
                if self.spans.note(Some(failure)) {
                    tracing::warn!(url, why, "span export failed, spans are lost until it resumes");
                }
            }
        }
    }
}

fn count(batch: &[TaskSpan]) -> u64 {
    u64::try_from(batch.len()).unwrap_or(u64::MAX)
}

/// Converts a task's span to OpenTelemetry's form, by its GenAI semantic conventions for agents.
fn data(span: &TaskSpan, scope: &InstrumentationScope) -> Option<SpanData> {
    let trace = &span.trace;
    let state = trace.state().and_then(|state| TraceState::from_str(state).ok());
    let context = SpanContext::new(
        TraceId::from_hex(trace.trace_id()).ok()?,
        SpanId::from_hex(trace.span_id()).ok()?,
        TraceFlags::SAMPLED,
        false,
        state.unwrap_or_default(),
    );
    let parent = trace.parent_id().and_then(|parent| SpanId::from_hex(parent).ok());
    let ended = Timestamp::from_str(&span.ended).ok()?;
    let start_time = SystemTime::UNIX_EPOCH.checked_add(span.began)?;
    let status = match span.is_error() {
        true => Status::error(span.reason.clone().unwrap_or_default()),
        false => Status::Unset,
    };
    Some(SpanData {
        span_context: context,
        parent_span_id: parent.unwrap_or(SpanId::INVALID),
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: format!("invoke_agent {}", span.agent).into(),
        start_time,
        // The clock may have been set back: the end must not precede the start.
        end_time: SystemTime::from(ended).max(start_time),
        attributes: attributes(span),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status,
        instrumentation_scope: scope.clone(),
    })
}

fn attributes(span: &TaskSpan) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("gen_ai.operation.name", "invoke_agent"),
        KeyValue::new("gen_ai.agent.name", span.agent.to_string()),
        KeyValue::new("gen_ai.conversation.id", span.context.to_string()),
        KeyValue::new("a2a.task.id", span.task.to_string()),
        KeyValue::new("a2a.task.state", span.state.name()),
        KeyValue::new("a2a.workflow.id", span.trace.workflow.clone()),
    ];
    let number = |name, number: Option<u64>| {
        Some(KeyValue::new(name, i64::try_from(number?).unwrap_or(i64::MAX)))
    };
    attributes.extend(number("gen_ai.usage.input_tokens", span.input_tokens));
    attributes.extend(number("gen_ai.usage.output_tokens", span.output_tokens));
    attributes.extend(span.cost_usd.map(|cost| KeyValue::new("a2a.task.cost_usd", cost)));
    if span.is_error() {
        let kind = span.reason.clone().unwrap_or_else(|| span.state.name().to_owned());
        attributes.push(KeyValue::new("error.type", kind));
    }
    attributes
}

/// HTTP client of the exporter, through the hub's outbound connections.
#[derive(Debug)]
struct OtlpClient {
    outbound: Outbound,
    cause: Arc<Mutex<Option<String>>>,
}

#[async_trait::async_trait]
impl HttpClient for OtlpClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = fetch(&self.outbound, request.map(Full::new), REQUEST_TIMEOUT).await;
        *self.cause.lock() = answer.as_ref().err().map(ToString::to_string);
        Ok(answer?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{
        id::{AgentId, ContextId, TaskId},
        task::{Task, TaskState, TaskStatus},
    };
    use serde_json::json;

    fn span(state: TaskState, facts: &serde_json::Value) -> TaskSpan {
        let task = Task {
            id: TaskId::new("0199aaaa-0001-7000-8000-00000000000f"),
            context_id: ContextId::new("c"),
            status: TaskStatus { state, message: None, timestamp: "2026-01-31T12:00:00Z".into() },
            artifacts: Vec::new(),
            history: Vec::new(),
            metadata: facts.as_object().cloned(),
        };
        TaskSpan::for_task(&AgentId::parse("echo").unwrap(), &task).unwrap()
    }

    #[test]
    fn span_has_genai_attributes_and_status() {
        let facts = json!({ "usage": { "input_tokens": 7 }, "cost_usd": 0.5, "reason": "timeout",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "tracestate": "rojo=1", "x-workflow-id": "release", "x-parent-span-id": "aaaaaaaaaaaaaaaa" });
        let scope = InstrumentationScope::builder("a2a-hub").build();
        let told = data(&span(TaskState::Failed, &facts), &scope).unwrap();
        assert_eq!(told.name, "invoke_agent echo");
        let context = &told.span_context;
        assert_eq!(context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(context.span_id().to_string(), "b7ad6b7169203331");
        assert_eq!(context.trace_state().header(), "rojo=1");
        assert_eq!(told.parent_span_id.to_string(), "aaaaaaaaaaaaaaaa");
        assert_eq!(told.status, Status::error("timeout"));
        assert!(told.end_time > told.start_time);
        let attributes: Vec<_> =
            told.attributes.iter().map(|it| format!("{}={}", it.key, it.value)).collect();
        insta::assert_snapshot!(attributes.join("\n"), @r"
        gen_ai.operation.name=invoke_agent
        gen_ai.agent.name=echo
        gen_ai.conversation.id=c
        a2a.task.id=0199aaaa-0001-7000-8000-00000000000f
        a2a.task.state=failed
        a2a.workflow.id=release
        gen_ai.usage.input_tokens=7
        a2a.task.cost_usd=0.5
        error.type=timeout
        ");
        let root = data(&span(TaskState::Completed, &json!({})), &scope).unwrap();
        assert_eq!((root.parent_span_id, root.status), (SpanId::INVALID, Status::Unset));
    }

    #[test]
    fn exporter_requires_an_endpoint() {
        assert!(Exporter::open(&Otlp::default()).unwrap().1.is_none());
    }
}
