//! Confinement of one agent's programs: the files they see and write, and the network they reach,
//! derived from the grant and the workspace.

use super::{environment::last, hub_access::HubAccess, logins::Logins};
use a2a_hub_config::{self as config, AgentConfig, is_the_systems};
use a2a_hub_core::grant::confinement::{AgentOrigin, Tier, ports, tier};
use a2a_hub_process::{
    SpawnError, Supervisor,
    confine::{Ceilings, Confinement, Network, files_of},
};
use a2a_hub_protocol::{id::AgentId, operation::ProgramTier};
use a2a_hub_runtime::Failure;
use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// Paths below a home directory that every confined program is denied, even if its workspace is
/// that home: keys, passwords, and logins of other programs. An agent's own paths are named by its
/// manifest or its operator.
const SECRETS: &[&str] = &[
    ".aws",
    ".azure",
    ".cargo/credentials.toml",
    ".claude",
    ".claude.json",
    ".codex",
    ".config/a2a-hub",
    ".config/chromium",
    ".config/gcloud",
    ".config/gh",
    ".config/google-chrome",
    ".config/op",
    ".docker",
    ".gemini",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".vibe",
];

/// Default memory limit of a plug-in's program with all its children, in bytes: enough for a
/// compiler or a runtime with a garbage collector. A machine with little memory uses half of its
/// memory instead.
const STRANGERS_MEMORY: u64 = 8 << 30;

/// Confinement settings of one agent's programs.
pub(crate) struct Confining {
    agent: AgentId,
    config: config::Confined,
    network: Network,
    /// Set for built-in agents: the manifest's `keeps` paths are honoured, and memory is unlimited
    /// by default.
    is_built_in: bool,
    /// The hub's data directory, with its database, its keys and other agents' homes.
    data_dir: PathBuf,
    /// Logins, whose homes only programs with that login see.
    logins: Logins,
}

/// Paths that a program to be confined needs.
pub(crate) struct ProgramPaths<'p> {
    /// The program's path from the grant or the `PATH`.
    pub(crate) program: &'p Path,
    /// Paths of the program's own files, from the agent's manifest.
    pub(crate) keeps: Option<&'p BTreeSet<String>>,
    /// Home of the login that replaces them, without links; none for the operator's own login.
    pub(crate) login: Option<&'p Path>,
    /// The granted directory that contains the working directory, with links resolved.
    pub(crate) workspace: &'p Path,
    /// Further directories in which the program works, with links resolved.
    pub(crate) additional: &'p [PathBuf],
    /// Directories with the objects of the repository of which the workspace is a worktree.
    pub(crate) objects: &'p [PathBuf],
    /// Directory with the worktrees of all tasks, with links resolved.
    pub(crate) worktrees: &'p Path,
    /// Home directory of the agent's programs.
    pub(crate) home: &'p Path,
    /// The instance's directory for temporary files; files that the agent wrote for the program are
    /// its siblings.
    pub(crate) temporary: &'p Path,
    /// Connection to the hub, for programs that may use it.
    pub(crate) hub_access: Option<&'p HubAccess>,
}

/// A program with its confinement.
pub(crate) struct ConfinedProgram {
    /// Path of the program with all links of its directory resolved, because those links do not
    /// exist inside.
    pub(crate) program: PathBuf,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) confinement: Confinement,
}

impl Confining {
    /// Confinement of the programs of `agent`; none if they run unconfined.
    pub(crate) fn for_agent(
        agent: &AgentId,
        origin: AgentOrigin,
        config: &AgentConfig,
        data_dir: &Path,
        logins: Logins,
    ) -> Option<Self> {
        if tier(origin, config.confine) == Tier::Plain {
            return None;
        }
        let ports = ports(origin, config.confined.network.as_ref());
        let network = if ports.is_empty() { Network::Nothing } else { Network::Ports(ports) };
        let data_dir = data_dir.to_owned();
        let (agent, config) = (agent.clone(), config.confined.clone());
        let is_built_in = origin == AgentOrigin::BuiltIn;
        Some(Self { agent, config, network, is_built_in, data_dir, logins })
    }

