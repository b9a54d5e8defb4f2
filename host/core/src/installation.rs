//! What the operator granted to which component: records bound to the digest of its bytes, and the rule by which another component
//! under the same name keeps, loses or waits for the grant.
//!
//! An *installation* is a plug-in as the operator let it in. Its memory, its programs' home and so its sessions belong to the
//! installation, never to the name that a file or a component claims.
//!
//! | the file now is | the grant |
//! | --- | --- |
//! | the component that was granted | counts |
//! | another one that is not older, signed with the key of the record | goes on with it |
//! | another one under `dev`, or pinned in the configuration | goes on with it |
//! | another one | stays with the old one, which serves on; the new one is *held back* |
//! | another one, after the file was gone for a while | is not its: it joins and holds nothing |

use crate::{
    grant::{Ask, Grant},
    one_line::OneLine,
    version::is_downgrade,
    withdrawal::{WithdrawError, withdraw},
};
use a2a_hub_protocol::id::AgentId;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fmt};

/// Who changed a record that follows the configuration.
const BY_CONFIGURATION: &str = "the configuration";

/// The id of an installation: what its memory and its home are kept under. Either an agent's id, or that, `@` and eight
/// hexadecimal digits, so that it is safe in a path and never the id of another agent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InstallationId(String);

/// A text that is no id of an installation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no id of an installation: it is an agent's id, or that, `@` and 8 hexadecimal digits"
)]
pub struct InvalidInstallationId(String);

impl InstallationId {
    /// A new installation of `agent`; `chance` tells it from all others.
    pub fn fresh(agent: &AgentId, chance: u32) -> Self {
        Self(format!("{agent}@{chance:08x}"))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The data of an agent that no plug-in can take the place of, such as a built-in one, is kept under its own name.
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

/// What the operator granted to one plug-in, and to which component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installation {
    /// What its memory and its home are kept under.
    pub id: InstallationId,
    /// The SHA-256 digest of the component, in lower-case hex. The grant is for this one.
    pub sha256: String,
    /// The version that it says it is: a signed update is no older.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<OneLine>,
    /// Where the component came from, for people: a file's name, a path or a URL.
    pub source: String,
    /// When it was granted last: RFC 3339 in UTC.
    pub granted_at: String,
    /// The minisign public key, in base64, whose signature lets another component keep the grant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Whether any component in its file keeps the grant: for a development loop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dev: bool,
    /// Whether its file was taken out of the plugins folder while a hub looked on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// The grant as the configuration had it when it was taken over from there; none if the operator granted by command, which
    /// counts more than what the configuration says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<Grant>,
    /// Who changed this record last, and from where, for people: `operator, by the hub, process 4711 (a2a-hub)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
    /// What it may do.
    #[serde(default)]
    pub grant: Grant,
}

/// Why nothing was taken out of a grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DenyError {
    /// Nothing is granted under that name.
    #[error("nothing is granted to `{0}`; `a2a-hub plugin list` tells what is")]
    NoGrant(AgentId),
    /// It is not granted, or a wider grant would go on allowing it.
    #[error(transparent)]
    Withdraw(#[from] WithdrawError),
}

/// All that is granted to plug-ins: what the file of grants holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Installations {
    /// Whether what agents kept before there were such records has found its installations. Until then, a grant of the
    /// configuration takes over what is kept under its agent's name.
    pub adopted: bool,
    /// The installations, by the agents that they are.
    pub plugins: BTreeMap<AgentId, Installation>,
}

/// A component that is there to join.
#[derive(Clone, Copy, Debug)]
pub struct Offered<'a> {
    /// Its SHA-256 digest, in hex.
    pub sha256: &'a str,
    /// The version that it says it is; looked at where it is signed.
    pub version: Option<&'a OneLine>,
    /// The public key that its signature was checked with, if it is signed by one that counts.
    pub signed_by: Option<&'a str>,
    /// Whether the configuration pins this digest beside a grant of its own.
    pub is_pinned: bool,
}

/// Why a component that is not the one that was granted goes on with the grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Successor {
    /// It is signed with the key of the record.
    Signed,
    /// The record is for a development loop.
    Dev,
    /// The configuration pins it.
    Pinned,
}

/// How a component stands to what is granted under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is: it joins, and holds nothing.
    Unknown,
    /// It is what the grant is for.
    Granted,
    /// It is another one, and goes on with the grant.
    Succeeds(Successor),
    /// It is another plug-in than the one that was granted: it joins, and holds nothing.
    Another,
    /// It waits for the operator; the one that was granted serves on.
    HeldBack,
}

