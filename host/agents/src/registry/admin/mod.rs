//! Changes that the operator makes to the registered agents: new plug-ins, grants and another
//! configuration.

pub(super) mod plugin_editor;
pub(super) mod reconfigure;
pub(super) mod register;
