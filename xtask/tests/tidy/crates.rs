//! The crates of the host, their layers, and the dependencies that they must not have.

/// The crates of the host, lowest first: each may depend only on those before it.
pub(crate) const CRATES: &[&str] = &[
    "protocol",
    "core",
    "runtime",
    "process",
    "worktrees",
    "toolchain",
    "clock",
    "triggers",
    "terminal",
    "sandbox",
    "store",
    "client",
    "config",
    "tls",
    "automation",
    "agents",
    "authoring",
    "socket-client",
    "engine",
    "rpc",
    "server",
    "a2a-hub",
    "cli",
];

/// The modules of the crates with layers, lowest first: each may use only itself and those before
/// it.
pub(crate) const LAYERS: &[(&str, &[&str])] = &[
    (
        "agents",
        &["finder", "event_sink", "native", "remote", "port", "agent", "registry", "testing"],
    ),
    (
        "engine",
        &[
            "signer",
            "webhooks",
            "worktree_runs",
            "conversations",
            "observability",
            "error",
            "tests",
            "routing",
            "tasks",
            "push",
            "devices",
            "people",
            "notify",
            "error_mapping",
            "operations",
        ],
    ),
];

/// Modules that the transports use only through the hub; their crates cannot depend on `agents`.
pub(crate) const BEHIND_THE_HUB: &[&str] = &["tasks", "push"];

/// Dependencies that a crate must not have, because it was split off to be free of them.
pub(crate) const FORBIDDEN: &[(&str, &[&str])] = &[
    ("host/protocol", &["tokio", "axum", "wasmtime", "rusqlite"]),
    ("host/core", &["tokio", "axum", "wasmtime", "rusqlite", "anyhow"]),
    ("host/runtime", &["tokio", "axum", "hyper", "wasmtime", "rusqlite", "anyhow"]),
    (
        "host/process",
        &["a2a-hub-protocol", "a2a-hub-core", "axum", "wasmtime", "rusqlite", "anyhow"],
    ),
    (
        "host/worktrees",
        &["a2a-hub-protocol", "a2a-hub-core", "axum", "wasmtime", "rusqlite", "clap", "anyhow"],
    ),
    ("host/sandbox", &["axum", "rusqlite", "anyhow"]),
    ("host/store", &["axum", "wasmtime", "clap", "anyhow"]),
    ("host/client", &["axum", "wasmtime", "rusqlite", "clap", "anyhow"]),
    ("host/config", &["tokio", "axum", "wasmtime", "rusqlite", "clap", "anyhow"]),
    ("host/tls", &["axum", "hyper", "wasmtime", "rusqlite", "clap", "anyhow"]),
    ("host/automation", &["a2a-hub-agents", "axum", "wasmtime", "rusqlite", "clap", "anyhow"]),
    ("host/agents", &["axum", "tonic", "wasmtime", "rusqlite", "clap", "anyhow"]),
    (
        "host/authoring",
        &[
            "a2a-hub-agents",
            "a2a-hub-engine",
            "a2a-hub-store",
            "axum",
            "wasmtime",
            "rusqlite",
            "clap",
            "anyhow",
        ],
    ),
    (
        "host/engine",
        &["axum", "tonic", "wasmtime", "rusqlite", "clap", "anyhow", "a2a-hub-sandbox"],
    ),
    (
        "host/server",
        &[
            "wasmtime",
            "rusqlite",
            "clap",
            "anyhow",
            "a2a-hub-store",
            "a2a-hub-sandbox",
            "a2a-hub-agents",
        ],
    ),
    (
        "host/a2a-hub",
        &["a2a-hub-authoring", "axum", "clap", "rusqlite", "tracing-subscriber", "wasmtime"],
    ),
    ("host/socket-client", &["a2a-hub-agents", "axum", "rusqlite", "wasmtime"]),
    ("host/cli", &["a2a-hub-server", "axum", "rusqlite", "wasmtime"]),
    ("sdk", &["a2a-hub-protocol", "a2a-hub-core", "a2a-hub-sandbox", "a2a-hub", "tokio"]),
];

/// Modules of `protocol` that the rules of topics and blackboards do without.
const UNUSED_BY_RULES: [&str; 10] = [
    "crate::binding",
    "crate::card",
    "crate::codec",
    "crate::dialect",
    "crate::error",
    "crate::event",
    "crate::hub",
    "crate::message",
    "crate::operation",
    "crate::task",
];

/// Crates and modules that a folder of a crate must not use, because it decides or presents, and
/// does no more.
pub(crate) const UNUSED_BELOW: &[(&str, &[&str])] = &[
    ("host/protocol/src/topics", &UNUSED_BY_RULES),
    ("host/protocol/src/boards", &UNUSED_BY_RULES),
    ("host/server/src/five_step/model", &["tokio::", "axum::", "a2a_hub_engine", "a2a_hub_rpc"]),
    ("host/server/src/mcp/model", &["tokio::", "axum::", "a2a_hub_engine", "a2a_hub_rpc"]),
    ("host/engine/src/webhooks", &["a2a_hub_store", "a2a_hub_agents"]),
    ("host/engine/src/worktree_runs", &["a2a_hub_store", "a2a_hub_agents"]),
    ("host/engine/src/conversations", &["a2a_hub_agents"]),
    ("host/cli/src/automation", &["a2a_hub_agents", "a2a_hub_engine", "a2a_hub_store"]),
    ("host/cli/src/log_files", &["a2a_hub_agents", "a2a_hub_engine", "a2a_hub_store"]),
];
