//! Input schema of a skill, the member `inputSchema` in JSON Schema (2020-12 or draft 7), and
//! validation of inputs with an error for each member.
//!
//! Cards come from untrusted authors, so a schema is checked before use. It may not reference
//! external documents or itself, and its size including references is limited. A validation costs
//! at most the schema's weight times the input's weight. Patterns match in linear time.

use crate::model::card::{AgentCard, Skill};
use jsonschema::{PatternOptions, Validator, error::ValidationErrorKind};
use serde_json::Value;
use std::collections::HashMap;

/// Member of a skill that holds its input schema.
pub const INPUT_SCHEMA: &str = "inputSchema";

/// Maximum size of a schema in bytes.
const MAX_BYTES: usize = 16 << 10;

/// Maximum number of values in a schema, with referenced parts counted on each reference. It bounds
/// the work for one value of an input.
const MAX_WEIGHT: usize = 4_096;

/// Maximum number of patterns in a schema; each compiles to up to [`MAX_PATTERN`] bytes.
const MAX_PATTERNS: usize = 32;

/// Maximum size of a compiled pattern in bytes.
const MAX_PATTERN: usize = 512 << 10;

/// Maximum size of a pattern's lazy DFA cache in bytes.
const PATTERN_CACHE: usize = 256 << 10;

/// Maximum product of the weights of schema and input. More work, which would take about a second,
/// is refused.
const MAX_WORK: usize = 64 << 20;

/// Maximum product of the weights for which all violations are collected, which needs memory as
/// well.
const MAX_DETAILED_WORK: usize = 4 << 20;

/// Maximum number of reported violations.
const MAX_VIOLATIONS: usize = 32;

/// Maximum length of a violation's text in characters.
const MAX_WHY: usize = 300;

/// Number of text bytes with the weight of one value.
const WORD: usize = 32;

/// Supported drafts, by a part of their URIs. In older drafts, the keyword `id` would change the
/// base of references.
const DRAFTS: [&str; 2] =
    ["json-schema.org/draft/2020-12/schema", "json-schema.org/draft-07/schema"];

/// Refused keywords, which change the target of references or evaluate a value repeatedly.
const REFUSED: [&str; 8] = [
    "$id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "unevaluatedProperties",
    "unevaluatedItems",
];

/// Keywords whose member names are chosen by the schema's author.
const NAMES: [&str; 5] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// A compiled input schema.
#[derive(Debug)]
pub struct InputSchema {
    compiled: Validator,
    weight: usize,
}

/// A violation of the schema in an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Location as a JSON Pointer (RFC 6901) into the input; empty for the input itself.
    pub pointer: String,
    /// Description of the violation.
    pub why: String,
}

/// Error for an unusable schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidInputSchema {
    /// The schema is not an object.
    #[error("must be an object of JSON Schema")]
    NoObject,
    /// The schema has too many bytes.
    #[error("is {0} bytes long, and a schema has at most {MAX_BYTES}")]
    Long(usize),
    /// The schema's weight exceeds the limit.
    #[error(
        "is too much to check: with all that it refers to it holds more than {MAX_WEIGHT} values"
    )]
    Heavy,
    /// The schema has too many patterns.
    #[error("holds more than {MAX_PATTERNS} patterns")]
    Patterns,
    /// The schema is of an unsupported draft.
    #[error(
        "`$schema` must be that of JSON Schema 2020-12 or of draft 7; leave it out for the first"
    )]
    Draft,
    /// The schema uses a refused keyword.
    #[error("uses `{0}`, which is not known here; refer to places in the schema itself by `$ref`")]
    Keyword(&'static str),
    /// A reference leads to an external document, or to nothing.
    #[error(
        "`$ref` to `{0}` leads nowhere; it must be a place in the schema itself, such as `#/$defs/name`"
    )]
    Astray(String),
    /// A reference is cyclic.
    #[error("`$ref` to `{0}` leads back to itself; write out as many levels as are needed")]
    Circle(String),
    /// The schema is not valid JSON Schema.
    #[error("is no JSON Schema: {0}")]
    NoSchema(String),
}

impl Skill {
    /// Input schema of the skill, as in the card.
    pub fn input_schema(&self) -> Option<&Value> {
        self.other.get(INPUT_SCHEMA).filter(|schema| !schema.is_null())
    }
}

impl AgentCard {
    /// Checks that each skill's schema is usable; the error names the first unusable schema by its
    /// path in the card.
    pub fn check_input_schemas(&self) -> Result<(), (String, InvalidInputSchema)> {
        for (n, skill) in self.skills.iter().enumerate() {
            if let Some(schema) = skill.input_schema() {
                InputSchema::read(schema)
                    .map_err(|why| (format!("skills[{n}].{INPUT_SCHEMA}"), why))?;
            }
        }
        Ok(())
    }
}

