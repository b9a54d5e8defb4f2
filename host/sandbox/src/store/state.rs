//! State of a store: WASI without resources, the capabilities, and the usage counters.

use crate::{
    cpu::scheduler::{CpuAccount, GuestThread},
    store::{
        http_egress::HttpEgress,
        limits::MemoryLimiter,
        redaction::Redaction,
        replay::Replaying,
        replay_clock::govern,
        usage::{OutputBudget, Paces, WriteBudget},
        wasi_http::WasiHttp,
        workspace::{self, CountedView, WriteQuota},
    },
};
use a2a_hub_core::grant::EffectiveGrant;
use a2a_hub_protocol::{client::ClientCapabilities, id::AgentId};
use a2a_hub_runtime::{
    Failure, Limits,
    port::{
        Ports,
        journal::{Journal, JournalPort},
        workspace::OpenWorkspace,
    },
};
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{
    WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView, filesystem::WasiFilesystemView as _,
    p2::pipe::MemoryOutputPipe,
};
use wasmtime_wasi_http::{WasiHttpCtxView, WasiHttpView};

/// Handles of a guest: child processes, streams, pollables.
const MAX_HANDLES: usize = 1_000;

/// Bytes of standard error that are stored. Guests have `log`; a panic prints its message here.
const STDERR_BYTES: usize = 16 << 10;

/// Random bytes of one request.
const MAX_RANDOM: u64 = 64 << 10;

/// Programs of one guest.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    pub(crate) grant: Arc<EffectiveGrant>,
    /// Working directory requested by the client.
    pub(crate) home: Option<String>,
}

pub(crate) struct GuestState {
    wasi: WasiCtx,
    pub(crate) table: ResourceTable,
    pub(crate) limiter: MemoryLimiter,
    pub(crate) agent: AgentId,
    pub(crate) ports: Arc<Ports>,
    pub(crate) account: Arc<CpuAccount>,
    /// Runtime on which programs are started.
    pub(crate) hub: Handle,
    pub(crate) cancel: CancellationToken,
    /// Token that fails calls of programs: `cancel`, until the guest has learned of the
    /// cancellation.
    pub(crate) program_cancel: CancellationToken,
    /// Capabilities of the client, from the last message that the guest has received.
    pub(crate) client: ClientCapabilities,
    pub(crate) processes: Processes,
    pub(crate) output: OutputBudget,
    pub(crate) paces: Paces,
    /// Open questions.
    pub(crate) open_questions: usize,
    pub(crate) redaction: Redaction,
    pub(crate) written: WriteBudget,
    pub(crate) http: HttpEgress,
    pub(crate) wasi_http: WasiHttp,
    /// Remaining quota of writes to the workspace.
    pub(crate) written_to_workspace: WriteQuota,
    /// None once the limit was reported.
    pub(crate) remaining_log_bytes: Option<u64>,
    pub(crate) stderr: MemoryOutputPipe,
    /// Replay state of a guest whose run is recorded.
    pub(crate) replay: Option<Replaying>,
}

impl GuestState {
    pub(crate) fn new(
        agent: AgentId,
        limits: &Limits,
        ports: Arc<Ports>,
        client: ClientCapabilities,
        processes: Processes,
        redaction: Redaction,
        GuestThread { account, cancel, hub }: GuestThread,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let stderr = MemoryOutputPipe::new(STDERR_BYTES);
        let grant = Arc::clone(&processes.grant);
        let workspace = ports.workspace.clone();
        let http =
            HttpEgress::new(agent.clone(), limits, grant, Arc::clone(&ports), cancel.clone());
        Self {
            wasi: wasi(&stderr).build(),
            table,
            limiter: MemoryLimiter::new(limits),
            agent,
            ports,
            account,
            hub,
            program_cancel: cancel.clone(),
            cancel,
            client,
            written: WriteBudget::new(&processes.grant),
            processes,
            output: OutputBudget::new(limits),
            written_to_workspace: WriteQuota::new(limits, workspace),
            wasi_http: WasiHttp::new(http.clone()),
            http,
            paces: Paces::new(&limits.rates),
            open_questions: 0,
            redaction,
            remaining_log_bytes: Some(limits.log_bytes),
            stderr,
            replay: None,
        }
    }
}

/// WASI with clocks and random numbers only.
fn wasi(stderr: &MemoryOutputPipe) -> WasiCtxBuilder {
    let mut wasi = WasiCtxBuilder::new();
    // Sockets are denied rather than absent, because some languages' guests import them without
    // using them.
    wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    wasi.max_random_size(MAX_RANDOM).stderr(stderr.clone());
    wasi
}

impl GuestState {
    /// Starts recording and replay of the guest's run, before it is called.
    pub(crate) fn replays(&mut self, journal: Journal, port: Arc<dyn JournalPort>) {
        let (seed, mut wasi) = (journal.seed, wasi(&self.stderr));
        let replay = Replaying::new(journal, port);
        govern(&mut wasi, &replay.clock, seed);
        self.wasi = wasi.build();
        self.http = self.http.clone().of_run(Arc::clone(&replay.clock));
        self.wasi_http = WasiHttp::new(self.http.clone());
        self.replay = Some(replay);
    }

    /// Gives the guest access to its working directory, before it is called.
    pub(crate) fn enter(&mut self, open: &OpenWorkspace) -> Result<(), Failure> {
        let mut wasi = wasi(&self.stderr);
        workspace::preopen(&mut wasi, open)?;
        self.wasi = wasi.build();
        Ok(())
    }

    /// File functions of WASI with counters.
    pub(crate) fn counted_files(&mut self) -> CountedView<'_> {
        let quota = self.written_to_workspace.clone();
        CountedView { files: self.filesystem(), quota }
    }
}

impl WasiView for GuestState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for GuestState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.wasi_http.view(&mut self.table)
    }
}
