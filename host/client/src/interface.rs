//! Selection of an interface from an agent's card: its URL, binding and version.

use crate::error::ClientError;
use a2a_hub_protocol::{
    dialect::Wire,
    interface::{Binding, Interface, Version},
};
use url::{Origin, Url};

/// Interface that the hub supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SelectedInterface {
    pub(crate) url: Url,
    /// Version and binding of the interface.
    pub(crate) wire: Wire,
    /// Tenant to be sent to the agent.
    pub(crate) tenant: Option<String>,
}

/// Origins to which a card may direct its clients beside its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trust {
    pub(crate) origins: Vec<Origin>,
    /// True if any port of the card's own host is trusted. Another user's program may listen on it.
    pub(crate) other_ports: bool,
}

impl Trust {
    fn allows(&self, base: &Url, to: &Url) -> bool {
        let is_other_port = base.scheme() == to.scheme() && base.host() == to.host();
        let origin = to.origin();
        origin == base.origin()
            || self.origins.contains(&origin)
            || (self.other_ports && is_other_port)
    }
}

impl SelectedInterface {
    /// Chooses the best interface that the hub supports, for a card at `base`: 1.0 before 0.3, then
    /// in the card's order. Messages and tokens go only to the card's own origin and to the trusted
    /// ones.
    pub(crate) fn choose(
        agent: &str,
        interfaces: &[Interface],
        base: &Url,
        trust: &Trust,
    ) -> Result<Self, ClientError> {
        let mut spoken: Vec<_> =
            interfaces.iter().filter_map(|it| Some((it, Wire::from_interface(it)?))).collect();
        spoken.sort_by_key(|(_, wire)| wire.version != Version::V1);
        let mut first_problem = None;
        for (interface, wire) in spoken {
            let Some(url) = interface_url(interface, base) else {
                first_problem.get_or_insert_with(|| ClientError::NotUrl(interface.url.clone()));
                continue;
            };
            if trust.allows(base, &url) {
                return Ok(Self { url, wire, tenant: interface.tenant.clone() });
            }
            first_problem.get_or_insert_with(|| ClientError::Elsewhere {
                agent: agent.to_owned(),
                card: base.origin().ascii_serialization(),
                elsewhere: url.origin().ascii_serialization(),
            });
        }
        let foreign =
            || ClientError::Foreign { agent: agent.to_owned(), offered: offered(interfaces) };
        Err(first_problem.unwrap_or_else(foreign))
    }
}

/// URL of an interface of a card at `base`. For gRPC it may be `host:port`, which gRPC clients take
/// for a URL; the scheme of the card's URL then decides about TLS.
fn interface_url(interface: &Interface, base: &Url) -> Option<Url> {
    let url = interface.url.strip_prefix("dns:///").unwrap_or(&interface.url);
    if interface.binding() == Some(Binding::Grpc) && !url.contains("://") {
        return Url::parse(&format!("{}://{url}", base.scheme())).ok();
    }
    base.join(url).ok()
}

