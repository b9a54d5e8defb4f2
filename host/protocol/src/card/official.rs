//! A card as official clients find it: where and how its agent is reached, for 1.0 alone or for both versions at once.

use super::{AgentCard, Skill};
use crate::{
    codec::members::{Members, object, some_list},
    model::{error::A2aError, message::Message, terms::is_in_range},
};
use serde_json::{Value, json};

/// The binding of the unix socket: JSON-RPC, one value a line. `docs/UNIX-SOCKET.md` specifies it; a change that breaks its
/// clients needs another name (A2A 1.0, section 5.8).
pub const NDJSON: &str = "urn:a2a-hub:unix-ndjson:v1";

/// What the scheme is called by which the hub's token is shown.
const TOKEN: &str = "hubToken";

/// Where and how an agent is reached, or the hub itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Its endpoint as an absolute URL without a slash at the end: JSON-RPC is there, REST below it. None if the hub serves
    /// no HTTP.
    pub base: Option<String>,
    /// Where gRPC is, if it can be reached: host and port, which is all that gRPC's own clients take for a URL.
    pub grpc: Option<String>,
    /// The hub's unix socket as a URL, if who asks may connect to it.
    pub socket: Option<String>,
    /// What a client of 1.0 says to be brought to the agent where there are no paths, which is on gRPC and on the socket.
    /// The hub itself needs none.
    pub tenant: Option<String>,
    /// Whether who asks must show the hub's token.
    pub needs_token: bool,
}

impl Reach {
    /// The URL that stands for all others.
    fn main(&self) -> &str {
        self.base.as_deref().or(self.socket.as_deref()).unwrap_or_default()
    }
}

impl AgentCard {
    /// The card in 1.0.
    pub fn v1(&self, reach: &Reach) -> Value {
        let scheme = json!({ TOKEN: { "httpAuthSecurityScheme": http_scheme() } });
        let asks = reach.needs_token;
        object([
            ("name", json!(self.name)),
            ("description", json!(self.description)),
            ("version", json!(self.version)),
            ("supportedInterfaces", Value::Array(interfaces(reach))),
            ("provider", self.official_provider(reach)),
            ("documentationUrl", self.said("documentationUrl")),
            ("iconUrl", self.said("iconUrl")),
            ("capabilities", self.official_capabilities()),
            ("securitySchemes", if asks { scheme } else { Value::Null }),
            ("securityRequirements", if asks { requirements() } else { Value::Null }),
            ("defaultInputModes", self.modes("defaultInputModes")),
            ("defaultOutputModes", self.modes("defaultOutputModes")),
            ("skills", self.official_skills()),
        ])
    }

    /// The card in 1.0 with all that 0.3 wants beside it: clients of both read it, each what it knows.
    pub fn hybrid(&self, reach: &Reach) -> Value {
        let mut card = self.v1(reach);
        let provider = self.official_provider(reach);
        // The Local Hub calls it by its name.
        card["provider"]["name"] = provider["organization"].clone();
        card["capabilities"]["stateTransitionHistory"] = json!(true);
        card["protocolVersion"] = json!("0.3.0");
        card["url"] = json!(reach.main());
        let all = interfaces(reach).into_iter();
        let old = all.filter(|one| one["protocolVersion"] == "0.3");
        let old = old.map(|one| json!({ "url": one["url"], "transport": one["protocolBinding"] }));
        let old: Vec<_> = old.collect();
        let preferred = old.first().map_or_else(|| json!(NDJSON), |one| one["transport"].clone());
        card["preferredTransport"] = preferred;
        card["additionalInterfaces"] = Value::Array(old);
        card["supportsAuthenticatedExtendedCard"] = json!(true);
        if reach.needs_token {
            // Merged, for a client of 0.3 takes one without `type` for something else.
            let Value::Object(mut scheme) = http_scheme() else { return card };
            scheme.insert("type".to_owned(), json!("http"));
            scheme.insert("httpAuthSecurityScheme".to_owned(), http_scheme());
            card["securitySchemes"] = json!({ TOKEN: scheme });
            card["security"] = json!([{ TOKEN: [] }]);
        }
        card
    }

