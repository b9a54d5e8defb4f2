//! Tests of the permissions of every command: for the operator, and for an agent's program, plain,
//! confined, and as another user. A refused command must not change any file of the hub.

use crate::{
    command_line::{command, finish, run},
    stage::{another_build, artifact, eventually_async, send, state},
};
use a2a_hub_tests::{Client, TestHub, delegation, make_repository, test_guests};
use anyhow::{Context as _, Result, ensure};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::Duration,
};

/// Caller who may run a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// Only the operator: an agent's program is refused with exit code 2.
    Operator,
    /// Agents' programs as well, within their agents' permissions, or because the command concerns
    /// the caller's own files. It never changes the hub.
    Anybody,
}

/// All commands, with effective arguments, in an order that works for the operator. `FILE` is a
/// component, `NEW` a missing file, `REPOSITORY` one of git; `TASK` and `CONTEXT` belong to a
/// finished task.
const COMMANDS: &[(&str, For)] = &[
    ("start", For::Operator),
    ("reload", For::Operator),
    ("restart", For::Operator),
    ("backup NEW", For::Operator),
    ("restore FILE", For::Operator),
    ("status", For::Operator),
    ("agents", For::Anybody),
    ("agent list", For::Anybody),
    ("agent show echo", For::Anybody),
    ("agent register fresh FILE", For::Operator),
    ("agent reload fresh", For::Operator),
    ("agent deregister fresh", For::Operator),
    ("agent available", For::Anybody),
    ("agent add driven --acp -- sh", For::Operator),
    ("agent remove driven", For::Operator),
    ("plugin new made-here", For::Anybody),
    ("plugin docs --lang rust", For::Anybody),
    ("plugin build missing", For::Anybody),
    ("plugin dev missing", For::Anybody),
    ("plugin pack FILE missing", For::Anybody),
    ("plugin keygen --no-password NEW", For::Anybody),
    ("plugin sign FILE missing", For::Anybody),
    ("plugin list", For::Operator),
    ("plugin inspect FILE", For::Anybody),
    ("plugin add FILE --name added --memory", For::Operator),
    ("plugin grant guest --memory=4096", For::Operator),
    ("plugin grant walled --all", For::Operator),
    ("plugin deny guest memory", For::Operator),
    ("plugin diff guest", For::Anybody),
    ("plugin revoke added", For::Operator),
    ("plugin remove added", For::Operator),
    ("plugin test FILE", For::Anybody),
    ("flow new made-here", For::Operator),
    ("flow trust made-here --yes", For::Operator),
    ("flow list", For::Operator),
    ("flow show made-here", For::Anybody),
    ("flow check FILE", For::Anybody),
    ("flow test FILE --with FILE", For::Anybody),
    ("schedule list", For::Operator),
    ("schedule run nightly", For::Operator),
    ("schedule pause nightly", For::Operator),
    ("schedule resume nightly", For::Operator),
    ("schedule accept nightly", For::Operator),
    ("trigger list", For::Operator),
    ("trigger run review", For::Operator),
    ("trigger pause review", For::Operator),
    ("trigger resume review", For::Operator),
    ("trigger accept review", For::Operator),
    ("notify list", For::Operator),
    ("notify test phone", For::Operator),
    ("publish news/today hello", For::Anybody),
    ("topic publish news/today again", For::Anybody),
    ("topic list", For::Anybody),
    ("topic tail --from-start --no-wait news/#", For::Anybody),
    ("topic delete news/today", For::Operator),
    ("run echo hello", For::Anybody),
    ("best hello --of echo,echo --judge true --cwd REPOSITORY", For::Operator),
    ("decide vote hello --of echo", For::Anybody),
    ("decide delphi hello --of echo", For::Anybody),
    ("decide auction hello --of echo", For::Anybody),
    ("decide contract-net hello --of echo", For::Anybody),
    ("decide negotiation hello --of echo,guest", For::Anybody),
    ("decide election hello --of echo", For::Anybody),
    ("decide blackboard hello --of echo", For::Anybody),
    ("blackboard TASK", For::Anybody),
    ("record show", For::Anybody),
    ("record confirm TASK yes", For::Anybody),
    ("send echo hello", For::Anybody),
    ("acp echo", For::Anybody),
    ("mcp", For::Anybody),
    ("tasks", For::Operator),
    ("tasks --search hello", For::Operator),
    ("usage", For::Operator),
    ("events --count 1", For::Operator),
    ("task list", For::Operator),
    ("task show TASK", For::Anybody),
    ("task timeline TASK", For::Operator),
    ("task tree TASK", For::Anybody),
    ("task watch TASK", For::Anybody),
    ("task save TASK", For::Anybody),
    ("task open TASK --print", For::Anybody),
    ("task answer TASK hello", For::Anybody),
    ("task cancel TASK", For::Anybody),
    ("inbox", For::Operator),
    ("inbox --mark-read", For::Operator),
    ("allow --all", For::Operator),
    ("deny --all", For::Operator),
    ("later missing", For::Operator),
    ("permissions list", For::Operator),
    ("permissions add --deny no -- rm", For::Operator),
    ("permissions remove missing", For::Operator),
    ("permissions test echo -- ls", For::Operator),
    ("permissions suggest", For::Operator),
    ("person add ada", For::Operator),
    ("person role ada viewer", For::Operator),
    ("person invite ada", For::Operator),
    ("person me", For::Operator),
    ("person list", For::Operator),
    ("key new --for ada", For::Operator),
    ("key list", For::Operator),
    ("key revoke missing", For::Operator),
    ("person remove ada", For::Operator),
    ("join http://127.0.0.1:1#a2ai_0", For::Anybody),
    ("web list", For::Operator),
    ("web remove missing", For::Operator),
    ("task handoff TASK echo --no-wait", For::Operator),
    ("task retry-now TASK", For::Operator),
    ("task diff TASK", For::Operator),
    ("task review TASK", For::Operator),
    ("task review add TASK text", For::Operator),
    ("task review edit TASK", For::Operator),
    ("task review remove TASK 1", For::Operator),
    ("task review send TASK --no-wait", For::Operator),
    ("task review discard TASK", For::Operator),
    ("task apply TASK", For::Operator),
    ("task discard TASK", For::Operator),
    ("diff TASK", For::Operator),
    ("apply TASK", For::Operator),
    ("discard TASK", For::Operator),
    ("worktrees list", For::Operator),
    ("worktrees path TASK", For::Operator),
    ("worktrees prune", For::Operator),
    ("worktrees trust --revoke REPOSITORY", For::Operator),
    ("conversations", For::Operator),
    ("conversations show CONTEXT", For::Operator),
    ("deliveries", For::Operator),
    ("logs", For::Anybody),
    ("config show", For::Anybody),
    ("config check", For::Anybody),
    ("workspace list", For::Anybody),
    ("workspace add .", For::Operator),
    ("workspace remove .", For::Operator),
    ("doctor", For::Anybody),
    ("completions bash", For::Anybody),
    ("version", For::Anybody),
    ("man", For::Anybody),
    ("conversations delete CONTEXT", For::Operator),
    ("stop", For::Operator),
    ("stop --force", For::Operator),
];

