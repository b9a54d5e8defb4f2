//! Why something could not be done with a project or a component.

use std::error::Error;

/// What was asked, the rule, and the way out; its sources say what the system or a library said.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AuthoringError {
    kind: Kind,
    message: String,
    fix: Option<String>,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What sort of failure it is, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// There is no project, or none that can be built.
    NoProject,
    /// Something stands where a project was to be.
    Exists,
    /// Something that a build needs is not on this machine.
    NoTool,
    /// The project does not build as it is.
    NotBuilt,
    /// The file is no component.
    NoComponent,
    /// The manifest's file cannot be read.
    NoManifest,
    /// There is no key at that place.
    KeyMissing,
    /// Others than its owner may read the key.
    KeyShared,
    /// There is such a key, and it cannot be used.
    KeyUnusable,
    /// None of the others.
    Other,
}

impl AuthoringError {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), fix: None, source: None }
    }

    /// A failure of something that was being done. One of ours stays what it is, and is mended as it is.
    pub(crate) fn because(doing: String, why: impl Error + Send + Sync + 'static) -> Self {
        let source: Box<dyn Error + Send + Sync> = Box::new(why);
        let ours = source.downcast_ref::<Self>();
        let kind = ours.map_or(Kind::Other, |ours| ours.kind);
        let fix = ours.and_then(|ours| ours.fix.clone());
        Self { kind, message: doing, fix, source: Some(source) }
    }

    /// A failure of somebody else's, with all that it says.
    pub(crate) fn whole(why: &dyn Error) -> Self {
        let mut message = why.to_string();
        let mut cause = why.source();
        while let Some(why) = cause {
            message.push_str(&format!(": {why}"));
            cause = why.source();
        }
        Self::new(Kind::Other, message)
    }

    pub(crate) fn mended_by(self, command: impl Into<String>) -> Self {
        Self { fix: Some(command.into()), ..self }
    }

    /// What sort of failure it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The command that mends it, if one does.
    pub fn fix(&self) -> Option<&str> {
        self.fix.as_deref()
    }
}

/// Says what was being done when something failed.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, AuthoringError>;
}

impl<T, E: Error + Send + Sync + 'static> Doing<T> for Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, AuthoringError> {
        self.map_err(|why| AuthoringError::because(what(), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_stays_what_it_is_wherever_it_is_told() {
        let missing = AuthoringError::new(Kind::NoTool, "no npm").mended_by("apt-get install npm");
        let told = Err::<(), _>(missing).doing(|| "build notes".to_owned()).unwrap_err();
        assert_eq!((told.kind(), told.fix()), (Kind::NoTool, Some("apt-get install npm")));
        assert_eq!(told.to_string(), "build notes");
        assert_eq!(told.source().unwrap().to_string(), "no npm");
        let system = std::fs::read("/no/such/file").doing(|| "read it".to_owned()).unwrap_err();
        assert_eq!((system.kind(), system.fix()), (Kind::Other, None));
    }
}
