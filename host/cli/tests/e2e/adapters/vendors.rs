//! Table of the vendors' programs with their peculiarities.

use a2a_hub_tests::ModelServer;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A vendor's program with its peculiarities.
pub(super) struct Vendor {
    pub(super) agent: &'static str,
    pub(super) program: &'static str,
    /// Part of the path of the program's requests to the model server.
    pub(super) api: &'static str,
    /// Directory below `target/clis` into which `cargo xtask clis` installs the program.
    pub(super) bin: &'static str,
    /// Environment variable of the API key.
    pub(super) key: &'static str,
    /// Further variables that select the model server and a separate directory for the program's
    /// files.
    pub(super) env: fn(&ModelServer, &Path) -> Vec<(&'static str, String)>,
    /// Command with which an operator logs in.
    pub(super) login: &'static str,
    /// Code span of the message when no key is set.
    pub(super) without_key: &'static str,
    /// Model of the loopback server that is used only on request.
    pub(super) model: &'static str,
    /// Version that the program reports.
    pub(super) version: &'static str,
    /// Configuration of the agent in the hub.
    pub(super) settings: &'static str,
    /// Prompt that makes the model write that file.
    pub(super) write: fn(&str) -> String,
    /// Prompt that makes the model read that file; `None` if the program may read the whole disk.
    pub(super) read: Option<fn(&str) -> String>,
    /// Prompt that makes the model run that command, outside of the program's own sandbox.
    pub(super) run: fn(&str) -> String,
    /// Prompt that makes the model use a tool of the hub's MCP server, with these arguments.
    pub(super) hub_tool: fn(&str, &Value) -> String,
    /// Settings and variable under which the program starts the operator's MCP servers in its
    /// working directory.
    pub(super) trusts: (&'static str, Option<&'static str>),
    /// Settings under which the program resumes a session that the hub did not start.
    pub(super) resumes: &'static str,
    /// Id, as users know it, of the only session that the program stored in its directory.
    pub(super) session: fn(&Path) -> Option<String>,
}

pub(super) const CLAUDE: Vendor = Vendor {
    agent: "claude-code",
    program: "claude",
    api: "/messages",
    bin: "node_modules/.bin",
    key: "ANTHROPIC_API_KEY",
    env: |model, home| {
        vec![
            ("CLAUDE_CONFIG_DIR", home.display().to_string()),
            ("ANTHROPIC_BASE_URL", model.url().to_owned()),
        ]
    },
    login: "claude /login",
    without_key: "claude /login",
    model: "claude-opus-0",
    version: "2.1.332",
    settings: "",
    write: |path| {
        format!("[[tool:raw:Write:{}]]", json!({ "file_path": path, "content": "new\n" }))
    },
    read: Some(|path| format!("[[tool:raw:Read:{}]]", json!({ "file_path": path }))),
    run: |command| format!("[[tool:shell:{command}]]"),
    hub_tool: |tool, arguments| format!("[[tool:raw:mcp__a2a-hub__{tool}:{arguments}]]"),
    trusts: ("", None),
    resumes: "",
    session: |home| {
        let kept = kept_below(&home.join("projects"), ".jsonl")?;
        Some(kept.file_stem()?.to_str()?.to_owned())
    },
};

pub(super) const GEMINI: Vendor = Vendor {
    agent: "gemini",
    program: "gemini",
    api: "/models/",
    bin: "node_modules/.bin",
    key: "GEMINI_API_KEY",
    env: |model, home| {
        // As docs/how-to/set-up-clis.md advises, so that the program's own retries do not take
        // minutes.
        let settings = r#"{ "general": { "maxAttempts": 1 }, "security": { "auth": { "selectedType": "gemini-api-key" } } }"#;
        fs::create_dir_all(home.join(".gemini")).expect("a directory for gemini");
        fs::write(home.join(".gemini/settings.json"), settings).expect("gemini's settings");
        vec![
            ("GEMINI_CLI_HOME", home.display().to_string()),
            ("GOOGLE_GEMINI_BASE_URL", model.url().to_owned()),
        ]
    },
    login: "gemini",
    without_key: "gemini",
    model: "gemini-1.5-pro",
    version: "0.61.0",
    // For models that the program knows, it has fallback plans of retries and other models.
    settings: "settings.model = 'gemini-1.5-flash'",
    write: |path| {
        format!("[[tool:raw:write_file:{}]]", json!({ "file_path": path, "content": "new\n" }))
    },
    read: Some(|path| format!("[[tool:raw:read_file:{}]]", json!({ "file_path": path }))),
    run: |command| format!("[[tool:shell:{command}]]"),
    hub_tool: |tool, arguments| format!("[[tool:raw:mcp_a2a-hub_{tool}:{arguments}]]"),
    trusts: ("env = ['GEMINI_CLI_TRUST_WORKSPACE']", Some("GEMINI_CLI_TRUST_WORKSPACE")),
    resumes: "settings.mode = 'one-shot'",
    session: |home| {
        let kept = fs::read_to_string(kept_below(&home.join(".gemini/tmp"), ".jsonl")?).ok()?;
        let first: Value = serde_json::from_str(kept.lines().next()?).ok()?;
        Some(first["sessionId"].as_str()?.to_owned())
    },
};

pub(super) const VIBE: Vendor = Vendor {
    agent: "vibe",
    program: "vibe-acp",
    api: "/chat/completions",
    bin: "vibe/bin",
    key: "MISTRAL_API_KEY",
    env: |model, home| {
        let api = format!("{}/v1", model.url());
        let provider = json!([{
            "name": "loopback", "api_base": api, "api_key_env_var": "MISTRAL_API_KEY", "backend": "generic",
        }]);
        let model_of_it = json!([{
            "name": "mock-model", "provider": "loopback", "alias": "mock", "supports_images": true,
        }, {
            "name": "mock-model-2", "provider": "loopback", "alias": "mock-model-2",
        }]);
        vec![
            ("VIBE_HOME", home.display().to_string()),
            ("VIBE_PROVIDERS", provider.to_string()),
            ("VIBE_MODELS", model_of_it.to_string()),
            ("VIBE_ACTIVE_MODEL", "mock".to_owned()),
            ("VIBE_VIBE_BASE_URL", model.url().to_owned()),
            ("VIBE_ENABLE_CONNECTORS", "false".to_owned()),
        ]
    },
    login: "vibe --setup",
    without_key: "vibe --setup",
    model: "mock-model-2",
    version: "3.0.2",
    settings: "",
    write: |path| {
        format!("[[tool:raw:write_file:{}]]", json!({ "path": path, "content": "new\n" }))
    },
    read: Some(|path| format!("[[tool:raw:read_file:{}]]", json!({ "path": path }))),
    run: |command| format!("[[tool:shell:{command}]]"),
    hub_tool: |tool, arguments| {
        let code = format!(
            "async function main() {{ return await tools.mcp_a2a_hub.{tool}({arguments}); }}"
        );
        format!("[[tool:raw:run_typescript:{}]]", json!({ "code": code }))
    },
    trusts: ("", None),
    resumes: "",
    session: |home| {
        let all = fs::read_dir(home.join("logs/session/unified")).ok()?;
        Some(all.flatten().next()?.file_name().to_str()?.to_owned())
    },
};

pub(super) const CODEX: Vendor = Vendor {
    agent: "codex",
    program: "codex",
    api: "/responses",
    bin: "node_modules/.bin",
    key: "LOOPBACK_KEY",
    env: |model, home| {
        let config = format!(
            "model = 'mock-model'\nmodel_provider = 'loopback'\n[model_providers.loopback]\nname = 'loopback'\n\
             base_url = '{}/v1'\nenv_key = 'LOOPBACK_KEY'\nwire_api = 'responses'\n",
            model.url()
        );
        fs::write(home.join("config.toml"), config).expect("codex' configuration");
        vec![("CODEX_HOME", home.display().to_string())]
    },
    login: "codex login",
    without_key: "LOOPBACK_KEY",
    model: "mock-model-2",
    version: "0.171.0",
    settings: "env = ['LOOPBACK_KEY']",
    write: |path| {
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n+new\n*** End Patch");
        let command = json!({ "cmd": format!("apply_patch <<'EOF'\n{patch}\nEOF") });
        format!("[[tool:raw:exec_command:{command}]]")
    },
    read: None,
    run: |command| {
        let wanted = json!({
            "cmd": command, "sandbox_permissions": "require_escalated", "justification": "a test",
        });
        format!("[[tool:raw:exec_command:{wanted}]]")
    },
    hub_tool: |tool, arguments| format!("[[tool:raw:mcp__a2a_hub/{tool}:{arguments}]]"),
    trusts: ("", None),
    resumes: "",
    session: |home| {
        // `rollout-TIME-ID.jsonl`, where the id is a UUID.
        let kept = kept_below(&home.join("sessions"), ".jsonl")?;
        let stem = kept.file_stem()?.to_str()?;
        Some(stem.get(stem.len().checked_sub(36)?..)?.to_owned())
    },
};

/// OpenCode by the key `acp` of the configuration and the hub's catalogue.
pub(super) const OPENCODE: Vendor = Vendor {
    agent: "opencode",
    program: "opencode",
    api: "/chat/completions",
    bin: "node_modules/.bin",
    key: "OPENCODE_LOOPBACK_KEY",
    env: |model, home| {
        let models = json!({
            "mock-model": { "name": "mock", "attachment": true, "modalities": { "input": ["text", "image"], "output": ["text"] } },
            "mock-model-2": { "name": "mock 2" },
        });
        let provider = json!({
            "npm": "@ai-sdk/openai-compatible", "name": "loopback", "models": models,
            "options": { "baseURL": format!("{}/v1", model.url()), "apiKey": "{env:OPENCODE_LOOPBACK_KEY}" },
        });
        let config = json!({
            "model": "loopback/mock-model", "small_model": "loopback/mock-model",
            "provider": { "loopback": provider }, "enabled_providers": ["loopback"], "share": "disabled",
        });
        vec![
            ("OPENCODE_CONFIG_CONTENT", config.to_string()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "true".to_owned()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "true".to_owned()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "true".to_owned()),
            ("XDG_DATA_HOME", home.join("data").display().to_string()),
            ("XDG_STATE_HOME", home.join("state").display().to_string()),
            ("XDG_CONFIG_HOME", home.join("config").display().to_string()),
            ("XDG_CACHE_HOME", home.join("cache").display().to_string()),
        ]
    },
    login: "opencode auth login",
    without_key: "opencode auth login",
    model: "loopback/mock-model-2",
    version: "1.18.33",
    settings: "acp = ['opencode', 'acp']",
    write: |path| format!("[[tool:raw:write:{}]]", json!({ "filePath": path, "content": "new\n" })),
    read: Some(|path| format!("[[tool:raw:read:{}]]", json!({ "filePath": path }))),
    run: |command| {
        format!("[[tool:raw:bash:{}]]", json!({ "command": command, "description": "a test" }))
    },
    hub_tool: |tool, arguments| format!("[[tool:raw:a2a-hub_{tool}:{arguments}]]"),
    trusts: ("", None),
    resumes: "",
    session: |_| None,
};

/// Finds a file below `dir` by the end of its name.
fn kept_below(dir: &Path, ending: &str) -> Option<PathBuf> {
    fs::read_dir(dir).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return kept_below(&path, ending);
        }
        path.to_str().is_some_and(|name| name.ends_with(ending)).then_some(path)
    })
}
