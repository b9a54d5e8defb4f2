//! Path of a value in a document. It also decides how its reader treats a value of another form:
//! requests of clients are refused with the path; answers of remote agents are read as far as
//! possible, and the path of each skipped value is collected for the log.

use crate::model::{error::A2aError, message::Part};
use serde_json::Value;
use std::{cell::RefCell, fmt, ops::Deref, rc::Rc};

/// Most skipped values that are collected for one document.
const MAX_SKIPPED: usize = 16;

/// Path of a value, such as `message.parts[0]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonPath {
    path: String,
    /// `None` if the first value of another form refuses the document.
    tolerance: Option<Tolerance>,
}

/// Reader of a part in one form.
pub(crate) type PartReader = fn(Value, JsonPath) -> Result<Part, A2aError>;

/// Forms that a tolerant reader accepts, and what it skips.
#[derive(Clone, Debug)]
struct Tolerance {
    /// Readers of parts in all forms.
    parts: &'static [PartReader],
    /// Reasons for the skipped values.
    skipped: Rc<RefCell<Vec<String>>>,
}

/// Answer of a remote agent, as far as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Tolerant<T> {
    /// The answer without the skipped values.
    pub value: T,
    /// Skipped values, each with its path and the reason.
    pub skipped: Vec<String>,
}

impl<T> Tolerant<T> {
    /// Reads a document tolerantly, whose own path is `path`. `parts` are the readers of parts in
    /// all forms.
    pub(crate) fn read(
        path: &str,
        parts: &'static [PartReader],
        read: impl FnOnce(JsonPath) -> Result<T, A2aError>,
    ) -> Result<Self, A2aError> {
        let skipped = Rc::default();
        let tolerance = Some(Tolerance { parts, skipped: Rc::clone(&skipped) });
        let value = read(JsonPath { path: path.to_owned(), tolerance })?;
        Ok(Self { value, skipped: skipped.take() })
    }
}

impl JsonPath {
    /// True if values of another form are skipped.
    pub(crate) fn is_tolerant(&self) -> bool {
        self.tolerance.is_some()
    }

    /// Readers of parts in all forms; `None` for a strict reader.
    pub(crate) fn part_readers(&self) -> Option<&'static [PartReader]> {
        self.tolerance.as_ref().map(|tolerance| tolerance.parts)
    }

    /// The same path for a strict reader.
    pub(crate) fn strict(&self) -> Self {
        Self::from(self.path.clone())
    }

    /// Path of the member `name`.
    pub(crate) fn member(&self, name: &str) -> Self {
        let path = match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        Self { path, tolerance: self.tolerance.clone() }
    }

    /// Path of the item `n` of a list.
    pub(crate) fn item(&self, n: usize) -> Self {
        Self { path: format!("{}[{n}]", self.path), tolerance: self.tolerance.clone() }
    }

    /// Skips a value for this reason; returns the reason to a strict reader.
    pub(crate) fn skip(&self, why: A2aError) -> Result<(), A2aError> {
        let Some(tolerance) = &self.tolerance else { return Err(why) };
        let mut skipped = tolerance.skipped.borrow_mut();
        if skipped.len() < MAX_SKIPPED {
            skipped.push(why.message);
        }
        Ok(())
    }
}

impl From<&str> for JsonPath {
    fn from(path: &str) -> Self {
        Self::from(path.to_owned())
    }
}

impl From<String> for JsonPath {
    fn from(path: String) -> Self {
        Self { path, tolerance: None }
    }
}

impl Deref for JsonPath {
    type Target = str;

    fn deref(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}
