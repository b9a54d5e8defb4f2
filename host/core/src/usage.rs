//! Usage of tasks by day, agent, model and person: what their logs report.

mod groups;
mod meter;

pub use groups::{UsageGroups, UsageOrigin};
pub use meter::{UsageAmounts, UsageEntry, UsageMeter};
