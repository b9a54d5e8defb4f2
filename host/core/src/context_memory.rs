//! What an agent has in mind in a conversation, and what of it another agent is handed with a task.
//!
//! For each tenant, conversation and agent there is a *working memory* (goal, thoughts, decisions, variables), and there are *items*:
//! facts (`semantic`) and events (`episodic`) by an id. What is handed over passes six stages, each a pure step of its own:
//!
//! ```text
//!  what the caller has in mind, what it recalls
//!        │
//!  acquisition   what is sound is taken; what is private stays
//!        │
//!  encoding      texts are normalised, and each piece knows its size
//!        │
//!  derivation    what was decided and what is open, in short
//!        │
//!  retrieval     what the scope allows: all, what the task names, or only what was derived; items by rank
//!        │       (words by BM25, recency, and association)
//!  neural memory which items belong together, for they were recalled together: counted, and so deterministic
//!        │
//!  utilisation   as much as fits into the receiver's budget, the most useful first
//!        ▼
//!  what the receiver has in mind before it begins, and the fact in its task's log
//! ```

pub mod acquisition;
pub mod derivation;
pub mod encoding;
pub mod inherit;
pub mod model;
pub mod neural;
pub mod retrieval;
pub mod transfer;
pub mod utilisation;