/// Returns the hub's files that define it and its grants, with their contents; files that running
/// tasks change are left out.
fn files(dir: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.strip_prefix(dir)?.display().to_string();
            let changes_as_tasks_run =
                ["hub.db", "search.db", "files", "homes", "hub.log", "cache"];
            if changes_as_tasks_run.iter().any(|one| name.starts_with(one)) {
                continue;
            }
            if path.is_dir() {
                left.push(path);
            } else {
                found.insert(name, fs::read(&path)?);
            }
        }
    }
    Ok(found)
}

/// Returns all commands and subcommands that the help lists.
async fn commands(hub: &TestHub, above: &str) -> Result<BTreeSet<String>> {
    let args: Vec<&str> = above.split_whitespace().chain(["--help"]).collect();
    let help = run(hub, &args).await?.stdout;
    // The program's own help lists them by job, above its options.
    let listed = match above {
        "" => help.split("\nOptions:\n").next(),
        _ => help.split("\nCommands:\n").nth(1).and_then(|it| it.split("\n\n").next()),
    };
    let mut found = BTreeSet::new();
    for line in listed.unwrap_or_default().lines() {
        let is_name = line.starts_with("  ") && !line.starts_with("   ");
        let Some(name) = line.split_whitespace().next().filter(|name| is_name && *name != "help")
        else {
            continue;
        };
        let whole = format!("{above} {name}").trim().to_owned();
        let below = Box::pin(commands(hub, &whole)).await?;
        if below.is_empty() {
            found.insert(whole);
        }
        found.extend(below);
    }
    Ok(found)
}

struct Stage {
    hub: TestHub,
    file: String,
    task: String,
    context: String,
    _dir: tempfile::TempDir,
}

