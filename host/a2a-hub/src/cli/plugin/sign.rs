//! `plugin keygen` and `plugin sign`: a publisher's key, and signatures of minisign beside components.

use super::component::Component;
use crate::cli::{Exit, Global, failure::CommandError, render::shell_word};
use a2a_hub_agents::beside;
use a2a_hub_config::own_file::{self, NotOwn};
use a2a_hub_core::{
    plain_text,
    signature::{Provenance, TrustedKeys},
};
use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;
use minisign::{KeyPair, PublicKey, SecretKey, SecretKeyBox};
use rustix::fs::{Mode, OFlags};
use serde_json::json;
use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

/// There is no such key, or it cannot be used.
const NO_KEY: &str = "KEY_UNUSABLE";

/// Bytes of a key's file: two lines.
const MAX_BYTES: u64 = 4 << 10;

/// What a key is called in the data directory.
const OWN_KEY: &str = "signing.key";

#[derive(Debug, Args)]
pub(in crate::cli) struct Keygen {
    /// Where the secret key goes; the public one goes beside it, with `.pub` at its end [default: signing.key in the data directory]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Protect it with no password: for machines that sign by themselves
    #[arg(long)]
    no_password: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct Sign {
    /// The component
    component: PathBuf,
    /// The secret key, as `plugin keygen` or minisign made it [default: signing.key in the data directory]
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

pub(super) fn keygen(global: &Global, keygen: &Keygen) -> anyhow::Result<Exit> {
    let place = key_file(global, keygen.key.as_deref())?;
    let public = public_of(&place);
    // Before anybody thinks of a password.
    for file in [&place, &public] {
        if fs::symlink_metadata(file).is_ok() {
            let why = format!(
                "make a key: {} is there already, and no key is ever overwritten; `--key FILE` makes another one elsewhere",
                file.display()
            );
            return Err(CommandError::new(NO_KEY, why).into());
        }
    }
    let pair = if keygen.no_password {
        KeyPair::generate_unencrypted_keypair()
    } else {
        let password = password(global, "a password for the new key")?;
        if password.is_empty() {
            bail!(CommandError::usage(
                "make a key: the password is empty; `--no-password` makes a key without one"
                    .to_owned()
            ));
        }
        if password != self::password(global, "the same password again")? {
            bail!(CommandError::usage("make a key: the passwords are not the same".to_owned()));
        }
        KeyPair::generate_encrypted_keypair(Some(password))
    };
    let KeyPair { pk, sk } = pair.context("make a key")?;
    let folder = place.parent().unwrap_or(&place);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("make {}", folder.display()))?;
    let comment = Some("secret key of an a2a-hub publisher");
    write_new(&place, sk.to_box(comment).context("make a key")?.to_string().as_bytes())?;
    if let Err(why) = write_new(&public, pk.to_box().context("make a key")?.to_string().as_bytes())
    {
        // The one without the other is of no use.
        let _ = fs::remove_file(&place);
        return Err(why);
    }
    let base64 = pk.to_base64();
    let told = json!({ "key": place, "publicKey": base64, "publicKeyFile": public });
    global.show(&told, || {
        let words = format!(
            "the secret key is {}; keep it to yourself\nthe public key is {base64}\n{}",
            place.display(),
            trusting(&base64)
        );
        Ok(words.into())
    })?;
    Ok(Exit::Done)
}

pub(super) fn sign(global: &Global, sign: &Sign) -> anyhow::Result<Exit> {
    let component = Component::read(&sign.component)?;
    let key = secret_key(global, &key_file(global, sign.key.as_deref())?)?;
    let public = PublicKey::from_secret_key(&key).context("read the key")?;
    let name = component.path.file_name().unwrap_or_default().to_string_lossy();
    let now = Timestamp::now().as_second();
    let comment = format!("timestamp:{now}\tfile:{}\thashed", plain_text::line(&name, 200));
    let signed = minisign::sign(
        Some(&public),
        &key,
        &*component.bytes,
        Some(&comment),
        Some("signature of an a2a-hub publisher"),
    );
    let signature = signed.context("sign")?.into_string();
    let base64 = public.to_base64();
    must_be_accepted(&component, &signature, &base64)?;
    let place = std::path::absolute(beside(&component.path))?;
    own_file::replace(&place, signature.as_bytes())
        .with_context(|| format!("write {}", place.display()))?;
    if component.ask.version.is_none() {
        global.console().note(
            "its manifest says no `version`: an update that says none is not taken for newer than one that does, and waits for the \
             operator though you signed it",
        );
    }
    let told = json!({ "signature": place, "publicKey": base64, "sha256": component.sha256 });
    global.show(&told, || {
        Ok(format!("{} is the signature\n{}", place.display(), trusting(&base64)).into())
    })?;
    Ok(Exit::Done)
}

/// How others come to trust a key.
fn trusting(base64: &str) -> String {
    format!(
        "whoever trusts you says, in the configuration of the hub: plugins.keys.NAME = \"{base64}\"\n"
    )
}

/// Has the signature judged as any hub judges it, before anybody else does.
fn must_be_accepted(component: &Component, signature: &str, base64: &str) -> anyhow::Result<()> {
    let named = [("it".to_owned(), base64.to_owned())];
    let keys = TrustedKeys::named(named.iter().map(|(name, key)| (name, key)))?;
    match keys.provenance(&component.bytes, Some(signature)) {
        Provenance::Signed(_) => Ok(()),
        Provenance::Unsigned
        | Provenance::Stranger
        | Provenance::Forged(_)
        | Provenance::Unreadable(_) => {
            bail!(
                "sign {}: no hub would accept this signature; is the key damaged?",
                component.path.display()
            )
        }
    }
}

/// Where the key is, as an absolute path.
fn key_file(global: &Global, named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let place = match named {
        Some(named) => named.to_owned(),
        None => global.data_dir()?.join(OWN_KEY),
    };
    std::path::absolute(place).context("find the key")
}

fn public_of(key: &Path) -> PathBuf {
    let mut name = key.as_os_str().to_owned();
    name.push(".pub");
    name.into()
}

/// Writes a file of mode 0600 that was not there, on the disk when this returns.
fn write_new(place: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made = rustix::fs::open(place, flags, Mode::RUSR | Mode::WUSR).map_err(io::Error::from);
    let mut file = File::from(made.with_context(|| format!("make {}", place.display()))?);
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a key is none, and would be in the way of a whole one.
        let _ = fs::remove_file(place);
    }
    written.with_context(|| format!("write {}", place.display()))
}

