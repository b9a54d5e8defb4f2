//! `plugin add`: fetches a component, checks its signature, shows what it asks for, and puts it
//! into the plugins folder.

use super::{
    component::{self, file_of, name},
    edit,
    fetch::{self, Fetched},
    grant, grant_effect,
    grant_options::GrantOptions,
    inspect,
};
use crate::{
    Exit, Global,
    ui::{failure::CommandError, text::PLAIN},
};
use a2a_hub_agents::{PluginEdit, signature_path};
use a2a_hub_authoring::{Component, MAX_BYTES, read_at_most};
use a2a_hub_config::GrantsFile;
use a2a_hub_core::plugin::signature::{MAX_BYTES as SIGNATURE_BYTES, Provenance};
use a2a_hub_protocol::{
    member,
    operation::{AddPlugin, ComponentSource},
};
use anyhow::Context as _;
use serde_json::json;
use std::{
    io,
    path::{Path, PathBuf},
};

/// Reason of a refusal: a plug-in of that name exists.
const TAKEN: &str = "PLUGIN_EXISTS";

/// Reason of a refusal: the component is not signed by a trusted key.
const UNTRUSTED: &str = "UNTRUSTED_COMPONENT";

pub(super) fn add(
    global: &Global,
    from: &str,
    named: Option<&str>,
    wanted: &GrantOptions,
) -> anyhow::Result<Exit> {
    edit::require_operator(global, &format!("add {from}"))?;
    let plugins = global.settings(Vec::new())?.config.plugins;
    let is_elsewhere = from.contains("://");
    let (fetched, policy) = if is_elsewhere {
        (fetch::fetch(from)?, plugins.policy_for_downloads())
    } else {
        (of_file(Path::new(from))?, plugins.policy_for_files())
    };
    let Fetched { component, signature } = fetched;
    let provenance = plugins.trusted_keys()?.provenance(&component, signature.as_deref());
    policy
        .admit(&provenance)
        .map_err(|why| CommandError::new(UNTRUSTED, format!("add {from}: {why}")))?;
    let component = Component::new(PathBuf::from(from), component)?;
    let id = name(&named.map_or_else(|| its_name(&component), str::to_owned))?;
    let is_for = component.ask.is_for(&id);
    is_for.map_err(|why| CommandError::usage(format!("add {from} as `{id}`: {why}")))?;
    let path = file_of(global, &id)?;
    let is_granted = GrantsFile::new(&global.data_dir()?).read()?.plugins.contains_key(&id);
    if path.exists() && !is_granted {
        let why = format!(
            "add {from}: a plug-in `{id}` exists already; remove it with `a2a-hub plugin remove \
             {id}`, or choose another `--name`"
        );
        let taken = CommandError::new(TAKEN, why);
        return Err(taken.mended_by(format!("a2a-hub plugin remove {id}")).into());
    }
    let grant = match wanted.is_empty() {
        true => None,
        false => Some(grant::planned(global, &id, &component, wanted)?),
    };
    let sha256 = component.sha256.clone();
    let added = AddPlugin {
        id: id.clone(),
        component: ComponentSource::Bytes(component.bytes.clone()),
        sha256,
        signature,
        grant,
    };
    let plugin = edit::edit(global, PluginEdit::Add(Box::new(added)))?;
    let mut details = component::to_json(&component);
    member::set(&mut details, "signedBy", json!(provenance.signer()));
    let all = json!({ "agentId": id, "component": details, "plugin": plugin });
    global.show(&all, || {
        let mut shown = inspect::component_text(&details, global.console().columns());
        let signed = signed(&provenance);
        let (asks, line) = match wanted.is_empty() && !inspect::asks_for_nothing(&details) {
            true => {
                let command = format!("grant them with: a2a-hub plugin grant {id}\n");
                (command, grant_effect::line_after_requests(plugin.as_ref()))
            }
            false => (String::new(), grant_effect::line(plugin.as_ref())),
        };
        shown.push(PLAIN, &format!("{signed}\n{id} is in the plugins folder: {line}\n{asks}"));
        Ok(shown)
    })?;
    // The file is in the plugins folder, but the hub refuses to load it.
    Ok(if grant_effect::is_refused(plugin.as_ref()) { Exit::Fault } else { Exit::Done })
}

/// Reads a local component and the signature file beside it, if one exists.
fn of_file(path: &Path) -> anyhow::Result<Fetched> {
    let component = read_at_most(path, MAX_BYTES);
    let component = component.with_context(|| format!("read {}", path.display()))?;
    let signature = match read_at_most(&signature_path(path), SIGNATURE_BYTES as u64) {
        // Bytes that are not UTF-8 are no signature; the check reports them as unreadable.
        Ok(text) => Some(String::from_utf8_lossy(&text).into_owned()),
        Err(why) if why.kind() == io::ErrorKind::NotFound => None,
        Err(why) => return Err(why).context("read the signature beside it"),
    };
    Ok(Fetched { component, signature })
}

/// Default name of a component: its manifest's id, or else its file's name.
fn its_name(component: &Component) -> String {
    if let Some(id) = &component.ask.id {
        return id.to_string();
    }
    let stem = component.path.file_stem().unwrap_or_default().to_string_lossy();
    stem.to_ascii_lowercase().replace('_', "-")
}

fn signed(provenance: &Provenance) -> String {
    match provenance {
        Provenance::Signed(key) => format!("It is signed by `{key}`."),
        Provenance::Unsigned => "It is not signed.".to_owned(),
        Provenance::Stranger => {
            "It is signed with a key that `plugins.keys` does not name.".to_owned()
        }
        Provenance::Forged(key) => format!("Its signature by `{key}` is for another file."),
        Provenance::Old(key) => {
            format!(
                "Its signature by `{key}` is in minisign's legacy format, which is not supported."
            )
        }
        Provenance::Unreadable(why) => format!("Its signature cannot be read: {why}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn component_name_defaults_to_file_stem() {
        let component = |manifest: &str, path: &str| Component {
            path: path.into(),
            bytes: Vec::new(),
            sha256: String::new(),
            ask: toml::from_str(manifest).unwrap(),
        };
        assert_eq!(its_name(&component("", "/x/My_Notes.wasm")), "my-notes");
        assert_eq!(its_name(&component("id = 'notes'", "https://host/x.wasm")), "notes");
    }
}
