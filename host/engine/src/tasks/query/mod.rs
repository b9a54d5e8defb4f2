//! Queries over tasks: lists, trees and the facts that routing needs.

pub(super) mod list;
pub(super) mod notices;
pub(super) mod questions;
pub(super) mod resume;
pub(super) mod routing_facts;
pub(super) mod search;
pub(super) mod timeline;
pub(super) mod tree;
pub(super) mod visible;
