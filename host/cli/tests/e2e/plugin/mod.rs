//! Tests of plug-ins from their project to their grants.

pub(crate) mod authoring;
pub(crate) mod command;
mod compatibility;
pub(crate) mod examples;
mod grants;
mod loading;
mod plugin_test;
