//! Tests of agents in Python and JavaScript, with the same scenario for both. `cargo xtask
//! languages` builds the components; `cargo nextest run -E 'test(languages::)' --no-capture` shows
//! their costs.

use crate::{
    hub::InProcessHub,
    stage::{artifact, eventually_async, said, send, state, stream, tell, until},
};
use a2a_hub_tests::{Client, WebServer, message_to, resident_bytes};
use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// Timeout of loading a component: Python has 19 MB of code, for an unoptimised compiler, next to
/// other tests.
const JOINS_WITHIN: Duration = Duration::from_secs(240);

/// Time in which a cancelled task must end, while an interpreter runs.
const CANCELLED_WITHIN: Duration = Duration::from_secs(5);

/// Number of tasks that are timed.
const TIMED: usize = 20;

/// A language, with the behaviour of its agents.
struct Language {
    /// Component with many behaviours.
    guest: &'static str,
    /// Another component of the language: an example.
    example: &'static str,
    /// Error of `boom`.
    boom: &'static str,
    /// Error of endless recursion.
    deep: &'static str,
    /// Error of an agent that exhausts its memory.
    hog: &'static str,
    /// Representation of a JSON object.
    data: &'static str,
    /// Error about a value that cannot be converted.
    nothing: &'static str,
}

const PYTHON: Language = Language {
    guest: "python-guest",
    example: "data-analyst",
    boom: "ValueError: bad word 2 (at helper.py:7)",
    deep: "RecursionError: maximum recursion depth exceeded",
    hog: "MemoryError (at agent.py:",
    data: "{'a': [1, None, 'ä']}",
    nothing: "a list of texts and Parts, not int",
};

const JAVASCRIPT: Language = Language {
    guest: "js-guest",
    example: "link-checker",
    boom: "RangeError: bad word 2 (at helper.js:7)",
    deep: "call stack",
    hog: "out of memory",
    data: r#"{"a":[1,null,"ä"]}"#,
    nothing: "a part is a string",
};

#[tokio::test]
async fn python_agent_supports_all_features() -> Result<()> {
    PYTHON.story().await
}

#[tokio::test]
async fn javascript_agent_supports_all_features() -> Result<()> {
    JAVASCRIPT.story().await
}

impl Language {
    async fn story(&self) -> Result<()> {
        let server = WebServer::start().await?;
        let (hub, guest) = (hub(server.port()).await?, built(self.guest)?);
        let client = Client::unix(&hub);
        let began = Instant::now();
        hub.plug("guest", &guest)?;
        self.is_told_while_it_is_compiled(&client).await?;
        joins(&client, "guest").await?;
        let compiled = began.elapsed();

        self.answers(&client, &server).await?;
        self.asks(&client).await?;
        self.reads_messages(&client).await?;
        self.fails_in_words(&client).await?;
        self.survives_hostile_input(&client).await?;
        self.is_cancelled(&client, &hub).await?;
        self.tell_what_it_costs(&client, &hub, compiled).await?;
        self.is_replaced_while_it_works(&client, &hub).await
    }

