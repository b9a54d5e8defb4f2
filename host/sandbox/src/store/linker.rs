//! Host functions for components.

use crate::store::{bindings::Plugin as Contract, state::GuestState, workspace::CountedFiles};
use std::fmt;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};
use wasmtime_wasi::p2::bindings::filesystem::types::add_to_linker as add_files_to_linker;

/// Linker with WASI and the contract, equal for all components; each call checks the grant.
pub(crate) struct HostFunctions(Linker<GuestState>);

impl HostFunctions {
    pub(crate) fn new(engine: &wasmtime::Engine) -> wasmtime::Result<Self> {
        let mut linker = Linker::new(engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        // File functions of WASI, replaced by counting ones.
        linker.allow_shadowing(true);
        add_files_to_linker::<GuestState, CountedFiles>(&mut linker, GuestState::counted_files)?;
        linker.allow_shadowing(false);
        wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
        Contract::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
        Ok(Self(linker))
    }

    /// Links a component's imports. Fails if the host lacks one.
    pub(crate) fn link(&self, component: &Component) -> wasmtime::Result<InstancePre<GuestState>> {
        self.0.instantiate_pre(component)
    }
}

impl fmt::Debug for HostFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostFunctions").finish_non_exhaustive()
    }
}
