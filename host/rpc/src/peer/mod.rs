//! Identity of the program at the other end of a local connection, from the kernel.

pub mod batch;
pub mod identity;
