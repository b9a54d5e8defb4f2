//! Tests of limits that a vendor's program has itself.

use super::{KEY, vendors::Vendor};
use crate::stage::state;
use anyhow::Result;
use serde_json::json;
use std::fs;

/// Maximum length of a prompt for Codex, in characters.
const MAX_PROMPT: usize = 1_048_576;

pub(super) async fn oversized_prompt_is_refused_with_limit(vendor: &Vendor) -> Result<()> {
    let stage = vendor.stage().await?;
    let task = stage.send(&"x".repeat(MAX_PROMPT + 1)).await?;
    let told = (state(&task), &task["metadata"]["reason"]);
    assert_eq!(told, ("failed", &json!("invalid_request")), "{}", task["status"]);
    assert!(task["status"].to_string().contains("1048576"), "with the limit: {}", task["status"]);
    assert!(!stage.asked_of_the_model().contains("xxx"), "nobody is asked in vain");
    Ok(())
}

/// The program reports it by an exit code and its last output.
pub(super) async fn turn_limit_fails_with_max_turns(vendor: &Vendor) -> Result<()> {
    let one_shot = "settings.mode = 'one-shot'\npermissions = 'full'";
    let stage = vendor.stage_with(Some(KEY), one_shot).await?;
    let settings = stage.files.path().join(".gemini/settings.json");
    let mut few: serde_json::Value = serde_json::from_str(&fs::read_to_string(&settings)?)?;
    few["model"] = json!({ "maxSessionTurns": 1 });
    fs::write(&settings, few.to_string())?;
    let task = stage.send(&(vendor.run)("true")).await?;
    let told = (state(&task), &task["metadata"]["reason"]);
    assert_eq!(told, ("failed", &json!("max_turns")), "{}", task["status"]);
    Ok(())
}
