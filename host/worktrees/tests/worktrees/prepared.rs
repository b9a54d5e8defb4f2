//! Worktrees that are prepared as the operator's rules say: copied files, programs that set them
//! up, and reserved ports.

use super::{Place, git_in};
use a2a_hub_worktrees::{Preparation, Worktree, WorktreeError, WorktreeRules};
use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// Rules for all repositories that run these scripts of a shell.
fn rules(scripts: &[&str]) -> WorktreeRules {
    let setup = scripts.iter().map(|script| ["sh", "-c", script].map(str::to_owned).to_vec());
    let time_limit = Duration::from_secs(60);
    let general = Preparation { setup: setup.collect(), time_limit, ..Preparation::default() };
    WorktreeRules { general, ..WorktreeRules::default() }
}

impl Place {
    /// Creates the worktree `t1` and sets it up.
    async fn prepare(&self, rules: WorktreeRules) -> Result<Worktree, WorktreeError> {
        self.worktrees.follow(rules);
        let worktree = self.create("t1", "repo").await?;
        let Some(pending) = self.worktrees.pending_setup("t1").await? else { return Ok(worktree) };
        self.worktrees.set_up(pending).await?;
        Ok(worktree)
    }
}

/// Numbers of the processes whose arguments contain a word.
fn processes(word: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let args = all.filter_map(|one| fs::read(one.path().join("cmdline")).ok());
    let args = args.map(|args| String::from_utf8_lossy(&args).replace('\0', " "));
    args.filter(|args| args.contains(word) && !args.contains("prepared::")).collect()
}

#[tokio::test]
async fn copied_files_are_no_changes() {
    let place = Place::new();
    place.write("repo/.env", "KEY=1\n");
    place.write("repo/config/my local", "x\n");
    let mut rules = rules(&[]);
    rules.general.copy = [".env", "config/my local", "missing", "a"].map(str::to_owned).to_vec();
    place.write("repo/a", "changed in the checkout\n");
    let worktree = place.prepare(rules).await.unwrap();
    assert_eq!(fs::read_to_string(worktree.tree.join(".env")).unwrap(), "KEY=1\n");
    assert_eq!(fs::read_to_string(worktree.tree.join("config/my local")).unwrap(), "x\n");
    let a = fs::read_to_string(worktree.tree.join("a")).unwrap();
    assert!(a.starts_with("1\n"), "the base has it: {a}");
    assert_eq!(git_in(&worktree.tree, &["status", "--porcelain"]), "");
    assert_eq!(place.worktrees.snapshot("t1").await.unwrap().files, 0);
    fs::write(worktree.tree.join("new"), "new\n").unwrap();
    assert_eq!(place.worktrees.snapshot("t1").await.unwrap().files, 1);
    // A worktree in this one gets the files of the user, and not those of the agent.
    fs::write(worktree.tree.join(".env"), "KEY=2\n").unwrap();
    let child = place
        .worktrees
        .create(a2a_hub_worktrees::NewWorktree {
            task: "t2".to_owned(),
            directory: worktree.tree.clone(),
            base: "HEAD".to_owned(),
            now_ms: 2,
            owner: a2a_hub_worktrees::WorktreeOwner::default(),
            bounds: a2a_hub_worktrees::RepositoryBounds::default(),
        })
        .await
        .unwrap();
    assert_eq!(fs::read_to_string(child.tree.join(".env")).unwrap(), "KEY=1\n");
}

#[tokio::test]
async fn refused_copy_leaves_no_worktree() {
    let place = Place::new();
    std::os::unix::fs::symlink("/etc/passwd", place.at("repo/.env")).unwrap();
    let mut rules = rules(&[]);
    rules.general.copy = vec![".env".to_owned()];
    rules.general.ports = 3;
    let refused = place.prepare(rules).await.unwrap_err().to_string();
    assert!(refused.contains("links are not followed"), "{refused}");
    assert!(place.worktrees.list().is_empty());
    assert!(place.worktrees.list().is_empty());
    assert_eq!(place.git("repo", &["for-each-ref", "refs/a2a-hub"]), "");
}

#[tokio::test]
async fn setup_sees_worktree_and_nothing_else() {
    let place = Place::new();
    place.write("secret", "hush\n");
    let look = format!(
        "set -e; test ! -e {0}/secret; test ! -e {0}/repo/a; test ! -e {0}/hub/worktrees/t1/git; \
         ! (echo x > {0}/hub/worktrees/t1/worktree.json) 2>/dev/null; \
         git log --format=%s > log; echo $GREETING-$A2A_HUB_PORT_BASE > made; echo x > $HOME/x; echo y > /tmp/y",
        place.root.display()
    );
    let mut rules = rules(&[&look, "cat made > again; test ! -e ../git"]);
    rules.general.env.insert("GREETING".to_owned(), "hello".to_owned());
    rules.general.ports = 5;
    let worktree = place.prepare(rules).await.unwrap();
    let ports = worktree.ports.unwrap();
    let read = |name: &str| fs::read_to_string(worktree.tree.join(name)).unwrap();
    assert_eq!(read("log"), "start\n");
    assert_eq!(read("again"), format!("hello-{}\n", ports.first));
    assert_eq!(place.worktrees.find("t1").unwrap().access().port_base, Some(ports.first));
    // The home vanishes, and nothing runs twice.
    assert!(!place.at("hub/worktrees/t1/setup").exists());
    assert!(place.worktrees.pending_setup("t1").await.unwrap().is_none());
    let other = place.create("t2", "repo").await.unwrap().ports.unwrap();
    assert!(other.first >= ports.first + ports.count, "{ports:?} {other:?}");
}

