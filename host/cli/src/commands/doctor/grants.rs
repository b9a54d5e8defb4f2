//! `doctor`'s checks of the grants file, with or without a running hub.

use super::finding::{CheckResult, fail, ok, warn};
use crate::ui::render::counted;
use a2a_hub_config::{Config, GrantsFile};
use a2a_hub_core::grant::Grant;
use a2a_hub_protocol::id::AgentId;
use std::path::Path;

/// Checks the grants file. An unreadable one keeps new plug-ins from being loaded.
pub(crate) fn grants(data_dir: &Path) -> CheckResult {
    let file = GrantsFile::new(data_dir);
    match file.read() {
        Ok(all) => ok("grants", format!("for {}", counted(all.plugins.len(), "plug-in"))),
        Err(why) => fail(
            "grants",
            why.to_string(),
            format!("repair {}; until then no plug-in is loaded", file.path().display()),
        ),
    }
}

/// Finds granted tool servers that the configuration does not define.
pub(crate) fn servers(config: &Config, data_dir: &Path) -> Vec<CheckResult> {
    // `grants` reports an unreadable grants file.
    let records = GrantsFile::new(data_dir).read().unwrap_or_default();
    let recorded = records.plugins.iter().map(|(id, record)| (id.clone(), record.grant.clone()));
    let configured = config.agents.keys().filter(|id| !records.plugins.contains_key(*id));
    let configured =
        configured.filter_map(|id| Some((id.clone(), config.agent(id).grant.clone()?)));
    recorded.chain(configured).flat_map(|(id, grant)| nowhere(config, &id, &grant)).collect()
}

fn nowhere(config: &Config, id: &AgentId, grant: &Grant) -> Vec<CheckResult> {
    let known = config.agent(id).mcp;
    let missing = grant.tools.keys().filter(|server| !known.contains_key(*server));
    let to_warning = |server: &String| {
        warn(
            "tools",
            format!("{id} may call tools of `{server}`, but no such server is configured"),
            format!("set `agents.{id}.mcp.{server}.command` or `.url` in the configuration"),
        )
    };
    missing.map(to_warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::CheckVerdict;
    use std::fs;

    #[test]
    fn undefined_tool_server_names_setting() {
        let dir = tempfile::tempdir().unwrap();
        let config = "[agents.a.grant.tools]\nweb = ['get']\nfiles = ['read']\n[agents.a.mcp.files]\ncommand = '/bin/files'";
        let config: Config = toml::from_str(config).unwrap();
        let found: Vec<_> =
            servers(&config, dir.path()).into_iter().map(|it| (it.found, it.fix)).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0.contains("a may call tools of `web`"), "{found:?}");
    }

    #[test]
    fn damaged_grants_file_reports_line() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(grants(dir.path()).verdict, CheckVerdict::Ok);
        let file = GrantsFile::new(dir.path()).path();
        fs::write(&file, "plugins = 7").unwrap();
        let found = grants(dir.path());
        assert_eq!(found.verdict, CheckVerdict::Fail);
        assert!(found.found.contains("line 1"), "{}", found.found);
    }
}
