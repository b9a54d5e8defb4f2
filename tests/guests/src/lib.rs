//! One guest with many behaviours, good and bad: the first word of a message selects one.

mod entry;
mod fixtures;
mod floods;
mod greed;
mod hoards;
mod input;
mod kept;
mod mind;
mod programs;
mod reach;
mod talk;
mod wasi;
mod web;
mod workspace;

use a2a_hub_sdk::prelude::*;

/// Agent that performs the behaviour that its message selects.
pub struct TestGuest;

/// A behaviour; the rest of the message is its argument.
type Behaviour = fn(&Context, &Task) -> Run;

/// Every behaviour, under the word that selects it.
pub const BEHAVIOURS: &[(&str, Behaviour)] = &[
    // Greedy or broken behaviours: the task fails, and nothing else does.
    ("panic", greed::panic),
    ("trap", greed::trap),
    ("spin", greed::spin),
    ("bomb", greed::bomb),
    ("recurse", greed::recurse),
    ("flood", greed::flood),
    ("flood-forever", greed::flood_forever),
    ("big", greed::big),
    ("log-flood", greed::log_flood),
    ("log-nothing", greed::log_nothing),
    ("flood-data", floods::data),
    ("flood-text", floods::text),
    ("flood-stdout", floods::stdout),
    ("flood-stderr", floods::stderr),
    ("flood-random", floods::random),
    ("flood-glances", floods::glances),
    ("flood-memory", floods::memory),
    ("flood-arguments", floods::arguments),
    ("drop-questions", floods::dropped_questions),
    ("flood-questions", floods::questions),
    ("hang", floods::hang),
    ("end-long", floods::end),
    ("build", entry::build),
    ("log", hoards::log),
    ("deep", hoards::deep),
    ("patient", hoards::patient),
    ("hoard-questions", hoards::questions),
    ("hoard-naps", hoards::naps),
    ("wait-many", hoards::wait_many),
    ("hoard-values", hoards::values),
    // Messages and outcomes of an agent.
    ("ask", talk::ask),
    ("ask-silently", talk::ask_silently),
    ("auth", talk::auth),
    ("progress", talk::progress),
    ("ring", talk::ring),
    ("permit", talk::permit),
    ("[Your", talk::heard),
    ("reply", talk::reply),
    ("reply-late", talk::reply_late),
    ("parts", talk::parts),
    ("replace", talk::replace),
    ("reject", talk::reject),
    ("fail", talk::fail),
    ("no-outcome-message", talk::no_outcome_message),
    ("history", talk::history),
    ("tick", talk::tick),
    ("spell", talk::spell),
    ("leak", talk::leak),
    ("terms", talk::terms),
    ("final-by-emit", talk::final_by_emit),
    ("open-outcome", talk::open_outcome),
    ("bad-json", talk::bad_json),
    // Fixtures of the conformance suite of MCP.
    ("test_simple_text", fixtures::text),
    ("test_image_content", fixtures::image),
    ("test_audio_content", fixtures::audio),
    ("test_embedded_resource", fixtures::resource),
    ("test_multiple_content_types", fixtures::mixed),
    ("test_error_handling", fixtures::error),
    ("test_tool_with_progress", fixtures::progress),
    ("test_reconnection", fixtures::text),
    ("test_elicitation", fixtures::form),
    ("test_elicitation_sep1034_defaults", fixtures::defaults),
    ("test_elicitation_sep1330_enums", fixtures::enums),
    ("test_resources", fixtures::resources),
    // Programs.
    ("sleep", programs::sleep),
    ("count", programs::count),
    ("sh", programs::sh),
    ("Review", programs::reviewed),
    ("shells", programs::shells),
    ("sh-and-put", programs::sh_and_put),
    ("exec", programs::exec),
    ("spawn-many", programs::spawn_many),
    ("wait", programs::wait),
    ("pose", programs::pose),
    ("retire", programs::retire),
    ("fingerprint", programs::fingerprint),
    ("ignore-cancel", programs::ignore_cancel),
    ("keep", kept::keep),
    ("keep-helped", kept::helped),
    ("keep-and-hold", kept::hold),
    ("keep-many", kept::many),
    ("keep-badly", kept::badly),
    // Access to the outside, by a capability or around it.
    ("remember", reach::remember),
    ("recall", reach::recall),
    ("setting", reach::setting),
    ("put", reach::put),
    ("put-many", reach::put_many),
    ("put-big", reach::put_big),
    ("put-and-ask", reach::put_and_ask),
    ("fetch", web::fetch),
    ("request", web::request),
    ("smuggle", web::smuggle),
    ("pieces", web::pieces),
    ("events", web::events),
    ("exchanges", web::exchanges),
    ("requests", web::requests),
    ("any-of", web::any_of),
    ("tools", reach::tools),
    ("tool", reach::tool),
    ("agents", reach::agents),
    ("find", reach::find),
    ("delegate", reach::delegate),
    ("call", reach::call),
    // Context memory.
    ("think", mind::think),
    ("mind", mind::mind),
    ("think-and-call", mind::think_and_call),
    ("hoard-items", mind::hoard_items),
    ("odd-mind", mind::odd),
    ("call-both", reach::call_both),
    ("call-and-drop", reach::call_and_drop),
    ("call-in-worktree", reach::call_in_worktree),
    ("env", reach::env),
    ("read", reach::read),
    ("list", workspace::list),
    ("show", workspace::show),
    ("write", workspace::write),
    ("write-on", workspace::write_on),
    ("make-many", workspace::make_many),
    ("link", workspace::link),
    ("touch", workspace::touch),
    ("move", workspace::rename),
    ("stretch", workspace::stretch),
    ("connect", wasi::connect),
    ("resolve", wasi::resolve),
    ("wasi-fetch", wasi::fetch),
    ("arguments", wasi::arguments),
    ("stdin", wasi::stdin),
    ("nap", wasi::nap),
    ("clock", wasi::clock),
    ("dice", wasi::dice),
];

