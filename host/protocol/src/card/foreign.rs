//! Tolerant reader for the cards of remote agents. It turns a card of another program into the form
//! that the strict readers accept: `null` and empty optional texts are absent, as ProtoJSON defines
//! them, and an entry that cannot be used is left out of its list.

use crate::model::interface::Binding;
use serde_json::{Map, Value};

/// Version of an agent whose card has none.
const NO_VERSION: &str = "unknown";

/// Card of a remote agent, prepared for [`AgentCard::parse`](crate::card::AgentCard::parse) and
/// [`read_interfaces`](crate::card::read_interfaces).
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignCard {
    /// The card without what the hub cannot use.
    pub card: Value,
    /// Members and entries that were left out, each with the reason.
    pub skipped: Vec<String>,
}

impl ForeignCard {
    /// Reads a card of any shape. The name remains required; a missing description is the name.
    pub fn read(card: &Value) -> Self {
        let mut card = card.clone();
        remove_nulls(&mut card);
        let mut skipped = Vec::new();
        if let Value::Object(members) = &mut card {
            Reader { at: String::new(), members, skipped: &mut skipped }.card();
        }
        Self { card, skipped }
    }
}

/// Removes the members that are `null`, at any depth.
fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reader for one object of a card.
struct Reader<'a> {
    at: String,
    members: &'a mut Map<String, Value>,
    skipped: &'a mut Vec<String>,
}

