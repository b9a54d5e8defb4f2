//! What the hub decides: state machines that take events and the time, and do no I/O.

pub mod grant;
pub mod quota;
pub mod recovery;
pub mod task;
