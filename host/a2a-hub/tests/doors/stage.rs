//! Items that these tests share with those of the program, and the usual hub.

use crate::hub::InProcessHub;
use a2a_hub_tests::test_guests;
use anyhow::Result;

pub(crate) use a2a_hub_tests::stage::*;

/// Starts a hub whose agent `guest` may call `echo`, and whose programs are not confined.
pub(crate) async fn hub_with_calling_guest() -> Result<InProcessHub> {
    let config = GRANT
        .replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n")
        .replace("    memory = true", "    memory = true\n    delegate = ['echo']");
    InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await
}

/// Starts a hub whose agent `guest` does what the message says.
pub(crate) async fn hub_with_guest() -> Result<InProcessHub> {
    InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await
}