    /// The URIs of the extensions that its agent knows, and whether it insists on them.
    pub fn extensions(&self) -> impl Iterator<Item = (&str, bool)> {
        let all = self.other.get("capabilities").and_then(|can| can.get("extensions"));
        all.and_then(Value::as_array).into_iter().flatten().filter_map(|extension| {
            let required = extension.get("required").and_then(Value::as_bool).unwrap_or(false);
            Some((extension.get("uri")?.as_str()?, required))
        })
    }

    /// An extension that its agent insists on and the client does not name.
    pub fn missing_extension(&self, named: &[String]) -> Option<&str> {
        let mut extensions = self.extensions();
        let missing =
            extensions.find(|(uri, required)| *required && !named.iter().any(|it| it == uri));
        missing.map(|(uri, _)| uri)
    }

    /// The first part of a message whose media type its agent does not take, by its place and that type. An agent takes
    /// what its card or one of its skills says; one that says nothing takes whatever comes, and a part of no type is
    /// nobody's business but its agent's.
    pub fn part_not_taken<'a>(&self, message: &'a Message) -> Option<(usize, &'a str)> {
        let modes = self.input_modes();
        let taken =
            |media: &str| modes.is_empty() || modes.iter().any(|mode| is_in_range(media, mode));
        let typed = message.parts.iter().enumerate();
        let mut typed = typed.filter_map(|(n, part)| Some((n, part.media_type.as_deref()?)));
        typed.find(|(_, media)| !taken(media))
    }

    /// Every media type that its agent says it takes.
    pub fn input_modes(&self) -> Vec<&str> {
        let skills = self.skills.iter().map(|skill| skill.other.get("inputModes"));
        let all = std::iter::once(self.other.get("defaultInputModes")).chain(skills);
        all.flatten().filter_map(Value::as_array).flatten().filter_map(Value::as_str).collect()
    }

    /// Whether it lets its clients listen.
    pub fn streams(&self) -> bool {
        let streaming = self.other.get("capabilities").and_then(|can| can.get("streaming"));
        streaming.and_then(Value::as_bool).unwrap_or(true)
    }

    fn said(&self, member: &str) -> Value {
        self.other.get(member).filter(|said| said.is_string()).cloned().unwrap_or_default()
    }

    fn modes(&self, member: &str) -> Value {
        let given = self.other.get(member).and_then(Value::as_array);
        given
            .filter(|modes| !modes.is_empty())
            .map_or_else(|| json!(["text/plain"]), |it| json!(it))
    }

    /// Both versions want a URL with the name: without one, the hub's own stands in for it.
    fn official_provider(&self, reach: &Reach) -> Value {
        let mut provider = super::provider(self.other.get("provider"));
        let url = provider.get_mut("url").map_or_else(|| json!(reach.main()), Value::take);
        json!({ "organization": provider["organization"], "url": url })
    }

    fn official_capabilities(&self) -> Value {
        let extensions = self.other.get("capabilities").and_then(|can| can.get("extensions"));
        let extensions = extensions.and_then(Value::as_array).filter(|all| !all.is_empty());
        object([
            ("streaming", json!(self.streams())),
            ("pushNotifications", json!(true)),
            ("extensions", json!(extensions)),
            ("extendedAgentCard", json!(true)),
        ])
    }

    /// At least one: an agent that names none can do what it says it is good for.
    fn official_skills(&self) -> Value {
        let itself = || Skill {
            id: "default".to_owned(),
            name: self.name.clone(),
            description: self.description.clone(),
            tags: Vec::new(),
            other: serde_json::Map::new(),
        };
        let written = |skill: &Skill| {
            // A required list that is empty reads as none.
            let tags =
                if skill.tags.is_empty() { vec![skill.id.clone()] } else { skill.tags.clone() };
            let some = |member: &str| {
                let given = skill.other.get(member).and_then(Value::as_array);
                some_list(given.map_or(&[], Vec::as_slice), Clone::clone)
            };
            object([
                ("id", json!(skill.id)),
                ("name", json!(skill.name)),
                ("description", json!(skill.description)),
                ("tags", json!(tags)),
                ("examples", some("examples")),
                ("inputModes", some("inputModes")),
                ("outputModes", some("outputModes")),
            ])
        };
        if self.skills.is_empty() {
            json!([written(&itself())])
        } else {
            self.skills.iter().map(written).collect()
        }
    }
}

