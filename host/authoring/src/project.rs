//! An agent's project on the disk: its name, its language and its build.

use crate::error::{AuthoringError, Doing as _, FailureKind};
use a2a_hub_protocol::id::AgentId;
use serde::Deserialize;
use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
};

/// File name of an agent's manifest.
pub const MANIFEST: &str = "manifest.toml";

/// Maximum size, in bytes, of a file that describes a project: people write these.
const MAX_BYTES: u64 = 1 << 20;

/// A project.
#[derive(Debug)]
pub struct Project {
    /// Folder of the project, as an absolute path without links.
    pub dir: PathBuf,
    /// Id of the agent.
    pub name: AgentId,
    pub(crate) recipe: Recipe,
}

/// Build of a project.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recipe {
    /// Built by cargo.
    Rust {
        /// Name of the library's file.
        library: String,
    },
    /// Built by a command of the project, which runs in the project's folder.
    Command {
        /// Command that runs once before the build, and again when the first file is newer than the
        /// second.
        prepare: Option<Prepare>,
        /// Program and arguments.
        build: Vec<String>,
        /// Path of the built component, relative to the project.
        component: PathBuf,
    },
}

/// Installation of a project's dependencies.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Prepare {
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// File that lists the dependencies.
    pub(crate) needs: PathBuf,
    /// Path that exists once they are installed.
    pub(crate) installed: PathBuf,
}

#[derive(Deserialize)]
struct CargoToml {
    package: Named,
    lib: Option<Library>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Library {
    name: Option<String>,
}

#[derive(Deserialize)]
struct PyProject {
    project: Named,
    #[serde(default)]
    tool: Tools,
}

#[derive(Default, Deserialize)]
struct Tools {
    #[serde(rename = "a2a-hub")]
    a2a_hub: Option<BuildCommand>,
}

#[derive(Deserialize)]
struct BuildCommand {
    build: Vec<String>,
    component: PathBuf,
}

#[derive(Deserialize)]
struct PackageJson {
    name: String,
    #[serde(rename = "a2a-hub")]
    a2a_hub: Option<JsBuild>,
}

#[derive(Deserialize)]
struct JsBuild {
    component: PathBuf,
}

#[derive(Deserialize)]
struct ManifestId {
    id: Option<String>,
}

impl Project {
    /// Reads the project in this directory.
    ///
    /// # Errors
    /// If the directory contains no project, or none that can be built; and I/O errors.
    pub fn open(dir: &Path) -> Result<Self, AuthoringError> {
        let dir =
            fs::canonicalize(dir).doing(|| format!("look for a project in {}", dir.display()))?;
        let (name, recipe) = recipe(&dir)?;
        let manifest = read(&dir, MANIFEST)?;
        let id = manifest.map(|text| toml::from_str::<ManifestId>(&text)).transpose();
        let id = id.doing(|| format!("read {MANIFEST}"))?.and_then(|manifest| manifest.id);
        let name = id.unwrap_or(name);
        let name = AgentId::parse(&name).map_err(|why| {
            let why = format!(
                "the project in {} is called `{name}`: {why}; say `id = \"...\"` in its {MANIFEST}",
                dir.display()
            );
            AuthoringError::new(FailureKind::NoProject, why)
        })?;
        Ok(Self { dir, name, recipe })
    }

    /// Path of the project's component after a build.
    pub(crate) fn component(&self) -> PathBuf {
        match &self.recipe {
            Recipe::Rust { .. } => self.dir.join("target").join(format!("{}.wasm", self.name)),
            Recipe::Command { component, .. } => self.dir.join(component),
        }
    }

