//! Shares of limited resources: runs, CPU time, rates and idle processes.

pub mod connection_quota;
pub mod cpu_share;
pub mod memory_shares;
pub mod process_pool;
pub mod resources;
pub mod shares;
pub mod task_admission;
pub mod token_bucket;
