//! Guest that requires an extension, takes few media types, and reports the terms of each request.

use a2a_hub_sdk::{Part, prelude::*, serde_json::json};

/// Required extension: the client sets the loudness of the answer.
const LOUDNESS: &str = "urn:a2a-hub:test:loudness";

/// Guest that reports the terms of each request.
pub struct PickyGuest;

impl Agent for PickyGuest {
    fn card() -> Card {
        Card::new("picky-guest", "Tells on what terms it is asked", env!("CARGO_PKG_VERSION"))
            .extension(LOUDNESS, "How loud the answer is to be", true)
            .params(&json!({ "loudest": 11 }))
            .extension("urn:a2a-hub:test:other", "Does nothing", false)
            .input("image/*")
            .skill("tell", "Tell", "Tells on what terms it is asked", &["test"])
            .modes(&["text/csv"], &["text/plain"])
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        if task.text() == "ask" {
            let answer = ctx.ask("and now?")?;
            return tell(ctx, &answer);
        }
        tell(ctx, &task.message)
    }
}
export!(PickyGuest, manifest = "../manifest.toml");

fn tell(ctx: &Context, message: &Message) -> Run {
    let terms = json!({
        "active": ctx.extensions(),
        "loudness": message.extension(LOUDNESS),
        "modes": ctx.accepted_output_modes(),
        "picture": ctx.accepts("image/png"),
    });
    ctx.reply(Message::agent(vec![Part::data(&terms)]).with_extension(LOUDNESS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_sdk::testing::{ScriptedHost, task};

    #[test]
    fn terms_of_request_are_reported() {
        let host = ScriptedHost::new();
        host.extension(LOUDNESS);
        host.accepts("text/plain");
        let mut task = task("hi");
        task.message = task.message.with_metadata(&json!({ LOUDNESS: 11 }));
        let Ok(Outcome::Message(told)) = PickyGuest::run(&host.context(), &task) else {
            panic!("it has no message")
        };
        let terms = json!({ "active": [LOUDNESS], "loudness": 11, "modes": ["text/plain"], "picture": false });
        assert_eq!(told.data(), Some(terms));
    }
}
