//! Vendored Rust SDK of a project: a package outside the workspace, with the dependency versions
//! that this program was tested with.

use crate::error::{AuthoringError, Doing as _, FailureKind};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Name of the SDK's package.
const SDK: &str = "a2a-hub-sdk";

/// Resolves `workspace = true` in the SDK's manifest, and removes its development dependencies.
pub(crate) fn standalone_sdk_manifest(sdk: &str, workspace: &str) -> Result<Table, AuthoringError> {
    let mut sdk: Table = sdk.parse().doing(|| "read the SDK's manifest".to_owned())?;
    // Warnings in the SDK are not the agent's author's to fix.
    let quiet = Table::from_iter([("warnings".to_owned(), Value::from("allow"))]);
    let mut workspace: Table =
        workspace.parse().doing(|| "read the workspace's manifest".to_owned())?;
    let workspace = table(&mut workspace, "workspace")?;
    for name in ["dev-dependencies", "lints", "test", "bench", "example"] {
        sdk.remove(name);
    }
    sdk.insert("lints".to_owned(), Table::from_iter([("rust".to_owned(), quiet.into())]).into());
    let shared = table(workspace, "package")?.clone();
    for (name, value) in table(&mut sdk, "package")? {
        if is_inherited(value) {
            *value = inherited(&shared, name)?;
        }
    }
    let versions = table(workspace, "dependencies")?.clone();
    for (name, value) in table(&mut sdk, "dependencies")? {
        if is_inherited(value) {
            *value = merged(inherited(&versions, name)?, value);
        }
    }
    Ok(sdk)
}

/// Builds the lock file of the project `name`: the subset of the hub's own lock that the SDK with
/// this manifest needs. Returns `None` if a dependency has the project's name, because cargo then
/// disambiguates them itself.
pub(crate) fn lock(name: &str, sdk: &Table, lock: &str) -> Result<Option<String>, AuthoringError> {
    let mut lock: Table = lock.parse().doing(|| "read the lock".to_owned())?;
    let packages = lock.remove("package").unwrap_or(Value::Array(Vec::new()));
    let packages: Vec<Table> =
        packages.try_into().doing(|| "read the packages of the lock".to_owned())?;
    let needed: BTreeSet<&str> = sdk
        .get("dependencies")
        .and_then(Value::as_table)
        .into_iter()
        .flat_map(Table::keys)
        .map(String::as_str)
        .collect();
    let mut selected = BTreeMap::new();
    let mut pending = vec![SDK.to_owned()];
    while let Some(word) = pending.pop() {
        let mut package = find(&packages, &word)
            .ok_or_else(|| lacks(format!("the lock has no package `{word}`")))?
            .clone();
        let id = (text(&package, "name"), text(&package, "version"));
        if selected.contains_key(&id) {
            continue;
        }
        let mut dependencies = words(&package);
        if id.0 == SDK {
            dependencies.retain(|word| needed.contains(name_in(word)));
            package.insert("dependencies".to_owned(), dependencies.clone().into());
        }
        pending.extend(dependencies);
        selected.insert(id, package);
    }
    if selected.keys().any(|(there, _)| there == name) {
        return Ok(None);
    }
    let mut project = Table::new();
    project.insert("name".to_owned(), name.into());
    project.insert("version".to_owned(), "0.1.0".into());
    project.insert("dependencies".to_owned(), vec![SDK.to_owned()].into());
    selected.insert((name.to_owned(), "0.1.0".to_owned()), project);
    lock.insert("package".to_owned(), selected.into_values().collect::<Vec<_>>().into());
    let lock = toml::to_string(&lock).doing(|| "write the lock".to_owned())?;
    Ok(Some(lock))
}

fn table<'a>(of: &'a mut Table, name: &str) -> Result<&'a mut Table, AuthoringError> {
    let inner = of.get_mut(name).and_then(Value::as_table_mut);
    inner.ok_or_else(|| lacks(format!("there is no table `{name}`")))
}

/// Error about unexpected contents of this program.
fn lacks(message: String) -> AuthoringError {
    AuthoringError::new(FailureKind::Other, message)
}

