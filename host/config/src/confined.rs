//! Further permissions of an agent's confined programs.

use crate::error::ConfigError;
use a2a_hub_core::grant::confinement::NetworkGrant;
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// `[agents.<id>.confined]`: permissions of confined programs beside reading the system and their
/// own installation, and working in the task's directory.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Confined {
    /// Network access.
    pub network: Option<NetworkGrant>,
    /// Files and directories that they may read.
    pub read: Vec<PathBuf>,
    /// Files and directories that they may read and write.
    pub write: Vec<PathBuf>,
    /// True if they may create user namespaces and mounts, to confine their own programs. This
    /// exposes more of the kernel to them.
    pub nested: Option<bool>,
    /// Limit of processes and threads of one program with its descendants.
    pub max_processes: Option<u32>,
    /// Memory limit of one program with its descendants, in MiB. The kernel refuses a single
    /// process more memory without killing it; the minder watches the sum and kills the tree.
    pub max_memory_mb: Option<u64>,
    /// Maximum size of a file that they write, in MiB.
    pub max_file_mb: Option<u64>,
}

/// Paths that no program may be given as a whole.
const NEVER: &[&str] = &["/", "/dev", "/etc", "/proc", "/run", "/sys"];

impl Confined {
    /// Checks that a confined program can be given all paths and ports; the hub itself listens on
    /// `hub_port`.
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

/// True if no confined program may be given this path as a whole, since it protects others.
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
    fn forbidden_confinement_settings_are_refused() {
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
