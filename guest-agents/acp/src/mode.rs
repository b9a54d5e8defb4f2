//! Mode of a session for the operator's permissions. Modes have no standard names, so the
//! operator's setting, the catalogue and well-known names decide, in this order.

use a2a_hub_sdk::cli::acp::Offered;
use a2a_hub_sdk::cli::{Job, Permissions};

use super::AcpProgram;

/// Names of modes that change nothing, without separators.
const READS: [&str; 5] = ["readonly", "plan", "planmode", "ask", "architect"];

/// Names of modes that allow changes of files and ask about the rest.
const EDITS: [&str; 3] = ["acceptedits", "autoedit", "edit"];

/// Names of modes that ask before they act.
const ASKS: [&str; 5] = ["default", "normal", "manual", "prompt", "ask"];

/// Parts of the names of modes that act without asking.
const ALLOWS: [&str; 8] =
    ["yolo", "auto", "bypass", "full", "accept", "dontask", "unrestricted", "allow"];

/// Mode for a run; `None` keeps the program's own.
pub(super) fn select(
    program: &AcpProgram,
    job: &Job,
    offered: &Offered,
) -> Result<Option<String>, String> {
    let permissions = word(job.permissions);
    let only_reads = |mode: &String| {
        READS.contains(&plain(mode).as_str()) || program.modes.get("read-only") == Some(mode)
    };
    let is_narrow = job.permissions == Permissions::ReadOnly;
    if let Some(chosen) = job.choices.mode.as_ref().filter(|mode| !is_narrow || only_reads(mode)) {
        return Ok(Some(chosen.clone()));
    }
    if let Some(mode) = program.modes.get(permissions) {
        return Ok(Some(mode.clone()));
    }
    let known = |names: &[&str]| {
        let is = |mode: &&String, name: &str| plain(mode) == name;
        names.iter().find_map(|name| offered.modes.iter().find(|mode| is(mode, name))).cloned()
    };
    let found = match job.permissions {
        Permissions::ReadOnly => known(&READS),
        Permissions::Edit => known(&EDITS).or_else(|| asking(offered, &known)),
        // The driver answers every question itself where all is allowed.
        Permissions::Ask | Permissions::Full => asking(offered, &known),
    };
    // A program without modes asks before it acts; nothing keeps it from writing unasked.
    if found.is_some() || (!is_narrow && offered.modes.is_empty()) {
        return Ok(found);
    }
    let (name, modes) = (&program.name, offered.modes.join(", "));
    let modes = if modes.is_empty() { "none".to_owned() } else { modes };
    let setting = if is_narrow { "read_only_mode" } else { "session_mode" };
    Err(format!(
        "{name} has no mode that is known to keep to `permissions = \"{permissions}\"` (it has: {modes}); name one in the \
         agent's settings, such as `settings.{setting} = \"MODE\"`"
    ))
}

/// Mode that asks: the program's own, unless its name says that it does not.
fn asking(offered: &Offered, known: &impl Fn(&[&str]) -> Option<String>) -> Option<String> {
    let current = offered.current.as_ref().filter(|mode| {
        let mode = plain(mode);
        !ALLOWS.iter().any(|part| mode.contains(part))
    });
    current.cloned().or_else(|| known(&ASKS))
}

/// Name of a mode without separators; some programs use URLs as ids.
fn plain(mode: &str) -> String {
    let name = mode.rsplit(['#', '/']).next().unwrap_or(mode);
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Word of the permissions, as the operator writes them.
fn word(permissions: Permissions) -> &'static str {
    match permissions {
        Permissions::Ask => "ask",
        Permissions::ReadOnly => "read-only",
        Permissions::Edit => "edit",
        Permissions::Full => "full",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        permissions: Permissions,
        modes: &[&str],
        current: &str,
    ) -> Result<Option<String>, String> {
        let job = Job { permissions, ..Job::default() };
        let modes = modes.iter().map(|&mode| mode.to_owned()).collect();
        let current = Some(current.to_owned()).filter(|mode| !mode.is_empty());
        let offered = Offered { modes, current, ..Offered::default() };
        select(&AcpProgram { name: "X".into(), ..AcpProgram::default() }, &job, &offered)
    }

    #[test]
    fn well_known_modes_match_permissions() {
        use Permissions::{Ask, Edit, Full, ReadOnly};
        let claude = ["default", "acceptEdits", "plan", "bypassPermissions"];
        let copilot =
            ["https://x/modes#agent", "https://x/modes#plan", "https://x/modes#autopilot"];
        for (permissions, modes, current, expected) in [
            (Ask, &claude[..], "default", "default"),
            // A mode that acts without asking is left for one that asks.
            (Ask, &claude, "bypassPermissions", "default"),
            (Full, &claude, "bypassPermissions", "default"),
            (Edit, &claude, "default", "acceptEdits"),
            (ReadOnly, &claude, "default", "plan"),
            (Ask, &copilot, "https://x/modes#agent", "https://x/modes#agent"),
            (ReadOnly, &copilot, "https://x/modes#agent", "https://x/modes#plan"),
            (Edit, &["build", "plan"], "build", "build"),
        ] {
            let found = chosen(permissions, modes, current);
            assert_eq!(found, Ok(Some(expected.to_owned())), "{permissions:?} {current}");
        }
        assert_eq!(chosen(Ask, &[], ""), Ok(None), "it has no modes");
    }

    #[test]
    fn unknown_modes_fail_with_setting() {
        for (permissions, modes, current, setting) in [
            (Permissions::ReadOnly, &["build"][..], "build", "settings.read_only_mode"),
            (Permissions::ReadOnly, &[], "", "settings.read_only_mode"),
            (Permissions::Ask, &["yolo"], "yolo", "settings.session_mode"),
        ] {
            let why = chosen(permissions, modes, current).unwrap_err();
            assert!(why.contains(setting), "{why}");
        }
    }

    #[test]
    fn operator_and_catalogue_precede_names() {
        let modes = vec!["plan".to_owned(), "build".to_owned()];
        let offered = Offered { modes, current: Some("plan".into()), ..Offered::default() };
        let entry = [("ask".to_owned(), "build".to_owned())].into();
        let program = AcpProgram { modes: entry, ..AcpProgram::default() };
        assert_eq!(select(&program, &Job::default(), &offered), Ok(Some("build".into())));
        let mut job = Job::default();
        job.choices.mode = Some("mine".into());
        assert_eq!(select(&program, &job, &offered), Ok(Some("mine".into())));
        // A parent task's read-only permissions hold for the operator's usual mode, too.
        job.permissions = Permissions::ReadOnly;
        assert_eq!(select(&program, &job, &offered), Ok(Some("plan".into())));
    }
}
