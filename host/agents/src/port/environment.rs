//! Lookup in the environment that is built for a program.

/// Effective value of a variable: the last entry wins.
pub(crate) fn last<'e>(env: &'e [(String, String)], name: &str) -> Option<&'e str> {
    env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}