/// Reads a secret key that nobody else can read.
fn secret_key(global: &Global, place: &Path) -> anyhow::Result<SecretKey> {
    let shown = place.display();
    let refused = |why: String, fix: Option<String>| {
        let error = CommandError::new(NO_KEY, format!("read the key {shown}: {why}"));
        match fix {
            Some(fix) => error.mended_by(fix),
            None => error,
        }
    };
    let word = shell_word(&shown.to_string());
    let file = own_file::open(place, 0o077).map_err(|why| match why {
        NotOwn::Io(why) if why.kind() == io::ErrorKind::NotFound => refused(
            format!("there is none; `a2a-hub plugin keygen --key {word}` makes one"),
            Some(format!("a2a-hub plugin keygen --key {word}")),
        ),
        NotOwn::Io(why) => refused(why.to_string(), None),
        NotOwn::Link | NotOwn::NotPlain => {
            refused("it is no plain file; name the file itself".to_owned(), None)
        }
        NotOwn::Foreign => refused("it belongs to another user".to_owned(), None),
        NotOwn::Shared => refused(
            format!(
                "others may read it; `chmod 600 {word}` keeps it to you, if nobody has read it yet"
            ),
            Some(format!("chmod 600 {word}")),
        ),
    })?;
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).with_context(|| format!("read {shown}"))?;
    let boxed = || SecretKeyBox::from(text.clone());
    match boxed().into_unencrypted_secret_key() {
        Ok(key) => Ok(key),
        Err(why) if why.to_string().contains("encrypted") => {
            let password = password(global, "the password of the key")?;
            let key = boxed().into_secret_key(Some(password));
            Ok(key.map_err(|why| refused(why.to_string(), None))?)
        }
        Err(why) => Err(refused(format!("it is no secret key of minisign ({why})"), None).into()),
    }
}

/// Asks for a password, which the terminal does not show.
fn password(global: &Global, what: &str) -> anyhow::Result<String> {
    if !global.console().is_attended() {
        let why = format!(
            "ask for {what}: nobody sits at a terminal who could type it; use a key that `a2a-hub plugin keygen --no-password` made"
        );
        return Err(CommandError::new(NO_KEY, why).into());
    }
    rpassword::prompt_password(format!("{what}: ")).with_context(|| format!("ask for {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn no_key_is_overwritten_and_none_is_for_others() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("a key");
        write_new(&place, b"secret").unwrap();
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(write_new(&place, b"other").is_err());
        assert_eq!(fs::read(&place).unwrap(), b"secret");
        let link = dir.path().join("link");
        symlink(dir.path().join("elsewhere"), &link).unwrap();
        assert!(write_new(&link, b"x").is_err());
        assert!(!dir.path().join("elsewhere").exists());
        assert_eq!(public_of(&place), dir.path().join("a key.pub"));
    }

    #[test]
    fn what_is_signed_is_accepted_for_that_component_only() {
        let KeyPair { pk, sk } = KeyPair::generate_unencrypted_keypair().unwrap();
        let component = |bytes: &[u8]| {
            let bytes = [b"\0asm\x0d\0\x01\0", bytes].concat();
            Component::of("x.wasm".into(), bytes).unwrap()
        };
        let one = component(b"");
        let signed = minisign::sign(Some(&pk), &sk, &*one.bytes, None, None).unwrap().into_string();
        must_be_accepted(&one, &signed, &pk.to_base64()).unwrap();
        let other = component(b"\0\x02\x01n");
        assert!(must_be_accepted(&other, &signed, &pk.to_base64()).is_err());
    }
}
