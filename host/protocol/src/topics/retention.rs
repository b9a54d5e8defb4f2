//! Retention: the limits of topics, and which messages exceed them.

/// Limits of the topics of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicRules {
    /// Most messages that a topic keeps.
    pub keep_messages: u64,
    /// Most bytes that a topic keeps; the latest message is kept in any case.
    pub keep_bytes: u64,
    /// Age from which on a message is dropped, in milliseconds.
    pub keep_ms: u64,
    /// Most topics of a tenant.
    pub max_topics: u64,
}

/// Limit of a topic that its publishers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetentionLimit {
    /// Most messages.
    Messages(u64),
    /// Most bytes.
    Bytes(u64),
}

impl TopicRules {
    /// Most messages that one publication drops, so that lower limits hold up no other write.
    pub const MAX_DROPPED: usize = 256;

    /// True if a topic with this content must drop its oldest message.
    pub fn exceeds(&self, messages: u64, bytes: u64) -> bool {
        messages > self.keep_messages.max(1) || (messages > 1 && bytes > self.keep_bytes)
    }

    /// Limit that a full topic with this many messages exceeds.
    pub fn shared_by(&self, messages: u64) -> RetentionLimit {
        let limit = self.keep_messages.max(1);
        if messages > limit {
            RetentionLimit::Messages(limit)
        } else {
            RetentionLimit::Bytes(self.keep_bytes)
        }
    }

    /// Time before which messages are too old, in milliseconds since the Unix epoch.
    pub fn expired_before(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.keep_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_messages_exceed_limits() {
        let rules = TopicRules { keep_messages: 3, keep_bytes: 10, keep_ms: 1_000, max_topics: 1 };
        for (messages, bytes, exceeds) in [
            (0, 0, false),
            (1, 99, false),
            (2, 10, false),
            (2, 11, true),
            (3, 1, false),
            (4, 1, true),
        ] {
            assert_eq!(rules.exceeds(messages, bytes), exceeds, "{messages} {bytes}");
        }
        assert_eq!(rules.shared_by(4), RetentionLimit::Messages(3));
        assert_eq!(rules.shared_by(3), RetentionLimit::Bytes(10));
        assert!(!TopicRules { keep_messages: 0, ..rules }.exceeds(1, 1), "the latest is kept");
        assert_eq!((rules.expired_before(5_000), rules.expired_before(5)), (4_000, 0));
    }
}