impl Stage {
    async fn new() -> Result<Self> {
        let calls = delegation::granted("'echo'");
        let walled = calls.replace("agents.guest", "agents.walled");
        let guest = calls.replace("[agents.guest]\n", "[agents.guest]\n    confine = false\n");
        let walled = &walled[walled.find("[agents.walled").context("the grants of a guest")?..];
        let guests = test_guests()?;
        let nightly = "[schedule.nightly]\ncron = '0 3 1 1 *'\nagent = 'echo'\nmessage = 'hello'\n\
                       permissions = 'read-only'\nbudget = { tasks = 0 }\n\
                       [trigger.review]\non = 'task'\nagent_is = 'echo'\nstate = 'failed'\n\
                       agent = 'echo'\nmessage = 'hello'\npermissions = 'read-only'\n\
                       budget = { tasks = 0 }\n[notify.phone]\ncommand = ['true']\n";
        let hub = TestHub::builder().config(format!("{guest}\n{walled}\n{nightly}"));
        let hub = hub.plugin("guest", &guests).plugin("walled", &guests).start().await?;
        let dir = tempfile::tempdir()?;
        // Readable for each program, and writable for none.
        let file = hub.workspace().join("another.wasm");
        fs::copy(another_build(&dir)?, &file)?;
        make_repository(&hub.workspace().join("repository"))?;
        let done = send(&Client::unix(&hub), "echo", "over").await?;
        let text = |name: &str| done[name].as_str().unwrap_or_default().to_owned();
        let (task, context) = (text("id"), text("contextId"));
        Ok(Self { file: file.display().to_string(), hub, task, context, _dir: dir })
    }

