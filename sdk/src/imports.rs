//! Implementation of the hub's interface by the functions that the component imports.

use std::path::Path;
use std::time::Duration;

use crate::bindings::a2a::hub::process::{self, Output};
use crate::bindings::a2a::hub::wait::First;
use crate::bindings::a2a::hub::{
    context_memory, delegate, files, http, log, memory, settings, steps, tasks, tools, wait,
};
use crate::host::{
    CallHandle, ExchangeHandle, Host, MemoryChange, PermissionReply, Pollable, PosedQuestion,
    Process, StepHandle, WORKSPACE,
};
use crate::{
    CallOptions, ChildTask, Command, Event, Failure, Level, Message, Need, Request, Response,
    StepMode, Update, wasi_files,
};

/// Imports of the component. A function that an agent never calls is never imported.
pub(crate) struct Imports;

fn millis(timeout: Option<Duration>) -> Option<u32> {
    timeout.map(|t| u32::try_from(t.as_millis()).unwrap_or(u32::MAX))
}

fn long_millis(timeout: Option<Duration>) -> Option<u64> {
    timeout.map(|t| u64::try_from(t.as_millis()).unwrap_or(u64::MAX))
}

impl Host for Imports {
    type Process = process::Child;
    type Call = delegate::Call;
    type Question = tasks::Question;
    type Exchange = http::Exchange;
    type Step = steps::Step;

    fn emit(&self, mut events: Vec<Event>) -> Result<(), Failure> {
        match (events.pop(), events.is_empty()) {
            (None, _) => Ok(()),
            (Some(event), true) => tasks::emit(&event),
            (Some(event), false) => {
                events.push(event);
                tasks::emit_all(&events)
            }
        }
    }
    fn ask(
        &self,
        need: Need,
        prompt: &Message,
        timeout: Option<Duration>,
    ) -> Result<Message, Failure> {
        tasks::ask(need, prompt, long_millis(timeout))
    }
    fn pose(
        &self,
        need: Need,
        prompt: &Message,
        timeout: Option<Duration>,
    ) -> Result<tasks::Question, Failure> {
        tasks::Question::pose(need, prompt, long_millis(timeout))
    }
    fn request_permission(
        &self,
        facts: &str,
        prompt: &Message,
        timeout: Option<Duration>,
    ) -> Result<PermissionReply<tasks::Question>, Failure> {
        let reply = tasks::request_permission(facts, prompt, long_millis(timeout))?;
        Ok(match reply {
            tasks::Permission::Allowed(rule) => PermissionReply::Allowed(rule),
            tasks::Permission::Denied(reason) => PermissionReply::Denied(reason),
            tasks::Permission::Pending(question) => PermissionReply::Pending(question),
        })
    }
    fn permission_denial(&self, facts: &str) -> Result<Option<String>, Failure> {
        tasks::permission_denial(facts)
    }
    fn next_message(&self, timeout: Option<Duration>) -> Result<Message, Failure> {
        tasks::next_message(millis(timeout))
    }
    fn first_of(&self, question: &tasks::Question, process: &process::Child) -> First {
        wait::first_of(question, process)
    }
    fn cancelled(&self) -> bool {
        tasks::cancelled()
    }
    fn extensions(&self) -> Vec<String> {
        tasks::extensions()
    }
    fn output_modes(&self) -> Vec<String> {
        tasks::accepted_output_modes()
    }
    fn fingerprint(&self, program: &str) -> Result<String, Failure> {
        process::fingerprint(program)
    }
    fn spawn(&self, command: &Command) -> Result<process::Child, Failure> {
        process::Child::spawn(command)
    }
    fn take_up(&self, key: &str, command: &Command) -> Result<Option<process::Child>, Failure> {
        process::Child::take_up(key, command)
    }
    fn fetch(&self, request: &Request) -> Result<Response, Failure> {
        http::fetch(request)
    }
    fn exchange(&self, request: &Request) -> Result<http::Exchange, Failure> {
        http::Exchange::send(request)
    }
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        memory::get(key)
    }
    fn set(&self, key: &str, value: &[u8]) -> Result<(), Failure> {
        memory::set(key, value)
    }
    fn delete(&self, key: &str) -> Result<(), Failure> {
        memory::delete(key)
    }
    fn keys(&self, prefix: &str) -> Result<Vec<String>, Failure> {
        memory::keys(prefix)
    }
    fn working(&self) -> Result<String, Failure> {
        context_memory::working()
    }
    fn change_context_memory(&self, change: MemoryChange<'_>) -> Result<(), Failure> {
        match change {
            MemoryChange::Goal(goal) => context_memory::set_goal(goal),
            MemoryChange::Thought { content, private } => {
                context_memory::add_thought(content, private)
            }
            MemoryChange::Decide { key, value, reason, private } => {
                context_memory::decide(key, value, reason, private)
            }
            MemoryChange::Variable { name, value, private } => {
                context_memory::set_variable(name, value, private)
            }
            MemoryChange::Remember(item) => context_memory::remember(item),
            MemoryChange::Forget(id) => context_memory::forget(id),
        }
    }
    fn recall_items(&self, query: &str, limit: u32) -> Result<String, Failure> {
        context_memory::recall(query, limit)
    }
    fn read_setting(&self, name: &str) -> Option<String> {
        settings::get(name)
    }
    fn put_file(&self, name: &str, bytes: &[u8]) -> Result<String, Failure> {
        files::put(name, bytes)
    }
    fn read_file(&self, path: &str) -> Result<Vec<u8>, Failure> {
        wasi_files::read(Path::new(WORKSPACE), path)
    }
    fn write_file(&self, path: &str, content: &[u8]) -> Result<(), Failure> {
        wasi_files::write(Path::new(WORKSPACE), path, content)
    }
    fn list_folder(&self, path: &str) -> Result<Vec<String>, Failure> {
        wasi_files::list(Path::new(WORKSPACE), path)
    }
    fn tools(&self) -> Result<String, Failure> {
        tools::list()
    }
    fn call_tool(
        &self,
        server: &str,
        name: &str,
        arguments: &str,
        timeout: Option<Duration>,
    ) -> Result<String, Failure> {
        tools::call(server, name, arguments, millis(timeout))
    }
    fn agents(&self) -> Result<String, Failure> {
        delegate::agents()
    }
    fn find(&self, query: &str) -> Result<String, Failure> {
        delegate::find(query)
    }
    fn call(
        &self,
        agent: &str,
        message: &Message,
        options: &CallOptions,
    ) -> Result<delegate::Call, Failure> {
        if *options == CallOptions::default() {
            return delegate::Call::start(agent, message);
        }
        let made = delegate::Options::new();
        options.key.iter().for_each(|key| made.set_key(key));
        long_millis(options.timeout).into_iter().for_each(|ms| made.set_timeout_ms(ms));
        options.max_depth.into_iter().for_each(|depth| made.set_max_depth(depth));
        options.max_tasks.into_iter().for_each(|tasks| made.set_max_tasks(tasks));
        options.max_tokens.into_iter().for_each(|tokens| made.set_max_tokens(tokens));
        options.max_cost_usd.into_iter().for_each(|cost| made.set_max_cost_usd(cost));
        options.working_directory.iter().for_each(|dir| made.set_working_directory(dir));
        options.context_id.iter().for_each(|context| made.set_context_id(context));
        made.set_answers_questions(options.answers_questions);
        if options.inherit_working_memory {
            made.set_inherit_working_memory(true);
        }
        if let Some(query) = &options.inherit_memory {
            made.set_inherit_memory(true, query.as_deref());
        }
        options.memory_scope.into_iter().for_each(|scope| made.set_memory_scope(scope));
        if !options.memory_names.is_empty() {
            made.set_memory_names(&options.memory_names);
        }
        if options.memory_bytes.is_some() || options.memory_tokens.is_some() {
            made.set_memory_budget(options.memory_bytes, options.memory_tokens);
        }
        delegate::Call::start_with(agent, message, &made)
    }
    fn children(&self) -> Result<Vec<ChildTask>, Failure> {
        delegate::children()
    }
    fn any_of(
        &self,
        sources: &[Pollable<'_, Self>],
        timeout: Option<Duration>,
    ) -> Result<Vec<usize>, Failure> {
        let origins: Vec<_> = sources
            .iter()
            .map(|source| match source {
                Pollable::Process(process) => wait::Origin::Child(process),
                Pollable::Call(call) => wait::Origin::Call(call),
                Pollable::Exchange(exchange) => wait::Origin::Exchange(exchange),
                Pollable::Question(question) => wait::Origin::Question(question),
            })
            .collect();
        let ready = wait::any_of(&origins, millis(timeout))?;
        Ok(ready.into_iter().map(|i| i as usize).collect())
    }
    fn begin_step(&self, key: &str, mode: StepMode) -> Result<steps::Step, Failure> {
        steps::Step::begin(key, mode)
    }
    fn log(&self, level: Level, message: &str) {
        log::log(level, message);
    }
}