fn offered(interfaces: &[Interface]) -> String {
    let names = interfaces.iter().map(|it| {
        let binding = match it.binding() {
            Some(Binding::JsonRpc) => "JSON-RPC",
            Some(Binding::Rest) => "REST",
            Some(Binding::Grpc) => "gRPC",
            None => &it.binding,
        };
        format!("{binding} {}", it.version)
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::card::read_interfaces;
    use serde_json::{Value, json};

    /// Selection from a card at `https://a`, where `https://b` is trusted too.
    fn chosen(card: &Value) -> String {
        let trusted = Url::parse("https://b").unwrap().origin();
        chosen_by(&Trust { origins: vec![trusted], other_ports: false }, card)
    }

    fn chosen_by(trust: &Trust, card: &Value) -> String {
        let interfaces = read_interfaces(card).unwrap();
        let base = Url::parse("https://a/card").unwrap();
        match SelectedInterface::choose("agent", &interfaces, &base, trust) {
            Ok(SelectedInterface { url, wire: Wire { version, binding }, tenant }) => {
                format!("{binding:?} {version:?} {url} {tenant:?}")
            }
            Err(why) => why.to_string(),
        }
    }

    fn card(interfaces: &[[&str; 3]]) -> Value {
        let one = |[binding, version, url]: &[&str; 3]| json!({ "protocolBinding": binding, "protocolVersion": version, "url": url, "tenant": "t" });
        json!({ "supportedInterfaces": interfaces.iter().map(one).collect::<Value>() })
    }

    fn of(interfaces: &[[&str; 3]]) -> String {
        chosen(&card(interfaces))
    }

    /// A token must not reach another port of the same host, where another user's program may
    /// listen.
    #[test]
    fn other_port_is_allowed_without_token_only() {
        let tokenless = Trust { origins: Vec::new(), other_ports: true };
        let told =
            ["a:50051", "https://a:50051", "http://a:50051", "https://b.a:50051", "https://c"]
                .map(|url| chosen_by(&tokenless, &card(&[["GRPC", "1.0", url]])));
        insta::assert_snapshot!(told.join("\n"), @r#"
        Grpc V1 https://a:50051/ Some("t")
        Grpc V1 https://a:50051/ Some("t")
        talk to `agent`: its card is at https://a, and sends its clients to http://a:50051; if that is right, name it with `--allow-origin http://a:50051`, or in `origins` of a `[remote.<id>]`
        talk to `agent`: its card is at https://a, and sends its clients to https://b.a:50051; if that is right, name it with `--allow-origin https://b.a:50051`, or in `origins` of a `[remote.<id>]`
        talk to `agent`: its card is at https://a, and sends its clients to https://c; if that is right, name it with `--allow-origin https://c`, or in `origins` of a `[remote.<id>]`
        "#);
    }

    #[test]
    fn newest_version_then_first_interface_wins() {
        let told = [
            of(&[
                ["JSONRPC", "0.3", "/old"],
                ["HTTP+JSON", "1.0.1", "/rest"],
                ["JSONRPC", "1.0", "/rpc"],
            ]),
            of(&[["JSONRPC", "0.3", "/old"], ["GRPC", "1.0", "https://a/grpc"]]),
            of(&[["GRPC", "0.3", "https://a"], ["JSONRPC", "0.3", "/old"]]),
            of(&[
                ["JSONRPC", "2.0", "/future"],
                ["urn:x", "1.0", "x:"],
                ["HTTP+JSON", "0.2", "/r"],
            ]),
            chosen(
                &json!({ "url": "/rest", "preferredTransport": "HTTP+JSON", "protocolVersion": "0.3.0",
                "additionalInterfaces": [{ "url": "/rpc", "transport": "JSONRPC" }] }),
            ),
            chosen(&json!({ "url": "/u" })),
            chosen(&json!({ "url": "/u", "protocolVersion": "0.2.6" })),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        Rest V1 https://a/rest Some("t")
        Grpc V1 https://a/grpc Some("t")
        Grpc V03 https://a/ Some("t")
        talk to `agent`: its card offers JSON-RPC 2.0, urn:x 1.0, REST 0.2, and JSON-RPC, REST or gRPC of 1.0 or 0.3 is needed
        Rest V03 https://a/rest None
        JsonRpc V03 https://a/u None
        JsonRpc V03 https://a/u None
        "#);
    }

    #[test]
    fn untrusted_origins_are_not_chosen() {
        let told = [
            of(&[["JSONRPC", "1.0", "https://evil/"], ["HTTP+JSON", "0.3", "https://a/rest"]]),
            of(&[["JSONRPC", "1.0", "http://a/"], ["JSONRPC", "1.0", "https://b:443/x"]]),
            of(&[["JSONRPC", "1.0", "https://a:8443/"], ["HTTP+JSON", "1.0", "https://evil/"]]),
            of(&[["JSONRPC", "1.0", "https://["]]),
            of(&[["GRPC", "1.0", "a:443"]]),
            of(&[["GRPC", "1.0", "dns:///b"], ["JSONRPC", "1.0", "/rpc"]]),
            of(&[["GRPC", "1.0", "a:50051"], ["GRPC", "1.0", "http://a"]]),
        ];
        insta::assert_snapshot!(told.join("\n"), @r#"
        Rest V03 https://a/rest Some("t")
        JsonRpc V1 https://b/x Some("t")
        talk to `agent`: its card is at https://a, and sends its clients to https://a:8443; if that is right, name it with `--allow-origin https://a:8443`, or in `origins` of a `[remote.<id>]`
        `https://[` is not a URL of an agent: it must begin with https:// or http://
        Grpc V1 https://a/ Some("t")
        Grpc V1 https://b/ Some("t")
        talk to `agent`: its card is at https://a, and sends its clients to https://a:50051; if that is right, name it with `--allow-origin https://a:50051`, or in `origins` of a `[remote.<id>]`
        "#);
    }
}
