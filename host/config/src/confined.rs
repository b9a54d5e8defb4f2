//! What the operator adds to what a confined program of an agent may do.

use crate::error::ConfigError;
use a2a_hub_core::tier::NetworkGrant;
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `[agents.<id>.confined]`: what its programs may do where they are confined, besides reading the system and their own
/// installation and working in the task's directory.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Confined {
    /// What of the network they reach.
    pub network: Option<NetworkGrant>,
    /// Files and directories that they may read.
    pub read: Vec<PathBuf>,
    /// Files and directories that they may read and write.
    pub write: Vec<PathBuf>,
    /// Whether they may confine programs of their own, in namespaces and mounts that they make: more of the kernel is open to
    /// them.
    pub nested: Option<bool>,
    /// How many processes and threads one of them may be, with all that it starts.
    pub max_processes: Option<u32>,
    /// How much memory one of them may have, with all it starts, in MiB: the kernel refuses one process more, and ends nobody; all
    /// together are looked after by their minder, and ended.
    pub max_memory_mb: Option<u64>,
    /// How large a file may be that they write, in MiB.
    pub max_file_mb: Option<u64>,
}

/// Places that are no program's to be given whole.
const NEVER: &[&str] = &["/", "/dev", "/etc", "/proc", "/run", "/sys"];

impl Confined {
    /// Whether all that it names can be given to a confined program; the hub itself listens on `hub_port`.
    pub(super) fn check(&self, agent: &AgentId, hub_port: u16) -> Result<(), ConfigError> {
        let refused = |name: &str, why: String| {
            let (agent, name) = (agent.clone(), name.to_owned());
            Err(ConfigError::Confined { agent, name, why })
        };
        for (name, paths) in [("read", &self.read), ("write", &self.write)] {
            if let Some(path) = paths.iter().find(|path| !path.is_absolute()) {
                return refused(name, format!("give `{}` as an absolute path", path.display()));
            }
            if let Some(path) = paths.iter().find(|path| is_the_systems(path)) {
                let path = path.display();
                return refused(
                    name,
                    format!("`{path}` is the system's; name what of it is needed"),
                );
            }
        }
        match &self.network {
            Some(NetworkGrant::Ports(ports)) if ports.contains(&hub_port) => refused(
                "network",
                format!("{hub_port} is the hub's own port, where no agent's program is let in"),
            ),
            Some(NetworkGrant::Ports(ports)) if ports.contains(&0) => {
                refused("network", "0 is no port".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// Whether no confined program is given that whole: it would see what others are protected by.
pub fn is_the_systems(path: &Path) -> bool {
    NEVER.iter().any(|system| path == Path::new(system))
}

#[cfg(test)]
mod tests {
    use crate::Config;

    fn said(confined: &str) -> String {
        let text = format!("[http]\nport = 8081\n[agents.any.confined]\n{confined}");
        let config: Config = match toml::from_str(&text) {
            Ok(config) => config,
            Err(why) => return toml::de::Error::message(&why).to_owned(),
        };
        config.check().map_or_else(|why| why.to_string(), |()| "ok".to_owned())
    }

    #[test]
    fn what_no_confined_program_is_given_is_refused_with_the_way_out() {
        let all = "network = [443, 8080]\nread = ['/srv']\nwrite = ['/run/media/disk']\nnested = true\nmax_processes = 9\nmax_file_mb = 1\nmax_memory_mb = 64";
        assert_eq!(said(all), "ok");
        assert_eq!(said("network = true"), "ok");
        insta::assert_snapshot!(said("network = 'all'"), @"expected `true`, `false` or a list of TCP ports");
        insta::assert_snapshot!(said("network = [443, 8081]"), @"set `agents.any.confined.network`: 8081 is the hub's own port, where no agent's program is let in");
        insta::assert_snapshot!(said("network = [0]"), @"set `agents.any.confined.network`: 0 is no port");
        insta::assert_snapshot!(said("read = ['tools']"), @"set `agents.any.confined.read`: give `tools` as an absolute path");
        insta::assert_snapshot!(said("write = ['/']"), @"set `agents.any.confined.write`: `/` is the system's; name what of it is needed");
    }
}
