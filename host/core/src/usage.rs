//! Usage of tasks by day, agent, model and person: what their logs report.

mod groups;
mod meter;

pub use groups::{UsageGroups, UsageOrigin};
pub use meter::{DATE, OTHER_MODELS, UsageAmounts, UsageEntry, UsageMeter};
