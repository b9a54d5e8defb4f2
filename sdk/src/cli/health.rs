//! Health of a vendor's program: installed, of a known version, logged in.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{Check, Cli, Profile};
use crate::{Command, Context, Failure, Health};

/// Memory key of the last good check.
const KEY: &str = "check";

#[derive(Serialize, Deserialize)]
struct CachedCheck {
    /// Time of the check, in seconds since 1970.
    at: u64,
    /// Fingerprint of the checked program: a replaced program, also a newer one at the same path,
    /// is checked again.
    #[serde(default)]
    program: String,
    check: Check,
}

/// Memory key of the login that the latest run found missing.
const REFUSED: &str = "login-refused";

/// Time for which a refused login counts without another run: the operator may have logged in.
const REFUSED_FOR: Duration = Duration::from_secs(60 * 60);

/// Login that a run found missing. A check may not notice: an expired key still exists.
#[derive(Serialize, Deserialize)]
struct MissingLogin {
    /// Time of the run's end, in seconds since 1970.
    at: u64,
    why: String,
}

/// Records that a run found the login missing. Without memory, only checks tell.
pub(super) fn login_refused(ctx: &Context, why: &str) {
    let _ = ctx.remember(REFUSED, &MissingLogin { at: now(), why: why.to_owned() });
}

/// Records that a run's login was accepted.
pub(super) fn login_works(ctx: &Context) {
    if let Ok(Some(_)) = ctx.recall::<MissingLogin>(REFUSED) {
        let _ = ctx.forget(REFUSED);
    }
}

/// Reason with which a recent run found the login missing.
fn refused(ctx: &Context) -> Option<String> {
    let MissingLogin { at, why } = ctx.recall(REFUSED).ok().flatten()?;
    let is_recent = now().saturating_sub(at) < REFUSED_FOR.as_secs();
    is_recent.then(|| {
        format!(
            "the latest task was refused: {why} (the next one finds out whether it works by now)"
        )
    })
}

/// Health of a vendor's program. A good check of the installed program is cached for
/// [`Cli::CHECK_EVERY`], a missing login for a tenth of that. The program's existence is checked
/// each time.
pub fn health<C: Cli>(ctx: &Context) -> Health {
    let profile = C::profile(ctx);
    let program = match ctx.fingerprint(&profile.program) {
        Ok(program) => program,
        Err(Failure::Unavailable(why)) => {
            return Health::unhealthy(why).with_fix(profile.install_step());
        }
        Err(failure) => return Health::unhealthy(failure.text()),
    };
    let cached = ctx.recall::<CachedCheck>(KEY).ok().flatten();
    if let Some(cached) = cached.filter(|kept| kept.counts(&program, C::CHECK_EVERY)) {
        return report::<C>(ctx, &profile, cached.check);
    }
    match C::check(ctx) {
        Ok(check) => {
            if C::CHECK_EVERY > Duration::ZERO {
                // Without memory, the program is checked every time.
                let _ = ctx.remember(KEY, &CachedCheck { at: now(), program, check: check.clone() });
            }
            report::<C>(ctx, &profile, check)
        }
        Err(Failure::Unavailable(why)) => Health::unhealthy(why).with_fix(profile.install_step()),
        // The program exists, so installing it would not help.
        Err(Failure::Timeout) => {
            Health::unhealthy(format!("{} is there, and did not answer in time", profile.name))
                .with_fix(format!("a2a-hub agents --health, which asks again: a first start takes long; or see what `{}` does by hand", profile.program))
        }
        Err(failure) => Health::unhealthy(failure.text()),
    }
}

impl CachedCheck {
    fn counts(&self, program: &str, every: Duration) -> bool {
        if self.program != program {
            return false;
        }
        let every = if self.check.login_missing.is_some() { every / 10 } else { every };
        now().saturating_sub(self.at) < every.as_secs()
    }
}

fn report<C: Cli>(ctx: &Context, profile: &Profile, check: Check) -> Health {
    let health = match check.login_missing.or_else(|| refused(ctx)) {
        Some(why) => {
            let fix = C::login_steps(&why).or_else(|| profile.login.clone());
            Health::degraded(why).with_fix(fix.unwrap_or_else(|| profile.login_step()))
        }
        None => Health {
            detail: profile
                .tested
                .as_ref()
                .filter(|tested| **tested != check.version)
                .map(|tested| format!("tested with {tested}; other versions may differ")),
            ..Health::healthy()
        },
    };
    if check.version.is_empty() { health } else { health.with_version(check.version) }
}

/// Version from the output of `--version`: the first word that begins with a digit.
pub fn program_version(ctx: &Context, command: Command) -> Result<String, Failure> {
    let mut output = String::new();
    let exit = ctx.run_lines(command, |line| {
        output.push_str(line);
        output.push(' ');
        Ok(())
    })?;
    let words = output.split_whitespace().map(|word| word.trim_start_matches('v'));
    let version = words.into_iter().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    match version {
        Some(version) if exit.success() => Ok(version.to_owned()),
        Some(_) | None => {
            let why = if exit.stderr.is_empty() { output } else { exit.stderr };
            Err(Failure::Unavailable(format!("it does not tell its version: {}", why.trim())))
        }
    }
}

/// Current time, in seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "a guest has no other clock")]
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
