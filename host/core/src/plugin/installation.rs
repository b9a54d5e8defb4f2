//! Grant records, bound to the digest of a component's bytes, and the rule by which another
//! component under the same name keeps, loses or waits for the grant.
//!
//! An *installation* is a plug-in as the operator admitted it. Its memory, and its programs' home
//! with their sessions, belong to the installation, never to the name that a file or a component
//! claims.
//!
//! | current file | grant |
//! | --- | --- |
//! | the component that was granted | applies |
//! | another one that is not older, signed with the key of the record | is transferred to it |
//! | another one under `dev`, or pinned in the configuration | is transferred to it |
//! | another one | stays with the old one, which keeps running; the new one is *held back* |
//! | another one, after the file was gone for a while | none: it joins without permissions |

use crate::{
    grant::{
        Ask, Grant,
        withdrawal::{WithdrawError, withdraw},
    },
    plugin::version::is_downgrade,
    text::one_line::OneLine,
};
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Author of changes to a record that follows the configuration.
const BY_CONFIGURATION: &str = "the configuration";

/// Id of an installation, the key of its memory and its home. Either an agent's id, or an agent's
/// id, `@` and eight hexadecimal digits, so it is safe in a path and never the id of another agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstallationId(String);

/// Error for a text that is no id of an installation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no id of an installation: it is an agent's id, or that, `@` and 8 hexadecimal digits"
)]
pub struct InvalidInstallationId(String);

impl InstallationId {
    /// Creates the id of a new installation of `agent`; the random `chance` makes it unique.
    pub fn fresh(agent: &AgentId, chance: u32) -> Self {
        Self(format!("{agent}@{chance:08x}"))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// An agent that no plug-in can replace, such as a built-in one, uses its own id for its data.
impl From<&AgentId> for InstallationId {
    fn from(agent: &AgentId) -> Self {
        Self(agent.to_string())
    }
}

impl TryFrom<String> for InstallationId {
    type Error = InvalidInstallationId;

    fn try_from(text: String) -> Result<Self, InvalidInstallationId> {
        let (agent, number) = text.split_once('@').unwrap_or((&text, "00000000"));
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let is_number = number.len() == 8 && number.bytes().all(hex);
        if AgentId::parse(agent).is_ok() && is_number {
            Ok(Self(text))
        } else {
            Err(InvalidInstallationId(text))
        }
    }
}

impl From<InstallationId> for String {
    fn from(id: InstallationId) -> Self {
        id.0
    }
}

impl fmt::Display for InstallationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Record of the operator's grant to one plug-in, bound to its component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installation {
    /// Key of its memory and its home.
    pub id: InstallationId,
    /// SHA-256 digest of the granted component, in lower-case hex.
    pub sha256: String,
    /// Version that the component claims: a signed update must not be older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<OneLine>,
    /// Origin of the component, for people: a file's name, a path or a URL.
    pub source: String,
    /// Time of the latest grant: RFC 3339 in UTC.
    pub granted_at: String,
    /// Minisign public key, in base64; a component signed with it keeps the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// True if any component in its file keeps the grant: for a development loop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dev: bool,
    /// True if its file was removed from the plugins folder while a hub was running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// Grant of the configuration that this record was made from; `None` if the operator granted by
    /// command, which takes precedence over the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<Grant>,
    /// Author and origin of the record's last change, for people: `operator, by the hub, process
    /// 4711 (a2a-hub)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
    /// Its permissions.
    #[serde(default)]
    pub grant: Grant,
}

/// Reason why nothing was removed from a grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DenyError {
    /// Nothing is granted under that name.
    #[error("nothing is granted to `{0}`; `a2a-hub plugin list` tells what is")]
    NoGrant(AgentId),
    /// The capability is not granted, or a wider grant still includes it.
    #[error(transparent)]
    Withdraw(#[from] WithdrawError),
}

/// Contents of the grants file: the grants of all plug-ins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Installations {
    /// True if data from before these records has been assigned to installations. Until then, a
    /// grant of the configuration takes over the data under its agent's name.
    pub adopted: bool,
    /// Installations by agent id.
    pub plugins: BTreeMap<AgentId, Installation>,
}

