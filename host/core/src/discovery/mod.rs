//! Search for agents by words, skills and names.

pub mod aliases;
pub mod did_you_mean;
pub mod search;
