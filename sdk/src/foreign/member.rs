//! Members of another type than expected: releases and vendors differ in how they write a number, a
//! flag or a text.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Text: a string, a number or a flag; the `text` or `message` of an object; or a list of these,
/// joined. `None` for null, and for other objects.
pub fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.into()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string().into()),
        Value::Array(items) => {
            let texts: Vec<_> = items.iter().filter_map(text).collect();
            (!texts.is_empty()).then(|| texts.concat().into())
        }
        Value::Object(members) => {
            ["text", "message"].iter().find_map(|name| members.get(*name).and_then(text))
        }
    }
}

/// Finite number, also if it is written as a string.
pub fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    number.filter(|number| number.is_finite())
}

/// Whole number, also if it is written as a string or as a float.
pub fn integer(value: &Value) -> Option<i64> {
    /// Limit up to which a float is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let exact = || number(value).filter(|number| number.fract() == 0.0 && number.abs() <= EXACT);
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and within the limit")]
    value.as_i64().or_else(|| Some(exact()? as i64))
}

/// Flag, also if it is written as a string or as a number.
pub fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(word) => word.trim().to_ascii_lowercase().parse().ok(),
        Value::Number(_) => Some(number(value)? != 0.0),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Deserializes [`text`], for `#[serde(default, deserialize_with = "…")]`.
pub fn lenient_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(text(&Value::deserialize(from)?).map(Cow::into_owned))
}

/// Deserializes [`text`], or else the empty text.
pub fn lenient_string<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(lenient_text(from)?.unwrap_or_default())
}

/// Deserializes [`number`].
pub fn lenient_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(number(&Value::deserialize(from)?))
}

/// Deserializes [`integer`], if it fits the type.
pub fn lenient_integer<'de, D, N>(from: D) -> Result<Option<N>, D::Error>
where
    D: Deserializer<'de>,
    N: TryFrom<i64>,
{
    Ok(integer(&Value::deserialize(from)?).and_then(|value| value.try_into().ok()))
}

/// Deserializes a list without the items that have another shape; empty for null and other types.
pub fn lenient_list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: for<'item> Deserialize<'item>,
{
    let Value::Array(items) = Value::deserialize(from)? else { return Ok(Vec::new()) };
    Ok(items.into_iter().filter_map(|item| T::deserialize(item).ok()).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn member_of_other_type_is_read() {
        for (value, expected) in [
            (json!("a"), Some("a")),
            (json!(2), Some("2")),
            (json!(true), Some("true")),
            (json!({ "text": "a", "type": "text" }), Some("a")),
            (json!({ "message": { "text": "a" } }), Some("a")),
            (json!([{ "text": "a" }, { "type": "image" }, "b"]), Some("ab")),
            (json!(null), None),
            (json!({ "a": 1 }), None),
            (json!([]), None),
        ] {
            assert_eq!(text(&value).as_deref(), expected, "{value}");
        }
        for (value, expected) in [
            (json!(2), Some(2)),
            (json!(2.0), Some(2)),
            (json!("2"), Some(2)),
            (json!(" 2.0 "), Some(2)),
            (json!("-32000"), Some(-32000)),
            (json!(2.5), None),
            (json!(1e300), None),
            (json!("many"), None),
            (json!(u64::MAX), None),
            (json!(null), None),
        ] {
            assert_eq!(integer(&value), expected, "{value}");
        }
        for (value, expected) in [
            (json!(true), Some(true)),
            (json!("False"), Some(false)),
            (json!(1), Some(true)),
            (json!("perhaps"), None),
            (json!(null), None),
        ] {
            assert_eq!(truth(&value), expected, "{value}");
        }
        assert_eq!(
            [json!("0.5"), json!("NaN"), json!([])].map(|it| number(&it)),
            [Some(0.5), None, None]
        );
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Line {
        #[serde(default, deserialize_with = "lenient_text")]
        text: Option<String>,
        #[serde(default, deserialize_with = "lenient_integer")]
        status: Option<u16>,
        #[serde(default, deserialize_with = "lenient_number")]
        cost: Option<f64>,
        #[serde(default, deserialize_with = "lenient_list")]
        items: Vec<String>,
    }

    #[test]
    fn wrong_type_counts_as_absent() {
        let read = |value: Value| Line::deserialize(value).unwrap();
        let line =
            read(json!({ "text": 1, "status": "429", "cost": "0.5", "items": ["a", 1, null] }));
        let items = vec!["a".to_owned()];
        assert_eq!(
            line,
            Line { text: Some("1".into()), status: Some(429), cost: Some(0.5), items }
        );
        let absent = Line { text: None, status: None, cost: None, items: Vec::new() };
        assert_eq!(read(json!({})), absent);
        assert_eq!(read(json!({ "text": {}, "status": 70000, "cost": [], "items": "x" })), absent);
    }
}
