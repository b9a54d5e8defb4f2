//! Shares of limited resources: runs, CPU time, rates and idle processes.

pub mod cpu_share;
pub mod process_pool;
pub mod run_quota;
pub mod token_bucket;
