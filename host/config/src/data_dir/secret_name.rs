//! Names of secrets in the configuration.

/// Rule for the names of secrets, for an error.
pub(crate) const SECRET_NAME_RULE: &str =
    "name a secret by letters, digits, `_` and `-`, and do not write it here";

/// True if the text may name a secret. The name becomes a file name.
pub(crate) fn is_secret_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=64).contains(&name.len()) && name.bytes().all(is_plain)
}