impl InputSchema {
    /// Checks and compiles a schema.
    pub fn read(schema: &Value) -> Result<Self, InvalidInputSchema> {
        let Value::Object(members) = schema else { return Err(InvalidInputSchema::NoObject) };
        let bytes = schema.to_string().len();
        if bytes > MAX_BYTES {
            return Err(InvalidInputSchema::Long(bytes));
        }
        let draft = members.get("$schema").map(Value::as_str);
        if draft.is_some_and(|uri| {
            !uri.is_some_and(|uri| DRAFTS.iter().any(|known| uri.contains(known)))
        }) {
            return Err(InvalidInputSchema::Draft);
        }
        // The schema's own `$id` is dropped, because no reference uses it.
        let mut stripped = members.clone();
        stripped.remove("$id");
        let stripped = Value::Object(stripped);
        let weight =
            Weighing { root: &stripped, open: Vec::new(), known: HashMap::new(), patterns: 0 }
                .all()?;
        let patterns =
            PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(PATTERN_CACHE);
        let compiled = jsonschema::options()
            .offline()
            .should_validate_formats(false)
            .with_pattern_options(patterns)
            .build(&stripped)
            .map_err(|why| {
                let path = why.instance_path().to_string();
                InvalidInputSchema::NoSchema(short(&format!("`{path}`: {}", why.masked())))
            })?;
        Ok(Self { compiled, weight })
    }

    /// Validates an input and returns its violations, at most `MAX_VIOLATIONS`; empty if the
    /// input is valid. An input of megabytes may take a second.
    pub fn violations(&self, input: &Value) -> Vec<Violation> {
        let work = weight(input).saturating_mul(self.weight);
        if work > MAX_WORK {
            return at_large("is too large to be checked against the skill's schema; send less");
        }
        if self.compiled.is_valid(input) {
            return Vec::new();
        }
        if work > MAX_DETAILED_WORK {
            return at_large("does not fit the skill's schema, and is too large to tell where");
        }
        let errors = self.compiled.iter_errors(input).take(MAX_VIOLATIONS);
        let mut all: Vec<_> = errors.flat_map(|error| violations_of(&error)).collect();
        all.truncate(MAX_VIOLATIONS);
        all
    }
}

fn at_large(why: &str) -> Vec<Violation> {
    vec![Violation { pointer: String::new(), why: why.to_owned() }]
}

/// Converts a validation error to violations of the affected members.
fn violations_of(error: &jsonschema::ValidationError<'_>) -> Vec<Violation> {
    let path = error.instance_path().to_string();
    let member = |name: &str| {
        let name = name.replace('~', "~0").replace('/', "~1");
        format!("{path}/{name}")
    };
    if let ValidationErrorKind::Required { property } = error.kind() {
        let pointer = member(property.as_str().unwrap_or_default());
        return vec![Violation { pointer, why: "is missing".to_owned() }];
    }
    if let ValidationErrorKind::AdditionalProperties { unexpected } = error.kind() {
        let why = "is not known to the skill; leave it out";
        let one = |name: &String| Violation { pointer: member(name), why: why.to_owned() };
        return unexpected.iter().take(MAX_VIOLATIONS).map(one).collect();
    }
    // The error omits the client's value, which may be long.
    let why = error.masked().to_string();
    let why = why.strip_prefix("value ").unwrap_or(&why);
    vec![Violation { pointer: path, why: short(why) }]
}

fn short(text: &str) -> String {
    text.chars().take(MAX_WHY).collect()
}

