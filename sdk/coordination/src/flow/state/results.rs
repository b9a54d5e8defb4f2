//! Results of a run for the record of its agents.

use super::{
    super::{kinds::Work, row::StepPhase},
    FlowState,
};
use crate::record::RunResults;

impl FlowState {
    /// Results of the steps that are over: candidates that all judges judged, and ballots of votes
    /// with the rule `record`. Nothing counts in a flow without such a vote.
    pub fn results(&self) -> RunResults {
        let mut results = RunResults::default();
        if !self.definition.uses_record() {
            return results;
        }
        for (step, row) in self.definition.steps.iter().zip(&self.rows) {
            if let Work::Vote(vote) = &step.work
                && row.phase == StepPhase::Done
                && vote.is_by_record()
            {
                let id = step.id.clone();
                results.votes.extend(vote.results(row).map(|vote| (id, vote)));
            }
            if let Work::Pick(pick) = &step.work
                && matches!(row.phase, StepPhase::Done | StepPhase::Failed)
                && !pick.judges.is_empty()
            {
                let ranking = self.rank(pick);
                for (index, item) in self.rows[pick.from].items.iter().enumerate() {
                    let is_judged = pick.judges.iter().all(|judge| self.exited(*judge, index));
                    let is_out = ranking.out.iter().any(|(other, _)| *other == index);
                    let agent = item.done.as_ref().filter(|_| is_judged);
                    results.judged.extend(agent.map(|done| (done.agent.clone(), !is_out)));
                }
            }
        }
        results
    }

    /// True if the program of a judge ended for this candidate.
    fn exited(&self, judge: usize, candidate: usize) -> bool {
        let item = self.rows[judge].items.get(candidate);
        item.and_then(|item| item.done.as_ref()).is_some_and(|done| done.exit.is_some())
    }
}
