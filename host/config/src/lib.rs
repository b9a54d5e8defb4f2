//! What the operator set: a file, the environment and the command line, with defaults for what they leave out.

mod agent;
mod changes;
mod environment;
mod error;
mod layers;
mod names;
mod push;
mod remote;
mod settings;

pub use agent::{AgentConfig, LimitsConfig, Permissions, SettingText};
pub use changes::{Followed, Setting};
pub use environment::{environment, find_program, is_colourless, is_executable};
pub use error::{ConfigError, Origin};
pub use layers::{Flag, Settings};
pub use names::nearest;
pub use push::Push;
pub use remote::Remote;
pub use settings::{
    Breaker, Clients, Config, Contexts, DEFAULT_SOCKET, Health, Http, Level, Logging, Retention,
    Socket, Stop,
};
