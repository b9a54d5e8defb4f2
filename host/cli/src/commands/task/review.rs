//! `task review`: comments on lines of a task's changes, sent to its agent as one message.

use super::{watch::watch, worktree_request::ask_for};
use crate::commands::completion;
use crate::{
    Exit, Format, Global,
    ui::{
        failure::CommandError,
        render::{counted, list, text},
        text::{FAINT, PLAIN, Text, style_of},
    },
};
use a2a_hub_config::editor;
use a2a_hub_core::{
    review::annotated::{INTRODUCTION, comments_in},
    text::{plain_text::line, terminal::clean},
};
use a2a_hub_protocol::{
    member,
    operation::{DiffSide, NewReviewComment},
};
use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{self, Read, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

/// Largest file of comments, in bytes.
const MAX_FILE: u64 = 4 << 20;

/// Longest shown name of a file, in characters.
const MAX_NAME: usize = 200;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ReviewOptions {
    /// Id of the task, or a unique beginning or end of it [default: the latest task with a
    /// worktree of the current directory's repository]
    #[arg(add = completion::tasks())]
    id: Option<String>,
    #[command(subcommand)]
    action: Option<ReviewAction>,
}

#[derive(Debug, Subcommand)]
enum ReviewAction {
    /// Add a comment to the draft, or comments from a file
    Add(AddComment),
    /// Type comments into the changes in your editor (`$VISUAL`, `$EDITOR`, or `vi`)
    Edit {
        /// Id of the task, or a unique beginning or end of it
        #[arg(add = completion::tasks())]
        id: String,
        /// Changed files or directories to show [default: all]
        #[arg(value_name = "PATH")]
        paths: Vec<String>,
    },
    /// Remove comments from the draft
    Remove {
        /// Id of the task, or a unique beginning or end of it
        #[arg(add = completion::tasks())]
        id: String,
        /// Numbers of the comments
        #[arg(required = true)]
        numbers: Vec<u32>,
    },
    /// Send the draft to the task's agent as one message, and follow its work
    Send {
        /// Id of the task, or a unique beginning or end of it
        #[arg(add = completion::tasks())]
        id: String,
        /// Text before the comments
        #[arg(long, value_name = "TEXT")]
        text: Option<String>,
        /// Print the task that gets it at once, and do not follow it
        #[arg(long)]
        no_wait: bool,
    },
    /// Remove the draft with all its comments
    Discard {
        /// Id of the task, or a unique beginning or end of it
        #[arg(add = completion::tasks())]
        id: String,
    },
}

#[derive(Debug, Args)]
struct AddComment {
    /// Id of the task, or a unique beginning or end of it
    #[arg(add = completion::tasks())]
    id: String,
    /// The comment
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    text: Option<String>,
    /// Changed file, from the top of the repository [default: the changes as a whole]
    #[arg(long, value_name = "PATH", conflicts_with = "from")]
    file: Option<String>,
    /// Line of the file, or lines as `12-14` [default: the whole file]
    #[arg(long, value_name = "N[-M]", requires = "file", value_parser = line_range)]
    line: Option<(u32, u32)>,
    /// Side of the diff that the lines are of
    #[arg(long, requires = "line", value_parser = ["new", "old"], default_value = "new")]
    side: String,
    /// File with comments, one JSON object a line: `{"file": …, "line": …, "text": …}`; `-` is
    /// standard input
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// Reads `12` or `12-14`.
fn line_range(typed: &str) -> Result<(u32, u32), String> {
    let (first, last) = typed.split_once('-').unwrap_or((typed, typed));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if 0 < first && first <= last => Ok((first, last)),
        _ => Err("name a line, counted from 1, or lines as `12-14`".to_owned()),
    }
}

/// Shows, changes or sends the review of a task's changes.
pub(crate) fn review(global: &Global, args: &ReviewOptions) -> anyhow::Result<Exit> {
    match &args.action {
        None => show(global, args.id.as_deref()),
        Some(ReviewAction::Add(add)) => {
            let params = json!({ "comments": new_comments(add)? });
            let (_, report) = ask_for(global, "hub/reviews/comment", Some(&add.id), params)?;
            global.show(&report, || Ok(summary(&report)))?;
            Ok(Exit::Done)
        }
        Some(ReviewAction::Edit { id, paths }) => edit(global, id, paths),
        Some(ReviewAction::Remove { id, numbers }) => {
            let params = json!({ "comments": numbers });
            let (_, report) = ask_for(global, "hub/reviews/remove", Some(id), params)?;
            global.show(&report, || Ok(summary(&report)))?;
            Ok(Exit::Done)
        }
        Some(ReviewAction::Discard { id }) => {
            let (id, report) = ask_for(global, "hub/reviews/discard", Some(id), json!({}))?;
            global.show(&report, || Ok(format!("the draft of task {id} was removed\n").into()))?;
            Ok(Exit::Done)
        }
        Some(ReviewAction::Send { id, text, no_wait }) => {
            send(global, id, text.as_deref(), *no_wait)
        }
    }
}

fn show(global: &Global, id: Option<&str>) -> anyhow::Result<Exit> {
    let (_, report) = ask_for(global, "hub/reviews/get", id, json!({}))?;
    global.show(&report, || Ok(report_text(&report)))?;
    Ok(Exit::Done)
}

/// Sends the draft by its id, so that a repeated request sends it once.
fn send(global: &Global, id: &str, text: Option<&str>, no_wait: bool) -> anyhow::Result<Exit> {
    let (id, report) = ask_for(global, "hub/reviews/get", Some(id), json!({}))?;
    let params = json!({ "reviewId": report["draft"]["reviewId"], "text": text });
    let (id, sent) = ask_for(global, "hub/reviews/send", Some(&id), params)?;
    let next = self::text(&sent["sentTaskId"]);
    let comments = sent["comments"].as_u64().and_then(|it| usize::try_from(it).ok());
    let count = counted(comments.unwrap_or_default(), "comment");
    if no_wait || global.format == Format::Json {
        let line = format!("{count} on task {id} went to task {next}\n");
        global.show(&sent, || Ok(line.into()))?;
        return Ok(Exit::Done);
    }
    let line = format!("{count} went to task {next}; Ctrl-C does not cancel it");
    global.console().note(Text::styled(FAINT, line));
    watch(global, Some(next))
}

/// Has the user type comments into the patch. If they are refused, the file stays.
fn edit(global: &Global, id: &str, paths: &[String]) -> anyhow::Result<Exit> {
    let mut params = json!({});
    set_paths(&mut params, paths);
    let (id, diff) = ask_for(global, "hub/tasks/diff", Some(id), params.clone())?;
    if !global.console().is_attended() {
        let why = format!(
            "an editor needs a terminal; name the comments in a file: `a2a-hub task review add {id} --from FILE`"
        );
        bail!(CommandError::usage(why));
    }
    // An editor shows it as it is.
    let patch = clean(text(&diff["text"])).into_owned();
    if patch.is_empty() {
        global.console().note(format!("task {id} changed no file"));
        return Ok(Exit::Done);
    }
    let file = tempfile::Builder::new().prefix("a2a-hub-review-").suffix(".diff").tempfile();
    let mut file = file.context("create a file for the editor")?;
    let write = file.write_all(format!("{INTRODUCTION}{patch}").as_bytes());
    write.and_then(|()| file.flush()).context("write the file for the editor")?;
    let path = file.into_temp_path();
    run_editor(&path)?;
    let added = fs::read_to_string(&path)
        .context("read the file of the editor")
        .and_then(|typed| Ok(comments_in(&typed, &patch)?))
        .and_then(|comments| match comments.is_empty() {
            true => Ok(None),
            false => {
                let (_, now) = ask_for(global, "hub/tasks/diff", Some(&id), params)?;
                require_same(&patch, text(&now["text"]), &id)?;
                let params = json!({ "comments": comments });
                ask_for(global, "hub/reviews/comment", Some(&id), params).map(Some)
            }
        });
    match added {
        Ok(Some((_, report))) => global.show(&report, || Ok(summary(&report)))?,
        Ok(None) => global.console().note("no comments; the draft is as before"),
        Err(why) => {
            let unsent = path.keep().context("keep the file of the editor")?;
            return Err(why.context(format!("add the comments in {}", unsent.display())));
        }
    }
    Ok(Exit::Done)
}

/// Refuses comments on changes that are not the present ones: their lines may be other ones now.
fn require_same(shown: &str, now: &str, id: &str) -> anyhow::Result<()> {
    if clean(now) == shown {
        return Ok(());
    }
    bail!(
        "the changes of task {id} are not those that you commented on; `a2a-hub task review edit {id}` shows the present ones"
    )
}

/// Runs the user's editor, which is a command for the shell.
#[expect(clippy::disallowed_methods, reason = "the editor is the user's, and needs the terminal")]
fn run_editor(path: &Path) -> anyhow::Result<()> {
    let editor = editor();
    let script = format!("{editor} \"$1\"");
    let status = Command::new("sh").args(["-c", &script, "sh"]).arg(path).status();
    let status = status.with_context(|| format!("run the editor `{editor}`"))?;
    if !status.success() {
        bail!("the editor `{editor}` failed ({status}); nothing was added");
    }
    Ok(())
}

fn new_comments(add: &AddComment) -> anyhow::Result<Vec<NewReviewComment>> {
    if let Some(from) = &add.from {
        return read_comments(from);
    }
    let side = if add.side == "old" { DiffSide::Old } else { DiffSide::New };
    Ok(vec![NewReviewComment {
        file: add.file.clone(),
        side,
        line: add.line.map(|(first, _)| first),
        end_line: add.line.map(|(_, last)| last),
        text: add.text.clone().unwrap_or_default(),
    }])
}

fn read_comments(from: &Path) -> anyhow::Result<Vec<NewReviewComment>> {
    let name = from.display().to_string();
    let mut text = String::new();
    let read = match name.as_str() {
        "-" => io::stdin().lock().take(MAX_FILE + 1).read_to_string(&mut text),
        _ => File::open(from).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text)),
    };
    read.with_context(|| format!("read the comments in {name}"))?;
    if text.len() as u64 > MAX_FILE {
        bail!(CommandError::usage(format!(
            "the comments in {name} have more than {MAX_FILE} bytes"
        )));
    }
    parse_comments(&text)
        .map_err(|why| CommandError::usage(format!("read the comments in {name}: {why}")).into())
}

