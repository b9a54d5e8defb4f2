//! Plain words for `serde` errors, which name Rust types.

/// Type names in `serde` errors, with their equivalents for authors of JSON or TOML.
const TYPES: &[(&str, &str)] = &[
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number, 0 or more"),
    ("u64", "a whole number, 0 or more"),
    ("usize", "a whole number, 0 or more"),
    ("i8", "a whole number"),
    ("i16", "a whole number"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
    ("isize", "a whole number"),
    ("f32", "a number"),
    ("f64", "a number"),
    ("a boolean", "true or false"),
    ("a sequence", "a list"),
    ("a map", "an object"),
    ("struct", "an object"),
    ("tuple struct", "a list"),
    ("internally tagged enum", "an object"),
];

/// Text before the type name in an error.
const EXPECTED: &str = ", expected ";

/// Replaces the type name in a `serde` error `message`.
pub fn plain(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(EXPECTED) else { return message.to_owned() };
    let (name, rest) = named(expected);
    let Some((_, words)) = TYPES.iter().find(|(known, _)| *known == name) else {
        return message.to_owned();
    };
    format!("{found}{EXPECTED}{words}{rest}")
}

/// Splits `expected` into the type name and the rest. The name of a struct is dropped, because it
/// is internal.
fn named(expected: &str) -> (&str, &str) {
    for kind in ["tuple struct", "struct", "internally tagged enum"] {
        if let Some(name) = expected.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' ')) {
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
            return (kind, &name[end..]);
        }
    }
    let known = TYPES.iter().filter_map(|(name, _)| {
        let rest = expected.strip_prefix(name)?;
        let ends = !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        ends.then_some((*name, rest))
    });
    known.max_by_key(|(name, _)| name.len()).unwrap_or((expected, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Offered {
        count: Option<usize>,
        port: Option<u16>,
        on: Option<bool>,
        name: Option<String>,
        names: Option<Vec<String>>,
        map: Option<BTreeMap<String, i64>>,
        inner: Option<Box<Offered>>,
    }

    #[test]
    fn serde_error_names_no_rust_type() {
        let wrong = [
            r#"{"count": "many"}"#,
            r#"{"count": -1}"#,
            r#"{"port": 70000}"#,
            r#"{"on": "yes"}"#,
            r#"{"name": 7}"#,
            r#"{"names": "x, expected usize"}"#,
            r#"{"map": []}"#,
            r#"{"map": {"a": 1.5}}"#,
            r#"{"inner": 3}"#,
            r#"{"nmae": 3}"#,
        ];
        let told = wrong.map(|text| {
            let why = serde_json::from_str::<Offered>(text).unwrap_err().to_string();
            plain(&why)
        });
        insta::assert_snapshot!(told.join("\n"), @r#"
        invalid type: string "many", expected a whole number, 0 or more at line 1 column 16
        invalid value: integer `-1`, expected a whole number, 0 or more at line 1 column 12
        invalid value: integer `70000`, expected a whole number from 0 to 65535 at line 1 column 14
        invalid type: string "yes", expected true or false at line 1 column 12
        invalid type: integer `7`, expected a string at line 1 column 10
        invalid type: string "x, expected usize", expected a list at line 1 column 29
        invalid type: sequence, expected an object at line 1 column 8
        invalid type: floating point `1.5`, expected a whole number at line 1 column 17
        invalid type: integer `3`, expected an object at line 1 column 11
        unknown field `nmae`, expected one of `count`, `port`, `on`, `name`, `names`, `map`, `inner` at line 1 column 7
        "#);
    }
}
