//! Programs start in the directory that was opened for them, whatever stands at its path by then.

use super::*;
use std::os::unix::fs::symlink;

#[tokio::test]
async fn program_starts_in_opened_directory_behind_swapped_link() {
    let hub = Fixture::new(System::Linux);
    let root = hub.data.path().canonicalize().unwrap();
    let (work, outside) = (root.join("work"), root.join("outside"));
    fs::create_dir(&work).unwrap();
    fs::create_dir(&outside).unwrap();
    let cwd = WorkingDirectory::open(&work).unwrap();
    fs::rename(&work, root.join("moved")).unwrap();
    symlink(&outside, &work).unwrap();
    let launch = Launch { cwd, ..hub.launch("/bin/pwd", &["-P"]) };
    let mut child = hub.supervisor.spawn(launch).await.unwrap();
    let (stdout, _, _) = finish(&mut child).await;
    assert_eq!(Path::new(str::from_utf8(&stdout).unwrap().trim_end()), root.join("moved"));
}
