//! Conflicts among the worktrees of one repository.

use super::{Place, git_in};
use a2a_hub_worktrees::{NewWorktree, RepositoryBounds, Worktree, WorktreeConflict, WorktreeOwner};
use std::fs;

/// Changes the last line of the file `a`.
fn change(worktree: &Worktree, line: &str) {
    fs::write(worktree.tree.join("a"), format!("1\n2\n3\n4\n5\n6\n7\n8\n{line}\n")).unwrap();
}

/// Tasks with the files in conflict, as `TASK:PATH,PATH`.
fn named(found: &[WorktreeConflict]) -> Vec<String> {
    found.iter().map(|it| format!("{}:{}", it.task, it.paths.join(","))).collect()
}

impl Place {
    /// Creates a worktree of a task that `parent` began, in a tenant.
    async fn owned(&self, task: &str, now_ms: u64, tenant: &str, parent: &str) -> Worktree {
        let parent = Some(parent.to_owned()).filter(|parent| !parent.is_empty());
        let owner = WorktreeOwner { tenant: tenant.to_owned(), parent, agent: None };
        let (task, base) = (task.to_owned(), "HEAD".to_owned());
        let (directory, bounds) = (self.at("repo"), RepositoryBounds::default());
        let new = NewWorktree { task, directory, base, now_ms, owner, bounds };
        self.worktrees.create(new).await.unwrap()
    }

    /// Ends a run: its snapshot is taken, and compared with the others.
    async fn end(&self, task: &str, now_ms: u64) -> Vec<String> {
        self.worktrees.snapshot(task).await.unwrap();
        named(&self.worktrees.find_conflicts(task, now_ms).await.unwrap())
    }

    /// Conflicts of a task as they are listed.
    fn listed(&self, task: &str) -> Vec<String> {
        let known = self.worktrees.known_conflicts(&self.worktrees.list());
        named(known.get(task).map_or(&[], Vec::as_slice))
    }
}

#[tokio::test]
async fn later_run_finds_conflict_with_earlier() {
    let place = Place::new();
    let one = place.owned("t1", 1, "", "").await;
    let two = place.owned("t2", 2, "", "").await;
    let three = place.owned("t3", 3, "", "").await;
    change(&one, "one");
    fs::write(one.tree.join("same"), "one\n").unwrap();
    assert_eq!(place.end("t1", 10).await, [""; 0], "no other has a result");
    change(&two, "two");
    git_in(&two.tree, &["commit", "-q", "-a", "-m", "two"]);
    fs::write(two.tree.join("same"), "two\n").unwrap();
    fs::write(three.tree.join("other"), "three\n").unwrap();
    let before = (place.contents("repo"), place.contents("hub/worktrees/t1/git"));
    assert_eq!(place.end("t2", 20).await, ["t1:a,same"]);
    assert_eq!(place.end("t3", 30).await, [""; 0]);
    assert!(before == (place.contents("repo"), place.contents("hub/worktrees/t1/git")));
    assert_eq!(
        (place.listed("t1"), place.listed("t2")),
        (vec!["t2:a,same".into()], vec!["t1:a,same".into()])
    );
    assert_eq!(place.listed("t3"), [""; 0]);
    let names = fs::read_dir(place.at("hub/worktrees")).unwrap();
    let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
    assert!(names.into_iter().all(|name| !name.starts_with('.')), "temporary files are removed");

    // The other one takes its change back: the newer comparison counts.
    fs::write(one.tree.join("a"), fs::read(place.at("repo/a")).unwrap()).unwrap();
    fs::remove_file(one.tree.join("same")).unwrap();
    assert_eq!(place.end("t1", 40).await, [""; 0]);
    assert_eq!((place.listed("t1"), place.listed("t2")), (vec![], vec![]));
    change(&one, "again");
    assert_eq!(place.end("t1", 50).await, ["t2:a"]);
    place.worktrees.discard("t2", false).await.unwrap();
    assert_eq!(place.listed("t1"), [""; 0], "it is gone");
}

