//! Round-robin state: the agent whose last turn is the longest ago is next. An agent that was away
//! or refused gets one turn when it returns, and not all the turns that it missed.

use a2a_hub_protocol::id::AgentId;
use std::collections::BTreeMap;

/// Maximum number of rounds; the least recently used one is dropped. The limit is necessary because
/// clients choose the names of rounds.
const MAX_ROUNDS: usize = 1_024;

/// Turns of all rounds.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    now: u64,
    rounds: BTreeMap<String, Round>,
}

#[derive(Clone, Debug, Default)]
struct Round {
    used: u64,
    last: BTreeMap<AgentId, u64>,
}

impl Turns {
    /// Number of the agent's last turn in a round; 0 if it had none.
    pub fn last(&self, round: &str, agent: &AgentId) -> u64 {
        self.rounds.get(round).and_then(|round| round.last.get(agent)).copied().unwrap_or_default()
    }

    /// Records a turn of the agent in a round, independent of its result.
    pub fn takes(&mut self, round: &str, agent: &AgentId) {
        self.now += 1;
        if !self.rounds.contains_key(round) && self.rounds.len() >= MAX_ROUNDS {
            let oldest = self.rounds.iter().min_by_key(|(_, it)| it.used);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                self.rounds.remove(&oldest);
            }
        }
        let round = self.rounds.entry(round.to_owned()).or_default();
        round.used = self.now;
        round.last.insert(agent.clone(), self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_round_is_dropped() {
        let (mut turns, agent) = (Turns::default(), AgentId::parse("a").unwrap());
        for n in 0..MAX_ROUNDS * 2 {
            turns.takes("kept", &agent);
            turns.takes(&n.to_string(), &agent);
        }
        assert_eq!(turns.rounds.len(), MAX_ROUNDS);
        assert_ne!(turns.last("kept", &agent), 0, "what is used is not forgotten");
        assert_eq!(turns.last("0", &agent), 0);
    }
}
