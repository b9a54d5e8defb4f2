//! `person`, `key` and `join`: people whom the operator lets in, their API keys, and remote hubs
//! that this user joined.

#[cfg(feature = "hub")]
use crate::commands::doctor::finding::{CheckResult, ok};
use crate::{
    Exit, Global,
    client::hub_client::ask,
    commands::tasks::{Since, since},
    permissions::millis,
    ui::{
        failure::CommandError,
        interactive::{self, UserAnswer},
        render::{ago, ahead, list, shell_word, text},
        table::Table,
        text::Text,
    },
};
use a2a_hub_config::{ClientTlsFiles, JoinedHub, JoinedHubs};
#[cfg(feature = "hub")]
use a2a_hub_config::{Config, token::TENANTS_DIR};
use a2a_hub_core::identity::PersonProof;
#[cfg(feature = "hub")]
use a2a_hub_protocol::id::TenantId;
use a2a_hub_socket_client::remote_hub;
use anyhow::bail;
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde_json::{Value, json};
#[cfg(feature = "hub")]
use std::path::Path;
use std::path::PathBuf;

/// Role of a person in a tenant.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum RoleOption {
    /// Reads what the tenant has, and does the rest with all its tasks
    Owner,
    /// Reads what the tenant has, and does the rest with the own tasks
    Member,
    /// Reads what the tenant has
    Viewer,
}

/// Commands for people.
#[derive(Debug, Subcommand)]
pub(crate) enum PersonCommand {
    /// Add a person
    Add {
        /// Name: 1 to 63 lower-case letters, digits, hyphens and dots
        name: String,
        /// Role in the tenant
        #[arg(long, value_enum, default_value = "member")]
        role: RoleOption,
    },
    /// Print an invitation, with which a person gets a key once
    Invite(InviteArgs),
    /// List the people
    List,
    /// Give a person another role
    Role {
        /// Name of the person
        name: String,
        /// New role
        #[arg(value_enum)]
        role: RoleOption,
    },
    /// Remove a person; the person's keys and streams end at once, and schedules and triggers stop
    Remove(RemoveArgs),
    /// Print whom the hub takes you for, and what you may do
    Me,
}

/// Arguments of `person invite`.
#[derive(Debug, Args)]
pub(crate) struct InviteArgs {
    /// Name of the person
    name: String,
    /// Scopes of the key, such as `read:own,send:echo`; see `key new` [default: all of the role
    /// without apply and admin]
    #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
    scope: Vec<String>,
    /// Time until the invitation expires, at most 30d
    #[arg(long, value_name = "TIME", default_value = "1d", value_parser = since)]
    expires: Since,
}

/// Arguments of `person remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Name of the person
    name: String,
    /// Person of the same tenant to whom schedules and triggers pass, once that person accepts them
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
    /// Print what would end, and remove nobody
    #[arg(long)]
    dry_run: bool,
}

/// Commands for API keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key, and print it once
    New(NewKeyArgs),
    /// List the keys, with their latest use
    List,
    /// Revoke keys; their streams end at once
    Revoke {
        /// Ids of the keys
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

/// Arguments of `key new`.
#[derive(Debug, Args)]
pub(crate) struct NewKeyArgs {
    /// Person of the key
    #[arg(long = "for", value_name = "NAME")]
    person: String,
    /// Scopes: read, send, answer, approve, cancel, push, apply, admin and admin:grant; narrowed as
    /// `read:own`, `send:AGENT`, `approve:AGENT/SKILL`, `send:AGENT:alone`; and `card:NAME` for
    /// skills that require the scope NAME [default: the first six]
    #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
    scope: Vec<String>,
    /// Time until the key expires, such as 90d; 0d for never
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = since)]
    expires: Since,
    /// Label, such as the name of a program
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
}

