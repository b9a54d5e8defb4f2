//! File `.a2a-hub/worktree.toml` of a repository: it counts as the operator decides.

use super::{Place, git_in};
use a2a_hub_worktrees::{
    Preparation, REPOSITORY_CONFIG, RepositoryConfigTrust, RepositoryPreparation, Worktree,
    WorktreeRules,
};
use std::{fs, sync::Arc, time::Duration};

/// Text that the operator of these tests trusts.
const TRUSTED: &str = "trusted\n";

impl Place {
    /// Commits the file, which then counts if it has the trusted text.
    fn commit_own_file(&self, text: &[u8]) {
        fs::create_dir_all(self.at("repo/.a2a-hub")).unwrap();
        fs::write(self.at("repo").join(REPOSITORY_CONFIG), text).unwrap();
        self.commit_all();
    }

    fn commit_all(&self) {
        self.git("repo", &["add", "-A"]);
        self.git("repo", &["commit", "-q", "-m", "own file"]);
    }

    fn trust(&self) {
        let general = Preparation { time_limit: Duration::from_secs(60), ..Preparation::default() };
        self.worktrees.follow(WorktreeRules { general, ..WorktreeRules::default() });
        let repository = self.at("repo/.git");
        self.worktrees.set_config_trust(Arc::new(move |of, text| {
            assert_eq!(of, repository);
            match text {
                TRUSTED => RepositoryConfigTrust::Trusted(RepositoryPreparation {
                    copy: Some(vec![".env".to_owned()]),
                    setup: Some(vec![
                        ["sh", "-c", "echo set up > made"].map(str::to_owned).to_vec(),
                    ]),
                    ports: Some(3),
                }),
                "wrong\n" => RepositoryConfigTrust::Wrong("line 1, column 1".to_owned()),
                _ => RepositoryConfigTrust::Untrusted,
            }
        }));
    }

    /// Sets up the worktree of a task; returns the warning.
    async fn begin(&self, task: &str) -> Option<String> {
        let note = self.worktrees.take_note(task).await.unwrap();
        assert_eq!(self.worktrees.take_note(task).await.unwrap(), None, "it is reported once");
        if let Some(pending) = self.worktrees.pending_setup(task).await.unwrap() {
            self.worktrees.set_up(pending).await.unwrap();
        }
        note
    }
}

/// True if the trusted file counted.
fn is_prepared(worktree: &Worktree) -> bool {
    let has = ["made", ".env"].map(|name| worktree.tree.join(name).exists());
    assert!(has[0] == has[1] && has[0] == worktree.ports.is_some());
    has[0]
}

#[tokio::test]
async fn trusted_text_of_base_counts() {
    let place = Place::new();
    place.write("repo/.git/info/exclude", ".env\n");
    place.write("repo/.env", "KEY=1\n");
    place.commit_own_file(TRUSTED.as_bytes());
    let before = place.create("t0", "repo").await.unwrap();
    assert_eq!((place.begin("t0").await, is_prepared(&before)), (None, false), "nobody decides");
    place.trust();
    // What is not committed does not count.
    place.write("repo/.a2a-hub/worktree.toml", "changed in the checkout\n");
    let one = place.create("t1", "repo/src").await.unwrap();
    assert_eq!((place.begin("t1").await, is_prepared(&one)), (None, true));
    // An agent's change does not count in a worktree of its files.
    fs::write(one.tree.join(REPOSITORY_CONFIG), "an agent's\n").unwrap();
    let two = place.create("t2", "hub/worktrees/t1/tree").await.unwrap();
    let warning = place.begin("t2").await.unwrap();
    assert!(warning.contains("is not trusted"), "{warning}");
    assert!(!is_prepared_alone(&two), "{two:?}");
    git_in(&one.tree, &["checkout", "-q", "--", REPOSITORY_CONFIG]);
    let three = place.create("t3", "hub/worktrees/t1/tree").await.unwrap();
    assert_eq!(place.begin("t3").await, None);
    assert!(three.ports.is_some());
}

/// True if a worktree of another worktree's files was prepared: it has the other's files anyway.
fn is_prepared_alone(worktree: &Worktree) -> bool {
    worktree.ports.is_some() || worktree.tree.join(".env").exists()
}

#[tokio::test]
async fn untrusted_and_hostile_files_are_left_out() {
    let place = Place::new();
    place.trust();
    let command = format!("in `{}`: `a2a-hub worktrees trust`", place.at("repo").display());
    let huge = "#".repeat((64 << 10) + 1);
    for (at, (text, why)) in [
        (&b"other\n"[..], command.as_str()),
        (b"wrong\n", "line 1, column 1"),
        (b"\xff\xfe", "it is not UTF-8"),
        (huge.as_bytes(), "larger than 64 KiB"),
    ]
    .into_iter()
    .enumerate()
    {
        place.commit_own_file(text);
        let task = format!("t{at}");
        let worktree = place.create(&task, "repo").await.unwrap();
        let warning = place.begin(&task).await.unwrap();
        assert!(warning.contains(why) && warning.contains("`[worktrees]`"), "{warning}");
        assert!(!is_prepared(&worktree));
    }
    let file = place.at("repo").join(REPOSITORY_CONFIG);
    fs::write(place.at("text"), TRUSTED).unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(place.at("text"), &file).unwrap();
    place.commit_all();
    let linked = place.create("linked", "repo").await.unwrap();
    let warning = place.begin("linked").await.unwrap();
    assert!(warning.contains("it is a link") && !is_prepared(&linked), "{warning}");
    // A link above it leads nowhere.
    fs::remove_dir_all(place.at("repo/.a2a-hub")).unwrap();
    fs::create_dir(place.at("out")).unwrap();
    fs::write(place.at("out/worktree.toml"), TRUSTED).unwrap();
    std::os::unix::fs::symlink(place.at("out"), place.at("repo/.a2a-hub")).unwrap();
    place.commit_all();
    let above = place.create("above", "repo").await.unwrap();
    assert_eq!((place.begin("above").await, is_prepared(&above)), (None, false));
}
