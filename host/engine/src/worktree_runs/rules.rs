//! Rules for worktrees, from the settings.

use a2a_hub_config::WorktreeSettings;
use a2a_hub_worktrees::{Preparation, WorktreeRetention, WorktreeRules};

/// Rules for worktrees, from the operator's settings.
pub fn rules_of(settings: &WorktreeSettings) -> WorktreeRules {
    let by_repository = settings.repository.iter();
    let by_repository =
        by_repository.map(|(path, own)| (path.clone(), preparation(&settings.for_repository(own))));
    WorktreeRules {
        general: preparation(settings),
        by_repository: by_repository.collect(),
        retention: WorktreeRetention {
            keep: settings.keeps_for(),
            keep_count: usize::try_from(settings.keep_most).ok(),
            keep_bytes: settings.keeps_bytes(),
        },
    }
}

fn preparation(settings: &WorktreeSettings) -> Preparation {
    Preparation {
        copy: settings.copy.clone(),
        setup: settings.setup.clone(),
        has_network: settings.setup_network,
        time_limit: settings.time_limit(),
        read: settings.setup_read.clone(),
        env: settings.setup_env.clone(),
        ports: settings.ports,
    }
}
