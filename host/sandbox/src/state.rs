//! What a store holds for its guest: WASI with nothing in it, the capabilities, and the running counts.

use crate::{
    http_door::HttpDoor,
    limits::MemoryLimiter,
    redaction::Redaction,
    replay::Replaying,
    run_clock::govern,
    scheduler::{CpuAccount, Seat},
    usage::{Output, Paces, Written},
    wasi_http::WasiHttp,
    workspace::{self, CountedView, WriteQuota},
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
    pub(crate) account: Arc<CpuAccount>,
    /// Where programs are started.
    pub(crate) hub: Handle,
    pub(crate) cancel: CancellationToken,
    /// What the client can do with an answer, as it said with its last message that the guest has heard.
    pub(crate) client: ClientCapabilities,
    pub(crate) processes: Processes,
    pub(crate) output: Output,
    pub(crate) paces: Paces,
    /// How many questions it has open.
    pub(crate) open_questions: usize,
    pub(crate) redaction: Redaction,
    pub(crate) written: Written,
    pub(crate) http: HttpDoor,
    pub(crate) wasi_http: WasiHttp,
    /// What of its workspace it may still write.
    pub(crate) written_to_workspace: WriteQuota,
    /// None once it was told that there is no more.
    pub(crate) log_bytes_left: Option<u64>,
    pub(crate) stderr: MemoryOutputPipe,
    /// Of a guest whose run is recorded.
    pub(crate) replay: Option<Replaying>,
}

impl State {
    pub(crate) fn new(
        agent: AgentId,
        limits: &Limits,
        ports: Arc<Ports>,
        client: ClientCapabilities,
        processes: Processes,
        redaction: Redaction,
        Seat { account, cancel, hub }: Seat,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let stderr = MemoryOutputPipe::new(STDERR_BYTES);
        let held = Arc::clone(&processes.held);
        let workspace = ports.workspace.clone();
        let http = HttpDoor::new(agent.clone(), limits, held, Arc::clone(&ports), cancel.clone());
        Self {
            wasi: wasi(&stderr).build(),
            table,
            limiter: MemoryLimiter::new(limits),
            agent,
            ports,
            account,
            hub,
            cancel,
            client,
            written: Written::new(&processes.held),
            processes,
            output: Output::new(limits),
            written_to_workspace: WriteQuota::new(limits, workspace),
            wasi_http: WasiHttp::new(http.clone()),
            http,
            paces: Paces::new(&limits.rates),
            open_questions: 0,
            redaction,
            log_bytes_left: Some(limits.log_bytes),
            stderr,
            replay: None,
        }
    }
}

/// WASI with nothing in it but clocks and random numbers.
fn wasi(stderr: &MemoryOutputPipe) -> WasiCtxBuilder {
    let mut wasi = WasiCtxBuilder::new();
    // Sockets are denied rather than absent, for some languages' guests import them without using them.
    wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    wasi.max_random_size(MAX_RANDOM).stderr(stderr.clone());
    wasi
}

impl State {
    /// Has the guest's run be recorded, and answered from its journal, before it is called.
    pub(crate) fn replays(&mut self, journal: Journal, port: Arc<dyn JournalPort>) {
        let (seed, mut wasi) = (journal.seed, wasi(&self.stderr));
        let replay = Replaying::new(journal, port);
        govern(&mut wasi, &replay.clock, seed);
        self.wasi = wasi.build();
        self.http = self.http.clone().of_run(Arc::clone(&replay.clock));
        self.wasi_http = WasiHttp::new(self.http.clone());
        self.replay = Some(replay);
    }

    /// Gives the guest the files of its working directory, before it is called.
    pub(crate) fn enter(&mut self, open: &OpenWorkspace) -> Result<(), Failure> {
        let mut wasi = wasi(&self.stderr);
        workspace::preopen(&mut wasi, open)?;
        self.wasi = wasi.build();
        Ok(())
    }

    /// The files of WASI, as the guest has them.
    pub(crate) fn counted_files(&mut self) -> CountedView<'_> {
        let quota = self.written_to_workspace.clone();
        CountedView { files: self.filesystem(), quota }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

impl WasiHttpView for State {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.wasi_http.view(&mut self.table)
    }
}
