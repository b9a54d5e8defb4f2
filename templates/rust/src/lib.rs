//! {{title}}: greets whoever writes to it, and counts.

use a2a_hub_sdk::prelude::*;

/// Under this key the agent remembers how often it was asked to count.
const COUNT: &str = "count";

/// The agent.
pub struct Greeter;

impl Agent for Greeter {
    fn card() -> Card {
        Card::new("{{title}}", "Greets whoever writes to it", env!("CARGO_PKG_VERSION"))
            .skill("greet", "Greet", "Asks for a name, and greets its bearer", &["greeting"])
            .example("hello")
            .example("count")
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        match task.text().trim() {
            "hello" => greet(ctx),
            "count" => count(ctx),
            _ => ctx.reject("I know `hello` and `count`."),
        }
    }
}
export!(Greeter, manifest = "../manifest.toml");

/// Says what it does, asks, and streams its answer.
fn greet(ctx: &Context) -> Run {
    ctx.say("looking for a good greeting")?;
    let answer = ctx.ask("What is your name?")?;
    let greeting = format!("Hello, {}. How good to see you.", answer.text().trim());
    let mut stream = ctx.text_stream("greeting");
    for word in greeting.split_inclusive(' ') {
        stream.push(word)?;
    }
    stream.finish(&greeting)?;
    ctx.done(greeting)
}

/// Needs the memory that manifest.toml asks for: without it, the `?` ends the task, which tells
/// what is missing.
fn count(ctx: &Context) -> Run {
    let count = ctx.recall::<u64>(COUNT)?.unwrap_or_default() + 1;
    ctx.remember(COUNT, &count)?;
    ctx.done(format!("You have asked me {count} times."))
}

#[cfg(test)]
mod tests {
    use a2a_hub_sdk::testing::ScriptedHost;

    use super::*;

    #[test]
    fn it_greets_by_name() {
        let host = ScriptedHost::new();
        host.answer("Ada");
        let outcome = host.run::<Greeter>("hello").unwrap();
        assert_eq!(outcome.text(), "Hello, Ada. How good to see you.");
        assert_eq!(host.artifact("greeting").unwrap(), outcome.text());
    }

    #[test]
    fn it_counts() {
        let host = ScriptedHost::new();
        host.run::<Greeter>("count").unwrap();
        assert_eq!(host.run::<Greeter>("count").unwrap().text(), "You have asked me 2 times.");
    }
}
