//! Fixtures of the official conformance suite of MCP, under the names of the tools that it calls.

use crate::input::argument;
use a2a_hub_sdk::{
    Part,
    prelude::*,
    serde_json::{Value, json},
};

/// A red pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\
\0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

/// A sound without samples.
const WAV: &[u8] =
    b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0";

/// Answers with a text.
pub(crate) fn text(ctx: &Context, _: &Task) -> Run {
    ctx.done("This is a simple text response for testing.")
}

/// Makes an image.
pub(crate) fn image(ctx: &Context, _: &Task) -> Run {
    made(ctx, "image", vec![Part::file("pixel.png", "image/png", PNG.to_vec())])
}

/// Makes a sound.
pub(crate) fn audio(ctx: &Context, _: &Task) -> Run {
    made(ctx, "audio", vec![Part::file("silence.wav", "audio/wav", WAV.to_vec())])
}

/// Makes a file of text.
pub(crate) fn resource(ctx: &Context, _: &Task) -> Run {
    let text = b"This is an embedded resource content.".to_vec();
    made(ctx, "resource", vec![Part::file("resource.txt", "text/plain", text)])
}

/// Makes a text, an image and a file in one artifact.
pub(crate) fn mixed(ctx: &Context, _: &Task) -> Run {
    let json = br#"{"test":"data","value":123}"#.to_vec();
    let parts = vec![
        Part::text("Multiple content types test:"),
        Part::file("pixel.png", "image/png", PNG.to_vec()),
        Part::file("data.json", "application/json", json),
    ];
    made(ctx, "mixed", parts)
}

/// Fails.
pub(crate) fn error(ctx: &Context, _: &Task) -> Run {
    ctx.fail("told-to", "This tool intentionally returns an error for testing")
}

/// Reports its progress three times.
pub(crate) fn progress(ctx: &Context, _: &Task) -> Run {
    for percent in [0, 50, 100] {
        ctx.progress(percent, "works")?;
    }
    ctx.done("done")
}

/// Asks with a form of two members.
pub(crate) fn form(ctx: &Context, task: &Task) -> Run {
    let text = |what: &str| json!({ "type": "string", "description": what });
    let members = json!({ "username": text("The name"), "email": text("The address") });
    asked(ctx, &argument(task), &members)
}

/// Asks with a form that has defaults of all types (SEP-1034).
pub(crate) fn defaults(ctx: &Context, _: &Task) -> Run {
    let states = json!(["active", "inactive", "pending"]);
    let members = json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": states, "default": "active" },
        "verified": { "type": "boolean", "default": true },
    });
    asked(ctx, "who are you?", &members)
}

/// Asks with a form that has all kinds of choices (SEP-1330).
pub(crate) fn enums(ctx: &Context, _: &Task) -> Run {
    let options = json!(["option1", "option2", "option3"]);
    let titled = json!([
        { "const": "value1", "title": "First" },
        { "const": "value2", "title": "Second" },
        { "const": "value3", "title": "Third" },
    ]);
    let legacy = json!(["opt1", "opt2", "opt3"]);
    let names = json!(["Option One", "Option Two", "Option Three"]);
    let members = json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled },
        "legacyEnum": { "type": "string", "enum": legacy, "enumNames": names },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled } },
    });
    asked(ctx, "which ones?", &members)
}

/// Makes the artifacts that the suite reads as resources.
pub(crate) fn resources(ctx: &Context, _: &Task) -> Run {
    ctx.artifact(Artifact::text(
        "static-text",
        "This is the content of the static text resource.",
    ))?;
    let image = Part::file("pixel.png", "image/png", PNG.to_vec());
    ctx.artifact(Artifact::new("static-binary", vec![image]))?;
    let of_template = Part::data(&json!({ "id": "123", "templateTest": true }));
    made(ctx, "123", vec![of_template])
}

/// Prompt without arguments.
pub(crate) fn simple() -> Value {
    let parts = json!([{ "text": "This is a simple prompt for testing." }]);
    json!({ "name": "test_simple_prompt", "description": "A simple prompt", "parts": parts })
}

/// Prompt with two arguments.
pub(crate) fn with_arguments() -> Value {
    let argument =
        |name: &str, values: &[&str]| json!({ "name": name, "required": true, "values": values });
    let arguments =
        json!([argument("arg1", &["paris", "park", "party", "test"]), argument("arg2", &[])]);
    let parts = json!([{ "text": "Prompt with arguments: arg1='{{arg1}}', arg2='{{arg2}}'" }]);
    json!({ "name": "test_prompt_with_arguments", "arguments": arguments, "parts": parts })
}

/// Prompt with a file of text.
pub(crate) fn with_resource() -> Value {
    let arguments = json!([{ "name": "resourceUri", "required": true }]);
    let text = "RW1iZWRkZWQgcmVzb3VyY2UgY29udGVudCBmb3IgdGVzdGluZy4=";
    let parts = json!([
        { "raw": text, "mediaType": "text/plain" },
        { "text": "Please process the embedded resource above, not {{resourceUri}}." },
    ]);
    json!({ "name": "test_prompt_with_embedded_resource", "arguments": arguments, "parts": parts })
}

/// Prompt with the red pixel.
pub(crate) fn with_image() -> Value {
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
    let parts = json!([
        { "raw": png, "mediaType": "image/png" },
        { "text": "Please analyze the image above." },
    ]);
    json!({ "name": "test_prompt_with_image", "parts": parts })
}

/// Schema with keywords of JSON Schema 2020-12.
pub(crate) fn schema() -> Value {
    let text = json!({ "type": "string" });
    let address = json!({ "type": "object", "properties": { "street": text, "city": text } });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": address },
        "properties": { "name": text, "address": { "$ref": "#/$defs/address" } },
        "additionalProperties": false,
    })
}

fn made(ctx: &Context, id: &str, parts: Vec<Part>) -> Run {
    ctx.artifact(Artifact::new(id, parts))?;
    ctx.done("made it")
}

/// Asks with a form, and repeats the answer.
fn asked(ctx: &Context, question: &str, members: &Value) -> Run {
    let form = json!({ "type": "object", "properties": members });
    let parts = vec![Part::text(question), Part::data(&json!({ "form": form }))];
    let answer = ctx.ask(Message::agent(parts))?;
    ctx.done(format!("User response: {}", answer.text()))
}
