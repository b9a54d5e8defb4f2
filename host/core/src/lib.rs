//! What the hub decides: state machines that take events and the time, and do no I/O.

pub mod access;
pub mod address;
pub mod breaker;
pub mod delivery;
pub mod facts;
pub mod file_name;
pub mod forms;
pub mod grant;
pub mod health;
pub mod lifecycle;
pub mod question;
pub mod quota;
pub mod reason;
pub mod receiver;
pub mod recovery;
pub mod redact;
pub mod span;
pub mod task;
pub mod terminal;
pub mod trust;
