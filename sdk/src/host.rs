//! Interface to the hub, implemented by the component's imports and by the scripted host of tests.

use std::time::Duration;

use crate::bindings::a2a::hub::process::Output;
use crate::bindings::a2a::hub::wait::First;
use crate::{
    CallOptions, ChildTask, Command, Event, Failure, Level, Message, Need, Request, Response,
    StepMode, Update,
};

/// Path of the workspace for the file functions of any language.
pub(crate) const WORKSPACE: &str = "/workspace";

/// Calls that an agent can make to the hub, one method for each function of the contract.
pub(crate) trait Host {
    type Process: Process;
    type Call: CallHandle;
    type Question: PosedQuestion;
    type Exchange: ExchangeHandle;
    type Step: StepHandle;

    fn emit(&self, events: Vec<Event>) -> Result<(), Failure>;
    fn ask(
        &self,
        need: Need,
        prompt: &Message,
        timeout: Option<Duration>,
    ) -> Result<Message, Failure>;
    fn pose(
        &self,
        need: Need,
        prompt: &Message,
        timeout: Option<Duration>,
    ) -> Result<Self::Question, Failure>;
    fn request_permission(
        &self,
        facts: &str,
        prompt: &Message,
        timeout: Option<Duration>,
    ) -> Result<PermissionReply<Self::Question>, Failure>;
    fn permission_denial(&self, facts: &str) -> Result<Option<String>, Failure>;
    fn next_message(&self, timeout: Option<Duration>) -> Result<Message, Failure>;
    fn first_of(&self, question: &Self::Question, process: &Self::Process) -> First;
    fn cancelled(&self) -> bool;
    fn extensions(&self) -> Vec<String>;
    fn output_modes(&self) -> Vec<String>;
    fn fingerprint(&self, program: &str) -> Result<String, Failure>;
    fn spawn(&self, command: &Command) -> Result<Self::Process, Failure>;
    fn take_up(&self, key: &str, command: &Command) -> Result<Option<Self::Process>, Failure>;
    fn fetch(&self, request: &Request) -> Result<Response, Failure>;
    fn exchange(&self, request: &Request) -> Result<Self::Exchange, Failure>;
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure>;
    fn set(&self, key: &str, value: &[u8]) -> Result<(), Failure>;
    fn delete(&self, key: &str) -> Result<(), Failure>;
    fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure>;
    fn working(&self) -> Result<String, Failure>;
    fn change_context_memory(&self, change: MemoryChange<'_>) -> Result<(), Failure>;
    fn recall_items(&self, query: &str, limit: u32) -> Result<String, Failure>;
    fn read_setting(&self, name: &str) -> Option<String>;
    fn put_file(&self, name: &str, bytes: &[u8]) -> Result<String, Failure>;
    fn read_file(&self, path: &str) -> Result<Vec<u8>, Failure>;
    fn write_file(&self, path: &str, content: &[u8]) -> Result<(), Failure>;
    fn list_folder(&self, path: &str) -> Result<Vec<String>, Failure>;
    fn tools(&self) -> Result<String, Failure>;
    fn call_tool(
        &self,
        server: &str,
        name: &str,
        arguments: &str,
        timeout: Option<Duration>,
    ) -> Result<String, Failure>;
    fn agents(&self) -> Result<String, Failure>;
    fn find(&self, query: &str) -> Result<String, Failure>;
    fn call(
        &self,
        agent: &str,
        message: &Message,
        options: &CallOptions,
    ) -> Result<Self::Call, Failure>;
    fn children(&self) -> Result<Vec<ChildTask>, Failure>;
    fn any_of(
        &self,
        sources: &[Pollable<'_, Self>],
        timeout: Option<Duration>,
    ) -> Result<Vec<usize>, Failure>;
    fn begin_step(&self, key: &str, mode: StepMode) -> Result<Self::Step, Failure>;
    fn log(&self, level: Level, message: &str);
}

/// Running program; dropping it kills the program. Call the methods by path
/// (`Process::kill(&child)`): the generated resource has methods of the same names.
pub(crate) trait Process {
    fn next(&self, timeout: Option<Duration>) -> Result<Output, Failure>;
    fn write(&self, bytes: &[u8]) -> Result<(), Failure>;
    fn close_stdin(&self);
    fn interrupt(&self);
    fn kill(&self);
    fn retire(self, within: Duration);
    fn settled(&self);
    fn park(self, key: &str) -> Result<(), Failure>;
}

/// Question that is open at the client; dropping it withdraws it.
pub(crate) trait PosedQuestion {
    fn answer(self) -> Result<Message, Failure>;
}

/// Answer to a request for permission, as the contract defines it.
pub(crate) enum PermissionReply<Q> {
    Allowed(String),
    Denied(String),
    Pending(Q),
}

/// Child task of another agent; dropping it cancels the task.
pub(crate) trait CallHandle {
    fn next(&self, timeout: Option<Duration>) -> Result<Update, Failure>;
    fn task_id(&self) -> String;
    fn answer(&self, message: &Message) -> Result<(), Failure>;
    fn send(&self, message: &Message) -> Result<(), Failure>;
    fn cancel(&self);
}

/// HTTP response; dropping it closes the connection.
pub(crate) trait ExchangeHandle {
    fn status(&self) -> u16;
    fn headers(&self) -> Vec<(String, String)>;
    fn next(&self, timeout: Option<Duration>) -> Result<Option<Vec<u8>>, Failure>;
}

/// Step of a replayed run.
pub(crate) trait StepHandle {
    fn stored_result(&self) -> Option<String>;
    fn end(self, result: &str) -> Result<(), Failure>;
}

/// Source that can be waited for together with others.
pub(crate) enum Pollable<'a, H: Host + ?Sized> {
    /// Program.
    Process(&'a H::Process),
    /// Child task of another agent.
    Call(&'a H::Call),
    /// HTTP response.
    Exchange(&'a H::Exchange),
    /// Question to the client.
    Question(&'a H::Question),
}

/// One change of the context memory, as the contract defines it.
#[derive(Clone, Copy)]
pub(crate) enum MemoryChange<'a> {
    Goal(Option<&'a str>),
    Thought { content: &'a str, private: bool },
    Decide { key: &'a str, value: &'a str, reason: Option<&'a str>, private: bool },
    Variable { name: &'a str, value: Option<&'a str>, private: bool },
    Remember(&'a str),
    Forget(&'a str),
}