fn is_inherited(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

fn inherited(from: &Table, name: &str) -> Result<Value, AuthoringError> {
    let there = from.get(name).cloned();
    there.ok_or_else(|| lacks(format!("the workspace says nothing of `{name}`")))
}

/// Merges a workspace's dependency with a member's additions.
fn merged(dependency: Value, member: &Value) -> Value {
    let mut dependency = match dependency.as_table() {
        Some(table) => table.clone(),
        None => Table::from_iter([("version".to_owned(), dependency)]),
    };
    for (name, value) in member.as_table().into_iter().flatten() {
        match (name.as_str(), value) {
            ("workspace", _) => {}
            ("features", Value::Array(more)) => {
                let features = dependency.entry("features").or_insert(Value::Array(Vec::new()));
                if let Value::Array(features) = features {
                    features.extend(more.iter().cloned());
                }
            }
            (name, value) => drop(dependency.insert(name.to_owned(), value.clone())),
        }
    }
    Value::Table(dependency)
}

/// Finds the package of a lock's dependency entry: a name, and a version if several exist.
fn find<'a>(packages: &'a [Table], word: &str) -> Option<&'a Table> {
    let version = word.split(' ').nth(1);
    packages.iter().find(|package| {
        text(package, "name") == name_in(word)
            && version.is_none_or(|version| text(package, "version") == version)
    })
}

fn name_in(word: &str) -> &str {
    word.split(' ').next().unwrap_or(word)
}

fn text(package: &Table, name: &str) -> String {
    package.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn words(package: &Table) -> Vec<String> {
    let words = package.get("dependencies").and_then(Value::as_array);
    words.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKSPACE: &str = r#"
        [workspace.package]
        version = "0.1.0"
        edition = "2024"
        [workspace.dependencies]
        serde = { version = "1", features = ["derive"] }
        similar = "2"
        trybuild = "1"
    "#;
    const MEMBER: &str = r#"
        [package]
        name = "a2a-hub-sdk"
        version.workspace = true
        edition.workspace = true
        [dependencies]
        serde = { workspace = true, features = ["rc"] }
        similar.workspace = true
        [dev-dependencies]
        trybuild.workspace = true
        [lints]
        workspace = true
    "#;
    const LOCK: &str = r#"
        version = 4
        [[package]]
        name = "a2a-hub-sdk"
        version = "0.1.0"
        dependencies = ["serde", "similar 2.1.0", "trybuild"]
        [[package]]
        name = "serde"
        version = "1.0.1"
        source = "registry"
        dependencies = ["similar 2.1.0"]
        [[package]]
        name = "similar"
        version = "2.0.0"
        [[package]]
        name = "similar"
        version = "2.1.0"
        [[package]]
        name = "trybuild"
        version = "1.0.0"
    "#;

    #[test]
    fn vendored_sdk_manifest_is_standalone() {
        let manifest = standalone_sdk_manifest(MEMBER, WORKSPACE).unwrap();
        insta::assert_snapshot!(toml::to_string(&manifest).unwrap(), @r#"
        [dependencies.serde]
        features = ["derive", "rc"]
        version = "1"

        [dependencies.similar]
        version = "2"

        [lints.rust]
        warnings = "allow"

        [package]
        edition = "2024"
        name = "a2a-hub-sdk"
        version = "0.1.0"
        "#);
    }

    #[test]
    fn project_lock_matches_tested_versions() {
        let manifest = standalone_sdk_manifest(MEMBER, WORKSPACE).unwrap();
        let locked = lock("notes", &manifest, LOCK).unwrap().unwrap();
        let locked: Table = locked.parse().unwrap();
        let packages = locked["package"].as_array().unwrap();
        let told = packages.iter().map(|package| {
            let package = package.as_table().unwrap();
            format!(
                "{} {} {}",
                text(package, "name"),
                text(package, "version"),
                words(package).join("+")
            )
        });
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                "a2a-hub-sdk 0.1.0 serde+similar 2.1.0",
                "notes 0.1.0 a2a-hub-sdk",
                "serde 1.0.1 similar 2.1.0",
                "similar 2.1.0 "
            ]
        );
        assert_eq!(lock("serde", &manifest, LOCK).unwrap(), None, "cargo makes its own");
    }
}