    /// Refuses if this machine cannot provide the confinement: no program is started with a weaker
    /// one.
    pub(crate) async fn is_possible(&self, supervisor: &Supervisor) -> Result<(), Failure> {
        self.shortfall(supervisor).await.map_or(Ok(()), |why| Err(Failure::Unavailable(why)))
    }

    /// Reason why this machine cannot confine the programs, with the ways out; none if it can.
    pub(crate) async fn shortfall(&self, supervisor: &Supervisor) -> Option<String> {
        let agent = &self.agent;
        let why = match supervisor.support().await {
            Ok(support) => support.allows(&self.network).err()?.to_string(),
            Err(SpawnError::ShuttingDown { .. }) => return None, // nothing is started then
            Err(why) => why.to_string(),
        };
        Some(format!(
            "the programs of `{agent}` are to be confined, and this machine cannot do it: {why}; or let them do all that your user \
             may: `agents.{agent}.confine = false`"
        ))
    }

    /// Refuses an additional directory that no confined program is given: one of the system's, or
    /// one that is hidden in the `workspace` that contains it. Blocks on the disk.
    pub(crate) fn require_visible(
        &self,
        directory: &Path,
        workspace: &Path,
    ) -> Result<(), Failure> {
        let refused =
            |why: &str| Err(Failure::Denied(format!("work in `{}`: {why}", directory.display())));
        if is_the_systems(directory) {
            return refused(
                "no confined program is given all of it; name a directory that is further down",
            );
        }
        let hides =
            |hidden: &PathBuf| directory.starts_with(hidden) && !workspace.starts_with(hidden);
        if self.hidden().iter().any(hides) {
            return refused(
                "it is hidden from confined programs, which see no keys and no files of the hub; leave it out",
            );
        }
        Ok(())
    }

