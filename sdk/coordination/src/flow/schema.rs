//! JSON schemas of inputs and outputs: a subset that a flow file needs, checked without references.

use serde_json::{Map, Value};

use super::position::did_you_mean;

/// Keywords that count.
const KEYWORDS: [&str; 15] = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "description",
    "default",
];

/// Types of JSON schema.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// Deepest nesting of a schema.
const MAX_DEPTH: usize = 8;

/// Schema of an object with these properties, of which all are required.
pub(super) fn object(properties: Map<String, Value>) -> Value {
    let required: Vec<_> = properties.keys().map(|name| Value::from(name.as_str())).collect();
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    schema.insert("required".to_owned(), required.into());
    schema.into()
}

/// Checks a schema itself.
///
/// # Errors
///
/// If it has an unknown keyword, or one with a wrong value.
pub(super) fn check_schema(schema: &Value, depth: usize) -> Result<(), String> {
    let Value::Object(members) = schema else {
        return Err("a schema is a table, such as { type = \"string\" }".to_owned());
    };
    if depth > MAX_DEPTH {
        return Err(format!("a schema is nested at most {MAX_DEPTH} levels deep"));
    }
    for (keyword, value) in members {
        let fits = match keyword.as_str() {
            "type" => {
                let fits = value.as_str().is_some_and(|it| TYPES.contains(&it));
                if !fits {
                    let near = value.as_str().map(|it| did_you_mean(it, TYPES)).unwrap_or_default();
                    return Err(format!("`type` is one of {}{near}", TYPES.join(", ")));
                }
                fits
            }
            "enum" => value.as_array().is_some_and(|all| !all.is_empty()),
            "const" | "default" => true,
            "properties" => {
                let Some(all) = value.as_object() else {
                    return Err("`properties` is a table of schemas".to_owned());
                };
                all.values().try_for_each(|one| check_schema(one, depth + 1))?;
                true
            }
            "items" => {
                check_schema(value, depth + 1)?;
                true
            }
            "required" => value.as_array().is_some_and(|all| all.iter().all(Value::is_string)),
            "additionalProperties" => value.is_boolean(),
            "minItems" | "maxItems" | "minLength" | "maxLength" => value.is_u64(),
            "minimum" | "maximum" => value.is_number(),
            "description" => value.is_string(),
            other => {
                let near = did_you_mean(other, KEYWORDS);
                let known = KEYWORDS.join(", ");
                return Err(format!("a schema has no keyword `{other}`{near} (known: {known})"));
            }
        };
        if !fits {
            return Err(format!("the keyword `{keyword}` cannot be {value}"));
        }
    }
    Ok(())
}