/// Reads comments, one JSON object a line.
fn parse_comments(text: &str) -> Result<Vec<NewReviewComment>, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let comments = lines.map(|(number, line)| {
        serde_json::from_str(line).map_err(|why| {
            format!(
                "line {number}: {why}; a comment is an object such as {{\"file\": \"src/a.rs\", \"line\": 12, \"text\": \"…\"}}"
            )
        })
    });
    let comments: Vec<_> = comments.collect::<Result<_, _>>()?;
    match comments.is_empty() {
        true => Err("it has none".to_owned()),
        false => Ok(comments),
    }
}

/// Says how many comments the draft has, and how to send it.
fn summary(report: &Value) -> Text {
    let (task, comments) = (text(&report["taskId"]), list(&report["draft"]["comments"]));
    if comments.is_empty() {
        return format!("the draft of task {task} has no comments any more\n").into();
    }
    let count = counted(comments.len(), "comment");
    format!("the draft has {count}; send it: a2a-hub task review send {task}\n").into()
}

/// The draft, or the review that was sent last.
fn report_text(report: &Value) -> Text {
    let task = text(&report["taskId"]);
    let mut out = Text::new();
    for (member, title) in [("sent", "sent"), ("draft", "draft")] {
        let review = &report[member];
        if !review.is_object() {
            continue;
        }
        let comments = list(&review["comments"]);
        out.push(PLAIN, &format!("{title}, {}", counted(comments.len(), "comment")));
        if let Some(next) = review["sentTaskId"].as_str() {
            out.push(FAINT, &format!(", to task {next}"));
        }
        out.push(PLAIN, "\n");
        comments.iter().for_each(|comment| out.append(comment_text(comment)));
    }
    if report["draft"].is_object() {
        out.push(FAINT, &format!("\nsend it: a2a-hub task review send {task}\n"));
    } else {
        let add = format!("a2a-hub task review add {task} --file PATH --line N TEXT");
        out.push(FAINT, &format!("no draft; begin one: {add}\n"));
    }
    out
}

