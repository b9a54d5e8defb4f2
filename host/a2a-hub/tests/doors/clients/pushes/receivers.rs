//! Tests of receivers that are overloaded, gone, wrong or strange: the fate of notifications, and
//! the rate of requests.

use super::hub_with;
use crate::{
    hub::InProcessHub,
    stage::{GRANT, eventually, eventually_async, hub_with_guest, send},
};
use a2a_hub_tests::{
    Client, Receiver, Told,
    pushes::{MORE_THAN_A_PAUSE, SOON, answer, at, deliveries, pushed, set, states, told},
    test_guests,
};
use anyhow::Result;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// Starts a hub that pauses a receiver for three seconds after three failed deliveries in a row.
async fn hub_that_loses_patience() -> Result<InProcessHub> {
    let config = GRANT.replace("failures = 1000", "failures = 3\n    pause_ms = 3000");
    InProcessHub::builder().config(config).plugin("guest", test_guests()?).start().await
}

#[tokio::test]
async fn retry_after_header_is_respected() -> Result<()> {
    for status in [429, 503] {
        let (hub, receiver) = (hub_with_guest().await?, Receiver::start()?.answering(&[status]));
        receiver.rests(Some("2"));
        let client = Client::http(&hub);
        client.call("message/send", pushed("flood 1", &receiver.url("/news"))).await?;
        told(&receiver, "completed").await?;
        let came = receiver.came();
        let rest = came[1].at - came[0].at;
        assert!(rest >= Duration::from_secs(2), "{status}: {rest:?}");
    }
    Ok(())
}

/// The other deliveries are never tried themselves, and do not wait forever either.
#[tokio::test]
async fn untried_deliveries_are_given_up() -> Result<()> {
    let config = GRANT
        .replace("failures = 1000", "failures = 1\n    pause_ms = 200000")
        .replace("[push]", "[push]\n    give_up_ms = 1000");
    let hub = InProcessHub::builder().config(config).plugin("guest", test_guests()?);
    let hub = hub.start().await?;
    let receiver = Receiver::start()?;
    receiver.always(Some(500));
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "ask").await?;
    for n in 0..8 {
        set(&client, &asked, &format!("c{n}"), &receiver.url("/")).await?;
    }
    answer(&client, &asked, "hi").await?;
    let dead = async || {
        deliveries(&client)
            .await
            .is_ok_and(|all| all.len() == 8 && all.iter().all(|it| it["state"] == "dead"))
    };
    // Deliveries to a receiver that is only busy get a quarter of a minute.
    eventually_async(Duration::from_secs(30), dead).await?;
    let untried = deliveries(&client).await?.into_iter().filter(|it| it["attempts"] == 0);
    let untried: Vec<_> = untried.map(|it| it["error"].clone()).collect();
    assert!(untried.len() >= 4, "{untried:?}");
    let why = "not tried for too long: others failed in a row, the last one so: it answered with HTTP status 500";
    assert!(untried.iter().all(|it| it == why), "{untried:?}");
    Ok(())
}

/// An unknown path or token is no failure of the host.
#[tokio::test]
async fn wrong_url_does_not_pause_host() -> Result<()> {
    let (hub, receiver) = (hub_that_loses_patience().await?, Receiver::start()?);
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "ask").await?;
    for (n, status) in [404, 401, 404, 403, 410, 404].into_iter().enumerate() {
        receiver.at_path(&format!("/wrong/{n}"), status);
        set(&client, &asked, &format!("wrong-{n}"), &receiver.url(&format!("/wrong/{n}"))).await?;
    }
    let other = send(&client, "guest", "ask").await?;
    answer(&client, &asked, "hi").await?;
    eventually(SOON, || receiver.came().len() > 6).await?;
    set(&client, &other, "right", &receiver.url("/right")).await?;
    answer(&client, &other, "hi").await?;
    // Before any pause of the circuit breaker ends.
    let right = || at(&receiver, "/right").contains(&"completed".to_owned());
    eventually(Duration::from_secs(2), right).await?;
    assert!(deliveries(&client).await?.iter().all(|it| it["state"] != "held"));
    Ok(())
}

#[tokio::test]
async fn endless_receiver_response_is_ignored() -> Result<()> {
    let (hub, receiver) = (hub_with_guest().await?, Receiver::start()?);
    receiver.tells(Told::NoEnd);
    let client = Client::http(&hub);
    client.call("message/send", pushed("flood 1", &receiver.url("/news"))).await?;
    told(&receiver, "completed").await?;
    assert_eq!(receiver.came().len(), states(&receiver).len(), "nothing came twice");
    Ok(())
}

/// Covers a deleted configuration, and a deleted conversation whose worker sleeps.
#[tokio::test]
async fn deleted_config_or_conversation_sends_nothing() -> Result<()> {
    let (hub, receiver) = (hub_with("give_up_ms", 60_000).await?, Receiver::start()?);
    receiver.always(Some(503));
    let client = Client::http(&hub);
    let [first, second] =
        [pushed("flood 1", &receiver.url("/a")), pushed("flood 1", &receiver.url("/b"))];
    let first = client.call("message/send", first).await?;
    let second = client.call("message/send", second).await?;
    let came = |path: &str| receiver.came().iter().filter(|it| it.path == path).count();
    eventually(SOON, || came("/a") > 0 && came("/b") > 0).await?;
    let delete = json!({ "id": first["id"], "pushNotificationConfigId": first["id"] });
    client.call("tasks/pushNotificationConfig/delete", delete).await?;
    let context = json!({ "contextId": second["contextId"] });
    client.call("hub/contexts/delete", context).await?;
    receiver.always(None);
    sleep(MORE_THAN_A_PAUSE).await;
    assert!(receiver.taken().is_empty(), "{:?}", receiver.taken());
    assert_eq!(deliveries(&client).await?, Vec::<Value>::new());
    Ok(())
}
