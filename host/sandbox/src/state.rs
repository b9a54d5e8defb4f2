//! What a store holds for its guest: WASI with nothing in it, the capabilities, and the running counts.

use crate::{
    limits::MemoryLimiter,
    redaction::Redaction,
    usage::{Output, Written},
};
use a2a_hub_core::grant::EffectiveGrant;
use a2a_hub_protocol::{client::ClientCapabilities, id::AgentId};
use a2a_hub_runtime::{Limits, port::Ports};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView, p2::pipe::MemoryOutputPipe};

/// Handles a guest may hold at once: child processes, streams, pollables.
const MAX_HANDLES: usize = 1_000;

/// What a guest may print before it breaks, in bytes. It has `log`; a panic prints its message here.
const STDERR_BYTES: usize = 16 << 10;

/// Random bytes a guest may ask for at once.
const MAX_RANDOM: u64 = 64 << 10;

/// What one guest may run.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    pub(crate) held: Arc<EffectiveGrant>,
    /// Where the client would have the work done.
    pub(crate) home: Option<String>,
}

pub(crate) struct State {
    wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) limiter: MemoryLimiter,
    pub(crate) agent: AgentId,
    pub(crate) ports: Arc<Ports>,
    pub(crate) cancel: CancellationToken,
    /// What the client can do with an answer, as it said with its last message that the guest has heard.
    pub(crate) client: ClientCapabilities,
    pub(crate) processes: Processes,
    pub(crate) output: Output,
    pub(crate) redaction: Redaction,
    pub(crate) written: Written,
    /// None once it was told that there is no more.
    pub(crate) log_bytes_left: Option<u64>,
    pub(crate) stderr: MemoryOutputPipe,
}

impl State {
    pub(crate) fn new(
        agent: AgentId,
        limits: &Limits,
        ports: Arc<Ports>,
        client: ClientCapabilities,
        processes: Processes,
        redaction: Redaction,
        cancel: CancellationToken,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let stderr = MemoryOutputPipe::new(STDERR_BYTES);
        let mut wasi = WasiCtxBuilder::new();
        // Sockets are denied rather than absent, for some languages' guests import them without using them.
        wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        wasi.max_random_size(MAX_RANDOM).stderr(stderr.clone());
        Self {
            wasi: wasi.build(),
            table,
            limiter: MemoryLimiter::new(limits),
            agent,
            ports,
            cancel,
            client,
            written: Written::new(&processes.held),
            processes,
            output: Output::new(limits),
            redaction,
            log_bytes_left: Some(limits.log_bytes),
            stderr,
        }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}