impl Reader<'_> {
    fn card(&mut self) {
        for name in ["name", "description", "version", "iconUrl", "documentationUrl", "url"] {
            self.text(name);
        }
        for name in ["protocolVersion", "preferredTransport"] {
            self.text(name);
        }
        self.texts("defaultInputModes");
        self.texts("defaultOutputModes");
        self.object("provider", |provider| {
            for name in ["name", "organization", "url"] {
                provider.text(name);
            }
        });
        self.object("capabilities", |can| {
            for name in ["streaming", "pushNotifications", "extendedAgentCard"] {
                can.flag(name);
            }
            can.list("extensions", |extension| {
                extension.text("uri");
                extension.text("description");
                extension.flag("required");
                extension.has("uri")
            });
        });
        self.list("skills", |skill| skill.skill());
        self.list("supportedInterfaces", |interface| {
            interface.text("url");
            interface.binding("protocolBinding");
            interface.version();
            interface.text("tenant");
            interface.has("url")
        });
        self.list("additionalInterfaces", |interface| {
            interface.text("url");
            interface.binding("transport");
            interface.has("url")
        });
        if let Some(name) = self.members.get("name").cloned() {
            self.members.entry("description").or_insert(name);
        }
        self.members.entry("version").or_insert_with(|| NO_VERSION.into());
    }

    /// Reads a skill, which needs an id or a name.
    fn skill(&mut self) -> Result<(), &'static str> {
        for name in ["id", "name", "description"] {
            self.text(name);
        }
        for name in ["tags", "examples", "inputModes", "outputModes"] {
            self.texts(name);
        }
        let known = |name: &str| self.members.get(name).cloned();
        let called = known("name").or_else(|| known("id")).ok_or("it has neither id nor name")?;
        let id = known("id").unwrap_or_else(|| called.clone());
        for (member, default) in [("id", id), ("name", called.clone()), ("description", called)] {
            self.members.entry(member).or_insert(default);
        }
        Ok(())
    }

    /// Binding by the name that A2A gives it, in any case; JSON-RPC if absent.
    fn binding(&mut self, name: &str) {
        self.text(name);
        let named = self.members.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let known = Binding::ALL.into_iter().find(|it| it.name().eq_ignore_ascii_case(&named));
        let known = known.or_else(|| named.is_empty().then_some(Binding::JsonRpc));
        if let Some(known) = known {
            self.members.insert(name.to_owned(), known.name().into());
        }
    }

    /// Version of an interface, such as `1.0`, `v1` or `1`; 1.0 if absent, because older cards have
    /// other interfaces.
    fn version(&mut self) {
        self.text("protocolVersion");
        let named = self.members.get("protocolVersion").and_then(Value::as_str).unwrap_or("1.0");
        let named = named.trim_start_matches(['v', 'V']);
        let full = if named.contains('.') { named.to_owned() } else { format!("{named}.0") };
        self.members.insert("protocolVersion".to_owned(), full.into());
    }

    fn has(&self, name: &'static str) -> Result<(), &'static str> {
        let missing = if name == "uri" { "it has no `uri`" } else { "it has no `url`" };
        self.members.contains_key(name).then_some(()).ok_or(missing)
    }

    /// Keeps a text that is not blank. A number or a boolean counts as its text.
    fn text(&mut self, name: &str) {
        let Some(value) = self.members.get_mut(name) else { return };
        match value {
            Value::String(text) if text.trim().is_empty() => drop(self.members.remove(name)),
            Value::String(_) => {}
            Value::Number(_) | Value::Bool(_) => *value = value.to_string().into(),
            Value::Null | Value::Array(_) | Value::Object(_) => self.skip(name, "is no text"),
        }
    }

    /// Keeps a boolean, also one that is written as text.
    fn flag(&mut self, name: &str) {
        let Some(value) = self.members.get_mut(name) else { return };
        match value.as_str().and_then(|text| text.parse::<bool>().ok()) {
            Some(flag) => *value = flag.into(),
            None if value.is_boolean() => {}
            None => self.skip(name, "is neither true nor false"),
        }
    }

    /// Keeps the texts of a list. A single text counts as a list.
    fn texts(&mut self, name: &str) {
        let Some(value) = self.members.get_mut(name) else { return };
        match value {
            Value::String(_) => *value = Value::Array(vec![value.take()]),
            Value::Array(items) => {
                let all = items.len();
                items.retain(Value::is_string);
                if items.len() < all {
                    self.skipped.push(format!("`{}{name}`: an entry is no text", self.at));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                self.skip(name, "is no list");
            }
        }
    }

    /// Reads an object, which is removed if nothing of it remains.
    fn object(&mut self, name: &str, read: impl FnOnce(&mut Reader<'_>)) {
        match self.members.get_mut(name) {
            None => {}
            Some(Value::Object(members)) => {
                let at = format!("{}{name}.", self.at);
                read(&mut Reader { at, members, skipped: self.skipped });
                if members.is_empty() {
                    self.members.remove(name);
                }
            }
            Some(_) => self.skip(name, "is no object"),
        }
    }

    /// Reads a list of objects, and keeps those that `read` accepts.
    fn list(&mut self, name: &str, read: impl Fn(&mut Reader<'_>) -> Result<(), &'static str>) {
        let items = match self.members.get_mut(name) {
            None => return,
            Some(Value::Array(items)) => items,
            Some(_) => return self.skip(name, "is no list"),
        };
        let mut n = 0;
        items.retain_mut(|item| {
            let at = format!("{}{name}[{n}]", self.at);
            n += 1;
            let result = match item {
                Value::Object(members) => {
                    let at = format!("{at}.");
                    read(&mut Reader { at, members, skipped: self.skipped })
                }
                Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_) => Err("it is no object"),
            };
            if let Err(why) = result {
                self.skipped.push(format!("`{at}`: {why}"));
            }
            result.is_ok()
        });
    }

    fn skip(&mut self, name: &str, why: &str) {
        self.members.remove(name);
        self.skipped.push(format!("`{}{name}`: {why}", self.at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::{AgentCard, read_interfaces};
    use serde_json::json;

    fn card(members: &Value) -> Value {
        let mut card = json!({
            "name": "n", "description": "d", "version": "1",
            "capabilities": { "streaming": true },
            "skills": [{ "id": "s", "name": "s", "description": "d", "tags": ["t"] }],
            "supportedInterfaces":
                [{ "url": "http://x/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        });
        card.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        card
    }

    /// Card as the strict readers read it, in one line, with what was skipped.
    fn read(members: &Value) -> String {
        let ForeignCard { card, skipped } = ForeignCard::read(&card(members));
        let agent = AgentCard::parse(&card.to_string()).map_err(|why| why.to_string());
        let interfaces = read_interfaces(&card).map_err(|why| why.to_string());
        let (agent, interfaces) = match (agent, interfaces) {
            (Ok(agent), Ok(interfaces)) => (agent, interfaces),
            (Err(why), _) | (_, Err(why)) => return why,
        };
        let skills = agent.skills.iter().map(|it| format!("{}{:?}", it.id, it.tags));
        let skills = skills.collect::<Vec<_>>().join(" ");
        let at =
            interfaces.iter().map(|it| format!("{} {} {:?}", it.binding, it.version, it.tenant));
        let at = at.collect::<Vec<_>>().join(", ");
        let mut line = format!("{} {} [{skills}] {at}", agent.description, agent.version);
        for name in ["iconUrl", "documentationUrl", "provider", "securitySchemes"] {
            if let Some(value) = agent.other.get(name) {
                line.push_str(&format!(" {name}={value}"));
            }
        }
        skipped.iter().for_each(|skip| line.push_str(&format!(" - {skip}")));
        line
    }

    #[test]
    fn proto_defaults_in_card_are_absent() {
        let usual = "d 1 [s[\"t\"]] JSONRPC 1.0 None";
        for members in [
            json!({ "iconUrl": "" }),
            json!({ "documentationUrl": "" }),
            json!({ "provider": { "organization": "", "url": "" } }),
            json!({ "provider": null }),
            json!({ "securitySchemes": null, "securityRequirements": null, "security": null }),
            json!({ "signatures": null, "defaultInputModes": null, "defaultOutputModes": null }),
            json!({ "capabilities": { "streaming": true, "extensions": null } }),
            json!({ "skills": [{ "id": "s", "name": "s", "description": "", "tags": ["t"],
                "examples": null, "inputModes": null, "outputModes": [] }] }),
            json!({ "supportedInterfaces": [{ "url": "http://x/", "tenant": "",
                "protocolBinding": "jsonrpc", "protocolVersion": "1.0.1" }] }),
            json!({ "supportedInterfaces": [{ "url": "http://x/", "protocolBinding": "" }] }),
        ] {
            assert_eq!(read(&members), usual, "{members}");
        }
        assert_eq!(
            read(&json!({ "version": "" })),
            usual.replace('1', "unknown").replace("unknown.0", "1.0")
        );
        assert_eq!(read(&json!({ "description": "", "skills": null })), "n 1 [] JSONRPC 1.0 None");
        let tags =
            json!({ "skills": [{ "id": "s", "name": "s", "description": "d", "tags": null }] });
        assert_eq!(read(&tags), "d 1 [s[]] JSONRPC 1.0 None");
    }

    #[test]
    fn unusable_card_members_are_skipped_by_name() {
        let told = [
            json!({ "name": "" }),
            json!({ "name": 7, "description": ["d"], "version": 2, "iconUrl": {} }),
            json!({ "skills": [null, "s", { "name": "only" }, { "tags": ["t"] }, { "id": 1, "tags": "x" }] }),
            json!({ "skills": { "id": "s" } }),
            json!({ "skills": [{ "id": "s", "tags": [1, "t"] }] }),
            json!({ "provider": "Acme", "capabilities": ["streaming"] }),
            json!({ "provider": { "organization": "Acme", "url": "" } }),
            json!({ "supportedInterfaces": [{ "protocolBinding": "GRPC" }, { "url": "http://x/",
                "protocolBinding": "http+json", "protocolVersion": 1, "tenant": "t" }] }),
            json!({ "supportedInterfaces": [], "url": "http://x/", "additionalInterfaces": [{}, 3,
                { "url": "http://y/", "transport": "grpc" }] }),
        ]
        .map(|members| read(&members));
        insta::assert_snapshot!(told.join("\n"), @r#"
        read the agent's card: missing field `name`; a card is a JSON object with at least `name`, `description` and `version`
        7 2 [s["t"]] JSONRPC 1.0 None - `description`: is no text - `iconUrl`: is no text
        d 1 [only[] 1["x"]] JSONRPC 1.0 None - `skills[0]`: it is no object - `skills[1]`: it is no object - `skills[3]`: it has neither id nor name
        d 1 [] JSONRPC 1.0 None - `skills`: is no list
        d 1 [s["t"]] JSONRPC 1.0 None - `skills[0].tags`: an entry is no text
        d 1 [s["t"]] JSONRPC 1.0 None - `provider`: is no object - `capabilities`: is no object
        d 1 [s["t"]] JSONRPC 1.0 None provider={"organization":"Acme"}
        d 1 [s["t"]] HTTP+JSON 1.0 Some("t") - `supportedInterfaces[0]`: it has no `url`
        d 1 [s["t"]] JSONRPC 0.3 None, GRPC 0.3 None - `additionalInterfaces[0]`: it has no `url` - `additionalInterfaces[1]`: it is no object
        "#);
    }

    #[test]
    fn flags_as_text_are_read() {
        let text = json!({ "capabilities": { "streaming": "true", "pushNotifications": 3,
            "extensions": [{ "uri": "urn:x", "required": "false" }, { "description": "d" }] } });
        let read = ForeignCard::read(&card(&text));
        let can =
            json!({ "streaming": true, "extensions": [{ "uri": "urn:x", "required": false }] });
        assert_eq!(read.card["capabilities"], can);
        assert_eq!(read.skipped.len(), 2, "{:?}", read.skipped);
        assert_eq!(ForeignCard::read(&json!([1, null])).card, json!([1, null]));
    }
}
