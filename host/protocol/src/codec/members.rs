//! Reader for the members of a JSON object with the rules of ProtoJSON: names in camelCase or
//! snake_case, `null` equal to absent, numbers also as text, unknown members ignored. It reads
//! query strings as well.

use crate::{
    codec::json_path::JsonPath,
    model::{error::A2aError, message::Metadata},
};
use serde_json::{Map, Value};

/// A JSON object being read, with its path for errors.
pub(crate) struct Members {
    members: Map<String, Value>,
    at: JsonPath,
}

impl Members {
    /// Starts to read `value`, whose path is `at`; the path of a request's parameters is empty.
    pub(crate) fn new(value: Value, at: impl Into<JsonPath>) -> Result<Self, A2aError> {
        let at = at.into();
        match value {
            Value::Object(members) => Ok(Self { members, at }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                let field = match &*at {
                    "" if at.is_tolerant() => "result",
                    "" => "params",
                    path => path,
                };
                Err(A2aError::invalid(field, "must be an object"))
            }
        }
    }

    /// Path of the object.
    pub(crate) fn path(&self) -> &JsonPath {
        &self.at
    }

    /// Path of the member `name`.
    pub(crate) fn at(&self, name: &str) -> JsonPath {
        self.at.member(name)
    }

    /// Creates an error for the member `name`.
    pub(crate) fn refuse(&self, name: &str, why: impl std::fmt::Display) -> A2aError {
        A2aError::invalid(&self.at(name), why)
    }

    /// Skips the member `name` for this reason, or returns the error to a strict reader.
    fn skip<T: Default>(&self, name: &str, why: &str) -> Result<T, A2aError> {
        self.at.skip(self.refuse(name, why)).map(|()| T::default())
    }

    /// Removes and returns the member `name`, which may be `null`.
    pub(crate) fn raw(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name).or_else(|| {
            // Clients rarely use snake_case, so the name is allocated only if it is present.
            let is_there = self.members.keys().any(|key| is_snake_case_of(key, name));
            if is_there { self.members.remove(&snake_case(name)) } else { None }
        })
    }

    /// Removes and returns the member `name`; `None` if it is absent or `null`.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.raw(name).filter(|value| !value.is_null())
    }

    /// Returns a required member.
    pub(crate) fn need(&mut self, name: &str) -> Result<Value, A2aError> {
        self.take(name).ok_or_else(|| self.refuse(name, "is missing"))
    }

    /// Returns an optional string.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, A2aError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            // Some agents write ids and times as numbers.
            Some(value @ (Value::Number(_) | Value::Bool(_))) if self.at.is_tolerant() => {
                Ok(Some(value.to_string()))
            }
            Some(_) => self.skip(name, "must be a string"),
        }
    }

    /// Returns an optional string; `None` if it is empty, because ProtoJSON omits empty strings.
    pub(crate) fn some_text(&mut self, name: &str) -> Result<Option<String>, A2aError> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }

    /// Returns a required, non-empty string.
    pub(crate) fn need_text(&mut self, name: &str) -> Result<String, A2aError> {
        self.some_text(name)?.ok_or_else(|| self.refuse(name, "is missing, or empty"))
    }

    /// Returns a boolean; false if absent.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, A2aError> {
        Ok(self.some_flag(name)?.unwrap_or(false))
    }

    /// Returns an optional boolean.
    pub(crate) fn some_flag(&mut self, name: &str) -> Result<Option<bool>, A2aError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::String(text)) if text == "true" || text == "false" => {
                Ok(Some(text == "true"))
            }
            Some(_) => self.skip(name, "must be true or false"),
        }
    }

    /// Returns an optional count: an integer that is not negative.
    pub(crate) fn count(&mut self, name: &str) -> Result<Option<usize>, A2aError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = match &value {
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) => Some(text.clone()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        // ProtoJSON allows `5.0` for 5.
        let number = number.and_then(|text| text.trim_end_matches(".0").parse::<i32>().ok());
        let number = number.ok_or_else(|| self.refuse(name, "must be a whole number"))?;
        let number = usize::try_from(number).map_err(|_| self.refuse(name, "must not be negative"));
        number.map(Some)
    }

    /// Reads each item of a list with its path; empty if absent.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        read: impl Fn(Value, JsonPath) -> Result<T, A2aError>,
    ) -> Result<Vec<T>, A2aError> {
        let items = match self.take(name) {
            // Some agents write a list of one item as the item.
            Some(item @ (Value::Object(_) | Value::String(_))) if self.at.is_tolerant() => {
                Some(Value::Array(vec![item]))
            }
            items => items,
        };
        match items {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                let at = self.at(name);
                let mut all = Vec::with_capacity(items.len());
                for (n, item) in items.into_iter().enumerate() {
                    match read(item, at.item(n)) {
                        Ok(item) => all.push(item),
                        Err(why) => at.skip(why)?,
                    }
                }
                Ok(all)
            }
            Some(_) => self.skip(name, "must be a list"),
        }
    }

    /// Returns a list of strings.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Vec<String>, A2aError> {
        self.list(name, |item, at| match item {
            Value::String(text) => Ok(text),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => Err(A2aError::invalid(&at, "must be a string")),
        })
    }

    /// Returns an optional object as a nested reader.
    pub(crate) fn members(&mut self, name: &str) -> Result<Option<Self>, A2aError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match Self::new(value, self.at(name)) {
            Ok(members) => Ok(Some(members)),
            Err(why) => self.at.skip(why).map(|()| None),
        }
    }

    /// Returns an optional object as custom metadata.
    pub(crate) fn metadata(&mut self, name: &str) -> Result<Option<Metadata>, A2aError> {
        Ok(self.members(name)?.map(|facts| facts.members))
    }
}