    fn typed(&self, line: &str, new: &str) -> String {
        let words = line.split(' ').map(|word| match word {
            "FILE" => self.file.clone(),
            "NEW" => new.to_owned(),
            "TASK" => self.task.clone(),
            "CONTEXT" => self.context.clone(),
            "REPOSITORY" => self.hub.workspace().join("repository").display().to_string(),
            word => word.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Makes a program of `agent` run every command, and returns the exit code and output of each.
    async fn by_program(&self, agent: &str, options: &str) -> Result<Vec<(Option<i32>, String)>> {
        let typed = COMMANDS.iter().enumerate().map(|(n, (line, _))| {
            let line = self.typed(line, &format!("new-{agent}-{n}"));
            format!("timeout 20 a2a-hub {options} {line} </dev/null >out 2>&1; echo \"<$?>\"; head -c 2000 out; echo '<end>'\n")
        });
        fs::write(self.hub.workspace().join(format!("{agent}.sh")), typed.collect::<String>())?;
        let task = send(&Client::unix(&self.hub), agent, &format!("sh sh {agent}.sh")).await?;
        ensure!(state(&task) == "completed", "{agent}: {task}");
        let told = artifact(&task);
        let parts = told.split("<end>").filter_map(|part| part.split_once('<')?.1.split_once('>'));
        Ok(parts.map(|(code, out)| (code.parse().ok(), out.trim().to_owned())).collect())
    }
}

fn is_refused(output: &str) -> bool {
    ["may not do this", "only the operator may do that"].iter().any(|why| output.contains(why))
}

#[tokio::test]
async fn agent_program_is_refused_operator_commands() -> Result<()> {
    let stage = Stage::new().await?;
    let known: BTreeSet<_> = commands(&stage.hub, "").await?;
    let tried: BTreeSet<_> = known
        .iter()
        .filter(|name| {
            COMMANDS.iter().any(|(line, _)| format!("{line} ").starts_with(&format!("{name} ")))
        })
        .cloned()
        .collect();
    assert_eq!(tried, known, "every command stands in the table");
    assert!(known.len() > 70, "{known:?}");

    let data = stage.hub.data_dir();
    let before = files(&data)?;
    let by_directory = format!("--data-dir '{}'", data.display());
    for (agent, options) in [("guest", by_directory.as_str()), ("guest", ""), ("walled", "")] {
        let results = stage.by_program(agent, options).await?;
        assert_eq!(results.len(), COMMANDS.len(), "{agent}: {results:?}");
        for ((line, is_for), (code, output)) in COMMANDS.iter().zip(results) {
            if *is_for == For::Operator {
                assert_eq!(code, Some(2), "{agent} {options}: {line}: {output}");
                assert!(is_refused(&output), "{agent} {options}: {line}: {output}");
            }
        }
        let after = files(&data)?;
        let changed: Vec<_> = before
            .keys()
            .chain(after.keys())
            .filter(|name| before.get(*name) != after.get(*name))
            .collect();
        assert_eq!(changed, Vec::<&String>::new(), "{agent} {options}");
    }
    // No copy was made in a directory that the programs may write.
    let copies = fs::read_dir(stage.hub.workspace())?;
    let names = copies.filter_map(|it| it.ok()?.file_name().into_string().ok());
    let of_backup: Vec<_> = names.filter(|name| name.ends_with("-3")).collect();
    assert_eq!(of_backup, Vec::<String>::new());
    assert!(Client::unix(&stage.hub).call("hub/status", serde_json::json!({})).await.is_ok());
    Ok(())
}

#[tokio::test]
async fn operator_may_run_every_command() -> Result<()> {
    let stage = Stage::new().await?;
    let data = stage.hub.data_dir().display().to_string();
    for (n, (line, _)) in COMMANDS.iter().enumerate() {
        let line = stage.typed(line, &format!("new-{n}"));
        let args: Vec<_> = ["--data-dir", &data].into_iter().chain(line.split(' ')).collect();
        let mut command = command(stage.hub.socket(), &stage.hub.home(), &args)?;
        command.current_dir(stage.hub.workspace());
        let ran = finish(command).await?;
        let output = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!is_refused(&output), "{line}: {output}");
        if line.starts_with("plugin add") {
            let joined = async || {
                let list = ["--data-dir", &data, "--format", "json", "plugin", "list"];
                run(&stage.hub, &list).await.is_ok_and(|ran| ran.stdout.contains("\"added\""))
            };
            eventually_async(Duration::from_secs(60), joined).await?;
        }
        let must_work = [
            "reload",
            "backup",
            "status",
            "agents",
            "agent show",
            "agent register",
            "agent reload",
            "agent deregister",
            "agent available",
            "plugin list",
            "plugin add",
            "plugin grant guest",
            "plugin deny",
            "plugin revoke",
            "plugin remove",
            "publish",
            "topic",
            "send",
            "tasks",
            "contexts",
            "deliveries",
            "stop",
        ];
        if must_work.iter().any(|word| line.starts_with(word)) && line != "stop --force" {
            assert_eq!(ran.code, Some(0), "{line}: {output}");
        }
    }
    Ok(())
}

/// Without a running hub, every program of this user counts as the operator, except below an
/// agent's program.
#[tokio::test]
async fn agent_program_writes_nothing_without_hub() -> Result<()> {
    let stage = Stage::new().await?;
    // Data directory of a hub that does not run.
    let other = stage.hub.workspace().join("other-data");
    let made = fs::DirBuilder::new().create(&other);
    made.context("make a data directory")?;
    let options = format!("--data-dir '{}'", other.display());
    let results = stage.by_program("guest", &options).await?;
    for ((line, _), (code, output)) in COMMANDS.iter().zip(results) {
        let writes = [
            "start",
            "restore",
            "backup",
            "plugin add",
            "plugin grant",
            "plugin deny",
            "plugin revoke",
            "plugin remove",
            "workspace add",
            "workspace remove",
        ];
        if writes.iter().any(|word| line.starts_with(word)) {
            assert_eq!(code, Some(2), "{line}: {output}");
            assert!(is_refused(&output), "{line}: {output}");
        }
    }
    assert_eq!(fs::read_dir(&other)?.count(), 0, "nothing was written");
    // The operator may do the same, and the record names the operator.
    let shown = other.display().to_string();
    let args = ["--data-dir", &shown, "plugin", "add", &stage.file, "--name", "added", "--memory"];
    let added = run(&stage.hub, &args).await?;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let record = fs::read_to_string(other.join("grants.toml"))?;
    assert!(record.contains("operator, by a command while no hub ran"), "{record}");
    Ok(())
}

/// Another user of the machine reaches neither the hub nor its files.
#[tokio::test]
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
async fn other_user_is_refused_every_command() -> Result<()> {
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/setpriv").exists() {
        eprintln!("skipped: to try it as another user needs root and setpriv");
        return Ok(());
    }
    let stage = Stage::new().await?;
    let before = files(&stage.hub.data_dir())?;
    let data = stage.hub.data_dir().display().to_string();
    for (n, (line, is_for)) in COMMANDS.iter().enumerate() {
        if *is_for == For::Anybody {
            continue;
        }
        let line = stage.typed(line, &format!("/tmp/a2a-hub-new-{n}"));
        let socket = stage.hub.socket().display().to_string();
        let line: Vec<_> = line.split(' ').collect();
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
        let hub = a2a_hub_tests::hub_binary()?.display().to_string();
        let mut command = command_of("/usr/bin/setpriv");
        command.args(nobody).args([&hub, "--socket", &socket, "--data-dir", &data]).args(&line);
        let ran = finish(command).await?;
        assert_ne!(ran.code, Some(0), "{line:?}: {}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(files(&stage.hub.data_dir())?, before);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "another user is another process")]
fn command_of(program: &str) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command.env_clear().env("HOME", "/nonexistent").env("PATH", "/usr/bin:/bin");
    command.stdin(std::process::Stdio::null()).kill_on_drop(true);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command
}
