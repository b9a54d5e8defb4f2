//! Implementation of the hub's interface: the component's imports on WebAssembly, a script in
//! native tests.

#[cfg(not(target_arch = "wasm32"))]
pub(crate) type Hub = crate::testing::ScriptedHost;
#[cfg(target_arch = "wasm32")]
pub(crate) type Hub = crate::imports::Imports;
