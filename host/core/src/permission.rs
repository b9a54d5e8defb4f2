//! Standing permissions: reads a program's request for permission exactly, or not at all, and
//! answers it by the rules that people have made.
//!
//! The hub answers in place of a person only what it has read exactly: [`request`] maps the raw
//! request of a vendor's program to an [`Action`](a2a_hub_protocol::permission::Action), [`shell`]
//! reads the few scripts that every shell reads alike, [`programs`] lists programs whose arguments
//! say too little, and [`rules`] decides. Everything else is answered by people.
//!
//! The request names files and programs by path, and the program acts later. So these cases are not
//! defended here, only by confining the agent's program: a link that the program puts in the place
//! of a file or directory, a program in the agent's `PATH` that another one has replaced, and
//! aliases, functions and startup files of the person's shell.

mod path;
pub mod programs;
pub mod request;
pub mod rules;
pub mod shell;
pub mod suggest;
pub mod tested;