    /// Reads the manifest's text; `None` if the file is missing.
    pub(crate) fn manifest(&self) -> Result<Option<String>, AuthoringError> {
        read(&self.dir, MANIFEST)
    }
}

fn recipe(dir: &Path) -> Result<(String, Recipe), AuthoringError> {
    if let Some(text) = read(dir, "Cargo.toml")? {
        let CargoToml { package, lib } =
            toml::from_str(&text).doing(|| "read Cargo.toml".to_owned())?;
        let library = lib.and_then(|lib| lib.name);
        let library = library.unwrap_or_else(|| package.name.replace('-', "_"));
        return Ok((package.name, Recipe::Rust { library }));
    }
    if let Some(text) = read(dir, "pyproject.toml")? {
        let PyProject { project, tool } =
            toml::from_str(&text).doing(|| "read pyproject.toml".to_owned())?;
        let Some(BuildCommand { build, component }) = tool.a2a_hub else {
            let why = "build the project: its pyproject.toml has no `[tool.a2a-hub]` with `build`, the words of a command, and \
                       `component`, the file that it makes";
            return Err(AuthoringError::new(FailureKind::NoProject, why));
        };
        let recipe = Recipe::Command { prepare: None, build, component: inside(component)? };
        return Ok((project.name, recipe));
    }
    if let Some(text) = read(dir, "package.json")? {
        let PackageJson { name, a2a_hub } =
            serde_json::from_str(&text).doing(|| "read package.json".to_owned())?;
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let component =
            a2a_hub.map_or_else(|| format!("dist/{name}.wasm").into(), |config| config.component);
        let prepare = Prepare {
            command: words(&["npm", "install"]),
            needs: "package.json".into(),
            installed: "node_modules".into(),
        };
        let recipe = Recipe::Command {
            prepare: Some(prepare),
            build: words(&["npm", "run", "build"]),
            component: inside(component)?,
        };
        return Ok((name, recipe));
    }
    let why = format!(
        "no agent's project is in {}: it has neither Cargo.toml nor pyproject.toml nor package.json; name the project's folder, or \
         make one with `a2a-hub plugin new NAME`",
        dir.display()
    );
    Err(AuthoringError::new(FailureKind::NoProject, why).mended_by("a2a-hub plugin new NAME"))
}

/// Checks that a path stays inside the project.
fn inside(path: PathBuf) -> Result<PathBuf, AuthoringError> {
    let stays =
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if stays && path.file_name().is_some() {
        return Ok(path);
    }
    let why = format!(
        "the project says that its component is {}: that is no path inside of it",
        path.display()
    );
    Err(AuthoringError::new(FailureKind::NoProject, why))
}

/// Reads a file of a project; `None` if it is missing.
fn read(dir: &Path, name: &str) -> Result<Option<String>, AuthoringError> {
    let path = dir.join(name);
    let action = || format!("read {}", path.display());
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(why) => return Err(why).doing(action),
    };
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).doing(action)?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Result<(String, Recipe), String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let project = Project::open(dir.path());
        project.map(|it| (it.name.to_string(), it.recipe)).map_err(|why| why.to_string())
    }

    #[test]
    fn project_files_determine_name_and_build() {
        let cargo = "[package]\nname = 'my-agent'\n[lib]\ncrate-type = ['cdylib']";
        let library = "my_agent".to_owned();
        assert_eq!(
            of(&[("Cargo.toml", cargo)]).unwrap(),
            ("my-agent".to_owned(), Recipe::Rust { library })
        );
        let python = "[project]\nname = 'x'\n[tool.a2a-hub]\nbuild = ['python3', 'build.py']\ncomponent = 'dist/x.wasm'";
        let (name, recipe) = of(&[("pyproject.toml", python), (MANIFEST, "id = 'notes'")]).unwrap();
        assert_eq!(name, "notes", "the manifest's word counts");
        assert!(
            matches!(recipe, Recipe::Command { prepare: None, build, .. } if build == ["python3", "build.py"])
        );
        let (_, recipe) = of(&[("package.json", r#"{"name": "x"}"#)]).unwrap();
        assert!(
            matches!(recipe, Recipe::Command { prepare: Some(_), component, .. } if component == Path::new("dist/x.wasm"))
        );
    }

    #[test]
    fn invalid_project_error_names_fix() {
        assert!(of(&[]).unwrap_err().contains("`a2a-hub plugin new NAME`"));
        let named = of(&[("Cargo.toml", "[package]\nname = 'My_Agent'")]).unwrap_err();
        assert!(named.contains("say `id = "), "{named}");
        for component in ["/etc/passwd", "../x.wasm", "a/../../x", ""] {
            let json = format!(r#"{{"name": "x", "a2a-hub": {{"component": "{component}"}}}}"#);
            assert!(
                of(&[("package.json", &json)]).unwrap_err().contains("no path inside"),
                "{component}"
            );
        }
    }
}
