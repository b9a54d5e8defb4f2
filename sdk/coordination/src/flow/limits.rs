//! Limits of flow files.

/// Most steps of a flow.
pub(super) const MAX_STEPS: usize = 100;

/// Highest cap of a `goto`.
pub(super) const MAX_JUMPS: u32 = 100;

/// Most agents of a step with `agents`.
pub(super) const MAX_AGENTS: usize = 1_000;

/// Most items of a step that are done at the same time.
pub(super) const MAX_AT_ONCE: usize = 64;

/// Most items of a `for_each`.
pub(super) const MAX_ITEMS: usize = 1_000;

/// Most choices of a vote or a Delphi.
pub(super) const MAX_CHOICES: usize = 32;