/// Component that asks to join.
#[derive(Clone, Copy, Debug)]
pub struct Offered<'a> {
    /// Its SHA-256 digest, in hex.
    pub sha256: &'a str,
    /// Version that it claims; used if it is signed.
    pub version: Option<&'a OneLine>,
    /// Public key that verified its signature, if it is signed with a trusted key.
    pub signed_by: Option<&'a str>,
    /// True if the configuration pins this digest in addition to its own grant.
    pub is_pinned: bool,
}

/// Reason why a component other than the granted one keeps the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Successor {
    /// It is signed with the key of the record.
    Signed,
    /// The record is for a development loop.
    Dev,
    /// The configuration pins it.
    Pinned,
}

/// Relation of a component to the grant under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantStatus {
    /// No grant exists: it joins without permissions.
    Unknown,
    /// It is the granted component.
    Granted,
    /// It is another component, and the grant is transferred to it.
    Succeeds(Successor),
    /// It is another plug-in than the granted one: it joins without permissions.
    Another,
    /// It waits for the operator; the granted component keeps running.
    PendingApproval,
}

/// Grant that the operator makes by command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGrant {
    /// SHA-256 digest of the component, in hex.
    pub sha256: String,
    /// Version that it claims.
    pub version: Option<OneLine>,
    /// Origin of the component, for people.
    pub source: String,
    /// Current time: RFC 3339 in UTC.
    pub at: String,
    /// Key whose signature lets updates keep the grant.
    pub key: Option<String>,
    /// True if any component in its file keeps the grant.
    pub dev: bool,
    /// Author and origin of the grant, for people.
    pub by: String,
    /// Its permissions; see [`Grant::settled`].
    pub grant: Grant,
}

/// Grant of a plug-in in the configuration, and the present component.
#[derive(Clone, Copy, Debug)]
pub struct Configured<'a> {
    /// Grant of the configuration.
    pub grant: Option<&'a Grant>,
    /// Digest of the component.
    pub sha256: &'a str,
    /// True if the configuration pins that digest.
    pub is_pinned: bool,
    /// Requests of the component.
    pub ask: &'a Ask,
    /// Origin of the component, for people.
    pub source: &'a str,
    /// Current time: RFC 3339 in UTC.
    pub at: &'a str,
    /// Random part of a new installation's id.
    pub chance: u32,
}

impl Installations {
    /// Relation of the offered component to the record of `agent`.
    pub fn grant_status(&self, agent: &AgentId, offered: Offered<'_>) -> GrantStatus {
        let Some(record) = self.plugins.get(agent) else { return GrantStatus::Unknown };
        let is_signed = record.key.as_deref().is_some_and(|key| offered.signed_by == Some(key));
        if record.sha256.eq_ignore_ascii_case(offered.sha256) {
            GrantStatus::Granted
        } else if is_signed && !is_downgrade(offered.version, record.version.as_ref()) {
            GrantStatus::Succeeds(Successor::Signed)
        } else if record.dev {
            GrantStatus::Succeeds(Successor::Dev)
        } else if offered.is_pinned && record.configured.is_some() {
            GrantStatus::Succeeds(Successor::Pinned)
        } else if record.gone {
            GrantStatus::Another
        } else {
            GrantStatus::PendingApproval
        }
    }

    /// Record that a component of this digest would continue if the operator granted something to
    /// it now. `None` if the file of the earlier component was gone for a while: this is another
    /// plug-in, and must not inherit that grant.
    pub fn continued_by(&self, agent: &AgentId, sha256: &str) -> Option<&Installation> {
        let is_same = |record: &&Installation| record.sha256.eq_ignore_ascii_case(sha256);
        self.plugins.get(agent).filter(|record| !record.gone || is_same(record))
    }

