//! What a run of an agent is, whatever does the work: what it is given and may use, what it says, how it ends.
//!
//! [`Runtime`] is the seam: components (`a2a-hub-sandbox`), agents elsewhere and Rust values implement it, and the hub knows
//! nothing else of them. The other direction are the [`port`]s, which the hub implements and a runtime calls. There is no
//! WebAssembly here, and no HTTP.

mod ended;
pub mod failure;
pub mod limits;
pub mod port;
pub mod run;
mod runtime;

pub use ended::Ended;
pub use failure::{Crash, Failure};
pub use limits::{Limits, Room};
pub use run::{Call, Report, Work};
pub use runtime::{HubWork, Run, Runtime};
