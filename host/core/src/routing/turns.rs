//! Who had its turn last: round robin, as the longest without one being the next. An agent that was away, or was refused, has one turn
//! when it is back and not all that it missed.

use a2a_hub_protocol::id::AgentId;
use std::collections::BTreeMap;

/// How many rounds are kept: a round is forgotten when it is the one that was used longest ago. What a round is called, its client says.
const MOST: usize = 1_024;

/// The turns in all rounds.
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
    /// When that agent had its last turn in a round; 0 if it had none.
    pub fn last(&self, round: &str, agent: &AgentId) -> u64 {
        self.rounds.get(round).and_then(|round| round.last.get(agent)).copied().unwrap_or_default()
    }

    /// That agent has its turn in a round, whatever comes of it.
    pub fn takes(&mut self, round: &str, agent: &AgentId) {
        self.now += 1;
        if !self.rounds.contains_key(round) && self.rounds.len() >= MOST {
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
    fn no_more_rounds_are_kept_than_there_is_room_for() {
        let (mut turns, agent) = (Turns::default(), AgentId::parse("a").unwrap());
        for n in 0..MOST * 2 {
            turns.takes("kept", &agent);
            turns.takes(&n.to_string(), &agent);
        }
        assert_eq!(turns.rounds.len(), MOST);
        assert_ne!(turns.last("kept", &agent), 0, "what is used is not forgotten");
        assert_eq!(turns.last("0", &agent), 0);
    }
}
