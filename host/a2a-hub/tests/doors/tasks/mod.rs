//! Tests of messages, conversations, questions and operations on tasks.

mod contexts;
mod inbox;
mod messages;
mod operations;
mod questions;
