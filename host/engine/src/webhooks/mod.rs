//! Delivery of push notifications over HTTP: what is sent, whether its receiver is allowed, the
//! signature, and the limits of each receiver. This module knows no tasks and no store: its caller
//! decides which event is sent, and when it is sent again.

mod challenge;
pub mod payload;
mod receiver_limits;
mod sender;

pub use challenge::ChallengeError;
pub use receiver_limits::{CircuitOpen, Receiver, Receivers};
pub(crate) use sender::secret;
pub use sender::{ReceiverError, SendError, Sender, origin};
