//! A task's events for its subscribers: stored ones first, then new ones as they happen.

pub(super) mod feed;
pub(super) mod resume;
