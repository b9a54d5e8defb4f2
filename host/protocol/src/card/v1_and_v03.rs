//! Cards in official form: of 1.0 alone ([`AgentCard::v1`]), and the hybrid card of 1.0 and 0.3
//! ([`AgentCard::hybrid`]), which clients of 0.3 get.

use crate::{
    card::INPUT_SCHEMA,
    codec::members::{object, some_list},
    five_step, member,
    model::{
        card::{AgentCard, Skill},
        interface::{Binding, Version},
    },
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Binding of the Unix socket: line-delimited JSON-RPC. `docs/reference/unix-socket.md` specifies
/// it; an incompatible change needs a new URI (A2A 1.0, section 5.8).
pub const NDJSON: &str = "urn:a2a-hub:unix-ndjson:v1";

/// Version of A2A at a card's `url`, which is a member of 0.3.
pub(super) const OLD_VERSION: &str = "0.3.0";

/// Name of the security scheme for the hub's token.
const TOKEN: &str = "hubToken";

/// Endpoints of an agent, or of the hub itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Absolute HTTP URL without a trailing slash; serves JSON-RPC, and REST below it.
    pub base: String,
    /// HTTP URL of the hub, without a trailing slash.
    pub root: String,
    /// Host and port of the gRPC endpoint, if reachable. The official gRPC clients accept no URL.
    pub grpc: Option<String>,
    /// URL of the hub's Unix socket, if the caller may connect to it.
    pub socket: Option<String>,
    /// Tenant that selects the agent for 1.0 clients of gRPC and the socket, which have no paths.
    /// `None` for the hub itself.
    pub tenant: Option<String>,
    /// True if the caller must authenticate with the hub's token. Only such callers may get the
    /// extended card, so a card without a security scheme declares none (A2A 1.0, section 3.1.11).
    pub needs_token: bool,
}

impl Endpoints {
    /// Base URL of the five-step endpoints; those of the hub are at its root.
    fn base_of_five_steps(&self) -> String {
        if self.tenant.is_some() { self.base.clone() } else { self.root.clone() }
    }
}

impl AgentCard {
    /// Card in the form of A2A 1.0.
    pub fn v1(&self, endpoints: &Endpoints) -> Value {
        let scheme = json!({ TOKEN: { "httpAuthSecurityScheme": http_scheme() } });
        let asks = endpoints.needs_token;
        object([
            ("name", json!(self.name)),
            ("description", json!(self.description)),
            ("version", json!(self.version)),
            ("supportedInterfaces", Value::Array(interfaces(endpoints))),
            ("provider", self.official_provider(endpoints)),
            ("documentationUrl", self.string_member("documentationUrl")),
            ("iconUrl", self.string_member("iconUrl")),
            ("capabilities", self.official_capabilities(endpoints)),
            ("securitySchemes", if asks { scheme } else { Value::Null }),
            ("securityRequirements", if asks { requirements() } else { Value::Null }),
            ("defaultInputModes", self.modes("defaultInputModes")),
            ("defaultOutputModes", self.modes("defaultOutputModes")),
            ("skills", self.official_skills(asks)),
        ])
    }

