//! Errors about a project or a component.

use std::error::Error;

/// Error message with the request, the rule and the way out; its sources contain the errors of the
/// system or of libraries.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct AuthoringError {
    kind: FailureKind,
    message: String,
    fix: Option<String>,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// Kind of a failure, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The directory contains no project, or none that can be built.
    NoProject,
    /// The path of a new project exists.
    Exists,
    /// A build tool is missing on this machine.
    NoTool,
    /// The project does not build.
    NotBuilt,
    /// The file is no component.
    NoComponent,
    /// The manifest's file cannot be read.
    NoManifest,
    /// The key's file is missing.
    KeyMissing,
    /// Other users may read the key.
    KeyShared,
    /// The key exists and cannot be used.
    KeyUnusable,
    /// Any other failure.
    Other,
}

impl AuthoringError {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), fix: None, source: None }
    }

    /// Wraps an error with the operation that failed. An error of this type keeps its kind and its
    /// fix.
    pub(crate) fn because(doing: String, why: impl Error + Send + Sync + 'static) -> Self {
        let source: Box<dyn Error + Send + Sync> = Box::new(why);
        let ours = source.downcast_ref::<Self>();
        let kind = ours.map_or(FailureKind::Other, |ours| ours.kind);
        let fix = ours.and_then(|ours| ours.fix.clone());
        Self { kind, message: doing, fix, source: Some(source) }
    }

    /// Converts an error of another crate, with its whole chain in the message.
    pub(crate) fn from_error(why: &dyn Error) -> Self {
        let mut message = why.to_string();
        let mut cause = why.source();
        while let Some(why) = cause {
            message.push_str(&format!(": {why}"));
            cause = why.source();
        }
        Self::new(FailureKind::Other, message)
    }

    pub(crate) fn mended_by(self, command: impl Into<String>) -> Self {
        Self { fix: Some(command.into()), ..self }
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Returns the command that fixes the failure, if one is known.
    pub fn fix(&self) -> Option<&str> {
        self.fix.as_deref()
    }
}

/// Extension of `Result` that adds the failed operation to an error.
pub(crate) trait Doing<T> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, AuthoringError>;
}

impl<T, E: Error + Send + Sync + 'static> Doing<T> for Result<T, E> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, AuthoringError> {
        self.map_err(|why| AuthoringError::because(action(), why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_error_keeps_kind_and_fix() {
        let missing =
            AuthoringError::new(FailureKind::NoTool, "no npm").mended_by("apt-get install npm");
        let told = Err::<(), _>(missing).doing(|| "build notes".to_owned()).unwrap_err();
        assert_eq!((told.kind(), told.fix()), (FailureKind::NoTool, Some("apt-get install npm")));
        assert_eq!(told.to_string(), "build notes");
        assert_eq!(told.source().unwrap().to_string(), "no npm");
        let system = std::fs::read("/no/such/file").doing(|| "read it".to_owned()).unwrap_err();
        assert_eq!((system.kind(), system.fix()), (FailureKind::Other, None));
    }
}
