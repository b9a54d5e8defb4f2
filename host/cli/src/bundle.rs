//! `__carry`: makes the program that is published, which carries its agents' compiled code.

use crate::ui::exit::Exit;
use a2a_hub::builtin;
use a2a_hub_sandbox::carry;
use anyhow::Context as _;
use std::path::Path;

/// Writes a copy of this program that contains the built-in agents' compiled code, so that its
/// first start compiles nothing.
pub(super) fn carry_to(to: &Path) -> anyhow::Result<Exit> {
    carry(&builtin::COMPONENTS.bytes(), to).context("carry the agents' code")?;
    Ok(Exit::Done)
}