    /// Card of 1.0 with the required members of 0.3, readable by clients of both. The official 0.3
    /// clients request a card without a version, which means 0.3 (A2A 1.0, section 3.6.2).
    pub fn hybrid(&self, endpoints: &Endpoints) -> Value {
        let mut card = self.v1(endpoints);
        member::set(&mut card, "protocolVersion", json!(OLD_VERSION));
        member::set(&mut card, "url", json!(endpoints.base));
        let all = interfaces(endpoints).into_iter();
        let old = all.filter(|one| one["protocolVersion"] == Version::V03.name());
        // Validators of 0.3 cards accept only `http` and `https` URLs.
        let old = old.filter(|one| one["protocolBinding"] != NDJSON);
        let old = old.map(|one| {
            // 0.3 requires a URL. The official client passes it to gRPC, which knows `dns:` and not
            // `http:`.
            let url = match one["protocolBinding"] == Binding::Grpc.name() {
                true => json!(format!("dns:///{}", one["url"].as_str().unwrap_or_default())),
                false => one["url"].clone(),
            };
            json!({ "url": url, "transport": one["protocolBinding"] })
        });
        member::set(&mut card, "preferredTransport", json!(Binding::JsonRpc.name()));
        member::set(&mut card, "additionalInterfaces", old.collect::<Value>());
        self.add_five_steps(&mut card, &endpoints.base_of_five_steps());
        member::set(&mut card, "supportsAuthenticatedExtendedCard", json!(endpoints.needs_token));
        if endpoints.needs_token {
            // Both forms are merged, because 0.3 clients misinterpret a scheme without `type`.
            let Value::Object(mut scheme) = http_scheme() else { return card };
            scheme.insert("type".to_owned(), json!("http"));
            scheme.insert("httpAuthSecurityScheme".to_owned(), http_scheme());
            member::set(&mut card, "securitySchemes", json!({ TOKEN: scheme }));
            member::set(&mut card, "security", json!([{ TOKEN: [] }]));
            let written = card.get_mut("skills").and_then(Value::as_array_mut);
            for (written, skill) in written.into_iter().flatten().zip(&self.skills) {
                if let Some(alternatives) = skill.required_scopes() {
                    let security = alternatives.iter().map(|scopes| json!({ TOKEN: scopes }));
                    member::set(written, "security", security.collect::<Value>());
                }
            }
        }
        card
    }

    /// Adds the five-step protocol's members to a card: both endpoints below `base`, and the input
    /// schemas of its skills.
    pub fn add_five_steps(&self, card: &mut Value, base: &str) {
        member::set(card, five_step::ENDPOINTS, five_step::endpoints(base));
        let written = card.get_mut("skills").and_then(Value::as_array_mut).into_iter().flatten();
        for (written, skill) in written.zip(&self.skills) {
            if let Some(schema) = skill.input_schema() {
                member::set(written, INPUT_SCHEMA, schema.clone());
            }
        }
    }

    fn string_member(&self, member: &str) -> Value {
        self.other.get(member).filter(|value| value.is_string()).cloned().unwrap_or_default()
    }

    fn modes(&self, member: &str) -> Value {
        let listed = self.other.get(member).and_then(Value::as_array);
        listed
            .filter(|modes| !modes.is_empty())
            .map_or_else(|| json!(["text/plain"]), |it| json!(it))
    }

    /// Both versions require a provider's URL; the hub's URL is the default.
    fn official_provider(&self, endpoints: &Endpoints) -> Value {
        let mut provider = provider(self.other.get("provider"));
        let url = provider.get_mut("url").map_or_else(|| json!(endpoints.base), Value::take);
        json!({ "organization": provider["organization"], "url": url })
    }

    fn official_capabilities(&self, endpoints: &Endpoints) -> Value {
        let extensions = self.other.get("capabilities").and_then(|can| can.get("extensions"));
        let declared = extensions.and_then(Value::as_array).into_iter().flatten();
        // The hub's own five-step extension replaces that of a remote agent's hub.
        let declared = declared.filter(|one| one["uri"] != five_step::EXTENSION).cloned();
        let hub_extension = five_step::extension(&endpoints.base_of_five_steps(), self);
        let extensions: Vec<_> = declared.chain([hub_extension]).collect();
        object([
            ("streaming", json!(self.streams())),
            ("pushNotifications", json!(true)),
            ("extensions", json!(extensions)),
            ("extendedAgentCard", if endpoints.needs_token { json!(true) } else { Value::Null }),
        ])
    }