fn comment_text(comment: &Value) -> Text {
    let mut out = Text::new();
    out.push(PLAIN, &format!("\n{}  {}", comment["number"], location(comment)));
    if let Some(why) = outdated(comment) {
        out.push(style_of("failed"), &format!("  outdated: {why}"));
    }
    out.push(PLAIN, "\n");
    for quoted in list(&comment["quoted"]) {
        out.push(FAINT, &format!("   | {}\n", text(quoted)));
    }
    for words in text(&comment["text"]).lines() {
        out.push(PLAIN, &format!("   {words}\n"));
    }
    out
}

/// File and lines of a comment, such as `src/a.rs:12-14 (old)`.
fn location(comment: &Value) -> String {
    let Some(file) = comment["file"].as_str() else { return "the changes as a whole".to_owned() };
    let mut location = line(file, MAX_NAME);
    let number = |name: &str| comment[name].as_u64();
    if let Some((first, last)) = number("line").zip(number("endLine")) {
        location += &format!(":{first}");
        if last != first {
            location += &format!("-{last}");
        }
        if comment["side"] == "old" {
            location += " (old)";
        }
        if let Some(now) = number("nowLine") {
            location += &format!(", now from line {now}");
        }
    }
    location
}

fn outdated(comment: &Value) -> Option<&'static str> {
    Some(match comment["outdated"].as_str()? {
        "removed" => "the file was removed",
        _ if comment["line"].is_null() => "the file was changed",
        _ => "the lines were changed",
    })
}