/// What the operator grants by command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGrant {
    /// The SHA-256 digest of the component, in hex.
    pub sha256: String,
    /// The version that it says it is.
    pub version: Option<OneLine>,
    /// Where it came from, for people.
    pub source: String,
    /// Now: RFC 3339 in UTC.
    pub at: String,
    /// The key whose signature lets updates keep the grant.
    pub key: Option<String>,
    /// Whether whatever stands in its file keeps it.
    pub dev: bool,
    /// Who grants it, and from where, for people.
    pub by: String,
    /// What it may do; see [`Grant::settled`].
    pub grant: Grant,
}

/// What the configuration says of a plug-in's grant, and the component that is there.
#[derive(Clone, Copy, Debug)]
pub struct Configured<'a> {
    /// The configuration's grant.
    pub grant: Option<&'a Grant>,
    /// The component's digest.
    pub sha256: &'a str,
    /// Whether the configuration pins that digest.
    pub is_pinned: bool,
    /// What the component asks for.
    pub ask: &'a Ask,
    /// Where it came from, for people.
    pub source: &'a str,
    /// Now: RFC 3339 in UTC.
    pub at: &'a str,
    /// Tells a new installation from all others.
    pub chance: u32,
}

impl Installations {
    /// How the component that is offered under the name of `agent` stands to the record of that name.
    pub fn standing(&self, agent: &AgentId, offered: Offered<'_>) -> Standing {
        let Some(record) = self.plugins.get(agent) else { return Standing::Unknown };
        let is_signed = record.key.as_deref().is_some_and(|key| offered.signed_by == Some(key));
        if record.sha256.eq_ignore_ascii_case(offered.sha256) {
            Standing::Granted
        } else if is_signed && !is_downgrade(offered.version, record.version.as_ref()) {
            Standing::Succeeds(Successor::Signed)
        } else if record.dev {
            Standing::Succeeds(Successor::Dev)
        } else if offered.is_pinned && record.configured.is_some() {
            Standing::Succeeds(Successor::Pinned)
        } else if record.gone {
            Standing::Another
        } else {
            Standing::HeldBack
        }
    }

    /// The record that a component of this digest would go on with, if the operator granted something to it now: none where the file of
    /// the one before was gone for a while, for then this is another plug-in, and nothing of what that one was granted is meant for it.
    pub fn continued_by(&self, agent: &AgentId, sha256: &str) -> Option<&Installation> {
        let is_same = |record: &&Installation| record.sha256.eq_ignore_ascii_case(sha256);
        self.plugins.get(agent).filter(|record| !record.gone || is_same(record))
    }

    /// Records what the operator grants by command. An update goes on with what the plug-in before it has kept; a plug-in whose
    /// file was gone, and another one after it, do not share anything.
    pub fn grant(&mut self, agent: &AgentId, new: NewGrant, chance: u32) {
        let NewGrant { sha256, version, source, at, key, dev, by, grant } = new;
        let sha256 = sha256.to_ascii_lowercase();
        let before = self.continued_by(agent, &sha256);
        let id = before.map_or_else(|| InstallationId::fresh(agent, chance), |it| it.id.clone());
        let gone = false;
        let record = Installation {
            id,
            sha256,
            version,
            source,
            granted_at: at,
            key,
            dev,
            gone,
            configured: None,
            changed_by: Some(by),
            grant,
        };
        self.plugins.insert(agent.clone(), record);
    }

    /// Takes capabilities out of what a plug-in was granted. From now on its grant is the operator's by command, and the configuration's
    /// counts no more.
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

    /// Takes away all that was granted to a plug-in, and keeps what it has kept; whether there was a record of it.
    pub fn revoke(&mut self, agent: &AgentId, by: &str) -> bool {
        let Some(record) = self.plugins.get_mut(agent) else { return false };
        (record.grant, record.configured) = (Grant::default(), None);
        record.changed_by = Some(by.to_owned());
        true
    }

    /// Ends an installation: whoever comes under that name finds nothing of it. The id under which its memory and home are kept, so
    /// that they can be removed. What the configuration grants stays bound to the component that it was recorded for.
    pub fn remove(&mut self, agent: &AgentId, chance: u32) -> Option<InstallationId> {
        let record = self.plugins.get_mut(agent)?;
        if record.configured.is_none() {
            return self.plugins.remove(agent).map(|record| record.id);
        }
        record.gone = true;
        Some(std::mem::replace(&mut record.id, InstallationId::fresh(agent, chance)))
    }

