//! Compares a worktree of many files, and its report of changes, with `git worktree add`:
//! `cargo run --release -p a2a-hub-worktrees --example large_worktree [FILES]`

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measures")]
#![expect(clippy::disallowed_methods, reason = "a benchmark measures time, and is the user")]

use a2a_hub_process::{Supervisor, subcommand};
use a2a_hub_worktrees::{GitHome, NewWorktree, RepositoryBounds, WorktreeOwner, Worktrees};
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

/// Default number of files.
const FILES: usize = 20_000;

fn main() -> ExitCode {
    // The program is also the minder of the programs that it starts.
    if let Some(code) = subcommand(std::env::args_os().skip(1)) {
        return code;
    }
    let runtime = tokio::runtime::Runtime::new().map_err(Box::<dyn Error>::from);
    match runtime.and_then(|runtime| runtime.block_on(measure())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> Result<(), Box<dyn Error>> {
    let files = match std::env::args().nth(1) {
        Some(count) => count.parse()?,
        None => FILES,
    };
    let temporary = tempfile::tempdir_in(".")?;
    let root = temporary.path().canonicalize()?;
    let repository = root.join("repository");
    make(&repository, files)?;
    fs::create_dir(root.join("hub"))?;
    let grace = Duration::from_millis(300);
    let supervisor = Supervisor::new(std::env::current_exe()?, root.join("hub"), grace);
    let home = GitHome::default();
    let worktrees = Worktrees::new(root.join("hub/worktrees"), supervisor, find, home);
    let mut all = Vec::new();
    for round in 0..5 {
        let begun = Instant::now();
        let reference = root.join(format!("beside{round}"));
        git(&repository, &["worktree", "add", "-q", "--detach", &reference.display().to_string()])?;
        let by_git = begun.elapsed();
        let task = format!("t{round}");
        let begun = Instant::now();
        let worktree = worktrees.create(NewWorktree {
            task: task.clone(),
            directory: repository.clone(),
            base: "HEAD".to_owned(),
            now_ms: 0,
            owner: WorktreeOwner::default(),
            bounds: RepositoryBounds::default(),
        });
        let worktree = worktree.await?;
        let created = begun.elapsed();
        fs::write(worktree.tree.join("d0/f0"), "changed\n")?;
        let begun = Instant::now();
        worktrees.diff(&task, false, 1 << 20).await?;
        let reported = begun.elapsed();
        let ratio = (created + reported).as_secs_f64() / by_git.as_secs_f64();
        println!(
            "{files} files: git {by_git:.2?}, worktree {created:.2?}, report {reported:.2?}: {ratio:.2} times git"
        );
        all.push(ratio);
        worktrees.discard(&task, true).await?;
        fs::remove_dir_all(reference)?;
    }
    all.sort_by(f64::total_cmp);
    println!("{:.2} times `git worktree add` (the middle of {})", all[all.len() / 2], all.len());
    Ok(())
}

/// A repository with this many files of some lines each.
fn make(repository: &Path, files: usize) -> Result<(), Box<dyn Error>> {
    for number in 0..files {
        let directory = repository.join(format!("d{}", number / 100));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("f{number}")), format!("file {number}\n").repeat(60))?;
    }
    git(repository, &["init", "-q", "-b", "main"])?;
    git(repository, &["add", "-A"])?;
    git(repository, &["commit", "-q", "-m", "files"])?;
    git(repository, &["gc", "-q"])
}

fn git(directory: &Path, args: &[&str]) -> Result<(), Box<dyn Error>> {
    let by = ["user.name=bench", "user.email=bench@localhost"].map(|it| ["-c", it]).concat();
    let done = Command::new("git").current_dir(directory).args(by).args(args).output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(format!("git {args:?}: {}", String::from_utf8_lossy(&done.stderr)).into())
}

fn find(name: &str) -> Option<PathBuf> {
    let paths = ["/usr/local/bin", "/usr/bin", "/bin"].map(|path| Path::new(path).join(name));
    paths.into_iter().find(|path| path.is_file())
}