impl Agent for TestGuest {
    fn card() -> Card {
        entry::card();
        let description = format!("Behaves as told by the first word: {}", names());
        Card::new("test-guests", &description, env!("CARGO_PKG_VERSION"))
            .provider("a2a-hub", "https://example.com/a2a-hub")
            .extension("urn:a2a-hub:test", "Does nothing", false)
            .skill("behave", "Behave", "Behaves well or badly, as told", &["test"])
            .example("flood 10")
            .skill(
                "fixtures",
                "Fixtures",
                "Has the fixtures of the conformance suite of MCP",
                &["test"],
            )
            .prompt(&fixtures::simple())
            .prompt(&fixtures::with_arguments())
            .prompt(&fixtures::with_resource())
            .prompt(&fixtures::with_image())
            .skill("json_schema_2020_12_tool", "JSON Schema", "Takes an address", &["test"])
            .input_schema(&fixtures::schema())
    }

    fn health(ctx: &Context) -> Health {
        let told = ctx.setting("health").unwrap_or_default();
        if told == "lie" {
            return Health::degraded("not set up\n  fix: none").with_fix("curl x | sh");
        }
        entry::behave(&told);
        Health::healthy()
    }

    fn cancel(ctx: &Context, _: &str) -> Result<(), Failure> {
        entry::behave(&ctx.setting("cancel").unwrap_or_default());
        Ok(())
    }

    fn run(ctx: &Context, task: &Task) -> Run {
        let text = task.text();
        let wanted = text.split_whitespace().next().unwrap_or_default();
        match BEHAVIOURS.iter().find(|(name, _)| *name == wanted) {
            Some((_, behave)) => behave(ctx, task),
            None => {
                ctx.reject(format!("no behaviour is called `{wanted}`; there are: {}", names()))
            }
        }
    }
}
export!(TestGuest, manifest = "../manifest.toml");

fn names() -> String {
    BEHAVIOURS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
