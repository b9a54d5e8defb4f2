//! Names of the settings, derived from the types that hold them, so that nothing is registered
//! twice.

use serde::{
    Deserialize,
    de::{
        DeserializeSeed, Deserializer, Error as _, IntoDeserializer as _, MapAccess, Visitor,
        value::Error,
    },
    forward_to_deserialize_any,
};
use std::cell::Cell;

/// Kind of an entry of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// Section with these settings.
    Section(&'static [&'static str]),
    /// Section whose keys the operator chooses.
    Names,
    /// Value.
    Value,
}

/// Kind of the entry of `T` at `path`. For a path that `T` does not have, reading the value fails
/// later.
pub(super) fn entry_kind<T: for<'de> Deserialize<'de>>(path: &[String]) -> EntryKind {
    let found = Cell::new(EntryKind::Value);
    // The walk stops at the end of the path, so no `T` is ever built.
    let _ = T::deserialize(Walk { path, found: &found });
    found.get()
}

/// Path of the setting of `T` that `words` name: `http`, `port`, or `agents`, `my`, `agent`,
/// `timeout`, `ms`.
pub(super) fn resolve<T: for<'de> Deserialize<'de>>(words: &[&str]) -> Option<Vec<String>> {
    fn resolve_from<T: for<'de> Deserialize<'de>>(
        path: &[String],
        words: &[&str],
    ) -> Option<Vec<String>> {
        if words.is_empty() {
            return Some(path.to_owned());
        }
        let at = entry_kind::<T>(path);
        (1..=words.len()).find_map(|count| {
            let (name, rest) = words.split_at(count);
            let name = match at {
                EntryKind::Section(fields) => {
                    Some(name.join("_")).filter(|name| fields.contains(&name.as_str()))
                }
                EntryKind::Names => Some(name.join("-")).filter(|name| {
                    let here = [path, std::slice::from_ref(name)].concat();
                    !rest.is_empty() || entry_kind::<T>(&here) == EntryKind::Value
                }),
                EntryKind::Value => None,
            };
            resolve_from::<T>(&[path, &[name?]].concat(), rest)
        })
    }
    resolve_from::<T>(&[], words)
}

/// Paths of all values of `T` below `section` with fixed names.
pub(super) fn all<T: for<'de> Deserialize<'de>>(section: &[String]) -> Vec<Vec<String>> {
    let (mut found, mut pending) = (Vec::new(), vec![section.to_owned()]);
    while let Some(path) = pending.pop() {
        match entry_kind::<T>(&path) {
            EntryKind::Section(fields) => pending
                .extend(fields.iter().map(|name| [&path[..], &[(*name).to_owned()]].concat())),
            EntryKind::Names => {}
            EntryKind::Value => found.push(path),
        }
    }
    found
}

/// Deserializer that pretends to be a file with one value at the end of `path`, and records which
/// kind of entry the type expects there.
struct Walk<'w> {
    path: &'w [String],
    found: &'w Cell<EntryKind>,
}

impl Walk<'_> {
    fn go_on<'de, V: Visitor<'de>>(self, here: EntryKind, visitor: V) -> Result<V::Value, Error> {
        match self.path {
            [] => {
                self.found.set(here);
                Err(Error::custom("the walk is over"))
            }
            [name, path @ ..] => {
                visitor.visit_map(WalkStep { name: Some(name), walk: Walk { path, ..self } })
            }
        }
    }
}

impl<'de> Deserializer<'de> for Walk<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("here is a value"))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.go_on(EntryKind::Section(fields), visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.go_on(EntryKind::Names, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct enum identifier ignored_any
    }
}

/// Single entry of a map on the path.
struct WalkStep<'w> {
    name: Option<&'w str>,
    walk: Walk<'w>,
}

impl<'de> MapAccess<'de> for WalkStep<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.name.take().map(|name| seed.deserialize(name.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(Walk { ..self.walk })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn found(words: &str) -> Option<String> {
        let words: Vec<&str> = words.split('_').collect();
        Some(resolve::<Config>(&words)?.join("."))
    }

    #[test]
    fn words_resolve_to_setting_paths() {
        assert_eq!(found("http_port").as_deref(), Some("http.port"));
        assert_eq!(found("data_dir").as_deref(), Some("data_dir"));
        assert_eq!(
            found("agents_claude_code_timeout_ms").as_deref(),
            Some("agents.claude-code.timeout_ms")
        );
        assert_eq!(
            found("agents_echo_limits_memory_mb").as_deref(),
            Some("agents.echo.limits.memory_mb")
        );
        assert_eq!(
            found("agents_echo_grant_process_git_max_running").as_deref(),
            Some("agents.echo.grant.process.git.max_running")
        );
        assert_eq!(
            found("agents_echo_settings_model").as_deref(),
            Some("agents.echo.settings.model")
        );
        for wrong in ["http_prot", "http_port_x", "port", "", "agents_echo", "agents_echo_enabeld"]
        {
            assert_eq!(found(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn entry_kinds_follow_from_types() {
        let at = |path: &[&str]| {
            entry_kind::<Config>(&path.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(at(&["http"]), EntryKind::Section(&["enabled", "host", "port", "names"]));
        assert_eq!(at(&["agents"]), EntryKind::Names);
        assert_eq!(at(&["agents", "echo", "grant", "memory"]), EntryKind::Value);
        assert_eq!(at(&["http", "port"]), EntryKind::Value);
    }
}
