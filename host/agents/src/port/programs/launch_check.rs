//! Comparison of an idle program with the one that a task would start.

use a2a_hub_core::grant::EffectiveGrant;
use a2a_hub_process::Launch;
use a2a_hub_protocol::id::TenantId;
use std::{collections::BTreeMap, sync::Arc};

/// Holder of a program: an idle program is reused for the same holder only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramHolder {
    /// The principal's [identity](a2a_hub_core::access_control::Principal::identity). An unknown
    /// principal (none) matches nobody.
    pub(crate) principal: Option<String>,
    /// Tenant of the task.
    pub(crate) tenant: TenantId,
    /// The operator's settings for the agent, including the permissions of this task.
    pub(crate) settings: Arc<BTreeMap<String, String>>,
}

/// Everything that a program was started with, or would be started with now.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct LaunchFacts {
    pub(super) holder: ProgramHolder,
    pub(super) grant: Arc<EffectiveGrant>,
    /// Fingerprint of the program's file; none if it cannot be read.
    pub(super) file: Option<String>,
    /// Launch of the program, with the same directory for temporary files.
    pub(super) launch: Arc<Launch>,
}

impl LaunchFacts {
    /// First difference from what is wanted `now`, for the log; none if both are equal.
    pub(super) fn differs(&self, now: &Self) -> Option<&'static str> {
        let (then, now_launch) = (&self.launch, &now.launch);
        if self.holder.principal.is_none() || self.holder.principal != now.holder.principal {
            return Some("it was started for another principal");
        }
        if self.holder.tenant != now.holder.tenant {
            return Some("it was started for another tenant");
        }
        if self.grant != now.grant {
            return Some("the grant of its agent has changed");
        }
        if self.holder.settings != now.holder.settings {
            return Some("the permissions or the settings of its agent are others");
        }
        if self.file.is_none() || self.file != now.file || then.program != now_launch.program {
            return Some("another file stands where the program is");
        }
        if then.args != now_launch.args {
            return Some("its arguments are others");
        }
        if then.cwd != now_launch.cwd {
            return Some("it works in another directory");
        }
        if then.env != now_launch.env {
            return Some("its environment has changed");
        }
        if then.confinement != now_launch.confinement {
            return Some("its walls are others");
        }
        (then.agent != now_launch.agent).then_some("it is another agent's")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_process::{WorkingDirectory, confine::Confinement};

    fn fit(
        change: impl FnOnce(&mut ProgramHolder, &mut EffectiveGrant, &mut Launch),
    ) -> LaunchFacts {
        let mut holder = ProgramHolder {
            principal: Some("operator".to_owned()),
            tenant: TenantId::default(),
            settings: Arc::default(),
        };
        let mut launch = Launch {
            agent: "a".to_owned(),
            owner: "task".to_owned(),
            program: "/bin/cli".into(),
            args: vec!["--acp".to_owned()],
            env: vec![("KEY".to_owned(), "one".to_owned())],
            cwd: WorkingDirectory::open("/".as_ref()).unwrap(),
            confinement: None,
        };
        let mut grant = EffectiveGrant::default();
        change(&mut holder, &mut grant, &mut launch);
        let file = Some("1".to_owned());
        LaunchFacts { holder, grant: Arc::new(grant), file, launch: Arc::new(launch) }
    }

    #[test]
    fn reuse_requires_identical_launch_properties() {
        let then = fit(|_, _, _| {});
        let same = fit(|_, _, launch| launch.owner = "another task".to_owned());
        assert_eq!(then.differs(&same), None, "which task it is for is all that may differ");
        let differs = |change: fn(&mut ProgramHolder, &mut EffectiveGrant, &mut Launch)| {
            then.differs(&fit(change)).unwrap_or("nothing")
        };
        assert_eq!(
            [
                differs(|holder, _, _| holder.principal = Some("agent:b".to_owned())),
                differs(|holder, _, _| holder.tenant = TenantId::parse("acme").unwrap()),
                differs(|holder, _, _| {
                    let ask = [("permissions".to_owned(), "ask".to_owned())];
                    holder.settings = Arc::new(ask.into());
                }),
                differs(|_, grant, _| grant.files_bytes = Some(1)),
                differs(|_, _, launch| launch.program = "/usr/bin/cli".into()),
                differs(|_, _, launch| launch.args.push("--yolo".to_owned())),
                differs(
                    |_, _, launch| launch.cwd = WorkingDirectory::open("/usr".as_ref()).unwrap()
                ),
                differs(|_, _, launch| launch.env[0].1 = "two".to_owned()),
                differs(|_, _, launch| launch.confinement = Some(Confinement::default())),
                differs(|_, _, launch| launch.agent = "b".to_owned()),
            ],
            [
                "it was started for another principal",
                "it was started for another tenant",
                "the permissions or the settings of its agent are others",
                "the grant of its agent has changed",
                "another file stands where the program is",
                "its arguments are others",
                "it works in another directory",
                "its environment has changed",
                "its walls are others",
                "it is another agent's",
            ]
        );
        let replaced = LaunchFacts { file: Some("2".to_owned()), ..then.clone() };
        assert!(then.differs(&replaced).is_some());
        let unknown = LaunchFacts { file: None, ..then.clone() };
        assert!(unknown.differs(&unknown).is_some(), "what cannot be told is not the same");
        let nobody = fit(|holder, _, _| holder.principal = None);
        assert!(nobody.differs(&nobody).is_some(), "nobody's is not anybody's");
    }
}