    /// Records the operator's grant by command. An update keeps the data of the plug-in before it;
    /// a plug-in whose file was gone shares nothing with the one that follows it.
    pub fn grant(&mut self, agent: &AgentId, new: NewGrant, chance: u32) {
        let NewGrant { sha256, version, source, at, key, dev, by, grant } = new;
        let sha256 = sha256.to_ascii_lowercase();
        let before = self.continued_by(agent, &sha256);
        let id = before.map_or_else(|| InstallationId::fresh(agent, chance), |it| it.id.clone());
        let removed = false;
        let record = Installation {
            id,
            sha256,
            version,
            source,
            granted_at: at,
            key,
            dev,
            gone: removed,
            configured: None,
            changed_by: Some(by),
            grant,
        };
        self.plugins.insert(agent.clone(), record);
    }

    /// Removes capabilities from a plug-in's grant. From then on the grant counts as made by
    /// command, and the configuration's no longer applies.
    pub fn deny(
        &mut self,
        agent: &AgentId,
        capabilities: &[String],
        by: &str,
    ) -> Result<(), DenyError> {
        let record = self.plugins.get_mut(agent);
        let record = record.ok_or_else(|| DenyError::NoGrant(agent.clone()))?;
        withdraw(&mut record.grant, capabilities)?;
        (record.configured, record.changed_by) = (None, Some(by.to_owned()));
        Ok(())
    }

    /// Revokes all permissions of a plug-in, and keeps its data. Returns false if it has no record.
    pub fn revoke(&mut self, agent: &AgentId, by: &str) -> bool {
        let Some(record) = self.plugins.get_mut(agent) else { return false };
        (record.grant, record.configured) = (Grant::default(), None);
        record.changed_by = Some(by.to_owned());
        true
    }

    /// Ends an installation, so that the next component of that name finds no data. Returns the id
    /// of its memory and home, so that the caller can remove them. A grant of the configuration
    /// stays bound to the component that it was recorded for.
    pub fn remove(&mut self, agent: &AgentId, chance: u32) -> Option<InstallationId> {
        let record = self.plugins.get_mut(agent)?;
        if record.configured.is_none() {
            return self.plugins.remove(agent).map(|record| record.id);
        }
        record.gone = true;
        Some(std::mem::replace(&mut record.id, InstallationId::fresh(agent, chance)))
    }

    /// Updates the record to a component that keeps the grant, or whose file has returned.
    pub fn follow(&mut self, agent: &AgentId, sha256: &str, version: Option<&OneLine>) {
        if let Some(record) = self.plugins.get_mut(agent) {
            record.sha256 = sha256.to_ascii_lowercase();
            record.version = version.cloned();
            record.gone = false;
        }
    }

    /// Records that a plug-in's file is gone, or present.
    pub fn set_removed(&mut self, agent: &AgentId, removed: bool) {
        if let Some(record) = self.plugins.get_mut(agent) {
            record.gone = removed;
        }
    }

