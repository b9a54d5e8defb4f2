//! Actions of the raw requests of vendors' programs.
//!
//! A driver sends a request as its program wrote it. A request is read exactly or not at all: each
//! of its members must be a known one, so that a new version of a program cannot ask for more than
//! the hub shows and compares. Everything else is [`Action::Other`], with the reason.
//!
//! Drivers send a JSON object with these members, which are untrusted like the program itself:
//!
//! | member | content |
//! | --- | --- |
//! | `vendor` | program: `claude`, `codex`, `gemini`, `vibe`, `opencode` or another one |
//! | `request` | request as the program sent it |
//! | `method` | JSON-RPC method of the request, for Codex |
//! | `directory` | absolute directory of the program's shell, if the driver knows it |
//! | `call` | earlier updates of the same tool call, merged, for the Agent Client Protocol |
//! | `paths` | files of the patch, for Codex |

mod acp;
mod claude;
mod codex;
mod codex_command;
mod members;

use crate::text::plain_text::line;
use a2a_hub_protocol::permission::{Action, PermissionRequest};
use serde_json::Value;

/// Maximum number of characters of a vendor's name.
const MAX_VENDOR: usize = 64;

/// True if the request is for a command, as far as its kind tells.
fn runs(facts: &Value) -> bool {
    let request = &facts["request"];
    let is_shell = matches!(request["tool_name"].as_str(), Some("Bash" | "Monitor"));
    let is_command = facts["method"] == "item/commandExecution/requestApproval";
    let kinds = [&request["toolCall"]["kind"], &facts["call"]["kind"]];
    is_shell || is_command || kinds.iter().any(|kind| **kind == "execute")
}

/// Reads the request of a program from the facts that its driver sent.
pub fn read(facts: &Value) -> PermissionRequest {
    let vendor = facts["vendor"].as_str().unwrap_or_default();
    let action = match vendor {
        claude::VENDOR => claude::action(facts),
        codex::VENDOR => codex::action(facts),
        acp::GEMINI => acp::gemini(facts),
        acp::VIBE => acp::vibe(facts),
        acp::OPENCODE => acp::opencode(facts),
        _ => Err("the hub does not know the requests of this program".to_owned()),
    };
    PermissionRequest {
        vendor: line(vendor, MAX_VENDOR),
        outside_sandbox: asks_outside_sandbox(vendor),
        action: action.unwrap_or_else(|reason| Action::Other { reason, runs: runs(facts) }),
    }
}

/// Refuses a program whose requests the hub never reads, or never as a run of programs.
pub(super) fn check_vendor(vendor: &str, is_run: bool) -> Result<(), String> {
    match vendor {
        claude::VENDOR | codex::VENDOR | acp::VIBE | acp::OPENCODE => Ok(()),
        acp::GEMINI if is_run => Err("Gemini sends only the title of a command, so no rule can \
                                      allow its commands: allow changes of files, or answer each \
                                      request"
            .to_owned()),
        acp::GEMINI => Ok(()),
        _ => Err(format!(
            "the hub does not know the requests of the program `{}`, so no rule can allow them: \
             answer each request",
            line(vendor, MAX_VENDOR)
        )),
    }
}

/// True for a program that asks only for what its sandbox would refuse.
pub(super) fn asks_outside_sandbox(vendor: &str) -> bool {
    vendor == codex::VENDOR
}
