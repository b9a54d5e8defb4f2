//! `worktrees trust`: shows a repository's file for worktrees, or its difference to the trusted
//! one, and trusts it.

use crate::{
    Exit, Global, block_on,
    commands::flow::trust::{Confirmation, require_operator},
};
use a2a_hub_config::{
    RepositoryFile, TrustedWorktrees,
    private_file::{self, NotPrivate},
};
use a2a_hub_sandbox::digest_of;
use a2a_hub_worktrees::{MAX_REPOSITORY_CONFIG, REPOSITORY_CONFIG, RepositoryPaths};
use anyhow::{Context as _, anyhow, bail};
use serde_json::json;
use std::{io::Read as _, path::Path};

/// Trusts the file of the repository that a directory lies in, as it is shown, or no longer.
pub(super) fn trust(
    global: &Global,
    dir: Option<&Path>,
    yes: bool,
    revoke: bool,
) -> anyhow::Result<Exit> {
    let data_dir = global.data_dir()?;
    block_on(require_operator(global, "trust the setup of a repository"))?;
    let RepositoryPaths { checkout, repository } =
        RepositoryPaths::find(dir.unwrap_or(Path::new(".")))?;
    let trusted = TrustedWorktrees::new(&data_dir);
    let location = checkout.as_ref().unwrap_or(&repository).display().to_string();
    let answer = |is_trusted: bool, digest: Option<String>| json!({ "repository": location, "trusted": is_trusted, "sha256": digest });
    if revoke {
        let revoked = trusted.revoke(&repository);
        revoked
            .with_context(|| format!("trust the `{REPOSITORY_CONFIG}` of {location} no longer"))?;
        let message = format!("the `{REPOSITORY_CONFIG}` of {location} is not trusted any more\n");
        global.show(&answer(false, None), || Ok(message.into()))?;
        return Ok(Exit::Done);
    }
    let Some(checkout) = &checkout else {
        bail!(
            "trust the `{REPOSITORY_CONFIG}` of {location}: it has no checkout, in which the file can be read; make one (`git worktree add`), \
             and name that"
        );
    };
    let text = text_of(&checkout.join(REPOSITORY_CONFIG))
        .with_context(|| format!("trust {}", checkout.join(REPOSITORY_CONFIG).display()))?;
    let before = trusted.text(&repository);
    let before = before.with_context(|| format!("read {}", trusted.path(&repository).display()))?;
    let asks = Confirmation {
        summary: None,
        subject: &format!("the `{REPOSITORY_CONFIG}` of {location}"),
        command: &format!("a2a-hub worktrees trust {location}"),
        effect: "Its programs run, and its files are copied, in each worktree whose base commit has exactly this file.",
    };
    let is_known = before.as_deref() == Some(&text);
    if !is_known && !yes && !asks.is_confirmed(global, before.as_deref(), &text)? {
        let message = format!("the `{REPOSITORY_CONFIG}` of {location} is not trusted\n");
        global.show(&answer(false, None), || Ok(message.into()))?;
        return Ok(Exit::Done);
    }
    let message = if is_known {
        format!("the `{REPOSITORY_CONFIG}` of {location} is trusted already\n")
    } else {
        // The text that was shown, whatever the file holds by now.
        let done = trusted.trust(&repository, &text);
        done.with_context(|| format!("trust the `{REPOSITORY_CONFIG}` of {location}"))?;
        format!(
            "the `{REPOSITORY_CONFIG}` of {location} is trusted, in commits that have this text\n"
        )
    };
    global.show(&answer(true, Some(digest_of(text.as_bytes()))), || Ok(message.into()))?;
    Ok(Exit::Done)
}

/// Text of the file, if it is one that can count.
fn text_of(file: &Path) -> anyhow::Result<String> {
    let open = private_file::open(file, 0o002).map_err(|why| match why {
        NotPrivate::Io(why) => anyhow::Error::from(why),
        NotPrivate::Link | NotPrivate::NotPlain | NotPrivate::Foreign | NotPrivate::Shared => anyhow!(
            "it is a link, or all others can write it; make it a plain file of your own, and run `chmod o-w` on it"
        ),
    })?;
    let mut bytes = Vec::new();
    open.take(MAX_REPOSITORY_CONFIG as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_REPOSITORY_CONFIG {
        bail!(
            "it is larger than {} KiB; leave out what does not set a worktree up",
            MAX_REPOSITORY_CONFIG >> 10
        );
    }
    let text =
        String::from_utf8(bytes).map_err(|_| anyhow!("it is not UTF-8; save it as UTF-8"))?;
    RepositoryFile::parse(&text).map_err(anyhow::Error::msg)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn only_small_right_files_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("worktree.toml");
        let refused = |bytes: &[u8]| {
            fs::write(&file, bytes).unwrap();
            format!("{:#}", text_of(&file).unwrap_err())
        };
        assert!(refused(&vec![b'#'; MAX_REPOSITORY_CONFIG + 1]).contains("64 KiB"));
        assert!(refused(b"# \xff").contains("UTF-8"));
        assert!(refused(b"ports = 1\nteardown = []").contains("line 2, column 1"));
        fs::write(&file, "ports = 1\n").unwrap();
        assert_eq!(text_of(&file).unwrap(), "ports = 1\n");
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(format!("{:#}", text_of(&link).unwrap_err()).contains("link"));
        assert!(text_of(&dir.path().join("missing")).is_err());
    }
}