/// Checks a value against a schema; `path` names the value in the message.
///
/// # Errors
///
/// If the value does not fit: the first member that does not, and the rule.
pub(super) fn check_value(value: &Value, schema: &Value, path: &str) -> Result<(), String> {
    let Value::Object(rules) = schema else { return Ok(()) };
    for (keyword, rule) in rules {
        let wrong = |text: String| Err(format!("`{path}` {text}"));
        let number =
            |rule: &Value| rule.as_u64().and_then(|it| usize::try_from(it).ok()).unwrap_or(0);
        match (keyword.as_str(), value) {
            ("type", _) => {
                let name = rule.as_str().unwrap_or_default();
                if !is_of(value, name) {
                    return wrong(format!("has to be of type {name}, and is {}", kind(value)));
                }
            }
            ("enum", _) if !rule.as_array().is_some_and(|all| all.contains(value)) => {
                return wrong(format!("has to be one of {rule}"));
            }
            ("const", _) if rule != value => return wrong(format!("has to be {rule}")),
            ("required", Value::Object(members)) => {
                let names = rule.as_array().into_iter().flatten().filter_map(Value::as_str);
                for name in names {
                    if !members.contains_key(name) {
                        return wrong(format!("lacks `{name}`"));
                    }
                }
            }
            ("properties", Value::Object(members)) => {
                for (name, rule) in rule.as_object().into_iter().flatten() {
                    if let Some(member) = members.get(name) {
                        check_value(member, rule, &format!("{path}.{name}"))?;
                    }
                }
            }
            ("additionalProperties", Value::Object(members)) if rule == &Value::Bool(false) => {
                let known = rules.get("properties").and_then(Value::as_object);
                let known: Vec<_> =
                    known.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                if let Some(name) = members.keys().find(|name| !known.contains(&name.as_str())) {
                    let near = did_you_mean(name, known.iter().copied());
                    return wrong(format!("has no member `{name}`{near}"));
                }
            }
            ("items", Value::Array(all)) => {
                for (index, one) in all.iter().enumerate() {
                    check_value(one, rule, &format!("{path}[{index}]"))?;
                }
            }
            ("minItems", Value::Array(all)) if all.len() < number(rule) => {
                return wrong(format!("has to have at least {rule} items"));
            }
            ("maxItems", Value::Array(all)) if all.len() > number(rule) => {
                return wrong(format!("has to have at most {rule} items"));
            }
            ("minLength", Value::String(text)) if text.chars().count() < number(rule) => {
                return wrong(format!("has to have at least {rule} characters"));
            }
            ("maxLength", Value::String(text)) if text.chars().count() > number(rule) => {
                return wrong(format!("has to have at most {rule} characters"));
            }
            ("minimum", Value::Number(it)) if it.as_f64() < rule.as_f64() => {
                return wrong(format!("has to be at least {rule}"));
            }
            ("maximum", Value::Number(it)) if it.as_f64() > rule.as_f64() => {
                return wrong(format!("has to be at most {rule}"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "number" => value.is_number(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|it| it.fract() == 0.0)
        }
        _ => kind(value) == name,
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn value_is_checked_by_each_keyword() {
        let schema = json!({
            "type": "object", "required": ["verdict"], "additionalProperties": false,
            "properties": {
                "verdict": { "enum": ["approve", "revise"] },
                "findings": { "type": "array", "maxItems": 1, "items": { "type": "string", "minLength": 1 } },
                "score": { "type": "integer", "minimum": 0, "maximum": 10 },
            },
        });
        assert_eq!(check_schema(&schema, 0), Ok(()));
        let told = |value: Value| check_value(&value, &schema, "output").err();
        assert_eq!(told(json!({ "verdict": "approve", "findings": ["a"], "score": 3.0 })), None);
        let wrong = [
            (json!([]), "`output` has to be of type object, and is array"),
            (json!({}), "`output` lacks `verdict`"),
            (
                json!({ "verdict": "no" }),
                "`output.verdict` has to be one of [\"approve\",\"revise\"]",
            ),
            (
                json!({ "verdict": "revise", "findngs": [] }),
                "`output` has no member `findngs`; did you mean `findings`?",
            ),
            (
                json!({ "verdict": "revise", "findings": [""] }),
                "`output.findings[0]` has to have at least 1 characters",
            ),
            (
                json!({ "verdict": "revise", "findings": ["a", "b"] }),
                "`output.findings` has to have at most 1 items",
            ),
            (json!({ "verdict": "revise", "score": 11 }), "`output.score` has to be at most 10"),
            (
                json!({ "verdict": "revise", "score": 1.5 }),
                "`output.score` has to be of type integer, and is number",
            ),
        ];
        for (value, why) in wrong {
            assert_eq!(told(value.clone()).as_deref(), Some(why), "{value}");
        }
    }

    #[test]
    fn wrong_schema_names_keyword() {
        let wrong = [
            (json!({ "typ": "string" }), "a schema has no keyword `typ`; did you mean `type`?"),
            (
                json!({ "type": "strng" }),
                "`type` is one of string, number, integer, boolean, array, object, null; did you mean `string`?",
            ),
            (json!({ "items": 1 }), "a schema is a table"),
            (json!({ "enum": [] }), "the keyword `enum` cannot be []"),
        ];
        for (schema, why) in wrong {
            let told = check_schema(&schema, 0).unwrap_err();
            assert!(told.starts_with(why), "{told}");
        }
    }
}
