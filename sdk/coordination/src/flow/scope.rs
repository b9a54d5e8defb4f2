//! Texts and conditions of a step with the variables that they name, and where these hold.

use std::ops::Range;

use toml::Spanned;

use super::{
    position::{Problems, Table},
    template::{Condition, Template},
};

/// Place of a value in the file.
pub(super) type SourceRange = Range<usize>;

/// Variables of one text or condition.
pub(super) type Names = Vec<String>;

/// Variables of all texts of a step.
pub(super) type Texts = Vec<(Names, SourceRange, TextScope)>;

/// Variables beyond those of every text.
#[derive(Clone, Copy, Default)]
pub(super) struct TextScope {
    pub(super) has_item: bool,
    pub(super) has_output: bool,
    /// The text is rendered after the step itself.
    pub(super) after: bool,
}

/// Adds an error for each of these keys, which belong to other steps.
pub(super) fn only(table: &Table<'_, '_>, keys: &[&str], to: &str, problems: &mut Problems<'_>) {
    for (key, value) in keys.iter().filter_map(|key| Some((key, table.get(key)?))) {
        problems.error(&value.span(), format!("`{key}` is a key of {to}"));
    }
}

pub(super) fn owned<'a>(names: impl Iterator<Item = &'a str>) -> Names {
    names.map(str::to_owned).collect()
}

/// Text with variables of a key. Warns of expressions without the filter `data`.
pub(super) fn template(
    table: &Table<'_, '_>,
    key: &str,
    problems: &mut Problems<'_>,
) -> Option<(Template, SourceRange)> {
    let (text, at) = table.text(key, problems)?;
    let is_result = key == "result" && table.get("step").is_some();
    let parsed = if is_result { Template::parse_result(&text) } else { Template::parse(&text) };
    match parsed {
        Ok(template) => {
            for expression in &template.unmarked {
                problems.warning(
                    &at,
                    format!(
                        "`{key}`: `{expression}` may hold an agent's text, which is marked as data; write `{{{{ {expression} | data }}}}`"
                    ),
                );
            }
            Some((template, at))
        }
        Err(why) => {
            problems.error(&at, format!("`{key}`: {why}"));
            None
        }
    }
}

/// Condition of a key.
pub(super) fn condition(
    table: &Table<'_, '_>,
    key: &str,
    problems: &mut Problems<'_>,
) -> Option<(Condition, SourceRange)> {
    let (text, at) = table.text(key, problems)?;
    match Condition::parse(&text) {
        Ok(condition) => Some((condition, at)),
        Err(why) => {
            problems.error(&at, format!("`{key}`: {why}"));
            None
        }
    }
}

/// List of different texts of a key in a table of the step's key `of`; none if it has an error.
pub(super) fn distinct_texts(
    (table, of): (&Table<'_, '_>, &str),
    key: &str,
    (min, max): (usize, usize),
    problems: &mut Problems<'_>,
) -> Option<Vec<(String, SourceRange)>> {
    let all = table.texts(key, problems);
    let at = table.get(key).map_or(table.at.clone(), Spanned::span);
    if !(min..=max).contains(&all.len()) {
        problems.error(&at, format!("`{of}`: `{key}` is a list of {min} to {max} texts"));
        return None;
    }
    for (index, (name, at)) in all.iter().enumerate() {
        if name.trim().is_empty() {
            problems.error(at, format!("`{key}`: a name is not empty"));
        }
        if all[..index].iter().any(|(other, _)| other == name) {
            problems.error(at, format!("`{key}`: `{name}` is listed twice, and counts once"));
        }
    }
    Some(all)
}