    /// Has the record follow a component that goes on with the grant, or that is back.
    pub fn follow(&mut self, agent: &AgentId, sha256: &str, version: Option<&OneLine>) {
        if let Some(record) = self.plugins.get_mut(agent) {
            record.sha256 = sha256.to_ascii_lowercase();
            record.version = version.cloned();
            record.gone = false;
        }
    }

    /// Takes note that a plug-in's file is gone, or is there.
    pub fn set_gone(&mut self, agent: &AgentId, gone: bool) {
        if let Some(record) = self.plugins.get_mut(agent) {
            record.gone = gone;
        }
    }

    /// Takes over what the configuration grants: to the component that is there when it is granted first, and from then on each
    /// change of it for that same component, or for one that it pins. What was granted by command counts more.
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
    use crate::{
        allowance::Allowance,
        grant::{ProgramAsk, ProgramGrant, intersect},
        memory_grant::MemoryAsk,
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
        gone.set_gone(&agent(), true);
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
                    record.standing(
                        &agent(),
                        Offered { sha256, version: None, signed_by, is_pinned }
                    )
                )
            });
            writeln!(table, "{what}: {}", standing.join(" | ")).unwrap();
        }
        //       the same | another | signed with K1 | signed with K2, and pinned
        insta::assert_snapshot!(table, @"
        no record: Unknown | Unknown | Unknown | Unknown
        a record: Granted | HeldBack | HeldBack | HeldBack
        a record with a key: Granted | HeldBack | Succeeds(Signed) | HeldBack
        a record for a development loop: Granted | Succeeds(Dev) | Succeeds(Dev) | Succeeds(Dev)
        a record whose file was gone: Granted | Another | Another | Another
        a record of the configuration: Granted | HeldBack | HeldBack | Succeeds(Pinned)
        ");
    }

    #[test]
    fn a_signed_component_that_is_older_waits_for_the_operator() {
        let line = |text: &str| OneLine::parse(text).ok();
        let mut all = Installations::default();
        let key = Some("K1".to_owned());
        all.grant(&agent(), NewGrant { key, version: line("1.2"), ..new_grant("old") }, 1);
        let standing = |all: &Installations, version: &str| {
            let version = line(version);
            let (sha256, signed_by) = ("new", Some("K1"));
            let offered =
                Offered { sha256, version: version.as_ref(), signed_by, is_pinned: false };
            all.standing(&agent(), offered)
        };
        assert_eq!(standing(&all, "1.3"), Standing::Succeeds(Successor::Signed));
        assert_eq!(standing(&all, "1.1"), Standing::HeldBack);
        assert_eq!(standing(&all, ""), Standing::HeldBack, "it does not say");
        all.follow(&agent(), "newer", line("1.3").as_ref());
        assert_eq!(standing(&all, "1.2"), Standing::HeldBack, "the record follows");
    }

    #[test]
    fn a_namesake_of_one_that_was_gone_goes_on_with_nothing() {
        let mut all = granted("one", false, Some("K1"));
        assert!(all.continued_by(&agent(), "two").is_some(), "an update");
        all.set_gone(&agent(), true);
        assert!(all.continued_by(&agent(), "ONE").is_some(), "the same is back");
        assert!(all.continued_by(&agent(), "two").is_none(), "another plug-in");
    }

    #[test]
    fn an_update_keeps_what_was_kept_and_another_plugin_finds_nothing() {
        let mut all = granted("one", false, None);
        let id = |all: &Installations| all.plugins[&agent()].id.to_string();
        assert_eq!(id(&all), "notes@00000001");
        all.grant(&agent(), new_grant("two"), 2);
        assert_eq!(id(&all), "notes@00000001", "an update that the operator lets in");
        all.set_gone(&agent(), true);
        all.grant(&agent(), new_grant("two"), 3);
        assert_eq!(id(&all), "notes@00000001", "the same file is back");
        all.set_gone(&agent(), true);
        all.grant(&agent(), new_grant("other"), 4);
        assert_eq!(id(&all), "notes@00000004", "another plug-in");
        assert_eq!(all.remove(&agent(), 5).unwrap().as_str(), "notes@00000004");
        assert_eq!(all.remove(&agent(), 6), None);
        all.grant(&agent(), new_grant("other"), 7);
        assert_eq!(id(&all), "notes@00000007", "even the same one");
    }

    #[test]
    fn a_grant_of_the_configuration_is_for_the_component_that_was_there() {
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
    fn what_is_recorded_allows_what_was_granted_and_nothing_that_a_later_manifest_asks() {
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
    fn an_id_is_safe_in_a_path() {
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
        /// What is written down allows the component that it is written down for what the grant allowed it, to the word.
        #[test]
        fn settling_changes_nothing_for_the_same_component(
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