impl Process for process::Child {
    fn next(&self, timeout: Option<Duration>) -> Result<Output, Failure> {
        process::Child::next(self, millis(timeout))
    }
    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.write_stdin(bytes)
    }
    fn close_stdin(&self) {
        process::Child::close_stdin(self);
    }
    fn interrupt(&self) {
        process::Child::interrupt(self);
    }
    fn kill(&self) {
        process::Child::kill(self);
    }
    fn retire(self, within: Duration) {
        process::Child::retire(self, millis(Some(within)).unwrap_or_default());
    }
    fn settled(&self) {
        process::Child::settled(self);
    }
    fn park(self, key: &str) -> Result<(), Failure> {
        process::Child::park(self, key)
    }
}

impl PosedQuestion for tasks::Question {
    fn answer(self) -> Result<Message, Failure> {
        tasks::Question::answer(self)
    }
}

impl ExchangeHandle for http::Exchange {
    fn status(&self) -> u16 {
        http::Exchange::status(self)
    }
    fn headers(&self) -> Vec<(String, String)> {
        http::Exchange::headers(self)
    }
    fn next(&self, timeout: Option<Duration>) -> Result<Option<Vec<u8>>, Failure> {
        http::Exchange::next(self, millis(timeout))
    }
}

impl CallHandle for delegate::Call {
    fn next(&self, timeout: Option<Duration>) -> Result<Update, Failure> {
        delegate::Call::next(self, millis(timeout))
    }
    fn task_id(&self) -> String {
        delegate::Call::task_id(self)
    }
    fn answer(&self, message: &Message) -> Result<(), Failure> {
        delegate::Call::answer(self, message)
    }
    fn send(&self, message: &Message) -> Result<(), Failure> {
        delegate::Call::send(self, message)
    }
    fn cancel(&self) {
        delegate::Call::cancel(self);
    }
}

impl StepHandle for steps::Step {
    fn stored_result(&self) -> Option<String> {
        steps::Step::kept(self)
    }
    fn end(self, kept: &str) -> Result<(), Failure> {
        steps::Step::end(self, kept)
    }
}
