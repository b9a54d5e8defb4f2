//! Line that sends the prompt to the CLI.

use a2a_hub_sdk::cli::Job;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Picture types that the API accepts.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// First line of a run: the prompt, and the client's pictures.
pub fn line(job: &Job) -> String {
    // The CLI would read a leading slash as a command and refuse it; after a space it is plain
    // text.
    let space = if job.prompt.starts_with('/') { " " } else { "" };
    let text = format!("{space}{}", job.prompt);
    let pictures = job.images.iter().filter(|image| PICTURES.contains(&&*image.media_type));
    let pictures: Vec<Value> = pictures
        .map(|image| {
            let data = STANDARD.encode(&image.bytes);
            let source = json!({ "type": "base64", "media_type": image.media_type, "data": data });
            json!({ "type": "image", "source": source })
        })
        .collect();
    let content = if pictures.is_empty() {
        Value::String(text)
    } else {
        let text = json!({ "type": "text", "text": text });
        pictures.into_iter().chain([text]).collect()
    };
    json!({ "type": "user", "message": { "role": "user", "content": content } }).to_string()
}