/// One way to reach the agent of a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Where.
    pub url: String,
    /// What travels there.
    pub binding: Binding,
    /// The version of A2A that is spoken there, such as `1.0`: major and minor.
    pub version: String,
    /// What a client says there to be brought to the agent. 0.3 has no word for it.
    pub tenant: Option<String>,
}

/// What A2A travels on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP.
    JsonRpc,
    /// REST.
    Rest,
    /// gRPC.
    Grpc,
    /// One of somebody's own, by its URI.
    Other(String),
}

impl Binding {
    fn named(name: String) -> Self {
        match name.as_str() {
            "JSONRPC" => Self::JsonRpc,
            "HTTP+JSON" => Self::Rest,
            "GRPC" => Self::Grpc,
            _ => Self::Other(name),
        }
    }
}

/// The ways to reach the agent of a card of either version, the best first. The rest of such a card is read by
/// [`AgentCard::parse`].
pub fn read_interfaces(card: &Value) -> Result<Vec<Interface>, A2aError> {
    let mut of = Members::of(card.clone(), "")?;
    let minor = |version: &str| version.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let mut all = of.list("supportedInterfaces", |interface, at| {
        let mut of = Members::of(interface, at)?;
        Ok(Interface {
            url: of.need_text("url")?,
            binding: Binding::named(of.need_text("protocolBinding")?),
            version: minor(&of.need_text("protocolVersion")?),
            tenant: of.some_text("tenant")?,
        })
    })?;
    if all.is_empty() {
        // A card of 0.3, which has one version for all.
        let version = minor(of.some_text("protocolVersion")?.as_deref().unwrap_or("0.3"));
        let first = of.some_text("preferredTransport")?.unwrap_or_else(|| "JSONRPC".to_owned());
        let (url, binding) = (of.need_text("url")?, Binding::named(first));
        all.push(Interface { url, binding, version: version.clone(), tenant: None });
        let more = of.list("additionalInterfaces", |interface, at| {
            let mut of = Members::of(interface, at)?;
            let binding = Binding::named(of.need_text("transport")?);
            let url = of.need_text("url")?;
            Ok(Interface { url, binding, version: version.clone(), tenant: None })
        })?;
        let new: Vec<_> = more.into_iter().filter(|one| !all.contains(one)).collect();
        all.extend(new);
    }
    Ok(all)
}

/// The best first. What official clients do not know comes last.
fn interfaces(reach: &Reach) -> Vec<Value> {
    let Reach { base, grpc, socket, tenant, .. } = reach;
    let rest = base.as_ref().map(|base| format!("{base}/rest"));
    let interface =
        |url: &Option<String>, binding: &str, version: &str, tenant: Option<&String>| {
            let one = object([
                ("url", json!(url.as_ref()?)),
                ("protocolBinding", json!(binding)),
                ("protocolVersion", json!(version)),
                ("tenant", json!(tenant)),
            ]);
            Some(one)
        };
    // Where there are no paths, a client of 0.3 can only be brought to the hub: it has no word for a tenant.
    let old = |url: &Option<String>, binding: &str| match tenant {
        Some(_) => None,
        None => interface(url, binding, "0.3", None),
    };
    let all = [
        interface(base, "JSONRPC", "1.0", None),
        interface(&rest, "HTTP+JSON", "1.0", None),
        interface(grpc, "GRPC", "1.0", tenant.as_ref()),
        interface(base, "JSONRPC", "0.3", None),
        interface(&rest, "HTTP+JSON", "0.3", None),
        old(grpc, "GRPC"),
        interface(socket, NDJSON, "1.0", tenant.as_ref()),
        old(socket, NDJSON),
    ];
    all.into_iter().flatten().collect()
}

fn http_scheme() -> Value {
    let description = "What the file `http-token` in the hub's data directory holds";
    json!({ "scheme": "bearer", "description": description })
}

