//! State of a plug-in after a change of its grant.

use crate::{
    render::{list, text},
    width::one_line as line_of,
};
use serde_json::Value;

/// Describes a plug-in's state in one line: JSON null if the hub no longer knows the plug-in,
/// `None` if no hub runs.
pub fn line(state: Option<&Value>) -> String {
    match missing_grants(state) {
        Err(why_not_loaded) => why_not_loaded,
        Ok(missing) if missing.is_empty() => {
            "in effect now; the plug-in has all that it asks for".to_owned()
        }
        Ok(missing) => format!("in effect now; the plug-in may not {}", missing.join(", ")),
    }
}

/// Like [`line()`], below a list of what the plug-in asks for: names no permission again.
pub fn line_after_requests(state: Option<&Value>) -> String {
    match missing_grants(state).as_deref() {
        Ok([_]) => "in effect now, without one of these permissions".to_owned(),
        Ok(missing @ [_, _, ..]) => {
            format!("in effect now, without {} of these permissions", missing.len())
        }
        Ok([]) | Err(_) => line(state),
    }
}

/// Permissions that a loaded plug-in asks for and lacks, or else the reason why it is not loaded.
fn missing_grants(state: Option<&Value>) -> Result<Vec<&str>, String> {
    let Some(plugin) = state else {
        return Err("no hub runs; the change applies from its next start".to_owned());
    };
    if plugin.is_null() {
        return Err("the hub no longer has this plug-in".to_owned());
    }
    if is_compiling(plugin) {
        return Err(format!("{}; `a2a-hub plugin list` shows when", compiling(plugin)));
    }
    if let Some(why) = plugin["error"].as_str() {
        return Err(format!("it is not loaded: {why}"));
    }
    if plugin["joined"] == false {
        return Err("it is loaded once it is compiled; `a2a-hub agents` shows when".to_owned());
    }
    Ok(list(&plugin["notGranted"]).iter().map(|lack| text(&lack["what"])).collect())
}

/// True if the hub compiles the plug-in's component, or loads it.
pub fn is_compiling(plugin: &Value) -> bool {
    plugin["compiling"].is_object()
}

/// Describes a compilation: what serves until it is done.
pub fn compiling(plugin: &Value) -> String {
    let serves = match (&plugin["joined"], plugin["version"].as_str()) {
        (Value::Bool(true), Some(version)) => format!("{} serves until then", line_of(version)),
        (Value::Bool(true), None) => "the previous component serves until then".to_owned(),
        _ => "it is loaded then".to_owned(),
    };
    format!("recorded; the hub compiles the component, and {serves}")
}

/// True if the hub refused to load the plug-in.
pub fn is_refused(state: Option<&Value>) -> bool {
    state.is_some_and(|plugin| plugin["error"].is_string() && plugin["joined"] != true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn grant_effect_is_one_line() {
        assert!(line(None).contains("next start"));
        assert_eq!(line(Some(&Value::Null)), "the hub no longer has this plug-in");
        assert_eq!(line(Some(&json!({ "error": "it traps" }))), "it is not loaded: it traps");
        let mut compiles = json!({ "joined": true, "version": "0.1.0", "error": "held back",
            "compiling": { "file": "notes.wasm" }, "notGranted": [{ "what": "run `git`" }] });
        let words = "recorded; the hub compiles the component, and 0.1.0 serves until then";
        assert_eq!(compiling(&compiles), words);
        assert!(line(Some(&compiles)).starts_with(words));
        compiles["joined"] = json!(false);
        assert!(line(Some(&compiles)).contains("it is loaded then") && !is_refused(None));
        let compiles = json!({ "joined": false, "notGranted": [] });
        assert!(line(Some(&compiles)).contains("once it is compiled"));
        let lacks = json!({ "notGranted": [{ "what": "run `git`" }, { "what": "remember" }] });
        assert_eq!(line(Some(&lacks)), "in effect now; the plug-in may not run `git`, remember");
        let below = "in effect now, without 2 of these permissions";
        assert_eq!(line_after_requests(Some(&lacks)), below);
        assert!(line(Some(&json!({ "notGranted": [] }))).ends_with("has all that it asks for"));
    }
}