    /// Applies the configuration's grant: first to the component that is present at that time,
    /// later each change to that same component or to one that the configuration pins. A grant by
    /// command takes precedence.
    pub fn take_over(&mut self, agent: &AgentId, configured: Configured<'_>) {
        let Configured { grant, sha256, is_pinned, ask, source, at, chance } = configured;
        let settled = |grant: &Grant| grant.clone().settled(ask);
        let Some(record) = self.plugins.get_mut(agent) else {
            let Some(grant) = grant else { return };
            let fresh = InstallationId::fresh(agent, chance);
            let record = Installation {
                id: if self.adopted { fresh } else { InstallationId::from(agent) },
                sha256: sha256.to_ascii_lowercase(),
                version: ask.version.clone(),
                source: source.to_owned(),
                granted_at: at.to_owned(),
                key: None,
                dev: false,
                gone: false,
                configured: Some(grant.clone()),
                changed_by: Some(BY_CONFIGURATION.to_owned()),
                grant: settled(grant),
            };
            self.plugins.insert(agent.clone(), record);
            return;
        };
        let Some(before) = &record.configured else { return };
        let now = grant.cloned().unwrap_or_default();
        let is_same = record.sha256.eq_ignore_ascii_case(sha256);
        if (*before == now && is_same) || !(is_same || is_pinned) {
            return;
        }
        if *before != now {
            record.grant = settled(&now);
        }
        record.configured = Some(now);
        record.changed_by = Some(BY_CONFIGURATION.to_owned());
        record.sha256 = sha256.to_ascii_lowercase();
        record.version.clone_from(&ask.version);
        at.clone_into(&mut record.granted_at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grant::{
        ProgramAsk, ProgramGrant, byte_limit::Allowance, intersect, memory::MemoryAsk,
    };
    use proptest::prelude::*;
    use std::fmt::Write as _;

    fn agent() -> AgentId {
        AgentId::parse("notes").unwrap()
    }

    fn new_grant(sha256: &str) -> NewGrant {
        NewGrant {
            sha256: sha256.to_owned(),
            version: None,
            source: "notes.wasm".to_owned(),
            at: "2026-01-01T00:00:00Z".to_owned(),
            key: None,
            dev: false,
            by: String::new(),
            grant: Grant { memory: Allowance::Bytes(10), ..Grant::default() },
        }
    }

    fn granted(sha256: &str, dev: bool, key: Option<&str>) -> Installations {
        let mut all = Installations::default();
        let key = key.map(str::to_owned);
        all.grant(&agent(), NewGrant { dev, key, ..new_grant(sha256) }, 1);
        all
    }

    fn ask() -> Ask {
        let program = ProgramAsk {
            args: vec![vec!["log".to_owned()]].try_into().unwrap(),
            set: ["LC_ALL".to_owned(), "LD_PRELOAD".to_owned()].into(),
            ..ProgramAsk::default()
        };
        Ask {
            process: [("git".to_owned(), program)].into(),
            memory: Some(MemoryAsk { max_bytes: 4096, max_items: None, reason: None }),
            ..Ask::default()
        }
    }

    fn configured<'a>(grant: Option<&'a Grant>, sha256: &'a str, ask: &'a Ask) -> Configured<'a> {
        let (source, at) = ("notes.wasm", "2026-01-01T00:00:00Z");
        Configured { grant, sha256, is_pinned: false, ask, source, at, chance: 2 }
    }