#[tokio::test]
async fn data_of_hub_stays_hidden_from_setup() {
    let place = Place::new();
    place.write("tools/x", "");
    place.write("hub/token", "hush\n");
    let look = format!(
        "test -e {0}/tools/x && test ! -e {0}/hub/token && test ! -e {0}/hub/worktrees/t1/worktree.json",
        place.root.display()
    );
    let mut rules = rules(&[&look]);
    rules.general.read = vec![place.root.clone()];
    place.prepare(rules).await.unwrap();
}

#[tokio::test]
async fn failed_setup_tells_last_lines() {
    let place = Place::new();
    let noisy = "yes 0123456789012345678901234567890123456789 | head -c 100000000; echo the reason >&2; exit 3";
    let failed = place.prepare(rules(&[noisy, "touch never"])).await.unwrap_err().to_string();
    assert!(failed.starts_with("set up the worktree: `sh -c yes"), "{failed}");
    assert!(failed.contains("exited with 3; its last lines:\n"), "{failed}");
    assert!(failed.ends_with("the reason") && failed.len() < 5_000, "{failed}");
    let worktree = place.worktrees.find("t1").unwrap();
    assert!(!worktree.tree.join("never").exists());
    assert!(worktree.is_unprepared);
    place.worktrees.discard("t1", false).await.unwrap();

    let mut missing = rules(&[]);
    missing.general.setup = vec![vec!["no-such-program".to_owned()]];
    let refused = place.prepare(missing).await.unwrap_err().to_string();
    assert!(refused.contains("not on the PATH"), "{refused}");
}

#[tokio::test]
async fn endless_setup_is_ended_with_descendants() {
    let place = Place::new();
    let forks = "for i in 1 2 3; do setsid sleep 98761 & done; trap '' TERM; sleep 98761";
    let mut rules = rules(&[forks]);
    rules.general.time_limit = Duration::from_secs(2);
    let begun = Instant::now();
    let failed = place.prepare(rules).await.unwrap_err().to_string();
    assert!(failed.contains("was ended after 2 seconds"), "{failed}");
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(processes("sleep 98761"), Vec::<String>::new());
    place.worktrees.discard("t1", false).await.unwrap();
    assert!(!place.at("hub/worktrees/t1").exists());
}

#[tokio::test]
async fn fork_bomb_is_bounded() {
    let place = Place::new();
    let bomb = "b() { b | b & }; b; i=0; while [ $i -lt 40 ]; do i=$((i+1)); sleep 0.1 || true; done; exit 7";
    let mut rules = rules(&[bomb]);
    rules.general.time_limit = Duration::from_secs(30);
    let failed = place.prepare(rules).await.unwrap_err().to_string();
    assert!(failed.contains("set up the worktree"), "{failed}");
    assert_eq!(processes("b() { b | b & }"), Vec::<String>::new());
}

#[tokio::test]
async fn dropped_setup_leaves_no_process() {
    let place = Place::new();
    place.worktrees.follow(rules(&["sleep 98762"]));
    place.create("t1", "repo").await.unwrap();
    let pending = place.worktrees.pending_setup("t1").await.unwrap().unwrap();
    assert_eq!(pending.command_lines(), "`sh -c sleep 98762`");
    let ran = tokio::time::timeout(Duration::from_secs(1), place.worktrees.set_up(pending)).await;
    assert!(ran.is_err());
    // The removal waits for the end of the programs.
    place.worktrees.discard("t1", false).await.unwrap();
    assert_eq!(processes("sleep 98762"), Vec::<String>::new());
    assert!(!place.at("hub/worktrees/t1").exists());
}

#[tokio::test]
async fn base_of_agent_gets_no_network() {
    let place = Place::new();
    let mut rules = rules(&["cat /proc/net/dev > devices; test -s devices"]);
    rules.general.has_network = true;
    let worktree = place.prepare(rules).await.unwrap();
    let devices = |tree: &Path| fs::read_to_string(tree.join("devices")).unwrap();
    let count = |text: String| text.lines().filter(|line| line.contains(':')).count();
    let outside = count(fs::read_to_string("/proc/net/dev").unwrap());
    assert_eq!(count(devices(&worktree.tree)), outside);

    let child = a2a_hub_worktrees::NewWorktree {
        task: "t2".to_owned(),
        directory: worktree.tree.clone(),
        base: "HEAD".to_owned(),
        now_ms: 2,
        owner: a2a_hub_worktrees::WorktreeOwner::default(),
        bounds: a2a_hub_worktrees::RepositoryBounds::default(),
    };
    let child = place.worktrees.create(child).await.unwrap();
    let pending = place.worktrees.pending_setup("t2").await.unwrap().unwrap();
    place.worktrees.set_up(pending).await.unwrap();
    assert_eq!(count(devices(&child.tree)), 1, "only its own loopback");
}
