//! Cost of a call from one agent to another: a guest that calls the echo agent through the hub, and
//! a plain server that calls another over HTTP. Each is compared with the same work without a call.

use crate::{
    LOAD, SERVERS, WARM_UP,
    bare::{Bare, Kind},
    load::{self, Sample, Work},
    pin,
};
use a2a_hub_tests::{TestHub, test_guests};
use anyhow::{Context as _, Result};
use std::{net::SocketAddr, time::Duration};

/// Configuration that lets the test guest call the echo agent.
const CONFIG: &str = "
    [agents.guest]
    max_running = 64
    [agents.guest.grant]
    delegate = ['echo']
";

/// Numbers of concurrent requests.
const CONCURRENCIES: [usize; 2] = [1, 16];

/// Maximum extra time of a call, compared with a task without one.
const GOAL: Duration = Duration::from_millis(1);

/// Prints the times of tasks with and without a call, for the hub and the plain servers.
pub(crate) async fn measure(rounds: u32, duration: Duration, kind: Kind) -> Result<()> {
    // Servers share a core, as in the other measurements.
    pin(SERVERS)?;
    let hub = TestHub::builder().config(CONFIG).plugin("guest", test_guests()?).start().await?;
    let called = Bare::start(Kind { durable: true, ..kind }).await?;
    let calling = Kind { durable: true, calls: Some(called.address()), ..kind };
    let caller = Bare::start(calling).await?;
    pin(LOAD)?;
    let at: SocketAddr = hub.http().parse().context("the hub serves HTTP at no address")?;
    let rows = [
        ("echo", at, Work::Say("echo", "hi".into())),
        ("guest", at, Work::Say("guest", "setting permissions".into())),
        ("guest calls echo", at, Work::Say("guest", "call echo hi".into())),
        ("bare + disk", called.address(), Work::Send),
        ("bare calls bare", caller.address(), Work::Send),
    ];
    for concurrency in CONCURRENCIES {
        let mut samples = [const { Vec::new() }; 5];
        for _ in 0..rounds {
            for ((_, address, work), samples) in rows.iter().zip(&mut samples) {
                load::run(*address, work, concurrency, WARM_UP).await?;
                samples.push(load::run(*address, work, concurrency, duration).await?);
            }
        }
        println!("\nan agent calls another, {concurrency} at once");
        let medians = samples.map(Sample::median);
        print_table(rows.each_ref().map(|(name, ..)| *name), medians);
        // With many concurrent requests the measurement shows how they queue for the single core.
        if concurrency == 1 {
            let [echo, _, calling, ..] = medians;
            let overhead = calling.p50.saturating_sub(echo.p50);
            let word = if overhead <= GOAL { "within" } else { "above" };
            println!("a call through the hub adds {overhead:.0?}, which is {word} {GOAL:?}");
        }
    }
    Ok(())
}

/// Prints the table. A call's cost is the difference to the echo agent, or to the called server.
fn print_table(names: [&str; 5], medians: [Sample; 5]) {
    println!("                      /s    p50 us    p99 us   call p50 us");
    let [echo, _, through_the_hub, bare, over_http] = medians;
    let added = [None, None, Some((through_the_hub, echo)), None, Some((over_http, bare))];
    for ((name, sample), added) in names.iter().zip(medians).zip(added) {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let call = added.map(|(with, without)| us(with.p50) - us(without.p50));
        println!(
            "{name:<16}{:>8.0}{:>10.0}{:>10.0}{:>14}",
            sample.per_second,
            us(sample.p50),
            us(sample.p99),
            call.map(|call| format!("{call:.0}")).unwrap_or_default(),
        );
    }
}
