//! What the stories share with those of the program, and a hub of their own.

use crate::hub::InProcessHub;
use a2a_hub_tests::test_guests;
use anyhow::Result;

pub(crate) use a2a_hub_tests::stage::*;

/// A hub whose agent `guest` behaves as told.
pub(crate) async fn hub_with_guest() -> Result<InProcessHub> {
    InProcessHub::builder().config(GRANT).plugin("guest", test_guests()?).start().await
}
