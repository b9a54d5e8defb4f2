//! Support for confinement on this machine, found by trying it.

use super::{Network, NotConfined, Step, ceilings, landlock::Abilities};

/// Confinement features of this machine's kernel and of the hub's environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    landlock: Abilities,
    /// True if the number of processes can be bounded.
    processes: bool,
    /// Result of a trial with everything except the network.
    rehearsal: Result<(), NotConfined>,
}

/// Missing feature for a confinement, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Shortfall {
    /// A step fails.
    #[error("failed to {why}; {}", way_out(.why))]
    Step {
        /// Failed step.
        why: NotConfined,
    },
    /// The number of processes cannot be bounded, so a fork bomb would succeed.
    #[error(
        "the kernel does not bound how many processes the superuser's programs start (Linux 6.14 does, by PID namespace); run the hub \
         as a user of its own"
    )]
    Processes,
    /// Network access to selected ports cannot be enforced.
    #[error(
        "the kernel cannot bound which ports it reaches, and whom it signals, while it has a network (Linux 6.12 does, by Landlock); \
         grant it no network, or update the kernel"
    )]
    Ports,
}

impl Support {
    pub(crate) fn found(rehearsal: Result<(), NotConfined>) -> Self {
        let (landlock, processes) = (Abilities::of_kernel(), ceilings::bound_processes());
        Self { landlock, processes, rehearsal }
    }

    /// True if the trial succeeded.
    pub(crate) fn works(&self) -> bool {
        self.rehearsal.is_ok()
    }

    /// Checks that a program with this network access can be confined.
    pub fn allows(&self, network: &Network) -> Result<(), Shortfall> {
        self.rehearsal.clone().map_err(|why| Shortfall::Step { why })?;
        if !self.processes {
            return Err(Shortfall::Processes);
        }
        let bounded = self.landlock.tcp && self.landlock.scopes;
        if *network != Network::Nothing && !bounded {
            return Err(Shortfall::Ports);
        }
        Ok(())
    }

    /// Available and missing mechanisms, for people.
    pub fn describe(&self) -> String {
        let Abilities { files, tcp, scopes } = self.landlock;
        let known =
            [(files, "files"), (tcp, "TCP ports"), (scopes, "signals and abstract sockets")];
        let of = |wanted| {
            let words = known.iter().filter(|(has, _)| *has == wanted).map(|(_, word)| *word);
            words.collect::<Vec<_>>().join(", ")
        };
        match (of(true), of(false)) {
            (has, lacks) if lacks.is_empty() => format!("namespaces, seccomp, Landlock for {has}"),
            (has, lacks) if has.is_empty() => {
                format!("namespaces, seccomp; no Landlock for {lacks}")
            }
            (has, lacks) => {
                format!("namespaces, seccomp, Landlock for {has}; no Landlock for {lacks}")
            }
        }
    }
}

/// Remedy for a failed step.
fn way_out(why: &NotConfined) -> &'static str {
    match why.step {
        Step::System => "run the hub on Linux, for instance in a virtual machine",
        Step::User | Step::Namespaces | Step::Loopback => {
            "user namespaces must be allowed to the hub's user: `sysctl user.max_user_namespaces` above 0, \
             `kernel.unprivileged_userns_clone=1` where there is such a setting, on Ubuntu \
             `kernel.apparmor_restrict_unprivileged_userns=0` or a profile with `userns` for this program, and in a container \
             `--security-opt seccomp=unconfined`"
        }
        Step::Proc => {
            "/proc must be whole where the hub runs: in a container, `--security-opt systempaths=unconfined`"
        }
        Step::View | Step::Capabilities => {
            "mounting must be allowed in user namespaces: on Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0` or a \
             profile with `userns` for this program, in a container `--security-opt apparmor=unconfined`"
        }
        Step::Ceilings => "the hub's own limits must be no lower (`ulimit -a`)",
        Step::Landlock | Step::Filter => {
            "the kernel must be built with Landlock and seccomp, of Linux 5.14 or newer"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_kernel_feature_refuses_confinement() {
        let all = Abilities { files: true, tcp: true, scopes: true };
        let old = Abilities { files: true, tcp: false, scopes: false };
        let no_user = NotConfined { step: Step::User, errno: 1, path: String::new() };
        let (nothing, ports) = (Network::Nothing, Network::Ports([443].into()));
        let support = |landlock, processes, rehearsal| Support { landlock, processes, rehearsal };
        let full = support(all, true, Ok(()));
        let cases = [
            (&full, &nothing, Ok(())),
            (&full, &ports, Ok(())),
            (&support(old, true, Ok(())), &nothing, Ok(())),
            (&support(old, true, Ok(())), &ports, Err(Shortfall::Ports)),
            (&support(all, false, Ok(())), &nothing, Err(Shortfall::Processes)),
            (
                &support(all, true, Err(no_user.clone())),
                &nothing,
                Err(Shortfall::Step { why: no_user }),
            ),
        ];
        for (support, network, expected) in cases {
            assert_eq!(support.allows(network), expected, "{support:?} {network:?}");
        }
        assert!(
            full.describe()
                .ends_with("Landlock for files, TCP ports, signals and abstract sockets")
        );
        let told = support(old, true, Ok(())).describe();
        assert!(told.ends_with(
            "Landlock for files; no Landlock for TCP ports, signals and abstract sockets"
        ));
    }
}