    /// Builds the confinement of one program. Blocks on the disk.
    pub(crate) fn confine(
        &self,
        program_paths: &ProgramPaths<'_>,
        mut env: Vec<(String, String)>,
    ) -> Result<ConfinedProgram, Failure> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let workspace = program_paths.workspace.to_owned();
        if is_the_systems(&workspace) {
            return Err(Failure::Denied(format!(
                "work in `{}`: no confined program is given all of it; start the hub with a `--workspace` that is further down",
                workspace.display()
            )));
        }
        let home = real(program_paths.home);
        // A program of this instance may have replaced its directory for temporary files by a link.
        let instance = real(program_paths.temporary.parent().unwrap_or(program_paths.temporary));
        let temporary = instance.join(program_paths.temporary.file_name().unwrap_or_default());
        let uses_agent_home = last(&env, "HOME") == program_paths.home.to_str();
        env.push(("TMPDIR".to_owned(), temporary.display().to_string()));
        if uses_agent_home {
            env.push(("HOME".to_owned(), home.display().to_string()));
        }
        let search = last(&env, "PATH").map(env::split_paths);
        let search: Vec<_> = search.into_iter().flatten().collect();
        // A directory in the workspace can be written already.
        let additional =
            program_paths.additional.iter().filter(|it| !it.starts_with(&workspace)).cloned();
        let additional: Vec<_> = additional.collect();
        let written =
            [vec![workspace.clone(), instance.clone(), home.clone()], additional.clone()].concat();
        let resolve = |path: &Path| config::real_path_outside(path, &written);
        let files = files_of(program_paths.program, &search, &written, &resolve);
        let program = program_outside(program_paths.program, &resolve)?;
        let named = |paths: &[PathBuf]| self.resolve_links(paths, &written);
        let mut scratch = Vec::new();
        if let Some(passed) = last(&env, "HOME").filter(|_| !uses_agent_home) {
            // The program sees the real `HOME` as an empty directory that contains only what is
            // named.
            scratch.push(real(Path::new(passed)));
        }
        let login = program_paths.login;
        let keeps = program_paths.keeps.filter(|_| self.is_built_in && login.is_none());
        let keeps = keeps.into_iter().flatten();
        let keeps = keeps.filter_map(|word| keeps_path(word, &env)).collect::<Vec<_>>();
        let keeps = self.resolve_links(&keeps, &written);
        let keeps = keeps.into_iter().filter(|path| path.exists() && !is_the_systems(path));
        let keeps = keeps.chain(login.map(Path::to_path_buf)).collect();
        let hub_paths = program_paths.hub_access.map(HubAccess::paths).into_iter().flatten();
        let confinement = Confinement {
            read: files
                .into_iter()
                .chain(named(&self.config.read))
                .chain(self.visible_objects(program_paths.objects, program_paths.worktrees))
                .chain(hub_paths)
                .collect(),
            write: [vec![workspace, instance, home], additional, keeps, named(&self.config.write)]
                .concat(),
            hidden: self.hidden(),
            scratch,
            temporary,
            network: self.network.clone(),
            nests: self.config.nested.unwrap_or(false),
            ceilings: self.ceilings(),
        };
        Ok(ConfinedProgram { program, env, confinement })
    }

    /// Resolves the links of these paths. A path through a link in a directory of `written` is left
    /// out: the agent's own programs could have created the link, to see its target. A missing path
    /// stays unresolved.
    fn resolve_links(&self, paths: &[PathBuf], written: &[PathBuf]) -> Vec<PathBuf> {
        let resolve = |path: &PathBuf| match config::real_path_outside(path, written) {
            None if path.exists() => {
                tracing::warn!(
                    agent = %self.agent, path = %path.display(),
                    "path not shown to confined programs: it contains a link that they could have created; configure the link's target instead"
                );
                None
            }
            real => Some(real.unwrap_or_else(|| path.clone())),
        };
        paths.iter().filter_map(resolve).collect()
    }

    /// Paths that the program does not see, even inside its workspace.
    fn hidden(&self) -> Vec<PathBuf> {
        hidden_paths(&self.data_dir, &self.logins)
    }

    /// Those stores of objects that a program may read: directories at their own paths, and in no
    /// hidden path but the hub's worktrees. An agent may have put something else in the place of
    /// one since it was checked.
    fn visible_objects(&self, stores: &[PathBuf], worktrees: &Path) -> Vec<PathBuf> {
        let hidden = self.hidden();
        let is_visible = |store: &&PathBuf| {
            let is_real = fs::canonicalize(store).is_ok_and(|real| real == **store);
            let is_hidden = hidden.iter().any(|hidden| store.starts_with(hidden));
            is_real && (!is_hidden || store.starts_with(worktrees))
        };
        stores.iter().filter(is_visible).cloned().collect()
    }

    fn ceilings(&self) -> Ceilings {
        let default = Ceilings::default();
        Ceilings {
            processes: self.config.max_processes.unwrap_or(default.processes),
            file_bytes: self
                .config
                .max_file_mb
                .map_or(default.file_bytes, |mb| mb.saturating_mul(1 << 20)),
            memory_bytes: match self.config.max_memory_mb {
                Some(mb) => Some(mb.saturating_mul(1 << 20)),
                None if self.is_built_in => None,
                None => Some(STRANGERS_MEMORY.min(memory_of_the_machine() / 2)),
            },
        }
    }
}

/// Paths that no confined program sees, even inside its workspace. Blocks on the disk.
pub(crate) fn hidden_paths(data_dir: &Path, logins: &Logins) -> Vec<PathBuf> {
    let homes = config::environment(&["HOME".to_owned()].into());
    let secrets = homes.iter().flat_map(|(_, home)| {
        let secrets = SECRETS.iter().map(|name| Path::new(home).join(name));
        // Resolves links, because hiding works on the target's own path.
        secrets.filter_map(|path| fs::canonicalize(path).ok())
    });
    let data_dir = data_dir.canonicalize().unwrap_or_else(|_| data_dir.to_owned());
    secrets.chain([data_dir]).chain(logins.hidden()).collect()
}

