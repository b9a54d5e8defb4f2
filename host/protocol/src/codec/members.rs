//! The members of a JSON object, read as ProtoJSON has them: named in camelCase or snake_case, `null` as good as absent,
//! numbers also as text, and whatever else is there ignored. A query string is read as one, too.

use crate::model::{error::A2aError, message::Metadata};
use serde_json::{Map, Value};

/// A JSON object that is being read, and where it stands, for the errors.
pub(crate) struct Members {
    members: Map<String, Value>,
    at: String,
}

impl Members {
    /// The members of `value`, which stands at `at`; empty for a request's own parameters.
    pub(crate) fn of(value: Value, at: impl Into<String>) -> Result<Self, A2aError> {
        let at = at.into();
        match value {
            Value::Object(members) => Ok(Self { members, at }),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                let field = if at.is_empty() { "params" } else { &at };
                Err(A2aError::invalid(field, "must be an object"))
            }
        }
    }

    /// Where the object stands.
    pub(crate) fn place(&self) -> &str {
        &self.at
    }

    /// Where the member `name` stands.
    pub(crate) fn at(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    /// A refusal of the member `name`.
    pub(crate) fn refuse(&self, name: &str, why: impl std::fmt::Display) -> A2aError {
        A2aError::invalid(&self.at(name), why)
    }

    /// The member `name`, whatever it is; `null` if that is what it is.
    pub(crate) fn raw(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name).or_else(|| {
            // Few clients write those, and so few names are made for nothing.
            let is_there = self.members.keys().any(|key| is_snake_case_of(key, name));
            if is_there { self.members.remove(&snake_case(name)) } else { None }
        })
    }

    /// The member `name`, unless it is absent.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.raw(name).filter(|value| !value.is_null())
    }

    /// A member that must be there.
    pub(crate) fn need(&mut self, name: &str) -> Result<Value, A2aError> {
        self.take(name).ok_or_else(|| self.refuse(name, "is missing"))
    }

    /// The text of a member, if it is there.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, A2aError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.refuse(name, "must be a string")),
        }
    }

    /// The text of a member, unless it is empty, which ProtoJSON leaves out.
    pub(crate) fn some_text(&mut self, name: &str) -> Result<Option<String>, A2aError> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }

    /// The text of a member that must be there, and not be empty.
    pub(crate) fn need_text(&mut self, name: &str) -> Result<String, A2aError> {
        self.some_text(name)?.ok_or_else(|| self.refuse(name, "is missing, or empty"))
    }

    /// A flag; false if the member is left out.
    pub(crate) fn flag(&mut self, name: &str) -> Result<bool, A2aError> {
        Ok(self.some_flag(name)?.unwrap_or(false))
    }

    /// A flag, if the member is there.
    pub(crate) fn some_flag(&mut self, name: &str) -> Result<Option<bool>, A2aError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::String(text)) if text == "true" || text == "false" => {
                Ok(Some(text == "true"))
            }
            Some(_) => Err(self.refuse(name, "must be true or false")),
        }
    }

    /// A count: a whole number that is not negative.
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

    /// A list, each of its items read with where it stands; empty if it is left out.
    pub(crate) fn list<T>(
        &mut self,
        name: &str,
        read: impl Fn(Value, String) -> Result<T, A2aError>,
    ) -> Result<Vec<T>, A2aError> {
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                let at = self.at(name);
                let items = items.into_iter().enumerate();
                items.map(|(n, item)| read(item, format!("{at}[{n}]"))).collect()
            }
            Some(_) => Err(self.refuse(name, "must be a list")),
        }
    }

    /// A list of texts.
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

    /// The object of a member, to be read in turn.
    pub(crate) fn members(&mut self, name: &str) -> Result<Option<Self>, A2aError> {
        self.take(name).map(|value| Self::of(value, self.at(name))).transpose()
    }

    /// The object of a member as it is: open-ended facts.
    pub(crate) fn facts(&mut self, name: &str) -> Result<Option<Metadata>, A2aError> {
        Ok(self.members(name)?.map(|facts| facts.members))
    }
}

/// Whether `key` is the name that is `name` in camelCase, and not the same.
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

/// An object without the members that are `null`.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let said = members.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(said.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A list, or `null` if there is nothing to list: ProtoJSON leaves it out then.
pub(crate) fn some_list<T>(items: &[T], write: impl Fn(&T) -> Value) -> Value {
    if items.is_empty() { Value::Null } else { items.iter().map(write).collect() }
}

/// `true`, or `null` for what ProtoJSON leaves out.
pub(crate) fn only_true(flag: bool) -> Value {
    if flag { Value::Bool(true) } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn members(value: Value) -> Members {
        Members::of(value, "at").unwrap()
    }

    #[test]
    fn either_name_is_read_and_null_is_absent() {
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
    fn a_name_is_known_in_snake_case() {
        for name in ["taskId", "pushNotificationConfig", "x", "id"] {
            let snake = snake_case(name);
            assert_eq!(is_snake_case_of(&snake, name), snake != name, "{name}");
            assert!(!is_snake_case_of(name, name) && !is_snake_case_of("task_ID", name), "{name}");
        }
    }

    #[test]
    fn numbers_and_flags_come_as_text_too() {
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
            Members::of(json!([]), "").err().unwrap(),
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