    /// Cards need at least one skill, so an agent without any gets a default skill from its name
    /// and description.
    ///
    /// The scopes that a skill requires are those of the hub's own scheme, so a card without that
    /// scheme names none.
    fn official_skills(&self, needs_token: bool) -> Value {
        let itself = || Skill {
            id: "default".to_owned(),
            name: self.name.clone(),
            description: self.description.clone(),
            tags: Vec::new(),
            other: serde_json::Map::new(),
        };
        let written = |skill: &Skill| {
            // Protobuf reads an empty required list as absent.
            let tags =
                if skill.tags.is_empty() { vec![skill.id.clone()] } else { skill.tags.clone() };
            let some = |member: &str| {
                let list = skill.other.get(member).and_then(Value::as_array);
                some_list(list.map_or(&[], Vec::as_slice), Clone::clone)
            };
            object([
                ("id", json!(skill.id)),
                ("name", json!(skill.name)),
                ("description", json!(skill.description)),
                ("tags", json!(tags)),
                ("examples", some("examples")),
                ("inputModes", some("inputModes")),
                ("outputModes", some("outputModes")),
                ("securityRequirements", skill_requirements(skill, needs_token)),
            ])
        };
        if self.skills.is_empty() {
            json!([written(&itself())])
        } else {
            self.skills.iter().map(written).collect()
        }
    }
}

/// Interfaces in order of preference; those that official clients do not support come last.
fn interfaces(endpoints: &Endpoints) -> Vec<Value> {
    let Endpoints { base, grpc, socket, tenant, .. } = endpoints;
    let (base, rest) = (Some(base.clone()), Some(format!("{base}/rest")));
    let interface = |url: &Option<String>, binding: &str, version: Version, tenant| {
        let one = object([
            ("url", json!(url.as_ref()?)),
            ("protocolBinding", json!(binding)),
            ("protocolVersion", json!(version.name())),
            ("tenant", json!(tenant)),
        ]);
        Some(one)
    };
    // Without paths, a 0.3 client can only reach the hub itself, because 0.3 has no tenants.
    let old = |url: &Option<String>, binding: &str| match tenant {
        Some(_) => None,
        None => interface(url, binding, Version::V03, None),
    };
    let named = tenant.as_deref();
    let [over_rpc, over_grpc, over_rest] = Binding::ALL.map(Binding::name);
    let all = [
        interface(&base, over_rpc, Version::V1, None),
        interface(&rest, over_rest, Version::V1, None),
        interface(grpc, over_grpc, Version::V1, named),
        interface(&base, over_rpc, Version::V03, None),
        interface(&rest, over_rest, Version::V03, None),
        old(grpc, over_grpc),
        interface(socket, NDJSON, Version::V1, named),
        old(socket, NDJSON),
    ];
    all.into_iter().flatten().collect()
}

/// Provider of an agent. The Local Hub specification calls it `name`, A2A `organization`; the
/// result has both.
pub(super) fn provider(source: Option<&Value>) -> Value {
    let text = |member: &str| source.and_then(|source| source.get(member)).and_then(Value::as_str);
    let name = text("name").or_else(|| text("organization")).unwrap_or("a2a-hub");
    let mut provider = json!({ "name": name, "organization": name });
    if let Some(url) = text("url") {
        provider["url"] = json!(url);
    }
    provider
}

fn http_scheme() -> Value {
    let description = "API key (`a2ah_...`) of a person, or the token in the file `http-token` of the hub's data directory";
    json!({ "scheme": "bearer", "description": description })
}

/// Scopes that a skill requires, in the form of 1.0; none if the card declares no scheme.
fn skill_requirements(skill: &Skill, needs_token: bool) -> Value {
    let alternatives = skill.required_scopes().filter(|_| needs_token);
    let alternatives = alternatives.map(|all| {
        let requirement =
            |scopes: &BTreeSet<String>| json!({ "schemes": { TOKEN: { "list": scopes } } });
        all.iter().map(requirement).collect()
    });
    alternatives.unwrap_or_default()
}

