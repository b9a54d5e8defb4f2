//! Permissions of the agents of steps.

/// Words that a step may have.
pub(super) const WORDS: [&str; 4] = [READ_ONLY, "ask", "edit", "full"];

/// Permissions of an agent that decides with others.
pub(super) const READ_ONLY: &str = "read-only";

/// True if these permissions allow more than asking.
pub(super) fn is_elevated(permissions: &str) -> bool {
    matches!(permissions, "edit" | "full")
}
