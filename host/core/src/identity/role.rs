//! Roles of people.

use serde::{Deserialize, Serialize};

/// Role of a person in a tenant, in increasing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PersonRole {
    /// Reads what the tenant has.
    Viewer,
    /// Reads, sends messages, and answers and cancels the own tasks.
    Member,
    /// Does the same with all tasks of the tenant.
    Owner,
}

impl PersonRole {
    /// All roles, in increasing order.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Member, Self::Owner];

    /// Name of the role.
    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Owner => "owner",
        }
    }

    /// Role of this name; `None` for another text.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}
