//! Identity of the peer process of a unix socket, from the kernel.

pub(super) mod batch;
pub(super) mod identity;
