//! A WebAssembly component on its way to an agent: the engine, the manifest and the plug-in.

pub mod engine;
pub mod manifest;
pub mod plugin;