/// Arguments of `join`.
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// URL of the hub, with or without the invitation behind a `#`; a terminal asks for it
    url: String,
    /// Name by which your commands find the hub [default: its host]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Label of the key that you get there [default: the name of this machine]
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Replace the hub that you joined under this name, and its key
    #[arg(long)]
    replace: bool,
    /// CA certificates that the hub's certificate must come from, in PEM [default: the machine's]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Certificate to show to a hub that asks for one, in PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

fn role_name(role: RoleOption) -> &'static str {
    match role {
        RoleOption::Owner => "owner",
        RoleOption::Member => "member",
        RoleOption::Viewer => "viewer",
    }
}

/// Carries out `person`.
pub(crate) fn person(global: &Global, command: &PersonCommand) -> anyhow::Result<Exit> {
    match command {
        PersonCommand::Add { name, role } => {
            let params = json!({ "name": name, "role": role_name(*role) });
            let added = ask(global, "hub/people/add", params)?;
            global.show(&added, || Ok(added_text(&added).into()))?;
        }
        PersonCommand::Invite(args) => invite(global, args)?,
        PersonCommand::List => {
            let people = ask(global, "hub/people/list", json!({}))?;
            let columns = global.console().columns();
            global.show(&people, || Ok(people_text(&people, Timestamp::now(), columns)))?;
        }
        PersonCommand::Role { name, role } => {
            let params = json!({ "name": name, "role": role_name(*role) });
            let changed = ask(global, "hub/people/role", params)?;
            let line = format!("{} is {} now\n", text(&changed["name"]), text(&changed["role"]));
            global.show(&changed, || Ok(line.into()))?;
        }
        PersonCommand::Remove(args) => remove(global, args)?,
        PersonCommand::Me => {
            let me = ask(global, "hub/people/me", json!({}))?;
            global.show(&me, || Ok(me_text(&me).into()))?;
        }
    }
    Ok(Exit::Done)
}

fn added_text(added: &Value) -> String {
    let (name, role) = (text(&added["name"]), text(&added["role"]));
    let tenant = match text(&added["tenant"]) {
        "" => "no tenant, as your own tasks do".to_owned(),
        tenant => format!("the tenant `{tenant}`"),
    };
    let rights = match role {
        "viewer" => "changes nothing",
        "owner" => "changes all of them",
        _ => "changes the own ones",
    };
    format!(
        "added {name}, who reads all tasks that belong to {tenant}, and {rights}\n\
         a2a-hub person invite {name}   prints an invitation\n\
         Programs on this machine now need a key over HTTP; the unix socket needs none.\n"
    )
}

fn invite(global: &Global, args: &InviteArgs) -> anyhow::Result<()> {
    let for_ms = millis(args.expires)?;
    let params = json!({ "name": args.name, "scopes": args.scope, "forMs": for_ms });
    let created = ask(global, "hub/people/invite", params)?;
    global.show(&created, || Ok(invitation_text(&created, Timestamp::now()).into()))
}

fn invitation_text(created: &Value, now: Timestamp) -> String {
    let (name, invitation) = (text(&created["person"]), text(&created["invitation"]));
    let expires = ahead(&created["expiresAt"], now);
    let Some(url) = created["url"].as_str() else {
        return format!(
            "this hub serves no HTTP, so nobody can join it; start it without `--no-http`\n\
             the invitation for {name} is {invitation}\n"
        );
    };
    let reach = match remote_hub::checked_url(url) {
        Ok(url) if url.starts_with("https") => String::new(),
        Ok(_) | Err(_) => {
            "Other machines do not reach this address: replace it by the one under which they do.\n"
                .to_owned()
        }
    };
    format!(
        "{name} runs this command, once, before it expires {expires}:\n\
         a2a-hub join {url}#{invitation}\n\
         {reach}"
    )
}

