//! Positions in the text of a flow file, and the values of TOML with theirs.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Number, Value};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::problem::Problem;

/// Collects the problems of one file.
pub(super) struct Problems<'a> {
    text: &'a str,
    found: Vec<Problem>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, found: Vec::new() }
    }

    /// Adds an error at this position.
    pub(super) fn error(&mut self, at: &Range<usize>, text: impl Into<String>) {
        self.add(at, text.into(), false);
    }

    /// Adds a warning at this position.
    pub(super) fn warning(&mut self, at: &Range<usize>, text: impl Into<String>) {
        self.add(at, text.into(), true);
    }

    fn add(&mut self, at: &Range<usize>, text: String, is_warning: bool) {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        self.found.push(Problem { line, column, text, is_warning });
    }

    pub(super) fn has_errors(&self) -> bool {
        self.found.iter().any(|problem| !problem.is_warning)
    }

    /// All problems, in the order of the file.
    pub(super) fn into_sorted(mut self) -> Vec<Problem> {
        self.found.sort_by_key(|problem| (problem.line, problem.column));
        self.found
    }
}

/// `; did you mean ...?` if a known name is close.
pub(super) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = known.into_iter().map(|one| (strsim::damerau_levenshtein(name, one), one));
    match near.min() {
        Some((far, near)) if far <= 1 + name.len() / 4 => format!("; did you mean `{near}`?"),
        Some(_) | None => String::new(),
    }
}

/// Numbers of agents in a table, such as their weights.
pub(super) struct AgentNumbers {
    /// Name of one number.
    pub(super) noun: &'static str,
    /// Reason for an error about a name that is no agent of the step.
    pub(super) unknown: &'static str,
    /// Highest number; the least one is 0.
    pub(super) max: f64,
}

/// Table of a flow file whose keys are checked.
pub(super) struct Table<'a, 't> {
    pub(super) table: &'a DeTable<'t>,
    pub(super) at: Range<usize>,
    /// Name for messages, such as "[[step]] `write`".
    pub(super) name: String,
}

impl<'a, 't> Table<'a, 't> {
    /// Reads a value as a table; adds an error if it is none.
    pub(super) fn from_value(
        value: &'a Spanned<DeValue<'t>>,
        name: &str,
        problems: &mut Problems<'_>,
    ) -> Option<Self> {
        let Some(table) = value.get_ref().as_table() else {
            problems.error(&value.span(), format!("`{name}` is a table"));
            return None;
        };
        Some(Self { table, at: value.span(), name: name.to_owned() })
    }

    /// Adds an error for each key that is not known.
    pub(super) fn check_keys(&self, known: &[&str], problems: &mut Problems<'_>) {
        for key in self.table.keys() {
            let (name, of) = (key.get_ref().as_ref(), &self.name);
            if !known.contains(&name) {
                let near = did_you_mean(name, known.iter().copied());
                problems.error(&key.span(), format!("{of} has no key `{name}`{near}"));
            }
        }
    }

    /// Numbers of agents; an error for each other name and each number out of bounds. Without
    /// `agents`, whose list is wrong then, each name counts.
    pub(super) fn agent_numbers(
        &self,
        rule: &AgentNumbers,
        agents: &[String],
        problems: &mut Problems<'_>,
    ) -> BTreeMap<String, f64> {
        let (mut found, of) = (BTreeMap::new(), &self.name);
        let AgentNumbers { noun, unknown, max } = rule;
        for (key, value) in self.table {
            let name = key.to_string_key();
            if !agents.is_empty() && !agents.contains(&name) {
                let near = did_you_mean(&name, agents.iter().map(String::as_str));
                problems.error(&key.span(), format!("`{of}`: `{name}` {unknown}{near}"));
            }
            match json(value.get_ref()).as_f64().filter(|it| (0.0..=*max).contains(it)) {
                Some(number) => drop(found.insert(name, number)),
                None => {
                    let rule = format!("`{of}`: a {noun} is a number from 0 to {max}");
                    problems.error(&value.span(), rule);
                }
            }
        }
        found
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'t>>> {
        self.table.get(key)
    }

    /// Text of a key; an error if it is another type.
    pub(super) fn text(
        &self,
        key: &str,
        problems: &mut Problems<'_>,
    ) -> Option<(String, Range<usize>)> {
        let value = self.get(key)?;
        let Some(text) = value.get_ref().as_str() else {
            let found = value.get_ref().type_str();
            problems.error(&value.span(), format!("`{key}` is a text, and no {found}"));
            return None;
        };
        Some((text.to_owned(), value.span()))
    }

