//! One run of a guest: its start, its calls and its card.

pub(super) mod card;
pub mod guest;
pub(super) mod runtime;