/// Resolves the links of the program's directory, and refuses a link that the agent's programs
/// could have created.
fn program_outside(
    program: &Path,
    resolve: &dyn Fn(&Path) -> Option<PathBuf>,
) -> Result<PathBuf, Failure> {
    let (Some(directory), Some(name)) = (program.parent(), program.file_name()) else {
        return Ok(program.to_owned());
    };
    match resolve(directory) {
        Some(real) => Ok(real.join(name)),
        None if directory.exists() => Err(Failure::Denied(format!(
            "run {}: a link that the agent's own programs could have made leads there; name the program by the path that the link \
             leads to, with `path` in its grant",
            program.display()
        ))),
        None => Ok(program.to_owned()),
    }
}

/// Memory of the machine in bytes.
fn memory_of_the_machine() -> u64 {
    let sysinfo = rustix::system::sysinfo();
    #[expect(clippy::useless_conversion, reason = "of 32 bits on some machines")]
    let memory = u64::from(sysinfo.totalram);
    memory.saturating_mul(sysinfo.mem_unit.into())
}

/// Confinement tier as reported to clients.
pub(crate) fn program_tier(confining: Option<&Confining>) -> ProgramTier {
    confining.map_or(ProgramTier::Plain, |_| ProgramTier::Confined)
}

/// Path for a word of a manifest's `keeps`; a directory is created if necessary.
fn keeps_path(word: &str, env: &[(String, String)]) -> Option<PathBuf> {
    let path = match word.strip_prefix('$') {
        Some(variable) => PathBuf::from(last(env, variable)?),
        None => Path::new(last(env, "HOME")?).join(word),
    };
    if word.ends_with('/') {
        // If the directory cannot be created, the program reports that itself.
        let _ = fs::DirBuilder::new().mode(0o700).create(&path);
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confining(origin: AgentOrigin, config: &AgentConfig, data: &Path) -> Option<Confining> {
        let agent = AgentId::parse("any").unwrap();
        let logins = Logins::none(agent.clone());
        Confining::for_agent(&agent, origin, config, data, logins)
    }

    #[test]
    fn only_plugin_programs_are_confined_by_default() {
        let (default, data) = (AgentConfig::default(), Path::new("/data"));
        assert!(confining(AgentOrigin::Plugin, &default, data).is_some());
        assert!(confining(AgentOrigin::BuiltIn, &default, data).is_none());
        let said = |confine| AgentConfig { confine: Some(confine), ..AgentConfig::default() };
        assert!(confining(AgentOrigin::Plugin, &said(false), data).is_none());
        assert!(confining(AgentOrigin::BuiltIn, &said(true), data).is_some());
    }

    #[test]
    fn confinement_exposes_own_directories_hides_data() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        for directory in
            ["data/homes/any", "data/files/1-0/tmp", "work/sub", "more", "tools/bin", "tools/lib"]
        {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::write(root.join("tools/bin/tool"), "").unwrap();
        std::os::unix::fs::symlink(root.join("tools"), root.join("link")).unwrap();
        let (home, temporary) = (root.join("data/homes/any"), root.join("data/files/1-0/tmp"));
        let keeps: BTreeSet<String> = [".tool/", ".none", "$TOOL_HOME"].map(str::to_owned).into();
        let at = ProgramPaths {
            program: &root.join("link/bin/tool"),
            keeps: Some(&keeps),
            login: None,
            workspace: &root.join("work"),
            additional: &[],
            worktrees: Path::new("/none"),
            objects: &[],
            home: &home,
            temporary: &temporary,
            hub_access: None,
        };
        let any =
            confining(AgentOrigin::Plugin, &AgentConfig::default(), &root.join("data")).unwrap();
        let env = vec![("HOME".to_owned(), home.display().to_string())];
        let ConfinedProgram { program, env, confinement } = any.confine(&at, env).unwrap();
        assert_eq!(program, root.join("tools/bin/tool"));
        assert_eq!(last(&env, "TMPDIR").unwrap(), temporary.display().to_string());
        assert_eq!(confinement.read, [root.join("tools/bin"), root.join("tools/lib")]);
        assert_eq!(
            confinement.write,
            [root.join("work"), root.join("data/files/1-0"), home.clone()]
        );
        assert!(confinement.hidden.contains(&root.join("data")) && confinement.scratch.is_empty());
        assert_eq!(confinement.network, Network::Nothing);

        let env = vec![("HOME".to_owned(), root.display().to_string())];
        let confined = any.confine(&at, env).unwrap();
        assert!(confined.confinement.scratch.contains(&root), "another's home is empty");
        let said = AgentConfig { confine: Some(true), ..AgentConfig::default() };
        let own = confining(AgentOrigin::BuiltIn, &said, &root.join("data")).unwrap();
        let env = [("HOME", root.join("work")), ("TOOL_HOME", root.join("tools"))];
        let env = env.map(|(name, path)| (name.to_owned(), path.display().to_string())).to_vec();
        let write = own.confine(&at, env.clone()).unwrap().confinement.write;
        assert!(
            write.contains(&root.join("work/.tool")) && write.contains(&root.join("tools")),
            "{write:?}"
        );
        assert!(!write.contains(&root.join("work/.none")), "it is not there");
        std::os::unix::fs::symlink(root.join("data"), root.join("work/.none")).unwrap();
        let write = own.confine(&at, env.clone()).unwrap().confinement.write;
        assert!(!write.contains(&root.join("data")), "a link of the program's own: {write:?}");
        let write = any.confine(&at, env).unwrap().confinement.write;
        assert!(
            !write.contains(&root.join("tools")),
            "a stranger's manifest opens nothing: {write:?}"
        );

        fs::remove_dir(&temporary).unwrap();
        std::os::unix::fs::symlink(root.join("work/.tool"), &temporary).unwrap();
        let confinement = any.confine(&at, Vec::new()).unwrap().confinement;
        assert_eq!(confinement.temporary, temporary, "a link there is not followed");
        assert_eq!(confinement.write[1], root.join("data/files/1-0"));

        std::os::unix::fs::symlink(root.join("tools"), root.join("work/tools")).unwrap();
        let planted = ProgramPaths { program: &root.join("work/tools/bin/tool"), ..at };
        let why = any.confine(&planted, Vec::new()).err().map(|why| why.to_string());
        assert!(why.is_some_and(|why| why.contains("could have made leads there")));

        let more = [root.join("more"), root.join("work/sub")];
        let wider = ProgramPaths { additional: &more, ..at };
        let write = any.confine(&wider, Vec::new()).unwrap().confinement.write;
        assert!(write.contains(&more[0]), "{write:?}");
        assert!(!write.contains(&more[1]), "it lies in the workspace: {write:?}");
        std::os::unix::fs::symlink(root.join("tools"), root.join("more/tools")).unwrap();
        let planted = ProgramPaths { program: &root.join("more/tools/bin/tool"), ..wider };
        let why = any.confine(&planted, Vec::new()).err().map(|why| why.to_string());
        assert!(why.is_some_and(|why| why.contains("could have made leads there")));

        let whole = ProgramPaths { workspace: Path::new("/etc"), ..at };
        assert!(matches!(any.confine(&whole, Vec::new()), Err(Failure::Denied(_))));
    }

    #[test]
    fn hidden_directory_is_never_additional() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("data/homes")).unwrap();
        let data = root.join("data");
        let any = confining(AgentOrigin::Plugin, &AgentConfig::default(), &data).unwrap();
        let refused = |directory: &Path, workspace: &Path| {
            any.require_visible(directory, workspace).err().map(|why| why.to_string())
        };
        assert_eq!(refused(&root.join("more"), &root), None);
        assert_eq!(refused(&root, &root), None, "what is hidden in it stays hidden");
        for hidden in [&data, &data.join("homes")] {
            assert!(refused(hidden, &root).unwrap().contains("hidden from confined programs"));
        }
        assert_eq!(refused(&data, &data), None, "the operator named it");
        assert!(refused(Path::new("/etc"), Path::new("/")).unwrap().contains("all of it"));
    }
}
