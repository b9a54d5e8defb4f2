//! Configuration of the hub: a file, the environment and the command line, with defaults; and the
//! private files of its data directory: who may write them, and the tokens in them.

mod acp;
mod agent;
mod automation;
pub mod catalogue;
mod changes;
mod client_tls;
mod confined;
mod data_dir;
mod edit;
mod environment;
mod error;
mod finding;
mod layers;
#[cfg(all(unix, not(feature = "without-unix")))]
mod links;
mod login;
mod mcp;
mod names;
mod notify;
mod overview;
mod plugins;
#[cfg(all(unix, not(feature = "without-unix")))]
mod program_file;
mod push;
mod ranges;
mod registry;
mod remote;
mod routing;
mod settings;
#[cfg(test)]
mod surface;
mod telemetry;
mod text_file;
mod workspaces;

pub use a2a_hub_core::grant::permissions::Permissions;
pub use acp::AcpProgram;
pub use agent::{AgentConfig, IdleLimits, LimitsConfig, SettingText};
pub use automation::{
    schedule::Schedule,
    trigger::{EndState, Trigger, TriggerOn, TriggerRules, TriggerSource, WebhookSource},
};
pub use changes::{Followed, Setting};
pub use client_tls::ClientTlsFiles;
pub use confined::{Confined, is_the_systems};
#[cfg(all(unix, not(feature = "without-unix")))]
pub use data_dir::{
    devices_file::{DevicesFile, DevicesFileError},
    grants_file::{GRANTS_FILE, GrantsError, GrantsFile, GrantsStamp},
    ownership,
    secrets::{SecretError, SecretStore},
    token,
    trusted_flows::{MAX_FLOW_BYTES, TrustStamp, TrustedFlows},
    trusted_worktrees::TrustedWorktrees,
};
pub use data_dir::{
    joined_hubs::{JoinedHub, JoinedHubs, JoinedHubsError},
    private_file,
};
pub use edit::{EditError, acp_command, add_acp_agent, remove_acp_agent};
#[cfg(all(unix, not(feature = "without-unix")))]
pub use environment::path_of_process;
pub use environment::{
    cache_dir, editor, environment, find_program, find_program_on, full_environment, is_colourless,
    is_executable, is_posix_only, machine_name, pager, runtime_dir, shows_windows,
};
pub use error::{ConfigError, Origin};
pub use finding::{Embeddings, Finding};
pub use layers::{Flag, Settings};
#[cfg(all(unix, not(feature = "without-unix")))]
pub use links::real_path_outside;
pub use login::LoginSettings;
pub use mcp::McpServer;
pub use notify::{Notifier, NotifierPlan, NotifyTarget};
pub use overview::{UnknownAgent, unset};
pub use plugins::Plugins;
#[cfg(all(unix, not(feature = "without-unix")))]
pub use program_file::{ProgramFileError, check_pin, guard, resolve};
pub use push::Push;
pub use registry::Registry;
pub use remote::Remote;
pub use routing::{OnQuota, RouteConfig, Routing};
pub use settings::{
    Breaker, ClientAuth, Clients, Config, Contexts, DEFAULT_SOCKET, ExtensionSettings, Health,
    Http, Level, Logging, RepositoryFile, RepositorySettings, Retention, Socket, Stop, Tls,
    TlsClient, TlsVersion, TopicSettings, WorktreeSettings,
};
pub use telemetry::{Otlp, Telemetry};
pub use text_file::{read_text, toml_problem, utf8_problem};
pub use workspaces::{WorkspaceError, add_workspace, remove_workspace};