/// Prints what a removal ends, and then removes the person.
fn remove(global: &Global, args: &RemoveArgs) -> anyhow::Result<()> {
    let params = |dry_run: bool| {
        let mut params = json!({ "name": args.name, "dryRun": dry_run });
        if let (Some(to), Some(params)) = (&args.to, params.as_object_mut()) {
            params.insert("to".to_owned(), json!(to));
        }
        params
    };
    let effects = ask(global, "hub/people/remove", params(true))?;
    if args.dry_run {
        return global.show(&effects, || Ok(effects_text(&effects).into()));
    }
    let lines = effects_text(&effects);
    lines.lines().for_each(|line| global.console().note(line));
    let removed = ask(global, "hub/people/remove", params(false))?;
    let line = format!("removed {}\n", text(&removed["name"]));
    global.show(&removed, || Ok(line.into()))
}

/// Effects of a removal: a line for keys, tasks and automation each.
fn effects_text(effects: &Value) -> String {
    let name = text(&effects["name"]);
    let keys = match list(&effects["keys"]).len() {
        0 => format!("{name} has no keys\n"),
        1 => format!("one key of {name} ends, with its connections and streams\n"),
        keys => format!("{keys} keys of {name} end, with their connections and streams\n"),
    };
    let tasks: Vec<_> = list(&effects["tasks"]).iter().map(|id| shell_word(text(id))).collect();
    let tasks = match tasks.is_empty() {
        true => String::new(),
        false => {
            let (count, ids) = (tasks.len(), tasks.join(" "));
            format!("unfinished tasks go on: {count}; to end them: a2a-hub task cancel {ids}\n")
        }
    };
    let names: Vec<_> = list(&effects["automation"]).iter().map(text).collect();
    let automation = match (names.is_empty(), effects["to"].as_str()) {
        (true, _) => String::new(),
        (false, None) => format!(
            "schedules and triggers stop: {}; `--to NAME` passes them to another person\n",
            names.join(", ")
        ),
        (false, Some(to)) => format!(
            "schedules and triggers pass to {to}, and wait until {to} accepts them: {}\n",
            names.join(", ")
        ),
    };
    format!("{keys}{tasks}{automation}")
}

fn people_text(people: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let people = list(&people["people"]);
    if people.is_empty() {
        return "nobody else may come in; `a2a-hub person add NAME` adds a person\n".into();
    }
    let mut table = Table::new(["NAME", "ROLE", "TENANT", "KEYS", "LAST USE"]);
    for person in people {
        let keys = list(&person["keys"]);
        let latest = keys.iter().map(|key| text(&key["lastUsedAt"])).max().unwrap_or_default();
        let used = used_text(&json!(latest), now, columns);
        let tenant = match text(&person["tenant"]) {
            "" => "none",
            tenant => tenant,
        };
        let (name, role) = (text(&person["name"]).to_owned(), text(&person["role"]).to_owned());
        table.row([
            name.into(),
            role.into(),
            tenant.to_owned().into(),
            keys.len().to_string().into(),
            used.into(),
        ]);
    }
    table.text(columns)
}

/// Time of the latest use of a key.
fn used_text(at: &Value, now: Timestamp, columns: Option<usize>) -> String {
    match (text(at), columns) {
        ("", _) => "never".to_owned(),
        (_, Some(_)) => ago(at, now),
        (at, None) => at.to_owned(),
    }
}

fn me_text(me: &Value) -> String {
    let person = &me["person"];
    if person.is_null() {
        return format!("the hub takes you for {}\n", text(&me["caller"]));
    }
    let proof = PersonProof::parse(text(&me["key"]));
    let is_used = |key: &&Value| key["id"].as_str() == proof.key;
    let key = list(&person["keys"]).iter().find(is_used).cloned().unwrap_or_default();
    let scopes: Vec<_> = list(&key["scopes"]).iter().map(text).collect();
    let scopes = if scopes.is_empty() { String::new() } else { format!(": {}", scopes.join(", ")) };
    let tenant = match text(&person["tenant"]) {
        "" => String::new(),
        tenant => format!(" of the tenant `{tenant}`"),
    };
    let (name, role, label) = (text(&person["name"]), text(&person["role"]), text(&key["label"]));
    let key = proof.key.map(|id| format!("the key {id} ({label}){scopes}"));
    let certificate = proof.certificate.map(|name| format!("the certificate {name}"));
    let proofs: Vec<_> = key.into_iter().chain(certificate).collect();
    format!("the hub takes you for {name}, {role}{tenant}, by {}\n", proofs.join(" and "))
}

