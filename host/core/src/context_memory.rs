//! Context memory of an agent, and the inheritance of parts of it by another agent with a task.
//!
//! Each tenant, context and agent has a *working memory* (goal, thoughts, decisions, variables) and
//! *items*: facts (`semantic`) and events (`episodic`) by id. An inheritance passes six stages,
//! each a pure function:
//!
//! ```text
//!  memory of the caller, and the items that it recalls
//!        │
//!  acquisition   valid parts are taken; private parts are left out
//!        │
//!  encoding      texts are normalised, and each piece knows its size
//!        │
//!  derivation    a short summary of decisions and open questions
//!        │
//!  retrieval     the scope selects: all, what the task names, or only the summary; items by rank
//!        │       (words by BM25, recency, and association)
//!  neural memory associations of items that were recalled together: counted, so deterministic
//!        │
//!  utilisation   as much as fits into the receiver's budget, the most useful first
//!        ▼
//!  initial memory of the receiver, and a member in its task's metadata
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
