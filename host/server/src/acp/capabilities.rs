//! Capabilities of both sides: what the client declares, and what the hub serves to this caller.

use a2a_hub_core::access_control::{self, Principal};
use a2a_hub_protocol::{
    card::AgentCard,
    id::ContextId,
    member,
    operation::{ContextQuery, Operation, Page},
};
use serde_json::{Value, json};

/// Version of ACP that the hub speaks.
const VERSION: u16 = 1;

/// Media types that stand for all images and all sound.
const IMAGES: [&str; 3] = ["image/png", "image/jpeg", "image/webp"];
const SOUND: [&str; 3] = ["audio/wav", "audio/mpeg", "audio/ogg"];

/// Kinds of content blocks that an agent takes in a prompt, besides text and links. Embedded files
/// become parts without a media type, which every agent takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PromptKinds {
    image: bool,
    audio: bool,
}

impl PromptKinds {
    /// Kinds that the agent's card names as input modes.
    pub(super) fn from_card(card: &AgentCard) -> Self {
        let takes_all = card.input_modes().is_empty();
        let takes = |media: &[&str]| takes_all || media.iter().any(|media| card.takes(media));
        Self { image: takes(&IMAGES), audio: takes(&SOUND) }
    }
}

impl Default for PromptKinds {
    /// Kinds of the built-in agents, for a connection whose agent is not known yet.
    fn default() -> Self {
        Self { image: true, audio: false }
    }
}

/// Features of the client that the hub uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientFeatures {
    /// The client shows forms (`elicitation.form`).
    pub(super) shows_forms: bool,
    /// The client shows notices (`session.notices`).
    pub(super) shows_notices: bool,
}

impl ClientFeatures {
    /// Reads the parameters of `initialize`. A capability of another type counts as absent.
    pub(super) fn from_params(params: &Value) -> Self {
        let client = &params["clientCapabilities"];
        Self {
            shows_forms: client["elicitation"]["form"].is_object(),
            shows_notices: client["session"]["notices"].is_object(),
        }
    }
}

/// Result of `initialize`. Names only methods that the caller may use.
///
/// The version is the hub's, whichever the client names: a client that does not speak it
/// disconnects (ACP, Initialization, Version Negotiation).
pub(super) fn hello(caller: &Principal, takes: PromptKinds) -> Value {
    let may = |operation: &Operation| caller.may(access_control::needed(operation)).is_ok();
    let id = ContextId::new("");
    let list = Operation::ListContexts(ContextQuery::all(Page { limit: 1, offset: 0 }));
    let open = may(&Operation::GetContext { id: id.clone(), history_length: 1 });
    let mut sessions = json!({ "close": {}, "additionalDirectories": {} });
    for (name, is_served) in
        [("list", may(&list)), ("resume", open), ("delete", may(&Operation::DeleteContext { id }))]
    {
        if is_served {
            member::set(&mut sessions, name, json!({}));
        }
    }
    json!({
        "protocolVersion": VERSION,
        "agentInfo": { "name": "a2a-hub", "title": "A2A Local Hub", "version": env!("CARGO_PKG_VERSION") },
        "agentCapabilities": {
            "loadSession": open,
            "promptCapabilities": { "image": takes.image, "audio": takes.audio, "embeddedContext": true },
            "mcpCapabilities": { "http": false, "sse": false },
            "sessionCapabilities": sessions,
        },
        "authMethods": [],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_protocol::id::{AgentId, TaskId};

    #[test]
    fn only_permitted_methods_are_claimed() {
        let agent = AgentId::parse("codex").unwrap();
        let program = Principal::AgentTask { agent, task: TaskId::new("t") };
        for (caller, load, methods) in [
            (Principal::Operator, true, "additionalDirectories close delete list resume"),
            (Principal::Client("acme".to_owned()), true, "additionalDirectories close list resume"),
            (program, false, "additionalDirectories close"),
        ] {
            let hello = hello(&caller, PromptKinds::default());
            let can = &hello["agentCapabilities"];
            let mut named: Vec<_> =
                can["sessionCapabilities"].as_object().unwrap().keys().cloned().collect();
            named.sort();
            assert_eq!((named.join(" "), &can["loadSession"]), (methods.to_owned(), &json!(load)));
        }
    }

    #[test]
    fn prompt_kinds_are_those_of_card() {
        for (modes, image, audio) in [
            (json!(["text/plain"]), false, false),
            (json!(["text/plain", "image/png"]), true, false),
            (json!(["audio/*"]), false, true),
            (json!(["text/plain", "*/*"]), true, true),
            (json!([]), true, true),
        ] {
            let card = json!({ "name": "n", "description": "d", "version": "1", "defaultInputModes": modes });
            let takes = PromptKinds::from_card(&serde_json::from_value(card).unwrap());
            assert_eq!(takes, PromptKinds { image, audio }, "{modes}");
            let can =
                &hello(&Principal::Operator, takes)["agentCapabilities"]["promptCapabilities"];
            assert_eq!(*can, json!({ "image": image, "audio": audio, "embeddedContext": true }));
        }
    }

    #[test]
    fn odd_capabilities_count_as_absent() {
        let both = json!({ "clientCapabilities": {
            "elicitation": { "form": {} }, "session": { "notices": {} } } });
        let all = ClientFeatures { shows_forms: true, shows_notices: true };
        assert_eq!(ClientFeatures::from_params(&both), all);
        for odd in [json!(null), json!([]), json!({ "clientCapabilities": 7 })] {
            assert_eq!(ClientFeatures::from_params(&odd), ClientFeatures::default());
        }
        for odd in [json!(null), json!(true), json!("form")] {
            let odd = json!({ "clientCapabilities": { "elicitation": { "form": odd } } });
            assert_eq!(ClientFeatures::from_params(&odd), ClientFeatures::default());
        }
    }
}