#[tokio::test]
async fn candidates_and_tenants_are_not_compared() {
    let place = Place::new();
    for (at, (task, tenant, parent)) in
        [("t1", "", "flow"), ("t2", "", "flow"), ("t3", "other", ""), ("t4", "", "best")]
            .into_iter()
            .enumerate()
    {
        let worktree = place.owned(task, at as u64, tenant, parent).await;
        change(&worktree, task);
        place.worktrees.snapshot(task).await.unwrap();
    }
    assert_eq!(place.end("t1", 1).await, ["t4:a"]);
    assert_eq!(place.end("t3", 2).await, [""; 0]);
    assert_eq!(place.end("t4", 3).await, ["t2:a", "t1:a"]);
}

#[tokio::test]
async fn moved_base_is_no_conflict_of_other() {
    let place = Place::new();
    let one = place.owned("t1", 1, "", "").await;
    change(&one, "one");
    place.write("repo/a", "1\n2\n3\n4\n5\n6\n7\n8\nof the user\n");
    place.git("repo", &["commit", "-q", "-a", "-m", "moved"]);
    let two = place.owned("t2", 2, "", "").await;
    fs::write(two.tree.join("other"), "two\n").unwrap();
    place.worktrees.snapshot("t1").await.unwrap();
    assert_eq!(place.end("t2", 10).await, [""; 0]);
    change(&two, "two");
    assert_eq!(place.end("t2", 20).await, ["t1:a"]);
    assert_eq!(place.end("t1", 30).await, ["t2:a"], "it reads the other one's newer base");
}

#[tokio::test]
async fn hostile_names_and_stores_are_bounded() {
    let place = Place::new();
    let worktrees = [place.owned("t1", 1, "", "").await, place.owned("t2", 2, "", "").await];
    let broken = place.owned("t3", 3, "", "").await;
    change(&broken, "three");
    git_in(&broken.tree, &["commit", "-q", "-a", "-m", "three"]);
    place.worktrees.snapshot("t3").await.unwrap();
    // The agent removes what its result consists of, and leads git to what it may not see.
    fs::remove_dir_all(broken.tree.join(".git/objects")).unwrap();
    fs::create_dir_all(broken.tree.join(".git/objects/info")).unwrap();
    let lead = format!("/etc\n{}\n", place.at("hub").display());
    fs::write(broken.tree.join(".git/objects/info/alternates"), lead).unwrap();
    let long = format!("{}/{}", "d".repeat(200), "e".repeat(200));
    for (at, worktree) in worktrees.iter().enumerate() {
        for name in ["1 `x`\n\u{202e}[31m\x1b[2J", &long] {
            let path = worktree.tree.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{at}\n")).unwrap();
        }
        for number in 10..30 {
            fs::write(worktree.tree.join(format!("z{number}")), format!("{at}\n")).unwrap();
        }
        place.worktrees.snapshot(&worktree.task).await.unwrap();
    }
    let found = place.worktrees.find_conflicts("t2", 10).await.unwrap();
    assert_eq!(found.len(), 1, "the broken one is left out: {found:?}");
    let WorktreeConflict { task, paths, more } = &found[0];
    assert_eq!((task.as_str(), paths.len(), *more), ("t1", 10, 12));
    assert_eq!(paths[0], "1 'x'\u{fffd}\u{fffd}[31m\u{fffd}[2J");
    assert_eq!(paths[1], format!("{}…", "d".repeat(200)));
    assert_eq!(place.worktrees.known_conflicts(&place.worktrees.list())["t1"][0].more, 12);
    // A damaged file counts as none.
    fs::write(place.at("hub/worktrees/t2/conflicts.json"), "{").unwrap();
    assert_eq!(place.listed("t1"), [""; 0]);
}

#[tokio::test]
async fn newest_sixteen_are_compared() {
    let place = Place::new();
    for at in 0..18 {
        let worktree = place.owned(&format!("t{at:02}"), at, "", "").await;
        change(&worktree, &format!("line {at}"));
        place.worktrees.snapshot(&worktree.task).await.unwrap();
    }
    let found = place.end("t17", 100).await;
    assert_eq!((found.len(), found[0].as_str(), found[15].as_str()), (16, "t16:a", "t01:a"));
}
