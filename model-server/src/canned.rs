//! Canned answers, in place of markers in the prompt.

/// Canned answer to the prompts of one protocol that contain a text.
///
/// A test that cannot put a marker into a prompt, since a program writes the prompt, or since
/// several programs get the same one, gives each its answer.
#[derive(Clone, Debug)]
pub struct CannedAnswer {
    /// Part of the path of the request, such as `/messages`; empty for each protocol.
    pub path: &'static str,
    /// Part of the prompt.
    pub prompt: String,
    /// Answer. Its markers have effect as if they stood in the prompt, and are not said.
    pub answer: String,
}

impl CannedAnswer {
    /// True if the answer is for this prompt at this path.
    pub(super) fn fits(&self, path: &str, prompt: &str) -> bool {
        path.contains(self.path) && prompt.contains(&self.prompt)
    }
}