fn requirements() -> Value {
    json!([{ "schemes": { TOKEN: { "list": [] } } }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::{Part, Role};

    fn reach(needs_token: bool) -> Reach {
        Reach {
            base: Some("http://hub/agents/n".to_owned()),
            grpc: Some("hub:80".to_owned()),
            socket: None,
            tenant: Some("n".to_owned()),
            needs_token,
        }
    }

    const GIVEN: &str = r#"{"name":"n","description":"d","version":"1","url":"http://evil.example","iconUrl":"http://x/i",
        "skills":[{"id":"s","name":"S","description":"does s","examples":["do s"],"inputModes":[]}],
        "securitySchemes":{"x":{}},"signatures":[{}],"provider":{"name":"Acme"},
        "capabilities":{"extensions":[{"uri":"urn:x","required":true},{"uri":"urn:y"}]}}"#;

    #[test]
    fn a_hybrid_card_is_for_both() {
        let card = AgentCard::parse(GIVEN).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&card.hybrid(&reach(true))).unwrap(), @r#"
        {
          "additionalInterfaces": [
            {
              "transport": "JSONRPC",
              "url": "http://hub/agents/n"
            },
            {
              "transport": "HTTP+JSON",
              "url": "http://hub/agents/n/rest"
            }
          ],
          "capabilities": {
            "extendedAgentCard": true,
            "extensions": [
              {
                "required": true,
                "uri": "urn:x"
              },
              {
                "uri": "urn:y"
              }
            ],
            "pushNotifications": true,
            "stateTransitionHistory": true,
            "streaming": true
          },
          "defaultInputModes": [
            "text/plain"
          ],
          "defaultOutputModes": [
            "text/plain"
          ],
          "description": "d",
          "iconUrl": "http://x/i",
          "name": "n",
          "preferredTransport": "JSONRPC",
          "protocolVersion": "0.3.0",
          "provider": {
            "name": "Acme",
            "organization": "Acme",
            "url": "http://hub/agents/n"
          },
          "security": [
            {
              "hubToken": []
            }
          ],
          "securityRequirements": [
            {
              "schemes": {
                "hubToken": {
                  "list": []
                }
              }
            }
          ],
          "securitySchemes": {
            "hubToken": {
              "description": "What the file `http-token` in the hub's data directory holds",
              "httpAuthSecurityScheme": {
                "description": "What the file `http-token` in the hub's data directory holds",
                "scheme": "bearer"
              },
              "scheme": "bearer",
              "type": "http"
            }
          },
          "skills": [
            {
              "description": "does s",
              "examples": [
                "do s"
              ],
              "id": "s",
              "name": "S",
              "tags": [
                "s"
              ]
            }
          ],
          "supportedInterfaces": [
            {
              "protocolBinding": "JSONRPC",
              "protocolVersion": "1.0",
              "url": "http://hub/agents/n"
            },
            {
              "protocolBinding": "HTTP+JSON",
              "protocolVersion": "1.0",
              "url": "http://hub/agents/n/rest"
            },
            {
              "protocolBinding": "GRPC",
              "protocolVersion": "1.0",
              "tenant": "n",
              "url": "hub:80"
            },
            {
              "protocolBinding": "JSONRPC",
              "protocolVersion": "0.3",
              "url": "http://hub/agents/n"
            },
            {
              "protocolBinding": "HTTP+JSON",
              "protocolVersion": "0.3",
              "url": "http://hub/agents/n/rest"
            }
          ],
          "supportsAuthenticatedExtendedCard": true,
          "url": "http://hub/agents/n",
          "version": "1"
        }
        "#);
        assert_eq!(card.extensions().collect::<Vec<_>>(), [("urn:x", true), ("urn:y", false)]);
        assert_eq!(card.missing_extension(&["urn:y".to_owned()]), Some("urn:x"));
        assert_eq!(card.missing_extension(&["urn:x".to_owned()]), None);
    }

    #[test]
    fn a_card_tells_how_its_agent_is_reached() {
        let card = AgentCard::parse(GIVEN).unwrap();
        let ways = |card: &Value| {
            let all = read_interfaces(card).unwrap();
            all.iter()
                .map(|it| format!("{:?} {} {}", it.binding, it.version, it.url))
                .collect::<Vec<_>>()
        };
        let mut hybrid = card.hybrid(&reach(false));
        assert_eq!(ways(&hybrid), ways(&card.v1(&reach(false))));
        // What a client of 0.3 sees in it.
        hybrid.as_object_mut().unwrap().remove("supportedInterfaces");
        let old = ["JsonRpc 0.3 http://hub/agents/n", "Rest 0.3 http://hub/agents/n/rest"];
        assert_eq!(ways(&hybrid), old);
        assert_eq!(ways(&card.v1(&reach(false)))[3], old[0]);
        let mut hub = reach(false);
        hub.tenant = None;
        let ways_to_hub = ways(&card.hybrid(&hub));
        assert!(ways_to_hub.contains(&"Grpc 1.0 hub:80".to_owned()));
        assert_eq!(ways_to_hub[5], "Grpc 0.3 hub:80", "the hub is reached by 0.3, too");
        assert_eq!(ways(&json!({"url": "http://x/"})), ["JsonRpc 0.3 http://x/"]);
        let nowhere = read_interfaces(&json!({"name": "n"})).unwrap_err().to_string();
        assert_eq!(nowhere, "`url`: is missing, or empty");
    }

    #[test]
    fn a_card_of_1_0_has_nothing_else() {
        let given = r#"{"name":"n","description":"d","version":"1"}"#;
        let card = AgentCard::parse(given).unwrap();
        let reach = Reach { socket: Some("unix:///run/hub.sock".to_owned()), ..reach(false) };
        insta::assert_snapshot!(card.v1(&reach), @r#"{"capabilities":{"extendedAgentCard":true,"pushNotifications":true,"streaming":true},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"description":"d","name":"n","provider":{"organization":"a2a-hub","url":"http://hub/agents/n"},"skills":[{"description":"d","id":"default","name":"n","tags":["default"]}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"http://hub/agents/n"},{"protocolBinding":"HTTP+JSON","protocolVersion":"1.0","url":"http://hub/agents/n/rest"},{"protocolBinding":"GRPC","protocolVersion":"1.0","tenant":"n","url":"hub:80"},{"protocolBinding":"JSONRPC","protocolVersion":"0.3","url":"http://hub/agents/n"},{"protocolBinding":"HTTP+JSON","protocolVersion":"0.3","url":"http://hub/agents/n/rest"},{"protocolBinding":"urn:a2a-hub:unix-ndjson:v1","protocolVersion":"1.0","tenant":"n","url":"unix:///run/hub.sock"}],"version":"1"}"#);
    }

    #[test]
    fn a_hub_without_http_is_reached_by_its_socket() {
        let card = AgentCard::parse(GIVEN).unwrap();
        let socket = Some("unix:///run/hub.sock".to_owned());
        let only = Reach { base: None, grpc: None, socket, tenant: None, needs_token: false };
        let hybrid = card.hybrid(&only);
        let ways = read_interfaces(&hybrid).unwrap();
        let ways: Vec<_> = ways.iter().map(|it| (it.url.as_str(), it.version.as_str())).collect();
        assert_eq!(ways, [("unix:///run/hub.sock", "1.0"), ("unix:///run/hub.sock", "0.3")]);
        assert_eq!(
            (&hybrid["url"], &hybrid["preferredTransport"]),
            (&json!(ways[0].0), &json!(NDJSON))
        );
    }

    #[test]
    fn an_agent_takes_what_its_card_says() {
        let card = |modes: Value| {
            let mut given: Value = serde_json::from_str(GIVEN).unwrap();
            given["defaultInputModes"] = modes;
            given["skills"][0]["inputModes"] = json!(["text/csv"]);
            AgentCard::parse(&given.to_string()).unwrap()
        };
        let message = |types: &[Option<&str>]| {
            let parts = types
                .iter()
                .map(|media| Part { media_type: media.map(str::to_owned), ..Part::text("x") });
            Message::new(Role::User, parts.collect())
        };
        let picky = card(json!(["text/plain", "image/*"]));
        assert_eq!(picky.input_modes(), ["text/plain", "image/*", "text/csv"]);
        let taken = message(&[
            None,
            Some("text/plain; charset=utf-8"),
            Some("image/png"),
            Some("text/csv"),
        ]);
        assert_eq!(picky.part_not_taken(&taken), None);
        let not_taken = message(&[None, Some("video/mp4")]);
        assert_eq!(picky.part_not_taken(&not_taken), Some((1, "video/mp4")));
        assert_eq!(card(json!(["*/*"])).part_not_taken(&not_taken), None);
        let silent = AgentCard::parse(r#"{"name":"n","description":"d","version":"1"}"#).unwrap();
        assert_eq!(silent.part_not_taken(&not_taken), None);
    }
}
