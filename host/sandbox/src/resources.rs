//! What a guest holds by a handle. The store owns it, and it ends with the store.

#![expect(unreachable_pub, reason = "the contract's generated bindings re-export them")]

use a2a_hub_runtime::port::process::ChildPort;

/// A running program, as the guest holds it. The store owns it, so that it never outlives the task.
pub struct Child(pub(crate) Box<dyn ChildPort>);

/// A call to another agent. None can be made, so there is none.
pub enum Delegated {}