fn requirements() -> Value {
    json!([{ "schemes": { TOKEN: { "list": [] } } }])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::read_interfaces;

    fn endpoints(needs_token: bool) -> Endpoints {
        Endpoints {
            base: "http://hub/agents/n".to_owned(),
            root: "http://hub".to_owned(),
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
    fn hybrid_card_names_grpc_by_url() {
        let of_hub = Endpoints { tenant: None, ..endpoints(false) };
        let card = AgentCard::parse(GIVEN).unwrap().hybrid(&of_hub);
        let of = |list: &str, named: &str| {
            let all = card[list].as_array().unwrap();
            let is_grpc = |one: &&Value| one[named] == "GRPC";
            all.iter().filter(is_grpc).map(|one| one["url"].to_string()).collect::<Vec<_>>()
        };
        assert_eq!(of("additionalInterfaces", "transport"), ["\"dns:///hub:80\""]);
        assert_eq!(of("supportedInterfaces", "protocolBinding"), ["\"hub:80\""; 2]);
    }

    #[test]
    fn skill_names_its_scopes_of_the_hubs_scheme() {
        let given = r#"{"name":"n","description":"d","version":"1","securitySchemes":{"oauth":{}},
            "skills":[{"id":"open","name":"O","description":"o"},{"id":"deploy","name":"D","description":"d",
              "securityRequirements":[{"schemes":{"oauth":{"list":["prod"]}}},{"schemes":{"oauth":{"list":["a","b"]}}}]}]}"#;
        let card = AgentCard::parse(given).unwrap();
        let v1 = card.v1(&endpoints(true));
        let of_hub = |scopes: &[&str]| json!({ "schemes": { TOKEN: { "list": scopes } } });
        let skills = &v1["skills"];
        assert_eq!(skills[0].get("securityRequirements"), None);
        let expected = json!([of_hub(&["prod"]), of_hub(&["a", "b"])]);
        assert_eq!(skills[1]["securityRequirements"], expected);
        let hybrid = card.hybrid(&endpoints(true));
        assert_eq!(hybrid["skills"][1]["securityRequirements"], expected);
        let security = json!([{ TOKEN: ["prod"] }, { TOKEN: ["a", "b"] }]);
        assert_eq!(hybrid["skills"][1]["security"], security);
        assert_eq!(hybrid["skills"][0].get("security"), None);
        let open = card.hybrid(&endpoints(false)).to_string();
        assert!(!open.contains("prod") && !open.contains(TOKEN), "it declares no scheme: {open}");
    }

    #[test]
    fn hybrid_card_serves_both_versions() {
        let card = AgentCard::parse(GIVEN).unwrap();
        insta::assert_snapshot!(serde_json::to_string_pretty(&card.hybrid(&endpoints(true))).unwrap(), @r#"
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
              },
              {
                "description": "Tasks may be submitted by the five-step protocol as well",
                "params": {
                  "submit_task": "http://hub/agents/n/submit_task",
                  "task_updates": "http://hub/agents/n/task_updates/{task_id}"
                },
                "uri": "urn:a2a-hub:five-step:v1"
              }
            ],
            "pushNotifications": true,
            "streaming": true
          },
          "defaultInputModes": [
            "text/plain"
          ],
          "defaultOutputModes": [
            "text/plain"
          ],
          "description": "d",
          "endpoints": {
            "submit_task": "http://hub/agents/n/submit_task",
            "task_updates": "http://hub/agents/n/task_updates/{task_id}"
          },
          "iconUrl": "http://x/i",
          "name": "n",
          "preferredTransport": "JSONRPC",
          "protocolVersion": "0.3.0",
          "provider": {
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
              "description": "API key (`a2ah_...`) of a person, or the token in the file `http-token` of the hub's data directory",
              "httpAuthSecurityScheme": {
                "description": "API key (`a2ah_...`) of a person, or the token in the file `http-token` of the hub's data directory",
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
    fn card_lists_interfaces_of_agent() {
        let card = AgentCard::parse(GIVEN).unwrap();
        let ways = |card: &Value| {
            let all = read_interfaces(card).unwrap();
            all.iter()
                .map(|it| format!("{} {} {}", it.binding, it.version, it.url))
                .collect::<Vec<_>>()
        };
        let mut hybrid = card.hybrid(&endpoints(false));
        assert_eq!(ways(&hybrid), ways(&card.v1(&endpoints(false))));
        // View of a 0.3 client.
        hybrid.as_object_mut().unwrap().remove("supportedInterfaces");
        let old = ["JSONRPC 0.3 http://hub/agents/n", "HTTP+JSON 0.3 http://hub/agents/n/rest"];
        assert_eq!(ways(&hybrid), old);
        assert_eq!(ways(&card.v1(&endpoints(false)))[3], old[0]);
        let mut hub = endpoints(false);
        hub.tenant = None;
        let ways_to_hub = ways(&card.hybrid(&hub));
        assert!(ways_to_hub.contains(&"GRPC 1.0 hub:80".to_owned()));
        assert_eq!(ways_to_hub[5], "GRPC 0.3 hub:80", "the hub is reached by 0.3, too");
        assert_eq!(ways(&json!({"url": "http://x/"})), ["JSONRPC 0.3 http://x/"]);
        let nowhere = read_interfaces(&json!({"name": "n"})).unwrap_err().to_string();
        assert_eq!(nowhere, "`url`: is missing, or empty");
    }

    #[test]
    fn v1_card_has_only_v1_members() {
        let given = r#"{"name":"n","description":"d","version":"1"}"#;
        let card = AgentCard::parse(given).unwrap();
        let endpoints =
            Endpoints { socket: Some("unix:///run/hub.sock".to_owned()), ..endpoints(false) };
        insta::assert_snapshot!(card.v1(&endpoints), @r#"{"capabilities":{"extensions":[{"description":"Tasks may be submitted by the five-step protocol as well","params":{"submit_task":"http://hub/agents/n/submit_task","task_updates":"http://hub/agents/n/task_updates/{task_id}"},"uri":"urn:a2a-hub:five-step:v1"}],"pushNotifications":true,"streaming":true},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"description":"d","name":"n","provider":{"organization":"a2a-hub","url":"http://hub/agents/n"},"skills":[{"description":"d","id":"default","name":"n","tags":["default"]}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"http://hub/agents/n"},{"protocolBinding":"HTTP+JSON","protocolVersion":"1.0","url":"http://hub/agents/n/rest"},{"protocolBinding":"GRPC","protocolVersion":"1.0","tenant":"n","url":"hub:80"},{"protocolBinding":"JSONRPC","protocolVersion":"0.3","url":"http://hub/agents/n"},{"protocolBinding":"HTTP+JSON","protocolVersion":"0.3","url":"http://hub/agents/n/rest"},{"protocolBinding":"urn:a2a-hub:unix-ndjson:v1","protocolVersion":"1.0","tenant":"n","url":"unix:///run/hub.sock"}],"version":"1"}"#);
    }

    /// Validators of 0.3 cards accept only `http` and `https` URLs.
    #[test]
    fn v03_interfaces_omit_unix_socket() {
        let card = AgentCard::parse(GIVEN).unwrap();
        let socket = Some("unix:///run/hub.sock".to_owned());
        let hub = Endpoints { socket, tenant: None, ..endpoints(false) };
        let mut hybrid = card.hybrid(&hub);
        assert!(hybrid["supportedInterfaces"].to_string().contains("unix:///run/hub.sock"));
        hybrid.as_object_mut().unwrap().remove("supportedInterfaces");
        assert!(!hybrid.to_string().contains("unix"), "{hybrid}");
    }

    #[test]
    fn extended_card_requires_security_scheme() {
        let card = AgentCard::parse(GIVEN).unwrap();
        for needs_token in [false, true] {
            let (v1, both) =
                (card.v1(&endpoints(needs_token)), card.hybrid(&endpoints(needs_token)));
            for card in [&v1, &both] {
                let declared = card["capabilities"]["extendedAgentCard"] == true;
                let has_scheme = card["securitySchemes"].is_object();
                assert_eq!((declared, has_scheme), (needs_token, needs_token), "{card}");
            }
            assert_eq!(both["supportsAuthenticatedExtendedCard"], needs_token);
        }
    }
}
