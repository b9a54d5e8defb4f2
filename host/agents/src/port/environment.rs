//! The environment of a program, as it is put together.

/// The value of a variable that counts: of two for one name, the later.
pub(crate) fn last<'e>(env: &'e [(String, String)], name: &str) -> Option<&'e str> {
    env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}
