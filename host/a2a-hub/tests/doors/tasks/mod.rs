//! Tests of messages, conversations, questions and operations on tasks.

mod contexts;
mod history;
mod inbox;
mod messages;
mod notices;
mod operations;
mod questions;
