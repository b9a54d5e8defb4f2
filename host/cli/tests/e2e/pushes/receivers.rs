//! Receivers that are overloaded, gone, wrong or strange: what becomes of the notifications, and who is asked how often.

use super::{SOON, answer, hub_with, pushed, set, states, told};
use crate::{
    command_line::run,
    stage::{GRANT, eventually, eventually_async, hub_with_guest, send},
};
use a2a_hub_tests::{Client, Receiver, TestHub, Told, test_guests};
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longer than the pause after the first failure, which is a second at most.
const MORE_THAN_A_PAUSE: Duration = Duration::from_millis(2_500);

/// A hub that leaves a receiver alone for three seconds once three deliveries failed in a row.
async fn hub_that_loses_patience() -> Result<TestHub> {
    let hub = TestHub::builder().config(GRANT).plugin("guest", test_guests()?);
    let hub = hub.env("A2A_HUB_BREAKER_FAILURES", "3").env("A2A_HUB_BREAKER_PAUSE_MS", "3000");
    hub.start().await
}

async fn deliveries(client: &Client) -> Result<Vec<Value>> {
    let listed = client.call("hub/deliveries/list", json!({ "limit": 100 })).await?;
    Ok(listed.as_array().cloned().unwrap_or_default())
}

#[tokio::test]
async fn a_receiver_that_asks_for_rest_has_it() -> Result<()> {
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

/// It outlives the hub, which does not wait for it when it is to stop.
#[tokio::test]
async fn a_rest_outlives_the_hub_and_holds_up_neither_its_end_nor_its_user() -> Result<()> {
    let (mut hub, receiver) = (hub_with_guest().await?, Receiver::start()?);
    receiver.always(Some(503));
    receiver.rests(Some("3000"));
    let client = Client::http(&hub);
    let done = client.call("message/send", pushed("flood 1", &receiver.url("/news"))).await?;
    eventually(SOON, || !receiver.came().is_empty()).await?;
    let resting = async |client: &Client| {
        let retry_at = deliveries(client).await.ok()?.first()?["retryAt"].as_str()?.to_owned();
        let ahead = retry_at.parse::<jiff::Timestamp>().ok()? - jiff::Timestamp::now();
        Some(ahead.total(jiff::Unit::Second).ok()? > 2900.0)
    };
    eventually_async(SOON, async || resting(&client).await == Some(true)).await?;

    let stopping = Instant::now();
    hub.stop().await?;
    assert!(stopping.elapsed() < Duration::from_secs(10), "{:?}", stopping.elapsed());
    hub.restart().await?;
    sleep(MORE_THAN_A_PAUSE).await;
    assert_eq!(receiver.came().len(), 1, "the next hub leaves it in peace, too");
    let client = Client::http(&hub);
    assert_eq!(resting(&client).await, Some(true));

    receiver.always(None);
    let task = done["id"].as_str().context("no id")?;
    assert_eq!(run(&hub, &["deliveries", "--retry", task]).await?.code, Some(0));
    told(&receiver, "completed").await
}

/// Sixteen places of a task at one receiver that is down: it is not asked by each of them again and again.
#[tokio::test]
async fn where_deliveries_fail_in_a_row_the_others_wait() -> Result<()> {
    let (hub, receiver) = (hub_that_loses_patience().await?, Receiver::start()?);
    receiver.always(Some(500));
    let client = Client::http(&hub);
    let asked = send(&client, "guest", "ask").await?;
    for n in 0..16 {
        set(&client, &asked, &format!("c{n}"), &receiver.url(&format!("/{n}"))).await?;
    }
    answer(&client, &asked, "hi").await?;
    let held = async || {
        let all = deliveries(&client).await.unwrap_or_default();
        all.into_iter().filter(|it| it["state"] == "held").collect::<Vec<_>>()
    };
    eventually_async(SOON, async || held().await.len() >= 10).await?;
    // Three opened the breaker, three more were under way then.
    assert!(receiver.came().len() <= 6, "{}", receiver.came().len());
    let one = held().await.remove(0);
    assert_eq!(
        (&one["attempts"], &one["error"]),
        (&json!(0), &json!("it answered with HTTP status 500"))
    );
    assert!(one["retryAt"].is_string(), "{one}");
    let shown = run(&hub, &["deliveries"]).await?.stdout;
    assert!(shown.contains("left alone, for others failed in a row there: it answered"), "{shown}");

    receiver.always(None);
    let done =
        || (0..16).filter(|n| at(&receiver, &format!("/{n}")).contains(&"completed".to_owned()));
    eventually(Duration::from_secs(20), || done().count() == 16).await?;
    Ok(())
}

/// The others are not tried by themselves, and do not wait for ever either.
#[tokio::test]
async fn who_is_never_let_through_is_given_up() -> Result<()> {
    let hub = TestHub::builder().config(GRANT).plugin("guest", test_guests()?);
    let hub = hub.env("A2A_HUB_BREAKER_FAILURES", "1").env("A2A_HUB_BREAKER_PAUSE_MS", "200000");
    let hub = hub.env("A2A_HUB_PUSH_GIVE_UP_MS", "1000").start().await?;
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
    // A receiver that is busy only has a quarter of a minute.
    eventually_async(Duration::from_secs(30), dead).await?;
    let untried = deliveries(&client).await?.into_iter().filter(|it| it["attempts"] == 0);
    let untried: Vec<_> = untried.map(|it| it["error"].clone()).collect();
    assert!(untried.len() >= 4, "{untried:?}");
    let why = "not tried for too long: others failed in a row, the last one so: it answered with HTTP status 500";
    assert!(untried.iter().all(|it| it == why), "{untried:?}");
    Ok(())
}

/// The states that a receiver took at a path, oldest first.
fn at(receiver: &Receiver, path: &str) -> Vec<String> {
    let there = receiver.came().into_iter().filter(|it| it.path == path && it.status == 200);
    there.map(|it| crate::stage::state(&it.body).to_owned()).collect()
}

/// A path that is not there, or a token that is not known, is no fault of the host's.
#[tokio::test]
async fn a_url_that_is_wrong_keeps_no_other_from_its_news() -> Result<()> {
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
    // Sooner than any pause of the breaker is over.
    let right = || at(&receiver, "/right").contains(&"completed".to_owned());
    eventually(Duration::from_secs(2), right).await?;
    assert!(deliveries(&client).await?.iter().all(|it| it["state"] != "held"));
    Ok(())
}

#[tokio::test]
async fn an_answer_without_end_is_not_read() -> Result<()> {
    let (hub, receiver) = (hub_with_guest().await?, Receiver::start()?);
    receiver.tells(Told::NoEnd);
    let client = Client::http(&hub);
    client.call("message/send", pushed("flood 1", &receiver.url("/news"))).await?;
    told(&receiver, "completed").await?;
    assert_eq!(receiver.came().len(), states(&receiver).len(), "nothing came twice");
    Ok(())
}

/// Neither a config that is deleted nor a conversation that is, whose worker sleeps.
#[tokio::test]
async fn what_is_forgotten_is_not_sent_any_more() -> Result<()> {
    let (hub, receiver) = (hub_with("GIVE_UP_MS", "60000").await?, Receiver::start()?);
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