    /// Whole number of a key between two limits.
    pub(super) fn number(
        &self,
        key: &str,
        (min, max): (u32, u32),
        problems: &mut Problems<'_>,
    ) -> Option<u32> {
        let value = self.get(key)?;
        let number = value.get_ref().as_integer();
        let number = number.and_then(|number| number.to_string().parse::<i64>().ok());
        let number = number.and_then(|number| u32::try_from(number).ok());
        let number = number.filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let rule = format!("`{key}` is a whole number from {min} to {max}");
            problems.error(&value.span(), rule);
        }
        number
    }

    /// Amount of dollars of a key.
    pub(super) fn amount(&self, key: &str, problems: &mut Problems<'_>) -> Option<f64> {
        let value = self.get(key)?;
        let number = json(value.get_ref()).as_f64().filter(|number| *number > 0.0);
        if number.is_none() {
            problems.error(&value.span(), format!("`{key}` is a number above 0"));
        }
        number
    }

    /// Truth value of a key.
    pub(super) fn flag(&self, key: &str, problems: &mut Problems<'_>) -> Option<bool> {
        let value = self.get(key)?;
        let flag = value.get_ref().as_bool();
        if flag.is_none() {
            problems.error(&value.span(), format!("`{key}` is true or false"));
        }
        flag
    }

    /// Duration of a key, in milliseconds.
    pub(super) fn duration(&self, key: &str, problems: &mut Problems<'_>) -> Option<u64> {
        let (text, at) = self.text(key, problems)?;
        let ms = duration(&text);
        if ms.is_none() {
            let rule = format!(
                "`{key}` is a time up to 366 days, such as \"500ms\", \"30s\", \"10m\", \"2h\" or \"3d\", and here is {text:?}"
            );
            problems.error(&at, rule);
        }
        ms
    }

    /// List of texts of a key.
    pub(super) fn texts(
        &self,
        key: &str,
        problems: &mut Problems<'_>,
    ) -> Vec<(String, Range<usize>)> {
        let Some(value) = self.get(key) else { return Vec::new() };
        let mut texts = Vec::new();
        let all = value.get_ref().as_array().map(|all| all.iter().collect::<Vec<_>>());
        for one in all.unwrap_or_else(|| vec![value]) {
            match one.get_ref().as_str() {
                Some(text) if value.get_ref().is_array() => {
                    texts.push((text.to_owned(), one.span()));
                }
                Some(_) | None => {
                    problems.error(&one.span(), format!("`{key}` is a list of texts"));
                }
            }
        }
        texts
    }

    /// Choice among words.
    pub(super) fn word(
        &self,
        key: &str,
        words: &[&str],
        problems: &mut Problems<'_>,
    ) -> Option<String> {
        let (text, at) = self.text(key, problems)?;
        if words.contains(&text.as_str()) {
            return Some(text);
        }
        let near = did_you_mean(&text, words.iter().copied());
        problems.error(&at, format!("`{key}` is one of {}{near}", words.join(", ")));
        None
    }
}

/// Milliseconds of a duration such as `10m`.
fn duration(text: &str) -> Option<u64> {
    let digits = text.find(|it: char| !it.is_ascii_digit())?;
    let (count, unit) = (text[..digits].parse::<u64>().ok()?, &text[digits..]);
    let ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    count.checked_mul(ms).filter(|ms| (1..=366 * 86_400_000).contains(ms))
}

/// TOML value as JSON; dates become texts.
pub(super) fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Integer(number) => {
            number.to_string().parse::<i64>().map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => {
            let number = number.to_string().parse().ok().and_then(Number::from_f64);
            number.map_or(Value::Null, Value::Number)
        }
        DeValue::Boolean(is) => Value::from(*is),
        DeValue::Datetime(date) => Value::from(date.to_string()),
        DeValue::Array(all) => all.iter().map(|one| json(one.get_ref())).collect(),
        DeValue::Table(table) => {
            let members =
                table.iter().map(|(key, value)| (key.to_string_key(), json(value.get_ref())));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

/// Owned name of a key.
pub(super) trait KeyName {
    /// Name of the key.
    fn to_string_key(&self) -> String;
}

impl KeyName for Spanned<toml::de::DeString<'_>> {
    fn to_string_key(&self) -> String {
        self.get_ref().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("500ms"), Some(500));
        assert_eq!(duration("3d"), Some(259_200_000));
        assert_eq!([duration("10"), duration("m"), duration("0s"), duration("999d")], [None; 4]);
    }
}
