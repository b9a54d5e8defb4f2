//! Metrics of the hub in OpenMetrics format, which Prometheus reads. Events are counted here;
//! current values are collected for each scrape. No metric identifies who sent what.

use crate::observability::expiring_questions::ExpiringQuestions;
use a2a_hub_core::routing::Latency;
use a2a_hub_protocol::{
    hub::event::HubEventKind,
    id::{AgentId, TaskId},
    operation::{AgentBrief, BreakerState, HealthStatus, OpenStreams},
};
use a2a_hub_runtime::RunCapacity;
use a2a_hub_store::Tally;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::text,
    metrics::{family::Family, gauge::Gauge, histogram::Histogram, info::Info},
    registry::{Registry, Unit},
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};
use tokio::time::Instant;

/// Histogram bounds in seconds, from the hub's fastest answer to an agent's longest task.
const BUCKETS: [f64; 11] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 300.0, 1_800.0, 7_200.0];

/// Label names and values.
type Labels<const N: usize> = [(&'static str, String); N];

type Durations<const N: usize> = Family<Labels<N>, Histogram, fn() -> Histogram>;

/// Counters and histograms. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    requests: Durations<2>,
    tasks: Durations<2>,
    /// Start times of unfinished tasks that began in this process.
    begun: Arc<Mutex<HashMap<TaskId, Instant>>>,
    /// Recent time to each agent's first output.
    latencies: Arc<Mutex<HashMap<AgentId, Latency>>>,
    expiring_questions: ExpiringQuestions,
}

/// Current values, collected for one scrape.
pub struct Snapshot {
    /// Time since the hub's start.
    pub uptime: Duration,
    /// Numbers of tasks; none if the store fails.
    pub tallies: Option<Vec<Tally>>,
    /// Size of the store in bytes; none if the store fails.
    pub stored_bytes: Option<u64>,
    /// True if the store accepts writes.
    pub can_store: bool,
    /// Number of changes that wait to be stored.
    pub backlog: usize,
    /// The agents, with their health and circuit breakers.
    pub agents: Vec<AgentBrief>,
    /// Number of live guests, and their limit.
    pub guests: RunCapacity,
    /// Number of open streams, and their limit.
    pub streams: OpenStreams,
    /// Last moment at which the TLS certificate is valid, in seconds since 1970; none without TLS.
    pub certificate_expires_at: Option<i64>,
}

impl Default for Metrics {
    fn default() -> Self {
        let durations = || Histogram::new(BUCKETS);
        Self {
            requests: Family::new_with_constructor(durations),
            tasks: Family::new_with_constructor(durations),
            begun: Arc::default(),
            latencies: Arc::default(),
            expiring_questions: ExpiringQuestions::default(),
        }
    }
}

impl Metrics {
    /// Counts an operation that was carried out or refused, with its duration.
    pub fn answered(&self, operation: &'static str, is_done: bool, took: Duration) {
        let outcome = if is_done { "done" } else { "refused" };
        let labels = [("operation", operation.to_owned()), ("outcome", outcome.to_owned())];
        self.requests.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts an event, and measures the duration of tasks from it.
    pub fn record(&self, event: &HubEventKind) {
        let begun = || self.begun.lock();
        if let HubEventKind::TaskCreated { task_id, .. } = event {
            begun().insert(task_id.clone(), Instant::now());
        }
        if let HubEventKind::TaskState { task_id, agent_id, state, .. } = event
            && state.is_final()
            && let Some(since) = begun().remove(task_id)
        {
            let labels = [("agent", agent_id.to_string()), ("state", state.name().to_owned())];
            self.tasks.get_or_create(&labels).observe(since.elapsed().as_secs_f64());
        }
    }

    /// Counter of open questions whose deadlines are near.
    pub fn expiring_questions(&self) -> &ExpiringQuestions {
        &self.expiring_questions
    }

    /// Records the time to an agent's first output in a task.
    pub fn first_word(&self, agent: &AgentId, took: Duration) {
        let now = Instant::now().into_std();
        let mut latencies = self.latencies.lock();
        let known = latencies.entry(agent.clone()).and_modify(|known| known.took(took, now));
        known.or_insert_with(|| Latency::new(took, now));
    }

    /// Estimated time to an agent's first output; none if it has had none yet.
    pub fn latency(&self, agent: &AgentId) -> Option<Duration> {
        let now = Instant::now().into_std();
        self.latencies.lock().get(agent).map(|known| known.estimate(now))
    }

    /// Encodes all metrics, with these current values.
    pub fn text(&self, now: &Snapshot) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("a2a_hub");
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        registry.register("build", "The hub's version", Info::new(version));
        let uptime = Gauge::<f64, AtomicU64>::default();
        uptime.set(now.uptime.as_secs_f64());
        registry.register_with_unit("uptime", "Since the hub started", Unit::Seconds, uptime);
        registry.register_with_unit(
            "request_duration",
            "From an operation to its answer, or to the first event of its stream",
            Unit::Seconds,
            self.requests.clone(),
        );
        registry.register_with_unit(
            "task_duration",
            "From a task's creation to its end, waiting included",
            Unit::Seconds,
            self.tasks.clone(),
        );
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let long = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let tallied = now.tallies.iter().flatten().map(|Tally { agent, state, tasks }| {
            let labels = [("agent", agent.to_string()), ("state", state.name().to_owned())];
            (labels, long(*tasks))
        });
        gauges(&mut registry, "tasks", "Tasks that the hub keeps", tallied);
        let of_agents = |predicate: fn(&AgentBrief) -> bool| {
            now.agents
                .iter()
                .map(move |agent| ([("agent", agent.id.to_string())], i64::from(predicate(agent))))
        };
        let works = of_agents(|agent| {
            matches!(agent.status, HealthStatus::Healthy | HealthStatus::Degraded)
        });
        gauges(
            &mut registry,
            "agent_up",
            "Whether an agent can work (1), also if not fully",
            works,
        );
        let is_open = of_agents(|agent| agent.breaker.state == BreakerState::Open);
        let load =
            now.agents.iter().map(|agent| ([("agent", agent.id.to_string())], number(agent.load)));
        gauges(
            &mut registry,
            "agent_load",
            "Tasks of an agent that run or wait for their turn",
            load,
        );
        let idle_programs =
            now.agents.iter().map(|agent| ([("agent", agent.id.to_string())], number(agent.kept)));
        gauges(
            &mut registry,
            "agent_kept_programs",
            "Programs of an agent that live between its tasks",
            idle_programs,
        );
        gauges(&mut registry, "agent_breaker_open", "Whether an agent is left alone (1)", is_open);
        for (name, help, value) in [
            ("guests", "Guests that are alive", number(now.guests.running)),
            ("guests_max", "Guests that may be alive at once", number(now.guests.max)),
            ("streams", "Streams that are open", number(now.streams.open)),
            ("streams_max", "Streams that may be open at once", number(now.streams.max)),
            ("store_backlog", "Changes that wait to be stored", number(now.backlog)),
            ("store_up", "Whether what happens can be stored (1)", i64::from(now.can_store)),
        ] {
            gauge(&mut registry, name, help, value);
        }
        if let Some(bytes) = now.stored_bytes {
            let size = Gauge::<i64>::default();
            size.set(long(bytes));
            registry.register_with_unit("store_size", "What is stored", Unit::Bytes, size);
        }
        if let Some(at) = now.certificate_expires_at {
            let help = "Last moment at which the TLS certificate is valid, since 1970";
            let expiry = Gauge::<i64>::default();
            expiry.set(at);
            registry.register_with_unit("tls_certificate_expiry", help, Unit::Seconds, expiry);
        }
        let mut output = String::new();
        text::encode(&mut output, &registry)?;
        Ok(output)
    }
}

fn gauge(registry: &mut Registry, name: &str, help: &str, value: i64) {
    let gauge = Gauge::<i64>::default();
    gauge.set(value);
    registry.register(name, help, gauge);
}

fn gauges<const N: usize>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (Labels<N>, i64)>,
) {
    let family = Family::<Labels<N>, Gauge>::default();
    for (labels, value) in values {
        family.get_or_create(&labels).set(value);
    }
    registry.register(name, help, family);
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::{id::ContextId, operation::AgentBreaker, task::TaskState};

    /// Buckets are cumulative: each counts durations up to its bound; the last counts all.
    #[test]
    fn histogram_buckets_are_cumulative() {
        let metrics = Metrics::default();
        for millis in [1, 5, 6, 500, 501, 10_000_000] {
            metrics.answered("ping", true, Duration::from_millis(millis));
        }
        let told = metrics.text(&nothing()).unwrap();
        let bucket = "a2a_hub_request_duration_seconds_bucket{le=";
        let labels = "\",operation=\"ping\",outcome=\"done\"}";
        let buckets = told.lines().filter_map(|line| line.strip_prefix(bucket));
        let buckets: Vec<_> = buckets.map(|line| line.replace(labels, "\"")).collect();
        insta::assert_snapshot!(buckets.join("\n"), @r#"
        "0.001" 1
        "0.005" 2
        "0.02" 3
        "0.1" 3
        "0.5" 4
        "2.0" 5
        "10.0" 5
        "60.0" 5
        "300.0" 5
        "1800.0" 5
        "7200.0" 5
        "+Inf" 6
        "#);
    }

    /// Snapshot of an empty hub.
    fn nothing() -> Snapshot {
        Snapshot {
            uptime: Duration::ZERO,
            tallies: None,
            stored_bytes: None,
            can_store: true,
            backlog: 0,
            agents: Vec::new(),
            guests: RunCapacity { running: 0, max: 0 },
            streams: OpenStreams { open: 0, max: 0 },
            certificate_expires_at: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_follow_prometheus_names_and_units() {
        let metrics = Metrics::default();
        let (agent, task) = (AgentId::parse("echo").unwrap(), TaskId::new("t"));
        let context_id = ContextId::new("c");
        metrics.record(&HubEventKind::TaskCreated {
            task_id: task.clone(),
            context_id: context_id.clone(),
            agent_id: agent.clone(),
        });
        tokio::time::advance(Duration::from_secs(3)).await;
        for state in [TaskState::Working, TaskState::Completed, TaskState::Completed] {
            let (task_id, agent_id) = (task.clone(), agent.clone());
            let context_id = context_id.clone();
            metrics.record(&HubEventKind::TaskState { task_id, context_id, agent_id, state });
        }
        metrics.answered("send_message", true, Duration::from_millis(3));
        metrics.answered("send_message", false, Duration::from_millis(1));
        let breaker = AgentBreaker { state: BreakerState::Open, retry_at: None, cause: None };
        let now = Snapshot {
            uptime: Duration::from_millis(1_500),
            tallies: Some(vec![Tally {
                agent: agent.clone(),
                state: TaskState::Completed,
                tasks: 1,
            }]),
            stored_bytes: Some(4_096),
            can_store: true,
            backlog: 2,
            agents: vec![AgentBrief {
                id: agent,
                name: "Echo".to_owned(),
                status: HealthStatus::Degraded,
                error_message: None,
                fix: None,
                breaker,
                load: 2,
                latency_ms: None,
                kept: 1,
                unlisted: false,
            }],
            guests: RunCapacity { running: 1, max: 4_000 },
            streams: OpenStreams { open: 3, max: 100 },
            certificate_expires_at: Some(1_767_225_600),
        };
        let told = metrics.text(&now).unwrap();
        assert!(told.ends_with("# EOF\n"), "{told}");
        let shown = |line: &&str| !line.starts_with('#') && !line.contains("_bucket");
        let mut lines: Vec<_> = told.lines().filter(shown).collect();
        lines.sort_unstable();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        a2a_hub_agent_breaker_open{agent="echo"} 1
        a2a_hub_agent_kept_programs{agent="echo"} 1
        a2a_hub_agent_load{agent="echo"} 2
        a2a_hub_agent_up{agent="echo"} 1
        a2a_hub_build_info{version="0.1.0"} 1
        a2a_hub_guests 1
        a2a_hub_guests_max 4000
        a2a_hub_request_duration_seconds_count{operation="send_message",outcome="done"} 1
        a2a_hub_request_duration_seconds_count{operation="send_message",outcome="refused"} 1
        a2a_hub_request_duration_seconds_sum{operation="send_message",outcome="done"} 0.003
        a2a_hub_request_duration_seconds_sum{operation="send_message",outcome="refused"} 0.001
        a2a_hub_store_backlog 2
        a2a_hub_store_size_bytes 4096
        a2a_hub_store_up 1
        a2a_hub_streams 3
        a2a_hub_streams_max 100
        a2a_hub_task_duration_seconds_count{agent="echo",state="completed"} 1
        a2a_hub_task_duration_seconds_sum{agent="echo",state="completed"} 3.0
        a2a_hub_tasks{agent="echo",state="completed"} 1
        a2a_hub_tls_certificate_expiry_seconds 1767225600
        a2a_hub_uptime_seconds 1.5
        "#);
        assert!(metrics.begun.lock().is_empty(), "what is over is not remembered");
    }
}
