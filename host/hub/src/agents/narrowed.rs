//! What an agent may do less of, for a task that another agent gave it.

use a2a_hub_config::Permissions;
use std::{collections::BTreeMap, sync::Arc};

/// The setting that says what an agent's program may do without asking.
const PERMISSIONS: &str = "permissions";

/// What the operator set for an agent, for a task that another agent gave it: its program asks before it changes anything,
/// unless it may not even do that. The questions go to the client of the task at the root.
pub(super) fn narrowed(settings: &Arc<BTreeMap<String, String>>) -> Arc<BTreeMap<String, String>> {
    let widest = [Permissions::Edit, Permissions::Full].map(Permissions::word);
    match settings.get(PERMISSIONS) {
        Some(set) if widest.contains(&set.as_str()) => {
            let mut settings = BTreeMap::clone(settings);
            settings.insert(PERMISSIONS.to_owned(), Permissions::Ask.word().to_owned());
            Arc::new(settings)
        }
        Some(_) | None => Arc::clone(settings),
    }
}