/// Weight of an input: its number of values, with long texts counted several times.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / WORD,
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => {
            let members = members.iter();
            1 + members.map(|(name, value)| 1 + name.len() / WORD + weight(value)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

/// Computes the weight of a schema, including its references.
struct Weighing<'a> {
    root: &'a Value,
    /// References on the path to the current value, for cycle detection.
    open: Vec<&'a str>,
    /// Weights of resolved references.
    known: HashMap<&'a str, usize>,
    patterns: usize,
}

impl<'a> Weighing<'a> {
    fn all(mut self) -> Result<usize, InvalidInputSchema> {
        let weight = self.weigh(self.root, false)?;
        if self.patterns > MAX_PATTERNS {
            return Err(InvalidInputSchema::Patterns);
        }
        if weight > MAX_WEIGHT { Err(InvalidInputSchema::Heavy) } else { Ok(weight) }
    }

    /// Computes the weight of a value; `are_names` is true if the author chose its member names.
    fn weigh(&mut self, value: &'a Value, are_names: bool) -> Result<usize, InvalidInputSchema> {
        let mut weight: usize = 1;
        match value {
            Value::Array(items) => {
                for item in items {
                    weight = weight.saturating_add(self.weigh(item, false)?);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    if !are_names {
                        weight = weight.saturating_add(self.keyword(name, value)?);
                    }
                    let names = !are_names && NAMES.contains(&name.as_str());
                    weight = weight.saturating_add(self.weigh(value, names)?);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(weight)
    }

    /// Computes the additional weight of a keyword besides its value.
    fn keyword(&mut self, name: &'a str, value: &'a Value) -> Result<usize, InvalidInputSchema> {
        if let Some(refused) = REFUSED.iter().find(|refused| **refused == name) {
            return Err(InvalidInputSchema::Keyword(refused));
        }
        match (name, value) {
            ("pattern", _) => self.patterns += 1,
            ("patternProperties", Value::Object(patterns)) => self.patterns += patterns.len(),
            ("$ref", Value::String(to)) => return self.referred(to),
            _ => {}
        }
        Ok(0)
    }

    fn referred(&mut self, to: &'a str) -> Result<usize, InvalidInputSchema> {
        if let Some(weight) = self.known.get(to) {
            return Ok(*weight);
        }
        if self.open.contains(&to) || to == "#" {
            return Err(InvalidInputSchema::Circle(short(to)));
        }
        let pointer = to.strip_prefix('#').filter(|pointer| pointer.starts_with('/'));
        let there = pointer.and_then(|pointer| self.root.pointer(pointer));
        let there = there.ok_or_else(|| InvalidInputSchema::Astray(short(to)))?;
        self.open.push(to);
        let weight = self.weigh(there, false)?;
        self.open.pop();
        self.known.insert(to, weight);
        Ok(weight)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fmt::Write as _;

    fn told(schema: &Value, input: &Value) -> String {
        let all = InputSchema::read(schema).unwrap().violations(input);
        all.iter().fold(String::new(), |mut told, Violation { pointer, why }| {
            let _ = writeln!(told, "{pointer}: {why}");
            told
        })
    }

    fn browse() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": "https://example.com/browse",
            "type": "object",
            "required": ["search_topic", "extraction_instruction"],
            "additionalProperties": false,
            "properties": {
                "search_topic": { "type": "string", "minLength": 1, "maxLength": 20 },
                "extraction_instruction": { "$ref": "#/$defs/text" },
                "sources": { "type": "array", "items": { "type": "string", "pattern": "^https?://" } },
                "a/b~": { "enum": [1, 2] },
            },
            "$defs": { "text": { "type": "string" } },
        })
    }

    #[test]
    fn violations_name_each_invalid_member() {
        let right = json!({"search_topic": "why", "extraction_instruction": "sum up", "sources": ["https://x"]});
        assert_eq!(told(&browse(), &right), "");
        let wrong =
            json!({"search_topic": "", "sources": ["x", 3], "a/b~": 4, "more/~": 1, "other": 2});
        insta::assert_snapshot!(told(&browse(), &wrong), @r#"
        /extraction_instruction: is missing
        /a~1b~0: is not one of 1 or 2
        /search_topic: is shorter than 1 character
        /sources/0: does not match "^https?://"
        /sources/1: is not of type "string"
        /more~1~0: is not known to the skill; leave it out
        /other: is not known to the skill; leave it out
        "#);
        let long = json!({"search_topic": "x".repeat(3_000), "extraction_instruction": 1});
        insta::assert_snapshot!(told(&browse(), &long), @r#"
        /extraction_instruction: is not of type "string"
        /search_topic: is longer than 20 characters
        "#);
        insta::assert_snapshot!(told(&browse(), &json!("text")), @r#": is not of type "object""#);
    }

    #[test]
    fn external_or_cyclic_schema_is_refused() {
        let nested = |levels: usize| {
            let mut defs = json!({ "d0": { "type": "string" } });
            for level in 1..=levels {
                let to = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
                defs[format!("d{level}")] = json!({ "allOf": [to, to, to, to] });
            }
            json!({ "$defs": defs, "$ref": format!("#/$defs/d{levels}") })
        };
        let patterns: Vec<_> = (0..40).map(|n| json!({ "pattern": n.to_string() })).collect();
        let refused = [
            json!(true),
            json!({ "description": "x".repeat(20_000) }),
            nested(20),
            json!({ "$ref": "#" }),
            json!({ "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "items": { "$ref": "#/$defs/a" } } }, "$ref": "#/$defs/a" }),
            json!({ "$ref": "https://example.com/schema.json" }),
            json!({ "$ref": "file:///etc/passwd" }),
            json!({ "$ref": "#/$defs/none" }),
            json!({ "items": { "$id": "https://example.com/", "$ref": "#/x" } }),
            json!({ "$dynamicRef": "#x" }),
            json!({ "unevaluatedProperties": false }),
            json!({ "$schema": "http://json-schema.org/draft-04/schema#" }),
            json!({ "$schema": 4 }),
            json!({ "type": "text" }),
            json!({ "pattern": "(" }),
            json!({ "pattern": r"^(?=a)b" }),
            json!({ "pattern": "(((a{1,100}){1,100}){1,100}){1,100}" }),
            json!({ "anyOf": patterns }),
        ];
        let why = refused.map(|schema| InputSchema::read(&schema).unwrap_err().to_string());
        insta::assert_snapshot!(why.join("\n"), @r#"
        must be an object of JSON Schema
        is 20018 bytes long, and a schema has at most 16384
        is too much to check: with all that it refers to it holds more than 4096 values
        `$ref` to `#` leads back to itself; write out as many levels as are needed
        `$ref` to `#/$defs/b` leads back to itself; write out as many levels as are needed
        `$ref` to `https://example.com/schema.json` leads nowhere; it must be a place in the schema itself, such as `#/$defs/name`
        `$ref` to `file:///etc/passwd` leads nowhere; it must be a place in the schema itself, such as `#/$defs/name`
        `$ref` to `#/$defs/none` leads nowhere; it must be a place in the schema itself, such as `#/$defs/name`
        uses `$id`, which is not known here; refer to places in the schema itself by `$ref`
        uses `$dynamicRef`, which is not known here; refer to places in the schema itself by `$ref`
        uses `unevaluatedProperties`, which is not known here; refer to places in the schema itself by `$ref`
        `$schema` must be that of JSON Schema 2020-12 or of draft 7; leave it out for the first
        `$schema` must be that of JSON Schema 2020-12 or of draft 7; leave it out for the first
        is no JSON Schema: `/type`: value is not valid under any of the schemas listed in the 'anyOf' keyword
        is no JSON Schema: `/pattern`: value is not a "regex"
        is no JSON Schema: `/pattern`: value is not a "regex"
        is no JSON Schema: `/pattern`: value is not a "regex"
        holds more than 32 patterns
        "#);
        // Keywords are allowed as names of properties.
        assert!(
            InputSchema::read(&json!({ "properties": { "$id": {}, "$anchor": {}, "$ref": {} } }))
                .is_ok()
        );
        assert!(InputSchema::read(&nested(3)).is_ok());
    }

    /// A backtracking engine would need exponential time for this pattern.
    #[test]
    fn catastrophic_pattern_and_huge_input_stay_fast() {
        let schema = json!({ "properties": { "text": { "pattern": "^(a+)+$" } } });
        let wrong = json!({ "text": format!("{}b", "a".repeat(200_000)) });
        assert!(
            told(&schema, &wrong).starts_with("/text: does not match"),
            "{}",
            told(&schema, &wrong)
        );
        let any: Vec<_> = (0..400).map(|n| json!({ "const": n })).collect();
        let schema = json!({ "items": { "anyOf": any } });
        let huge = Value::Array(vec![Value::from(-1); 2_000_000]);
        assert_eq!(
            told(&schema, &huge),
            ": is too large to be checked against the skill's schema; send less\n"
        );
        let large = Value::Array(vec![Value::from(-1); 20_000]);
        assert!(told(&schema, &large).starts_with(": does not fit"));
        let unique = json!({ "uniqueItems": true });
        let many: Vec<_> = (0..200_000).map(|n| json!({ "n": n, "s": "same" })).collect();
        assert_eq!(told(&unique, &Value::Array(many)), "");
    }

    #[test]
    fn card_with_invalid_schema_is_refused() {
        let card = |schema: Value| {
            let skill = json!({"id": "s", "name": "S", "description": "d", "inputSchema": schema});
            let card = json!({"name": "n", "description": "d", "version": "1", "skills": [skill]});
            AgentCard::parse(&card.to_string()).unwrap()
        };
        assert_eq!(card(browse()).check_input_schemas(), Ok(()));
        assert_eq!(card(Value::Null).check_input_schemas(), Ok(()));
        let (place, why) = card(json!([])).check_input_schemas().unwrap_err();
        assert_eq!((place.as_str(), why), ("skills[0].inputSchema", InvalidInputSchema::NoObject));
    }
}