/// Line about the agents that a tree of tasks may reach by its key; empty without a limit.
pub(crate) fn reach_text(agents: &Value) -> Text {
    let Some(agents) = agents.as_array() else { return Text::new() };
    let names: Vec<_> = agents.iter().map(text).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    format!("by its API key, these tasks call no agents but: {names}\n").into()
}

/// Findings of `doctor` about tokens of tenants, which are older than keys: all clients of a tenant
/// share one, so no record tells them apart.
#[cfg(feature = "hub")]
pub(crate) fn tenant_tokens(config: &Config, data_dir: &Path) -> Vec<CheckResult> {
    let token = |tenant: &TenantId| data_dir.join(TENANTS_DIR).join(tenant.as_str());
    let with_file = config.tenants.keys().map(|tenant| (tenant, token(tenant)));
    let found = with_file.filter(|(_, file)| file.is_file()).map(|(tenant, file)| {
        let found = format!(
            "{} is a token for everybody of the tenant, without a name, scopes or an end; it goes on to count",
            file.display()
        );
        let fix = format!(
            "keys of people replace it: `a2a-hub --tenant {tenant} person add NAME`, then `a2a-hub key new --for NAME`"
        );
        CheckResult { fix: Some(fix), ..ok(&format!("tenant {tenant}"), found) }
    });
    found.collect()
}