    #[test]
    fn standing_table() {
        let mut gone = granted("old", false, None);
        gone.set_removed(&agent(), true);
        let mut from_configuration = Installations::default();
        from_configuration.take_over(&agent(), configured(Some(&Grant::default()), "old", &ask()));
        let records = [
            ("no record", Installations::default()),
            ("a record", granted("old", false, None)),
            ("a record with a key", granted("old", false, Some("K1"))),
            ("a record for a development loop", granted("old", true, None)),
            ("a record whose file was gone", gone),
            ("a record of the configuration", from_configuration),
        ];
        let offers = [
            ("OLD", None, false),
            ("new", None, false),
            ("new", Some("K1"), false),
            ("new", Some("K2"), true),
        ];
        let mut table = String::new();
        for (what, record) in &records {
            let standing = offers.map(|(sha256, signed_by, is_pinned)| {
                format!(
                    "{:?}",
                    record.grant_status(
                        &agent(),
                        Offered { sha256, version: None, signed_by, is_pinned }
                    )
                )
            });
            writeln!(table, "{what}: {}", standing.join(" | ")).unwrap();
        }
        // the same | another | signed with K1 | signed with K2, and pinned
        insta::assert_snapshot!(table, @"
        no record: Unknown | Unknown | Unknown | Unknown
        a record: Granted | PendingApproval | PendingApproval | PendingApproval
        a record with a key: Granted | PendingApproval | Succeeds(Signed) | PendingApproval
        a record for a development loop: Granted | Succeeds(Dev) | Succeeds(Dev) | Succeeds(Dev)
        a record whose file was gone: Granted | Another | Another | Another
        a record of the configuration: Granted | PendingApproval | PendingApproval | Succeeds(Pinned)
        ");
    }

    #[test]
    fn older_signed_component_is_held_back() {
        let line = |text: &str| OneLine::parse(text).ok();
        let mut all = Installations::default();
        let key = Some("K1".to_owned());
        all.grant(&agent(), NewGrant { key, version: line("1.2"), ..new_grant("old") }, 1);
        let standing = |all: &Installations, version: &str| {
            let version = line(version);
            let (sha256, signed_by) = ("new", Some("K1"));
            let offered =
                Offered { sha256, version: version.as_ref(), signed_by, is_pinned: false };
            all.grant_status(&agent(), offered)
        };
        assert_eq!(standing(&all, "1.3"), GrantStatus::Succeeds(Successor::Signed));
        assert_eq!(standing(&all, "1.1"), GrantStatus::PendingApproval);
        assert_eq!(standing(&all, ""), GrantStatus::PendingApproval, "it does not say");
        all.follow(&agent(), "newer", line("1.3").as_ref());
        assert_eq!(standing(&all, "1.2"), GrantStatus::PendingApproval, "the record follows");
    }

    #[test]
    fn namesake_of_removed_plugin_inherits_nothing() {
        let mut all = granted("one", false, Some("K1"));
        assert!(all.continued_by(&agent(), "two").is_some(), "an update");
        all.set_removed(&agent(), true);
        assert!(all.continued_by(&agent(), "ONE").is_some(), "the same is back");
        assert!(all.continued_by(&agent(), "two").is_none(), "another plug-in");
    }

    #[test]
    fn update_keeps_data_other_plugin_does_not() {
        let mut all = granted("one", false, None);
        let id = |all: &Installations| all.plugins[&agent()].id.to_string();
        assert_eq!(id(&all), "notes@00000001");
        all.grant(&agent(), new_grant("two"), 2);
        assert_eq!(id(&all), "notes@00000001", "an update that the operator lets in");
        all.set_removed(&agent(), true);
        all.grant(&agent(), new_grant("two"), 3);
        assert_eq!(id(&all), "notes@00000001", "the same file is back");
        all.set_removed(&agent(), true);
        all.grant(&agent(), new_grant("other"), 4);
        assert_eq!(id(&all), "notes@00000004", "another plug-in");
        assert_eq!(all.remove(&agent(), 5).unwrap().as_str(), "notes@00000004");
        assert_eq!(all.remove(&agent(), 6), None);
        all.grant(&agent(), new_grant("other"), 7);
        assert_eq!(id(&all), "notes@00000007", "even the same one");
    }

    #[test]
    fn configured_grant_is_bound_to_first_component() {
        let (mut all, ask) = (Installations::default(), ask());
        let everything = Grant { memory: Allowance::AsAsked, ..Grant::default() };
        all.take_over(&agent(), configured(Some(&everything), "ONE", &ask));
        let record = all.plugins[&agent()].clone();
        assert_eq!(
            (record.id.as_str(), record.sha256.as_str()),
            ("notes", "one"),
            "its data stays"
        );
        assert_eq!(record.grant.memory, Allowance::Bytes(4096), "the number of that digest");

        all.take_over(&agent(), configured(None, "two", &ask));
        assert_eq!(all.plugins[&agent()], record, "another component changes nothing");
        all.take_over(&agent(), configured(None, "one", &ask));
        assert_eq!(all.plugins[&agent()].grant, Grant::default(), "taken out of the configuration");
        all.take_over(&agent(), configured(Some(&everything), "one", &ask));
        assert_eq!(all.plugins[&agent()].grant, record.grant, "and put back");
        let pinned = Configured { is_pinned: true, ..configured(Some(&everything), "two", &ask) };
        all.take_over(&agent(), pinned);
        assert_eq!(all.plugins[&agent()].sha256, "two", "the operator names it");

        all.revoke(&agent(), "a test");
        all.take_over(&agent(), configured(Some(&everything), "two", &ask));
        assert_eq!(all.plugins[&agent()].grant, Grant::default(), "a command counts more");
        all.adopted = true;
        all.plugins.clear();
        all.take_over(&agent(), configured(Some(&everything), "one", &ask));
        assert_eq!(all.plugins[&agent()].id.as_str(), "notes@00000002", "later ones begin anew");
    }

    #[test]
    fn settled_grant_ignores_later_manifest() {
        let ask = ask();
        let git = ("git".to_owned(), ProgramGrant::default());
        let sh = ("sh".to_owned(), ProgramGrant::default());
        let grant =
            Grant { process: [git, sh].into(), memory: Allowance::AsAsked, ..Grant::default() };
        let settled = grant.clone().settled(&ask);
        assert_eq!(intersect(&ask, &settled).memory_bytes, intersect(&ask, &grant).memory_bytes);
        let mut wider = ask.clone();
        wider.memory = Some(MemoryAsk { max_bytes: 1 << 40, max_items: None, reason: None });
        wider.process.insert("sh".to_owned(), ProgramAsk::default());
        let git = wider.process.get_mut("git").unwrap();
        git.args = vec![vec!["log".to_owned()], vec!["push".to_owned()]].try_into().unwrap();
        git.set.insert("LC_TIME".to_owned());
        let held = intersect(&wider, &settled);
        assert_eq!(held.memory_bytes, Some(4096));
        assert_eq!(
            held.refused,
            ["sh".to_owned()].into(),
            "it was not asked for when it was granted"
        );
        let may = |args: &str, set: &[(String, String)]| {
            held.program("notes", "git", &[args.to_owned()], set).is_ok()
        };
        assert!(may("log", &[]) && !may("push", &[]));
        assert!(may("log", &[("LC_ALL".into(), "C".into())]));
        assert!(!may("log", &[("LC_TIME".into(), "C".into())]));
        assert!(!may("log", &[("LD_PRELOAD".into(), "x".into())]), "nobody named it");
    }

    #[test]
    fn installation_id_is_safe_in_path() {
        let parse = |text: &str| InstallationId::try_from(text.to_owned()).is_ok();
        assert!(parse("notes") && parse("notes@0123abcd"));
        for wrong in [
            "",
            "@0123abcd",
            "notes@",
            "notes@0123ABCD",
            "notes@0123abcde",
            "../x",
            "a/b@0123abcd",
            "a@0123abc/",
        ] {
            assert!(!parse(wrong), "{wrong}");
        }
    }

    proptest! {
        /// A settled grant allows the component that it was settled for exactly what the original
        /// grant allowed.
        #[test]
        fn settling_changes_nothing_for_same_component(
            forms in proptest::option::of(proptest::collection::vec("[ab](\\|[ab])?", 0..3)),
            set in proptest::option::of(proptest::collection::btree_set("LC_ALL|LD_PRELOAD|PATH", 0..3)),
            memory in prop_oneof![Just(Allowance::None), Just(Allowance::AsAsked), (0u64..9999).prop_map(Allowance::Bytes)],
            (max_items, memory_items) in (proptest::option::of(0u64..300_000), proptest::option::of(0u64..300_000)),
        ) {
            let forms = forms.map(|forms| {
                let forms: Vec<Vec<String>> = forms.iter().map(|form| form.split('|').map(str::to_owned).collect()).collect();
                forms.try_into().unwrap()
            });
            let git = ProgramGrant { args: forms, set, ..ProgramGrant::default() };
            let process = [("git".to_owned(), git)].into();
            let grant = Grant { process, memory, memory_items, ..Grant::default() };
            let memory = Some(MemoryAsk { max_bytes: 4096, max_items, reason: None });
            let ask = Ask { memory, ..ask() };
            let (before, after) = (intersect(&ask, &grant), intersect(&ask, &grant.clone().settled(&ask)));
            prop_assert_eq!(before.memory_bytes, after.memory_bytes);
            prop_assert_eq!(before.memory_items, after.memory_items);
            prop_assert_eq!(&before.programs["git"].set, &after.programs["git"].set);
            prop_assert_eq!(&before.programs["git"].pass, &after.programs["git"].pass);
            for args in [vec!["log".to_owned()], vec!["a".to_owned()], vec!["a".to_owned(), "b".to_owned()]] {
                let may = |held: &crate::grant::EffectiveGrant| held.program("x", "git", &args, &[]).is_ok();
                prop_assert_eq!(may(&before), may(&after));
            }
            let settled = grant.settled(&ask);
            prop_assert_eq!(settled.clone().settled(&ask), settled);
        }
    }
}
