//! Value of an agent's memory, in memory.

/// Value by key, with its holder.
#[derive(Clone, Debug)]
pub(super) struct ValueEntry {
    /// Value.
    pub(super) value: Vec<u8>,
    /// Holder, as stored.
    pub(super) holder: String,
}

impl ValueEntry {
    /// Size with its key, in bytes.
    pub(super) fn bytes(&self, key: &str) -> u64 {
        (key.len() + self.value.len()) as u64
    }
}
