//! Messages that an agent at work reads.

use super::{Effect, Lifecycle, Phase, Record};

impl Lifecycle {
    /// True if the agent may read a message that it has not received. While a question is open, the
    /// next message is the answer.
    pub fn may_read(&self) -> bool {
        self.works() && self.pending_messages > 0
    }

    /// True if the agent is at work, and no question is open.
    pub fn works(&self) -> bool {
        matches!(self.phase, Phase::Working { .. }) && !self.question_pending
    }

    /// Hands the oldest message to the agent.
    pub(super) fn read(&mut self) -> Vec<Effect> {
        if !self.may_read() {
            return Vec::new();
        }
        self.pending_messages -= 1;
        self.end_quiet_period();
        let delivery = [Effect::Record(Record::Itself), Effect::Deliver];
        self.begun().into_iter().chain(delivery).collect()
    }
}
