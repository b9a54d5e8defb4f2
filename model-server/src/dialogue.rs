//! A scripted conversation, in place of markers in the prompt.

use std::time::Duration;

/// A scripted conversation, for a demonstration: one prompt, one command, one answer.
#[derive(Clone, Debug)]
pub struct Dialogue {
    /// Part of the prompt that the dialogue belongs to.
    pub prompt: String,
    /// Command that the agent is asked to run first.
    pub command: String,
    /// Purpose of the command, in a few words.
    pub purpose: String,
    /// Answer after the command has run.
    pub answer: String,
    /// Pause after each word of the answer.
    pub pace: Duration,
}
