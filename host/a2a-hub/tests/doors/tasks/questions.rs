//! Tests that an answer counts only for the question that it names.

use crate::stage::{hub_with_guest, said, send, state};
use a2a_hub_tests::{
    Client,
    questions::{answer, refused},
};
use anyhow::{Context as _, Result};
use serde_json::json;

#[tokio::test]
async fn answer_to_wrong_question_is_refused() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "permit").await?;
    let question = &asked["metadata"]["question"];
    assert_eq!(question["kind"], "permission");
    let (code, message, data) =
        refused(&client, answer(&asked, "yes", Some(&json!("another")))).await?;
    assert_eq!((code, &data["question"], &data["text"]), (-32005, question, &json!("may I?")));
    let id = question["id"].as_str().context("it has no id")?;
    assert!(message.contains(&format!("--question {id}")), "{message}");
    let (code, ..) = refused(&client, answer(&asked, "yes", Some(&json!(7)))).await?;
    assert_eq!(code, -32602);
    let done = client.call("message/send", answer(&asked, "yes", Some(question))).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "yes"));
    assert_eq!(done["metadata"].get("question"), None, "it is over");

    let asked = send(&client, "guest", "auth").await?;
    assert_eq!(asked["metadata"]["question"]["kind"], "auth");
    let id = &asked["metadata"]["question"]["id"];
    let done = client.call("message/send", answer(&asked, "me", Some(id))).await?;
    assert_eq!(said(&done), "me");
    Ok(())
}

/// A client's library may put the question's id into the request's metadata, where it counts as in
/// the message.
#[tokio::test]
async fn request_metadata_can_name_question() -> Result<()> {
    let hub = hub_with_guest().await?;
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "permit").await?;
    let question = asked["metadata"]["question"]["id"].clone();
    let mut other = answer(&asked, "yes", None);
    other["metadata"] = json!({ "question": "another" });
    let (code, _, data) = refused(&client, other).await?;
    assert_eq!((code, &data["question"]["id"]), (-32005, &question), "nothing was approved");

    let mut both = answer(&asked, "yes", Some(&question));
    both["metadata"] = json!({ "question": "another" });
    let (code, message, _) = refused(&client, both.clone()).await?;
    assert_eq!(code, -32602);
    assert!(message.contains("differs from `metadata.question`"), "{message}");

    both["metadata"] = json!({ "question": question });
    let done = client.call("message/send", both).await?;
    assert_eq!((state(&done), said(&done)), ("completed", "yes"));
    Ok(())
}
