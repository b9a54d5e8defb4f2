//! A component that was read, checked against the contract, and linked: ready to run any number of tasks.

use crate::{
    bindings::{Plugin as Contract, PluginPre},
    engine::Engine,
    manifest::{self, ManifestError},
    state::State,
};
use a2a_hub_core::grant::Ask;
use a2a_hub_protocol::card::InvalidCard;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use wasmtime::component::{Component, HasSelf, Linker};

/// An agent's component, ready to run. Cheap to clone.
#[derive(Clone)]
pub struct Plugin {
    pub(crate) engine: Engine,
    pub(crate) pre: PluginPre<State>,
    ask: Arc<Ask>,
    digest: String,
}

impl std::fmt::Debug for Plugin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plugin").field("digest", &self.digest).finish_non_exhaustive()
    }
}

/// Why a file is not an agent of this hub.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is something else altogether.
    #[error("it is not WebAssembly")]
    NotWasm,
    /// It is a core module.
    #[error(
        "it is a core WebAssembly module, not a component; build it for the target wasm32-wasip2"
    )]
    CoreModule,
    /// It is damaged, or half written.
    #[error("it is not a valid component: {0}")]
    Invalid(String),
    /// It has more parts than a guest's place has room for.
    #[error("it needs more than one agent may have: {0}")]
    Greedy(String),
    /// It is made for another contract.
    #[error("it does not fit the contract a2a:hub@0.1.0: {0}")]
    Contract(String),
    /// Its manifest cannot be followed.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// It would not say its card.
    #[error("it did not say its card: {0}")]
    Silent(String),
    /// Its card does not say what every card must.
    #[error(transparent)]
    Card(#[from] InvalidCard),
}

impl Plugin {
    /// Reads, checks and compiles a component. Takes its time: call it where blocking is allowed.
    pub fn compile(engine: &Engine, bytes: &[u8]) -> Result<Self, LoadError> {
        match bytes {
            [0, b'a', b's', b'm', 0x0d, 0, 1, 0, ..] => {}
            [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => return Err(LoadError::CoreModule),
            _ => return Err(LoadError::NotWasm),
        }
        let ask = manifest::read(bytes).map_err(|why| match why {
            ManifestError::Wasm(why) => LoadError::Invalid(why.to_string()),
            why @ (ManifestError::Several
            | ManifestError::Large
            | ManifestError::Encoding
            | ManifestError::Toml(_)) => LoadError::Manifest(why),
        })?;
        let component = Component::from_binary(&engine.inner, bytes).map_err(|why| {
            let valid = wasmparser::validate(bytes).is_ok();
            (if valid { LoadError::Greedy } else { LoadError::Invalid })(format!("{why:#}"))
        })?;
        let contract = |why: wasmtime::Error| LoadError::Contract(format!("{why:#}"));
        let linked = linker(engine).and_then(|linker| linker.instantiate_pre(&component));
        let pre = PluginPre::new(linked.map_err(contract)?).map_err(contract)?;
        let digest = format!("{:x}", Sha256::digest(bytes));
        Ok(Self { engine: engine.clone(), pre, ask: Arc::new(ask), digest })
    }

    /// What the component asks for.
    pub fn ask(&self) -> &Ask {
        &self.ask
    }

    /// The SHA-256 digest of the component, in hex.
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

fn linker(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(&engine.inner);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    Contract::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    Ok(linker)
}