/// Names the comments of a review that are outdated, and those that are not.
pub(super) fn note_outdated(global: &Global, review: &Value) {
    outdated_notes(review).into_iter().for_each(|line| global.console().note(line));
}

fn outdated_notes(review: &Value) -> Vec<String> {
    let of_files = list(&review["comments"]).iter().filter(|comment| comment["file"].is_string());
    let notes = of_files.map(|comment| {
        let number = &comment["number"];
        match outdated(comment) {
            Some(why) => format!("comment {number} on {} is outdated: {why}", location(comment)),
            None => format!("comment {number} on {}: unchanged", location(comment)),
        }
    });
    notes.collect()
}

/// Sets the files of a diff or an apply.
pub(super) fn set_paths(params: &mut Value, paths: &[String]) {
    if !paths.is_empty() {
        member::set(params, "paths", json!(paths));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_on_earlier_changes_are_refused() {
        assert!(require_same("+a\\u{1b}\n", "+a\u{1b}\n", "t1").is_ok());
        let why = require_same("+a\n", "+0\n+a\n", "t1").unwrap_err().to_string();
        assert!(why.contains("a2a-hub task review edit t1"), "{why}");
    }

    fn report() -> Value {
        let comments = json!([
            { "number": 1, "file": "src/a.rs", "side": "new", "line": 12, "endLine": 14, "nowLine": 20,
              "quoted": ["let x = 1;", "x"], "text": "name it\nbetter" },
            { "number": 2, "file": "b\n\u{1b}[2J", "side": "old", "line": 3, "endLine": 3,
              "quoted": ["old"], "text": "why?", "outdated": "changed" },
            { "number": 4, "file": "c", "text": "split it", "outdated": "removed" },
            { "number": 5, "text": "add tests" },
        ]);
        json!({
            "taskId": "t1", "draft": { "reviewId": "r", "comments": comments },
            "sent": { "reviewId": "q", "sentTaskId": "t2", "comments": [] },
        })
    }

    #[test]
    fn draft_is_shown_with_quoted_lines() {
        insta::assert_snapshot!(report_text(&report()).words(), @r"
        sent, 0 comments, to task t2
        draft, 4 comments

        1  src/a.rs:12-14, now from line 20
           | let x = 1;
           | x
           name it
           better

        2  b [2J:3 (old)  outdated: the lines were changed
           | old
           why?

        4  c  outdated: the file was removed
           split it

        5  the changes as a whole
           add tests

        send it: a2a-hub task review send t1
        ");
        insta::assert_snapshot!(outdated_notes(&report()["draft"]).join("\n"), @r"
        comment 1 on src/a.rs:12-14, now from line 20: unchanged
        comment 2 on b [2J:3 (old) is outdated: the lines were changed
        comment 4 on c is outdated: the file was removed
        ");
        let none = report_text(&json!({ "taskId": "t1" }));
        assert_eq!(
            none.words(),
            "no draft; begin one: a2a-hub task review add t1 --file PATH --line N TEXT\n"
        );
        let send = "the draft has 4 comments; send it: a2a-hub task review send t1\n";
        assert_eq!(summary(&report()).words(), send);
    }

    #[test]
    fn comments_are_read_as_json_lines() {
        let read = parse_comments(
            "{\"file\": \"a\", \"line\": 1, \"endLine\": 2, \"side\": \"old\", \"text\": \"x\"}\n\n{\"text\": \"y\"}\n",
        );
        let first = NewReviewComment {
            file: Some("a".to_owned()),
            side: DiffSide::Old,
            line: Some(1),
            end_line: Some(2),
            text: "x".to_owned(),
        };
        let second = NewReviewComment { text: "y".to_owned(), ..NewReviewComment::default() };
        assert_eq!(read.unwrap(), [first, second]);
        for (wrong, says) in [
            ("", "has none"),
            ("{\"text\": \"x\"}\n[1]", "line 2"),
            ("{\"text\": \"x\", \"lines\": 3}", "lines"),
            ("{\"file\": \"a\"}", "text"),
            ("{\"text\": \"x\", \"line\": -1}", "line 1"),
        ] {
            let why = parse_comments(wrong).unwrap_err();
            assert!(why.contains(says), "{wrong}: {why}");
        }
    }

    #[test]
    fn lines_are_typed_as_one_or_two_numbers() {
        assert_eq!(line_range("12"), Ok((12, 12)));
        assert_eq!(line_range("12-14"), Ok((12, 14)));
        for wrong in ["", "0", "3-2", "-3", "3-", "1-2-3", "a", "99999999999"] {
            assert!(line_range(wrong).is_err(), "{wrong}");
        }
    }
}