/// Carries out `key`.
pub(crate) fn key(global: &Global, command: &KeyCommand) -> anyhow::Result<Exit> {
    match command {
        KeyCommand::New(NewKeyArgs { person, scope, expires, label }) => {
            let for_ms = millis(*expires)?;
            let params =
                json!({ "person": person, "scopes": scope, "forMs": for_ms, "label": label });
            let created = ask(global, "hub/keys/new", params)?;
            global.console().note(format!(
                "the key {} of {person}: a secret, which is shown only now",
                text(&created["key"]["id"]),
            ));
            global.show(&created, || Ok(format!("{}\n", text(&created["secret"])).into()))?;
        }
        KeyCommand::List => {
            let people = ask(global, "hub/people/list", json!({}))?;
            let columns = global.console().columns();
            global.show(&people, || Ok(keys_text(&people, Timestamp::now(), columns)))?;
        }
        KeyCommand::Revoke { ids } => {
            for id in ids {
                let revoked = ask(global, "hub/keys/revoke", json!({ "id": id }))?;
                let (person, label) = (text(&revoked["person"]), text(&revoked["label"]));
                let line = format!("revoked {id}, {label} of {person}\n");
                global.show(&revoked, || Ok(line.into()))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn keys_text(people: &Value, now: Timestamp, columns: Option<usize>) -> Text {
    let keys: Vec<_> =
        list(&people["people"]).iter().flat_map(|person| list(&person["keys"])).collect();
    if keys.is_empty() {
        return "nobody has a key; `a2a-hub key new --for NAME` makes one\n".into();
    }
    let mut table = Table::new(["KEY", "PERSON", "LABEL", "SCOPES", "EXPIRES", "LAST USE"]);
    for key in keys {
        let scopes: Vec<_> = list(&key["scopes"]).iter().map(text).collect();
        let scopes = if scopes.is_empty() { "all".to_owned() } else { scopes.join(",") };
        let expires = match (text(&key["expiresAt"]), columns) {
            ("", _) => "never".to_owned(),
            (at, Some(_)) if at <= now.to_string().as_str() => "expired".to_owned(),
            (_, Some(_)) => ahead(&key["expiresAt"], now),
            (at, None) => at.to_owned(),
        };
        let mut used = used_text(&key["lastUsedAt"], now, columns);
        if let Some(from) = key["lastUsedFrom"].as_str() {
            used = format!("{used}, {from}");
        }
        let word = |name: &str| text(&key[name]).to_owned();
        table.row([
            word("id").into(),
            word("person").into(),
            word("label").into(),
            scopes.into(),
            expires.into(),
            used.into(),
        ]);
    }
    table.text(columns)
}

/// Carries out `join`.
pub(crate) fn join(global: &Global, args: JoinArgs) -> anyhow::Result<Exit> {
    let JoinArgs { url, name, label, replace, ca, cert, key } = args;
    // Later commands run in other directories.
    let absolute = |path: Option<PathBuf>| path.map(|path| std::path::absolute(&path)).transpose();
    let tls = ClientTlsFiles { ca: absolute(ca)?, cert: absolute(cert)?, cert_key: absolute(key)? };
    let (url, invitation) = match url.split_once('#') {
        Some((url, invitation)) => (url.to_owned(), Some(invitation.to_owned())),
        None => (url, None),
    };
    let url = remote_hub::checked_url(&url)?;
    let invitation = match invitation {
        Some(invitation) => invitation,
        None => match crate::block_on(interactive::ask(global.console(), "the invitation"))? {
            UserAnswer::Text(typed) => typed.trim().to_owned(),
            UserAnswer::Nothing => bail!(CommandError::usage(format!(
                "join {url}: give the invitation behind a `#`, as `a2a-hub person invite` prints it"
            ))),
            UserAnswer::Interrupted => return Ok(Exit::Interrupted),
        },
    };
    let host = url.split_once("://").map_or(&*url, |(_, host)| host).to_owned();
    let name = name.unwrap_or(host);
    let file = JoinedHubs::new(&global.data_dir()?);
    // A file that cannot be used, and a name that is taken, must not cost the invitation.
    let taken = file.read()?.into_iter().find(|hub| hub.name == name);
    if let Some(taken) = taken.filter(|_| !replace) {
        bail!(CommandError::usage(format!(
            "join {url}: you joined {} as {} under the name `{name}` already; `--name NAME` joins under another one, and \
             `--replace` replaces that hub and its key",
            taken.url, taken.person
        )));
    }
    let label = label.unwrap_or_else(remote_hub::machine_name);
    let joined = crate::block_on(remote_hub::join(&url, &invitation, &label, &tls))?;
    let (person, key) = (text(&joined["person"]).to_owned(), text(&joined["secret"]).to_owned());
    let (joined_name, joined_url) = (name.clone(), url.clone());
    file.add(JoinedHub { name: joined_name, url: joined_url, person: person.clone(), key, tls })?;
    let answer = json!({ "name": name, "url": url, "person": person, "role": joined["role"] });
    let line = format!(
        "you are {person} at {url}, as {}; your key is in {}\n\
         a2a-hub --hub {name} send AGENT \"hello\"\n",
        text(&joined["role"]),
        file.path().display(),
    );
    global.show(&answer, || Ok(line.into()))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "hub")]
    #[test]
    fn tokens_of_tenants_name_keys_in_their_place() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(TENANTS_DIR)).unwrap();
        std::fs::write(dir.path().join(TENANTS_DIR).join("acme"), "x").unwrap();
        let config = toml::from_str("[tenants.acme]\n[tenants.other]").unwrap();
        let found = tenant_tokens(&config, dir.path());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].found.contains("tenants/acme"), "{found:?}");
        let fix = found[0].fix.as_deref().unwrap();
        assert!(fix.contains("--tenant acme person add NAME"), "{fix}");
    }

    fn people() -> Value {
        json!({ "people": [
            { "name": "ada", "role": "member", "addedAt": "2026-01-31T11:00:00Z", "invitations": 0, "keys": [
                { "id": "0a1b2c3d4e5f", "person": "ada", "label": "laptop", "scopes": [],
                  "createdAt": "2026-01-31T11:00:00Z", "lastUsedAt": "2026-01-31T11:59:00Z",
                  "lastUsedFrom": "192.0.2.7" },
                { "id": "1a1b2c3d4e5f", "person": "ada", "label": "ci", "scopes": ["read", "send:echo"],
                  "createdAt": "2026-01-31T11:00:00Z", "expiresAt": "2026-01-31T11:30:00Z" },
            ] },
            { "name": "bob", "tenant": "acme", "role": "viewer", "addedAt": "2026-01-31T11:00:00Z",
              "invitations": 1, "keys": [] },
        ] })
    }

    #[test]
    fn people_and_keys_are_listed() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        insta::assert_snapshot!(people_text(&people(), now, Some(80)).words(), @"
        NAME  ROLE    TENANT  KEYS  LAST USE
        ada   member  none    2     1 min ago
        bob   viewer  acme    0     never
        ");
        insta::assert_snapshot!(keys_text(&people(), now, Some(100)).words(), @"
        KEY           PERSON  LABEL   SCOPES          EXPIRES  LAST USE
        0a1b2c3d4e5f  ada     laptop  all             never    1 min ago, 192.0.2.7
        1a1b2c3d4e5f  ada     ci      read,send:echo  expired  never
        ");
        let none = people_text(&json!({ "people": [] }), now, None).words();
        assert!(none.contains("a2a-hub person add"), "{none}");
    }

    #[test]
    fn invitation_is_printed_as_command() {
        let now = "2026-01-31T12:00:00Z".parse().unwrap();
        let created = json!({ "invitation": "a2ai_1", "person": "ada", "url": "https://hub.example",
            "expiresAt": "2026-02-01T12:00:00Z" });
        let shown = invitation_text(&created, now);
        assert!(shown.contains("a2a-hub join https://hub.example#a2ai_1"), "{shown}");
        assert!(!shown.contains("Other machines"), "{shown}");
        let local = json!({ "invitation": "a2ai_1", "person": "ada", "url": "http://127.0.0.1:8080",
            "expiresAt": "2026-02-01T12:00:00Z" });
        assert!(invitation_text(&local, now).contains("Other machines do not reach"));
    }

    #[test]
    fn removal_says_what_ends() {
        let effects = json!({ "name": "ada", "keys": [{}, {}], "tasks": ["0a1b"], "to": "bob",
            "automation": ["nightly", "review"] });
        assert_eq!(
            effects_text(&effects),
            "2 keys of ada end, with their connections and streams\n\
             unfinished tasks go on: 1; to end them: a2a-hub task cancel 0a1b\n\
             schedules and triggers pass to bob, and wait until bob accepts them: nightly, review\n"
        );
        let effects = json!({ "name": "ada", "keys": [], "tasks": [], "automation": ["nightly"] });
        assert_eq!(
            effects_text(&effects),
            "ada has no keys\n\
             schedules and triggers stop: nightly; `--to NAME` passes them to another person\n"
        );
    }

    #[test]
    fn caller_is_named_with_scopes() {
        let person = people()["people"][0].clone();
        let me = json!({ "caller": "ada", "person": person, "key": "1a1b2c3d4e5f" });
        assert_eq!(
            me_text(&me),
            "the hub takes you for ada, member, by the key 1a1b2c3d4e5f (ci): read, send:echo\n"
        );
        let person = people()["people"][0].clone();
        let me = json!({ "caller": "ada", "person": person, "key": "1a1b2c3d4e5f+cert:ada.corp" });
        assert!(me_text(&me).ends_with("send:echo and the certificate ada.corp\n"));
        let me = json!({ "caller": "ada", "person": person, "key": "cert:ada.corp" });
        assert_eq!(
            me_text(&me),
            "the hub takes you for ada, member, by the certificate ada.corp\n"
        );
        let me = json!({ "caller": "the operator" });
        assert_eq!(me_text(&me), "the hub takes you for the operator\n");
    }
}
