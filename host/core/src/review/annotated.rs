//! Comments that a person types into a patch, in an editor: lines that begin with `>`, beneath the
//! line of the patch that they are about.

use a2a_hub_protocol::operation::{DiffSide, NewReviewComment};

/// Text above the patch, which says what to do.
pub const INTRODUCTION: &str = "\
# Type comments beneath a line of the changes, and begin each line of a comment with `>`.
# Above the first change, they are on the changes as a whole; beneath the lines that name a file, on the file.
# Save and leave the editor to add them to the draft. Leave all other lines as they are.
";

/// Reason why comments are not read from an annotated patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnnotationError {
    /// A line of the patch was changed, removed or added.
    #[error(
        "line {0} is no line of the changes, and no comment; begin comments with `>`, and leave other lines as they are"
    )]
    ChangedLine(usize),
    /// Lines at the end are missing.
    #[error("the end of the changes is missing; leave lines that are no comments as they are")]
    MissingEnd,
}

/// Reads the comments that were added to `patch`.
///
/// # Errors
/// The patch itself was changed: the lines of the comments would be wrong.
pub fn comments_in(annotated: &str, patch: &str) -> Result<Vec<NewReviewComment>, AnnotationError> {
    let mut expected = patch.trim_end_matches('\n').split('\n');
    let mut comments: Vec<NewReviewComment> = Vec::new();
    let (mut position, mut is_open) = (PatchPosition::default(), false);
    for (number, line) in (1..).zip(annotated.trim_end_matches('\n').split('\n')) {
        if let Some(text) = line.strip_prefix('>') {
            let text = text.strip_prefix(' ').unwrap_or(text).trim_end();
            match comments.last_mut().filter(|_| is_open) {
                Some(comment) => {
                    comment.text.push('\n');
                    comment.text.push_str(text);
                }
                None => comments.push(position.comment(text)),
            }
            is_open = true;
            continue;
        }
        is_open = false;
        // No line of a patch begins like this. Editors add empty lines at the end.
        let is_end = line.is_empty() && expected.clone().next().is_none();
        if line.starts_with('#') || is_end {
            continue;
        }
        // Editors remove spaces at the ends of lines, such as that of an empty line of a file.
        match expected.next().filter(|known| known.trim_end() == line.trim_end()) {
            Some(known) => position.pass(known),
            None => return Err(AnnotationError::ChangedLine(number)),
        }
    }
    match expected.next() {
        Some(_) => Err(AnnotationError::MissingEnd),
        None => {
            comments.retain(|comment| !comment.text.trim().is_empty());
            Ok(comments)
        }
    }
}

/// Place in a patch.
#[derive(Default)]
struct PatchPosition {
    old_file: Option<String>,
    new_file: Option<String>,
    /// Next lines of both sides, and the number of lines that the hunk has left of them.
    next: (u32, u32),
    remaining: (u32, u32),
    /// Line above, if it is one of a file.
    line: Option<(DiffSide, u32)>,
}

impl PatchPosition {
    /// Goes on by a line of the patch.
    fn pass(&mut self, line: &str) {
        if self.remaining != (0, 0) {
            return self.pass_in_hunk(line);
        }
        // A remark on the end of the line above.
        if line.starts_with('\\') {
            return;
        }
        self.line = None;
        if let Some(names) = line.strip_prefix("diff --git ") {
            let (old, new) = equal_names(names);
            (self.old_file, self.new_file) = (old, new);
        } else if let Some(name) = line.strip_prefix("rename from ") {
            self.old_file = Some(unquoted(name));
        } else if let Some(name) = line.strip_prefix("rename to ") {
            self.new_file = Some(unquoted(name));
        } else if let Some(name) = line.strip_prefix("--- ") {
            self.old_file = side_name(name, "a/");
        } else if let Some(name) = line.strip_prefix("+++ ") {
            self.new_file = side_name(name, "b/");
        } else if let Some(hunk) = line.strip_prefix("@@ -") {
            let mut words = hunk.split(' ');
            let mut side = |sign: char| {
                let word = words.next()?.trim_start_matches(sign);
                let (start, count) = word.split_once(',').unwrap_or((word, "1"));
                Some((start.parse().ok()?, count.parse().ok()?))
            };
            if let Some(((old, old_count), (new, new_count))) = side('-').zip(side('+')) {
                (self.next, self.remaining) = ((old, new), (old_count, new_count));
            }
        }
    }

    fn pass_in_hunk(&mut self, line: &str) {
        let (is_old, is_new) = match line.as_bytes().first() {
            Some(b'-') => (true, false),
            Some(b'+') => (false, true),
            Some(b'\\') => return,
            _ => (true, true),
        };
        let number = if is_new { self.next.1 } else { self.next.0 };
        let side = if is_new { DiffSide::New } else { DiffSide::Old };
        self.line = Some((side, number));
        let step = |side: &mut u32, remaining: &mut u32, is_there: bool| {
            *side = side.saturating_add(u32::from(is_there));
            *remaining = remaining.saturating_sub(u32::from(is_there));
        };
        step(&mut self.next.0, &mut self.remaining.0, is_old);
        step(&mut self.next.1, &mut self.remaining.1, is_new);
    }

    /// A comment on this place.
    fn comment(&self, text: &str) -> NewReviewComment {
        let (side, line) = self.line.unzip();
        NewReviewComment {
            file: self.new_file.clone().or_else(|| self.old_file.clone()),
            side: side.unwrap_or_default(),
            line,
            end_line: None,
            text: text.to_owned(),
        }
    }
}

