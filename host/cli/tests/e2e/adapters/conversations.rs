//! Tests of conversations: no turn is lost, and a session from outside the hub can be resumed.

use super::{KEY, vendors::Vendor};
use crate::stage::state;
use a2a_hub_tests::message_to;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Both messages are sent at once: a program's session takes one writer, and no turn may be lost.
pub(super) async fn concurrent_messages_are_answered_in_sequence(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let first = stage.send("remember the word plum").await?;
    let say = |text: &str| {
        let mut message = message_to(vendor.agent, text);
        message["message"]["contextId"] = first["contextId"].clone();
        message
    };
    let client = stage.client();
    let (pear, fig) = tokio::join!(
        client.call("message/send", say("remember pear [[slow:50]] [[words:20]]")),
        client.call("message/send", say("remember fig [[slow:50]] [[words:20]]")),
    );
    for task in [pear?, fig?] {
        assert_eq!(state(&task), "completed", "{task}");
    }
    let before = stage.model.requests().len();
    let last: Value = client.call("message/send", say("and now?")).await?;
    assert_eq!(state(&last), "completed", "{last}");
    let sent = stage.asked_since(before);
    for word in ["plum", "pear", "fig"] {
        assert!(sent.contains(word), "{word} was lost: {sent}");
    }
    Ok(())
}

/// A separate conversation of the program stands for a session that a user started by hand: this
/// one knows only its id.
pub(super) async fn external_session_is_resumed(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage_with(Some(KEY), vendor.resumes).await?;
    let first = stage.send("remember the word plum").await?;
    assert_eq!(state(&first), "completed", "{first}");
    let session = (vendor.session)(stage.files.path()).context("no session was kept")?;
    let before = stage.model.requests().len();
    let mut message = message_to(vendor.agent, "which word?");
    message["message"]["metadata"]["resume"] = json!(session);
    let second: Value = stage.client().call("message/send", message).await?;
    assert_eq!(state(&second), "completed", "{second}");
    assert_ne!(second["contextId"], first["contextId"], "a conversation of its own");
    assert!(stage.asked_since(before).contains("plum"), "the session had it");
    Ok(())
}

pub(super) async fn image_part_reaches_model(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    // An image of one pixel.
    let picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
    let mut message = message_to(vendor.agent, "");
    message["message"]["parts"] = json!([
        { "kind": "text", "text": "what is on it?" },
        { "kind": "file", "file": { "name": "p.png", "mimeType": "image/png", "bytes": picture } },
    ]);
    let task = stage.client().call("message/send", message).await?;
    assert_eq!(state(&task), "completed", "{task}");
    assert!(stage.asked_of_the_model().contains(picture), "the model has the picture");
    Ok(())
}
