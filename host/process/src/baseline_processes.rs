//! Distinction between a program's own processes and those of a task. The program and the helpers
//! that it started before its first work are its own; later processes did a task's work. The
//! distinction is by start time, which no process can change, and independent of session, group and
//! parent.

use std::collections::HashSet;
use std::time::Duration;

use rustix::process::{Pid, getpid};

use super::proc::{Process, SWEEP_PAUSE, now, pause};
use super::system::OperatingSystem;
use super::wire::{Inspection, InspectionResult};

/// Time that killed processes may take to vanish.
const PRUNE_WAIT: Duration = Duration::from_secs(1);

/// Consecutive scans without a task's process. One scan may miss a process that forks meanwhile.
const CLEAN_LOOKS: usize = 2;

/// Result on a system that lists no processes: one may be left, and nothing can be measured.
const BLIND: InspectionResult = InspectionResult { killed: 0, survivors: 1, resident: 0 };

/// Processes below this one that are the program's own.
pub(super) struct BaselineProcesses {
    system: &'static dyn OperatingSystem,
    known: HashSet<(Pid, u64)>,
}

impl BaselineProcesses {
    /// The current processes.
    pub(super) fn of_now(system: &'static dyn OperatingSystem) -> Self {
        let mut baseline = Self { system, known: HashSet::new() };
        baseline.record(&baseline.family().unwrap_or_default());
        baseline
    }

    fn record(&mut self, family: &[Process]) {
        self.known = family.iter().map(Process::identity).collect();
    }

    /// Processes below this one; none if the system does not list them.
    fn family(&self) -> Option<Vec<Process>> {
        self.system.descendants(getpid())
    }

    /// Carries out an inspection and returns its result.
    pub(super) fn inspect(&mut self, inspection: Inspection) -> InspectionResult {
        if inspection == Inspection::Prune {
            return self.prune().unwrap_or(BLIND);
        }
        let Some(family) = self.family() else { return BLIND };
        if inspection == Inspection::Settle {
            self.record(&family);
        }
        InspectionResult { killed: 0, survivors: 0, resident: resident(&family) }
    }

    /// Kills the task's processes until several scans find none.
    fn prune(&self) -> Option<InspectionResult> {
        let deadline = now() + PRUNE_WAIT;
        let (mut killed, mut clean) = (HashSet::new(), 0);
        loop {
            let family = self.family()?;
            let strangers = || family.iter().filter(|process| self.is_stranger(process));
            let survivors = strangers().count();
            clean = if survivors == 0 { clean + 1 } else { 0 };
            if clean == CLEAN_LOOKS || now() > deadline {
                return Some(InspectionResult {
                    killed: killed.len(),
                    survivors,
                    resident: resident(&family),
                });
            }
            killed.extend(strangers().filter(|it| it.kill()).map(Process::identity));
            if survivors > 0 {
                pause(SWEEP_PAUSE);
            }
        }
    }

    /// A zombie does nothing any more, so it does not count.
    fn is_stranger(&self, process: &Process) -> bool {
        !process.has_ended() && !self.known.contains(&process.identity())
    }
}

fn resident(family: &[Process]) -> u64 {
    family.iter().map(Process::resident).sum()
}