    /// The status reports a first compilation that takes a while.
    async fn is_told_while_it_is_compiled(&self, client: &Client) -> Result<()> {
        let told = async {
            loop {
                let status = client.call("hub/status", json!({})).await?;
                let one = status["compilingPlugins"][0].clone();
                if one["file"] == "guest.wasm" || find(&status, "agents", "id", "guest").is_some() {
                    return Ok::<_, anyhow::Error>(one);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let one = timeout(JOINS_WITHIN, told).await??;
        // A component from an earlier test run is cached and joins at once.
        if !one.is_null() {
            ensure!(one["bytes"].as_u64() == Some(built(self.guest)?.metadata()?.len()), "{one}");
            ensure!(one["since"].as_str().is_some_and(|since| since.starts_with("20")), "{one}");
        }
        Ok(())
    }

    async fn answers(&self, client: &Client, server: &WebServer) -> Result<()> {
        let all = send(client, "guest", "fetch ").await?;
        ensure!(state(&all) == "failed", "a URL that is none: {all}");
        for (text, words) in [
            ("hello", "hello"),
            ("remember me ä", "kept"),
            ("recall", "me ä"),
            ("lines echo one; printf 'two\\r\\nthr\u{e4}'", "one|two|thr\u{e4}"),
            ("call one two", "one+two"),
            ("yield 3", "yielded"),
        ] {
            let task = send(client, "guest", text).await?;
            ensure!((state(&task), said(&task)) == ("completed", words), "{text}: {task}");
        }
        let task = send(client, "guest", &format!("fetch {}", server.url("/v1/echo"))).await?;
        ensure!(
            said(&task).starts_with("200 ") && said(&task).contains("\"x-own\": \"1\""),
            "{task}"
        );
        let task = send(client, "guest", "denied").await?;
        ensure!(
            said(&task).starts_with("denied: run `rm`: this agent's manifest does not ask for it"),
            "{task}"
        );

        let [one, other] =
            [send(client, "guest", "random").await?, send(client, "guest", "random").await?];
        ensure!(said(&one).starts_with("0.") && said(&one) != said(&other), "{one} and {other}");

        let (_, updates) = stream(client, "guest", "stream 4").await?;
        let events = updates.rest().await?;
        let pieces = events.iter().filter(|event| event["kind"] == "artifact-update").count();
        let last = events.last().context("nothing was told")?;
        ensure!(said(last) == "4 pieces" && pieces == 5, "{pieces} pieces: {last}");
        let task = send(client, "guest", "stream 4").await?;
        ensure!(artifact(&task) == "0 1 2 3 ", "{task}");

        let (_, updates) = stream(client, "guest", "tell").await?;
        let events = updates.rest().await?;
        let told: Vec<_> = events.iter().map(said).filter(|text| !text.is_empty()).collect();
        ensure!(told == ["one", "two", "told"], "{told:?}");
        let percent = |event: &Value| event["metadata"]["progress"]["percent"].as_u64();
        ensure!(events.iter().any(|event| percent(event) == Some(40)), "{events:?}");
        Ok(())
    }

    async fn asks(&self, client: &Client) -> Result<()> {
        let asked = send(client, "guest", "ask which?").await?;
        ensure!((state(&asked), said(&asked)) == ("input-required", "which?"), "{asked}");
        let done = answer(client, &asked, "main").await?;
        ensure!((state(&done), said(&done)) == ("completed", "you said main"), "{done}");
        if self.guest == JAVASCRIPT.guest {
            // Features of promises: concurrency, and timers.
            for (text, words) in [("race well?", "nobody said anything"), ("interval", "0,1,2")] {
                let task = send(client, "guest", text).await?;
                let end = match state(&task) {
                    "input-required" => finished(client, &task).await?,
                    _ => task,
                };
                ensure!(said(&end) == words, "{text}: {end}");
            }
        }
        Ok(())
    }

    /// A message that comes while the agent works is read in the same run.
    async fn reads_messages(&self, client: &Client) -> Result<()> {
        let mut asks = message_to("guest", "read");
        asks["configuration"] = json!({ "blocking": false });
        let task = client.call("message/send", asks).await?;
        let mut more = message_to("guest", "more");
        more["message"]["taskId"] = task["id"].clone();
        let done = client.call("message/send", more).await?;
        ensure!((state(&done), said(&done)) == ("completed", "heard more"), "{done}");
        Ok(())
    }

    async fn fails_in_words(&self, client: &Client) -> Result<()> {
        let mut cases = vec![("boom", self.boom), ("nothing", self.nothing)];
        if self.guest == PYTHON.guest {
            cases.push(("exit", "SystemExit: bye (at agent.py:"));
        } else {
            cases.push(("forever", "waits for a promise that nothing will settle"));
        }
        for (text, words) in cases {
            let task = send(client, "guest", text).await?;
            let reason = task["metadata"]["reason"].as_str();
            ensure!((state(&task), reason) == ("failed", Some("agent_error")), "{text}: {task}");
            ensure!(said(&task).contains(words), "{text}: {task}");
        }
        Ok(())
    }

    async fn survives_hostile_input(&self, client: &Client) -> Result<()> {
        let long = format!("size {}", "x".repeat(2_000_000));
        let task = send(client, "guest", &long).await?;
        ensure!(said(&task) == "2000005", "{}", state(&task));
        for (data, words) in [
            (json!({ "a": [1, null, "ä"] }), self.data),
            // As deep as the hub accepts.
            ((0..60).fold(json!(1), |inner, _| json!([inner])), "[[[["),
        ] {
            let mut message = message_to("guest", "data");
            let part = json!({ "kind": "data", "data": { "a": 1 } });
            message["message"]["parts"].as_array_mut().context("no parts")?.push(part);
            message["message"]["parts"][1]["data"] = data;
            match client.call("message/send", message).await {
                Ok(task) => ensure!(said(&task).starts_with(words), "{task}"),
                Err(refused) => ensure!(refused.code().is_some(), "{refused}"),
            }
        }
        let deep = send(client, "guest", "deep").await?;
        ensure!(state(&deep) == "failed" && said(&deep).contains(self.deep), "{deep}");
        let hog = send(client, "guest", "hog").await?;
        ensure!(state(&hog) == "failed" && said(&hog).contains(self.hog), "{hog}");
        let task = send(client, "guest", "surrogate").await?;
        ensure!(state(&task) == "completed", "{task}");
        let spun = send(client, "guest", "spin-deaf").await?;
        ensure!(spun["metadata"]["reason"] == "limit_exceeded", "{spun}");
        let task = send(client, "guest", "still there").await?;
        ensure!(said(&task) == "still there", "{task}");
        Ok(())
    }

    async fn is_cancelled(&self, client: &Client, hub: &InProcessHub) -> Result<()> {
        for (text, sign) in [("sleep", "asleep"), ("spin", "spinning")] {
            let (id, mut updates) = stream(client, "guest", text).await?;
            until(&mut updates, |event| said(event) == sign).await?;
            let began = Instant::now();
            client.call("tasks/cancel", json!({ "id": id })).await?;
            let last = until(&mut updates, |event| event["final"] == true).await?;
            ensure!(state(&last) == "canceled", "{text}: {last}");
            ensure!(began.elapsed() < CANCELLED_WITHIN, "{text} took {:?}", began.elapsed());
        }
        // The exception passed through the agent's own `finally`.
        eventually_async(CANCELLED_WITHIN, async || hub.log().contains("woken")).await
    }

    /// A waiting task ends with the old component; new tasks use the new one.
    async fn is_replaced_while_it_works(&self, client: &Client, hub: &InProcessHub) -> Result<()> {
        let example = built(self.example)?;
        hub.plug(self.example, &built(self.guest)?)?;
        joins(client, self.example).await?;
        let asked = send(client, self.example, "ask still?").await?;
        ensure!(said(&asked) == "still?", "{asked}");
        hub.plug(self.example, &example)?;
        let is_new = async || {
            let status = client.call("hub/status", json!({})).await.unwrap_or_default();
            find(&status, "agents", "id", self.example)
                .is_some_and(|agent| agent["name"] == self.example)
        };
        eventually_async(JOINS_WITHIN, is_new).await?;
        let done = answer(client, &asked, "yes").await?;
        ensure!(said(&done) == "you said yes", "{done}");
        let (text, words) = if self.guest == PYTHON.guest {
            (
                "max of b by a\na,b\nx,1\nx,3\ny,2",
                "| a | max |\n| --- | --- |\n| x | 3 |\n| y | 2 |",
            )
        } else {
            ("check ftp://example.com", "Which page? Give its URL.")
        };
        let task = send(client, self.example, text).await?;
        ensure!(said(&task) == words, "{task}");
        Ok(())
    }

    async fn tell_what_it_costs(
        &self,
        client: &Client,
        hub: &InProcessHub,
        compiled: Duration,
    ) -> Result<()> {
        let mut times = Vec::new();
        for _ in 0..TIMED {
            let began = Instant::now();
            send(client, "guest", "hello").await?;
            times.push(began.elapsed());
        }
        let mut echo = Vec::new();
        for _ in 0..TIMED {
            let began = Instant::now();
            send(client, "echo", "hello").await?;
            echo.push(began.elapsed());
        }
        times.sort();
        echo.sort();
        let before = resident_bytes(hub.pid()).context("no memory is told")?;
        let mut waiting = Vec::new();
        for _ in 0..TIMED {
            waiting.push(send(client, "guest", "ask and wait").await?);
        }
        let each = resident_bytes(hub.pid()).context("no memory is told")?.saturating_sub(before)
            / TIMED as u64;
        for task in &waiting {
            client.call("tasks/cancel", json!({ "id": task["id"] })).await?;
        }
        let size = built(self.guest)?.metadata()?.len();
        let line = format!(
            "{}: {:.1} MB, joined after {:.1} s, a task {:.1} ms (echo {:.1} ms), {} kB for each that waits",
            self.guest,
            size as f64 / 1e6,
            compiled.as_secs_f64(),
            times[TIMED / 2].as_secs_f64() * 1e3,
            echo[TIMED / 2].as_secs_f64() * 1e3,
            each / 1000,
        );
        tell(&line);
        ensure!(each < 64 << 20, "{line}");
        Ok(())
    }
}

/// Starts a hub that grants `guest` everything that it asks for.
async fn hub(port: u16) -> Result<InProcessHub> {
    let config = format!(
        "plugins.compile_cpu_ms = 300000
        [breaker]
        failures = 1000
        [agents.guest.grant]
        memory = true
        delegate = ['echo']
        [agents.guest.grant.process.sh]
        [agents.guest.grant.http.'127.0.0.1']
        scheme = 'http'
        private = true
        ports = [{port}]
        [agents.guest.limits]
        cpu_ms = 3000
        "
    );
    InProcessHub::builder().config(config).start().await
}

/// Path of a component that `cargo xtask languages` built.
fn built(name: &str) -> Result<PathBuf> {
    let languages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/languages");
    let component = Path::new(languages).join(name).join("dist").join(format!("{name}.wasm"));
    ensure!(component.is_file(), "{name} is not built; run `cargo xtask languages`");
    Ok(component)
}

fn find(status: &Value, list: &str, member: &str, word: &str) -> Option<Value> {
    status[list].as_array()?.iter().find(|one| one[member] == word).cloned()
}

async fn joins(client: &Client, id: &str) -> Result<()> {
    let deadline = Instant::now() + JOINS_WITHIN;
    loop {
        let status = client.call("hub/status", json!({})).await?;
        if find(&status, "agents", "id", id).is_some() {
            return Ok(());
        }
        let refused = find(&status, "rejectedPlugins", "file", &format!("{id}.wasm"));
        ensure!(refused.is_none(), "{id}: {refused:?}");
        ensure!(Instant::now() < deadline, "{id} does not join: {status:#}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Answers a task's question and returns the task.
async fn answer(client: &Client, task: &Value, text: &str) -> Result<Value> {
    let mut answer = message_to("", text);
    answer["message"]["taskId"] = task["id"].clone();
    answer["message"]["metadata"] = json!({});
    Ok(client.call("message/send", answer).await?)
}

async fn finished(client: &Client, task: &Value) -> Result<Value> {
    let id = json!({ "id": task["id"] });
    let is_over = async || {
        let now = client.call("tasks/get", id.clone()).await.unwrap_or_default();
        !matches!(state(&now), "input-required" | "working")
    };
    eventually_async(Duration::from_secs(20), is_over).await?;
    Ok(client.call("tasks/get", id.clone()).await?)
}
