//! `plugin keygen` and `plugin sign`: the publisher's key, and detached minisign signatures.

use crate::{
    Exit, Global,
    ui::{
        failure::{CommandError, NO_KEY},
        render::shell_word,
    },
};
use a2a_hub_agents::signature_path;
use a2a_hub_authoring::{
    AuthoringError, Component, FailureKind, KeyFile, NewKey, SigningKey, new_key_must_fit,
};
use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Default file name of the key, in the data directory.
const DEFAULT_KEY: &str = "signing.key";

#[derive(Debug, Args)]
pub(crate) struct Keygen {
    /// File of the secret key. The public key is written beside it, with `.pub` appended to its
    /// name [default: signing.key in the data directory]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Store the secret key without a password, for unattended signing
    #[arg(long)]
    no_password: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Sign {
    /// Component file
    component: PathBuf,
    /// File of the secret key, made by `a2a-hub plugin keygen` or minisign [default: signing.key in
    /// the data directory]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

pub(super) fn keygen(global: &Global, keygen: &Keygen) -> anyhow::Result<Exit> {
    let key_path = key_file(global, keygen.key.as_deref())?;
    new_key_must_fit(&key_path).map_err(|why| {
        CommandError::from_error(&why.into()).saying("; `--key FILE` names another file")
    })?;
    let password = if keygen.no_password { None } else { Some(new_password(global)?) };
    let NewKey { base64, public } = NewKey::make(&key_path, password)?;
    let output = json!({ "key": key_path, "publicKey": base64, "publicKeyFile": public });
    global.show(&output, || {
        let words = format!(
            "the secret key is {}; keep it secret\nthe public key is {base64}\n{}",
            key_path.display(),
            trusting(&base64)
        );
        Ok(words.into())
    })?;
    Ok(Exit::Done)
}

/// Asks twice for the password of a new key.
fn new_password(global: &Global) -> anyhow::Result<String> {
    let password = password(global, "a password for the new key")?;
    if password.is_empty() {
        bail!(CommandError::usage(
            "make a key: the password is empty; `--no-password` makes a key without one".to_owned()
        ));
    }
    if password != self::password(global, "the same password again")? {
        bail!(CommandError::usage("make a key: the passwords differ".to_owned()));
    }
    Ok(password)
}

pub(super) fn sign(global: &Global, sign: &Sign) -> anyhow::Result<Exit> {
    let component = Component::read(&sign.component)?;
    let key = secret_key(global, &key_file(global, sign.key.as_deref())?)?;
    let base64 = key.base64();
    let signature_path = std::path::absolute(signature_path(&component.path))?;
    key.sign(&component, &signature_path)?;
    if component.ask.version.is_none() {
        global.console().note(
            "its manifest has no `version`: an update without a version is not newer than one with \
             a version, and waits for the operator's approval even if it is signed",
        );
    }
    let output =
        json!({ "signature": signature_path, "publicKey": base64, "sha256": component.sha256 });
    global.show(&output, || {
        Ok(format!("{} is the signature\n{}", signature_path.display(), trusting(&base64)).into())
    })?;
    Ok(Exit::Done)
}

/// Instruction for operators that want to trust a key.
fn trusting(base64: &str) -> String {
    format!(
        "to trust this key, an operator sets in the configuration of the hub: plugins.keys.NAME = \
         \"{base64}\"\n"
    )
}

/// Absolute path of the key's file.
fn key_file(global: &Global, named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let path = match named {
        Some(named) => named.to_owned(),
        None => global.data_dir()?.join(DEFAULT_KEY),
    };
    std::path::absolute(path).context("find the key")
}

/// Reads a secret key, and asks for its password if it is encrypted.
fn secret_key(global: &Global, path: &Path) -> anyhow::Result<SigningKey> {
    let file = KeyFile::read(path).map_err(|why| with_way_out(why, path))?;
    let password = file.needs_password().then(|| password(global, "the password of the key"));
    Ok(file.unlock(password.transpose()?)?)
}

/// Adds the command that fixes a key's error.
fn with_way_out(why: AuthoringError, path: &Path) -> CommandError {
    let word = shell_word(&path.display().to_string());
    let kind = why.kind();
    let why = CommandError::from_error(&why.into());
    match kind {
        FailureKind::KeyMissing => {
            let fix = format!("a2a-hub plugin keygen --key {word}");
            why.saying(&format!("; `{fix}` makes one")).mended_by(fix)
        }
        FailureKind::KeyShared => {
            let fix = format!("chmod 600 {word}");
            let way = format!(
                "; `{fix}` restricts it to your user; make a new key if others may have read it"
            );
            why.saying(&way).mended_by(fix)
        }
        FailureKind::NoProject
        | FailureKind::Exists
        | FailureKind::NoTool
        | FailureKind::NotBuilt
        | FailureKind::NoComponent
        | FailureKind::NoManifest
        | FailureKind::KeyUnusable
        | FailureKind::Other => why,
    }
}

/// Asks for a password without echo.
fn password(global: &Global, label: &str) -> anyhow::Result<String> {
    if !global.console().is_attended() {
        let why = format!(
            "ask for {label}: no terminal is attached; use a key that `a2a-hub plugin keygen \
             --no-password` made"
        );
        return Err(CommandError::new(NO_KEY, why).into());
    }
    rpassword::prompt_password(format!("{label}: ")).with_context(|| format!("ask for {label}"))
}