/// True if `key` is the snake_case form of the camelCase `name` and differs from it.
fn is_snake_case_of(key: &str, name: &str) -> bool {
    let snake = name.bytes().flat_map(|byte| {
        let underscore = byte.is_ascii_uppercase().then_some(b'_');
        underscore.into_iter().chain([byte.to_ascii_lowercase()])
    });
    key.len() > name.len() && key.bytes().eq(snake)
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Builds an object without the members that are `null`.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let present = members.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(present.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Builds a list; `null` for an empty one, because ProtoJSON omits empty lists.
pub(crate) fn some_list<T>(items: &[T], write: impl Fn(&T) -> Value) -> Value {
    if items.is_empty() { Value::Null } else { items.iter().map(write).collect() }
}

/// `true`, or `null` for false, because ProtoJSON omits false.
pub(crate) fn only_true(flag: bool) -> Value {
    if flag { Value::Bool(true) } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn members(value: Value) -> Members {
        Members::new(value, "at").unwrap()
    }

    #[test]
    fn camel_and_snake_case_names_are_read() {
        let mut read = members(json!({"taskId": "a", "context_id": "b", "token": null, "x": 1}));
        assert_eq!(read.text("taskId").unwrap().as_deref(), Some("a"));
        assert_eq!(read.text("contextId").unwrap().as_deref(), Some("b"));
        assert_eq!(read.text("token").unwrap(), None);
        assert_eq!(
            members(json!({"taskId": "a", "task_id": "b"})).text("taskId").unwrap().unwrap(),
            "a"
        );
    }

    #[test]
    fn snake_case_form_of_name_is_recognized() {
        for name in ["taskId", "pushNotificationConfig", "x", "id"] {
            let snake = snake_case(name);
            assert_eq!(is_snake_case_of(&snake, name), snake != name, "{name}");
            assert!(!is_snake_case_of(name, name) && !is_snake_case_of("task_ID", name), "{name}");
        }
    }

    #[test]
    fn numbers_and_flags_are_read_from_text() {
        for five in [json!(5), json!("5"), json!(5.0)] {
            assert_eq!(members(json!({ "n": five })).count("n").unwrap(), Some(5));
        }
        assert!(members(json!({"f": "true"})).flag("f").unwrap());
        let refused = [
            members(json!({"n": -1})).count("n").unwrap_err(),
            members(json!({"n": 1.5})).count("n").unwrap_err(),
            members(json!({"n": "1e3"})).count("n").unwrap_err(),
            members(json!({"f": "yes"})).flag("f").unwrap_err(),
            members(json!({"l": [1]})).texts("l").unwrap_err(),
            members(json!({"l": 1})).texts("l").unwrap_err(),
            members(json!({"o": 1})).members("o").err().unwrap(),
            Members::new(json!([]), "").err().unwrap(),
        ];
        insta::assert_snapshot!(refused.map(|why| why.to_string()).join("\n"), @r"
        `at.n`: must not be negative
        `at.n`: must be a whole number
        `at.n`: must be a whole number
        `at.f`: must be true or false
        `at.l[0]`: must be a string
        `at.l`: must be a list
        `at.o`: must be an object
        `params`: must be an object
        ");
    }
}