/// Names of a file that is not renamed, from `a/NAME b/NAME`; those of a renamed one follow in
/// other lines.
fn equal_names(names: &str) -> (Option<String>, Option<String>) {
    let middle = names.len() / 2;
    let halves = names.is_char_boundary(middle).then(|| names.split_at(middle));
    let Some((old, new)) = halves.and_then(|(old, new)| Some((old, new.strip_prefix(' ')?))) else {
        return (None, None);
    };
    (side_name(old, "a/"), side_name(new, "b/"))
}

/// Name of a file on one side; none for a file that is not there.
fn side_name(name: &str, prefix: &str) -> Option<String> {
    // Git ends a name with spaces by a tab.
    let name = unquoted(name.strip_suffix('\t').unwrap_or(name));
    name.strip_prefix(prefix).map(str::to_owned)
}

/// A name as git quotes it: in quotes with escapes of C, if it has unusual characters.
fn unquoted(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
        return name.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b't') => bytes.push(b'\t'),
            Some(b'n') => bytes.push(b'\n'),
            Some(b'v') => bytes.push(11),
            Some(b'f') => bytes.push(12),
            Some(b'r') => bytes.push(b'\r'),
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else {
                        break;
                    };
                    value = value * 8 + u32::from(digit - b'0');
                }
                bytes.push(u8::try_from(value).unwrap_or(b'?'));
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PATCH: &str = "\
diff --git a/src/a b.rs b/src/a b.rs
index 1..2 100644
--- a/src/a b.rs\t
+++ b/src/a b.rs\t
@@ -3,4 +3,5 @@ fn main() {
 three
-four
+4
+4b
 five
 six
diff --git a/old b/new
similarity index 90%
rename from old
rename to new
diff --git \"a/\\303\\244\\n\\\"\" \"b/\\303\\244\\n\\\"\"
deleted file mode 100644
index 3..0
--- \"a/\\303\\244\\n\\\"\"
+++ /dev/null
@@ -1 +0,0 @@
--- x
\\ No newline at end of file
diff --git a/binary b/binary
new file mode 100644
index 0..4
GIT binary patch
literal 3
zcmZQzWB>pF

";

    /// The patch with a comment beneath the first line with this beginning.
    fn beneath(line: &str, comment: &str) -> String {
        let (before, after) = PATCH.split_once(&format!("\n{line}")).unwrap();
        let (rest, after) = after.split_once('\n').unwrap();
        format!("{INTRODUCTION}{before}\n{line}{rest}\n{comment}\n{after}")
    }

    #[test]
    fn comment_is_about_line_above_it() {
        for (line, file, expected) in [
            (" three", "src/a b.rs", Some((DiffSide::New, 3))),
            ("-four", "src/a b.rs", Some((DiffSide::Old, 4))),
            ("+4b", "src/a b.rs", Some((DiffSide::New, 5))),
            (" six", "src/a b.rs", Some((DiffSide::New, 7))),
            ("@@ -3,4", "src/a b.rs", None),
            ("+++ b/src", "src/a b.rs", None),
            ("rename to", "new", None),
            ("--- x", "ä\n\"", Some((DiffSide::Old, 1))),
            ("\\ No", "ä\n\"", Some((DiffSide::Old, 1))),
            ("GIT binary", "binary", None),
        ] {
            let comments = comments_in(&beneath(line, "> one\n>\n>  two"), PATCH).unwrap();
            let (side, number) = expected.unzip();
            let comment = NewReviewComment {
                file: Some(file.to_owned()),
                side: side.unwrap_or_default(),
                line: number,
                end_line: None,
                text: "one\n\n two".to_owned(),
            };
            assert_eq!(comments, [comment], "{line}");
        }
        let general = comments_in(&format!("{INTRODUCTION}> all of it\n{PATCH}\n\n"), PATCH);
        let expected = NewReviewComment { text: "all of it".to_owned(), ..Default::default() };
        assert_eq!(general.unwrap(), [expected]);
    }

    #[test]
    fn changed_patch_is_refused() {
        assert_eq!(comments_in(&format!("{INTRODUCTION}{PATCH}"), PATCH), Ok(Vec::new()));
        assert_eq!(comments_in(&format!("{PATCH}>\n> \n"), PATCH), Ok(Vec::new()));
        let changed = PATCH.replace("+4b", "+4c");
        assert_eq!(comments_in(&changed, PATCH), Err(AnnotationError::ChangedLine(9)));
        let typed = beneath("+4b", "forgot the sign");
        assert!(matches!(comments_in(&typed, PATCH), Err(AnnotationError::ChangedLine(_))));
        let cut = PATCH.split_once("diff --git a/binary").unwrap().0;
        assert_eq!(comments_in(cut, PATCH), Err(AnnotationError::MissingEnd));
        assert_eq!(comments_in("", PATCH), Err(AnnotationError::ChangedLine(1)));
    }

    #[test]
    fn editor_may_remove_spaces_at_line_ends() {
        let patch = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n \n+x \n y\n";
        let typed = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n\n+x\n y\n> why\n";
        let comment = NewReviewComment {
            file: Some("a".to_owned()),
            line: Some(3),
            text: "why".to_owned(),
            ..NewReviewComment::default()
        };
        assert_eq!(comments_in(typed, patch), Ok(vec![comment]));
        let changed = typed.replace("+x", "+ x");
        assert_eq!(comments_in(&changed, patch), Err(AnnotationError::ChangedLine(6)));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(patch in "([-+ @\\\\>#a\"0-9,]{0,9}\n){0,9}", at in 0_usize..9) {
            let mut lines: Vec<_> = patch.split('\n').collect();
            lines.insert(at.min(lines.len()), "> x");
            let _ = comments_in(&lines.join("\n"), &patch);
            let _ = comments_in(&patch, PATCH);
        }
    }
}
