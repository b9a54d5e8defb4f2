//! Missing grants as shown to the operator, each with the configuration line or the command that
//! allows it.

use a2a_hub_core::plugin::missing_grants::MissingGrant;
use a2a_hub_protocol::{id::AgentId, operation::NotGranted};

/// Describes a missing grant. For a plug-in the description includes the command that grants it.
pub(super) fn remedied(lack: MissingGrant, plugin: Option<&AgentId>) -> NotGranted {
    let MissingGrant { capability, action, reason, setting, arguments } = lack;
    let quoted = |argument: &String| {
        // Quoted, because a shell expands these characters.
        if argument.contains(['*', '[']) { format!("'{argument}'") } else { argument.clone() }
    };
    let command = plugin.filter(|_| !arguments.is_empty()).map(|id| {
        let arguments: Vec<_> = arguments.iter().map(quoted).collect();
        format!("a2a-hub plugin grant {id} {}", arguments.join(" "))
    });
    NotGranted { capability, what: action, reason: reason.map(Into::into), setting, command }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_hint_is_shell_quoted_command() {
        let plugin = AgentId::parse("notes").unwrap();
        let lack = |arguments: &[&str]| MissingGrant {
            capability: "delegate".to_owned(),
            action: "know which other agents there are".to_owned(),
            reason: None,
            setting: "delegate = [\"*\"]".to_owned(),
            arguments: arguments.iter().map(|&it| it.to_owned()).collect(),
        };
        let command = |arguments, plugin| remedied(lack(arguments), plugin).command;
        assert_eq!(
            command(&["--delegate", "*"], Some(&plugin)).unwrap(),
            "a2a-hub plugin grant notes --delegate '*'"
        );
        assert_eq!(command(&[], Some(&plugin)), None, "no command does it");
        assert_eq!(command(&["--memory=1"], None), None, "the configuration does");
    }
}
