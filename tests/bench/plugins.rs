//! Cost of ordinary plug-ins: a component that was dropped into the folder beside the same one that
//! the program carries, the first event of an agent that thinks before it speaks, and the start of
//! a hub with ten of them.

use crate::{
    LOAD, SERVERS,
    bare::{Bare, Kind},
    cold,
    load::{self, Connection, Work},
    pin,
    race::{Figures, Runner},
};
use a2a_hub_protocol::id::MessageId;
use a2a_hub_tests::{TestHub, stage::echo, test_guests};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::{net::SocketAddr, time::Duration};
use tokio::{task::JoinSet, time::Instant};

/// Numbers of connections.
const CONNECTIONS: [usize; 3] = [1, 16, 64];

/// Streams that are measured one after the other on each connection.
const STREAMS: usize = 20;

/// Message to the agent that thinks for 200 ms.
const THINKS: &str = "reply-late 200 done";

/// Accepted factor between a task with one artifact and the echo of a text.
const GOAL: f64 = 1.3;

/// Most time that a start with ten known plug-ins may take.
const START_GOAL: Duration = Duration::from_millis(60);

/// Form of a stream's request.
#[derive(Clone, Copy)]
enum Form {
    V03,
    V1,
    Bare,
}

/// Prints all tables.
pub(crate) async fn measure(rounds: u32, millis: Duration, kind: Kind) -> Result<()> {
    pin(SERVERS)?;
    let config = "max_tasks = 4000\nagents.guest.max_running = 1000";
    let hub = TestHub::builder().config(config);
    let hub = hub.plugin("dropped", echo()?).plugin("guest", test_guests()?).start().await?;
    let bare = Bare::start(Kind { durable: true, ..kind }).await?;
    pin(LOAD)?;
    let address = hub.http().parse().context("the hub serves HTTP at no address")?;
    println!("\nmedians of {rounds} rounds of {millis:?}; the aim for one artifact is {GOAL}");
    println!("                             at once       /s    p50 us    cpu us  echo : this, /s");
    let say = |agent, text: &str| Work::Say(agent, text.into());
    let of_hub = [
        ("echo, a text", say("echo", "hi")),
        ("echo, one artifact", say("echo", "stream hi")),
        ("dropped in, a text", say("dropped", "hi")),
        ("dropped in, one artifact", say("dropped", "stream hi")),
    ];
    let runner = |(name, work)| Runner { name, address, pid: hub.pid(), work };
    let mut runners: Vec<_> = of_hub.iter().map(|(name, work)| runner((*name, work))).collect();
    runners.push(Runner {
        name: "bare + disk",
        address: bare.address(),
        pid: bare.pid().context("the bare server is gone")?,
        work: &Work::Send,
    });
    for connections in CONNECTIONS {
        let mut all = vec![Vec::new(); runners.len()];
        for _ in 0..rounds {
            for (runner, of_runner) in runners.iter().zip(&mut all) {
                of_runner.push(runner.run(connections, millis).await?);
            }
        }
        let figures: Vec<_> = all.into_iter().map(Figures::median).collect();
        let echo = figures[0].sample.per_second;
        for (Runner { name, .. }, Figures { sample, cpu }) in runners.iter().zip(figures) {
            let (rate, p50) = (sample.per_second, sample.p50.as_secs_f64() * 1e6);
            println!(
                "{name:<26}{connections:>10}{rate:>9.0}{p50:>10.0}{cpu:>10.1}{:>17.2}",
                echo / rate
            );
        }
    }
    println!("\nuntil the first event of a stream; the agent thinks for 200 ms");
    println!("                 at once    p50 ms    p99 ms");
    for connections in [1, 16] {
        for (name, at, form) in [
            ("hub, 0.3", address, Form::V03),
            ("hub, 1.0", address, Form::V1),
            ("bare + disk", bare.address(), Form::Bare),
        ] {
            let mut first = first_events(at, form, connections).await?;
            first.sort_unstable();
            let ms = |p: usize| first[first.len() * p / 100].as_secs_f64() * 1e3;
            println!("{name:<12}{connections:>12}{:>10.2}{:>10.2}", ms(50), ms(99));
        }
    }
    drop((hub, bare));
    let took = cold::with_plugins(10).await?;
    println!(
        "\nfrom the start to the first answer, with ten known plug-ins: {:.0} ms (aim: {} ms)",
        took.as_secs_f64() * 1e3,
        START_GOAL.as_millis()
    );
    Ok(())
}

/// Times until the first event of streams on that many connections.
async fn first_events(
    address: SocketAddr,
    form: Form,
    connections: usize,
) -> Result<Vec<Duration>> {
    let mut clients = JoinSet::new();
    for _ in 0..connections {
        clients.spawn(async move {
            let mut connection = Connection::open(address).await?;
            let mut times = Vec::with_capacity(STREAMS);
            for _ in 0..STREAMS {
                let begun = Instant::now();
                let first = match form {
                    Form::V03 => {
                        connection.post_first("/", &load::message_stream("guest", THINKS)).await?
                    }
                    Form::V1 => connection.post_first("/agents/guest", &stream_v1()).await?,
                    Form::Bare => connection.post_first("/stream", &load::stream()).await?,
                };
                times.push(first - begun);
            }
            anyhow::Ok(times)
        });
    }
    let mut all = Vec::new();
    while let Some(times) = clients.join_next().await {
        all.extend(times??);
    }
    ensure!(!all.is_empty(), "no stream was opened");
    Ok(all)
}

/// Request of A2A 1.0 for a stream of the agent that thinks.
fn stream_v1() -> String {
    let message = json!({
        "messageId": MessageId::fresh(),
        "role": "ROLE_USER",
        "parts": [{ "text": THINKS }],
    });
    load::call("SendStreamingMessage", &json!({ "message": message }))
}
