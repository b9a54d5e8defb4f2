//! Requests that people type, to test their rules.

use super::{path, shell};
use a2a_hub_protocol::{
    operation::TestedAction,
    permission::{Action, PermissionRequest},
};

/// Name of the program that asks only for what its sandbox would refuse.
const CODEX: &str = "codex";

/// Request of a program of this vendor in a directory, as if the program had sent it.
pub fn request(vendor: &str, action: &TestedAction, directory: &str) -> PermissionRequest {
    let read = match action {
        TestedAction::Run(script) => run(script, directory),
        TestedAction::Edit(path) => {
            file(path, directory).map(|path| Action::Edit { paths: vec![path] })
        }
        TestedAction::Read(path) => {
            file(path, directory).map(|path| Action::Read { paths: vec![path] })
        }
    };
    PermissionRequest {
        vendor: vendor.to_owned(),
        outside_sandbox: vendor == CODEX,
        action: read.unwrap_or_else(|reason| Action::Other {
            reason,
            runs: matches!(action, TestedAction::Run(_)),
        }),
    }
}

fn run(script: &str, directory: &str) -> Result<Action, String> {
    let commands = shell::commands(script)?;
    let directory = path::canonical(directory).ok_or("the directory is not an absolute path")?;
    Ok(Action::Run { commands, directory: directory.to_owned() })
}

fn file(typed: &str, directory: &str) -> Result<String, String> {
    let path = match path::canonical(typed) {
        Some(absolute) => Some(absolute.to_owned()),
        None => path::join(directory, typed),
    };
    path.ok_or_else(|| "the path has `.`, `..`, or characters that no request has".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_request_is_read_like_programs() {
        let of = |action| request("claude", &action, "/w").action;
        let run = of(TestedAction::Run("git log && ls".to_owned()));
        let commands = vec![vec!["git".to_owned(), "log".to_owned()], vec!["ls".to_owned()]];
        assert_eq!(run, Action::Run { commands, directory: "/w".to_owned() });
        assert_eq!(
            of(TestedAction::Edit("src/a".to_owned())),
            Action::Edit { paths: vec!["/w/src/a".to_owned()] }
        );
        assert_eq!(
            of(TestedAction::Read("/etc/hosts".to_owned())),
            Action::Read { paths: vec!["/etc/hosts".to_owned()] }
        );
        for other in
            [TestedAction::Run("ls | wc".to_owned()), TestedAction::Edit("../a".to_owned())]
        {
            assert!(matches!(of(other.clone()), Action::Other { .. }), "{other:?}");
        }
        assert!(request(CODEX, &TestedAction::Run("ls".to_owned()), "/w").outside_sandbox);
    }
}
