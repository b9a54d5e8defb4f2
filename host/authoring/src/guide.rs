//! Guide for authors in one language: the documentation's pages about the SDK, tests and the
//! manifest, as one page. New projects have it as `GUIDE.md`.

use crate::{
    error::{AuthoringError, FailureKind},
    language::Language,
    packed::{Packed, unpack},
};

/// Name of the guide in a project.
pub(crate) const FILE: &str = "GUIDE.md";

/// Page about manifests.
const MANIFEST: &str = "docs/reference/manifest.md";

/// Page about tests; the guide has the section of its language.
const TESTS: &str = "docs/how-to/test-your-agent.md";

/// Returns the guide, in Markdown.
///
/// # Errors
/// If this program carries no documentation of the language.
pub fn guide(language: Language) -> Result<String, AuthoringError> {
    compose(&unpack()?, language).ok_or_else(|| {
        let why = "print the guide: this program was built without the documentation";
        AuthoringError::new(FailureKind::Other, why)
    })
}

/// Composes the guide from the documentation's pages; `None` if one is missing.
pub(crate) fn compose(packed: &Packed, language: Language) -> Option<String> {
    let read = |path: &str| str::from_utf8(packed.get(path)?).ok();
    let title = language.title();
    let heading = format!("### In {title}\n");
    let tests = read(TESTS)?;
    let tests = &tests[tests.find(&heading)? + heading.len()..];
    let tests = tests.find("\n### ").map_or(tests, |end| &tests[..end]);
    let tests = format!("# Tests in {title}\n{}\n", tests.trim_end());
    let mut all = format!(
        "# Agents for a2a-hub in {title}\n\nThis page is the reference for this project: the SDK, \
         tests and the manifest. `a2a-hub plugin docs` prints the page of the program that you \
         have.\n"
    );
    for page in [read(&language.page())?, &tests, read(MANIFEST)?] {
        all += &format!("\n{}", demote_headings(&relinked(page, language)));
    }
    Some(all)
}

/// Moves all headings one level down.
fn demote_headings(page: &str) -> String {
    let mut is_code = false;
    let mut out = String::new();
    for line in page.lines() {
        is_code ^= line.starts_with("```");
        if line.starts_with('#') && !is_code {
            out.push('#');
        }
        out += line;
        out.push('\n');
    }
    out
}

/// Replaces links to pages of the documentation: by links inside the guide, by the command that
/// prints the page, or by their text.
fn relinked(mut page: &str, language: Language) -> String {
    let mut out = String::new();
    while let Some(link) = PageLink::first(page) {
        out += &page[..link.begins];
        out += &link.replaced(language);
        page = &page[link.ends..];
    }
    out + page
}

/// Link to a page of the documentation.
struct PageLink<'p> {
    /// Place of the link in its page.
    begins: usize,
    ends: usize,
    text: &'p str,
    /// Name of the file, without its folder.
    file: &'p str,
    anchor: Option<&'p str>,
}

impl<'p> PageLink<'p> {
    fn first(page: &'p str) -> Option<Self> {
        page.match_indices("](").find_map(|(middle, _)| {
            let begins = page[..middle].rfind('[')?;
            let target = &page[middle + 2..];
            let target = &target[..target.find(')')?];
            let (path, anchor) = match target.split_once('#') {
                Some((path, anchor)) => (path, Some(anchor)),
                None => (target, None),
            };
            let file = path.rsplit('/').next().filter(|file| file.ends_with(".md"))?;
            let ends = middle + 2 + target.len() + 1;
            Some(Self { begins, ends, text: &page[begins + 1..middle], file, anchor })
        })
    }

    fn replaced(&self, language: Language) -> String {
        let Self { text, file, anchor, .. } = self;
        let here = |otherwise: &str| format!("[{text}](#{})", anchor.unwrap_or(otherwise));
        let of = Language::ALL.into_iter().find(|it| it.page().ends_with(&format!("/{file}")));
        match of {
            Some(of) if of == language => here(&format!("sdk-for-{}", of.title().to_lowercase())),
            Some(of) => format!("{text} (`a2a-hub plugin docs --lang {}`)", of.option()),
            None if MANIFEST.ends_with(&format!("/{file}")) => here("manifest"),
            None if TESTS.ends_with(&format!("/{file}")) => {
                format!("[{text}](#tests-in-{})", language.title().to_lowercase())
            }
            None => (*text).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guide_has_sdk_tests_and_manifest() {
        for language in Language::ALL {
            let guide = guide(language).unwrap();
            let title = language.title();
            for heading in [
                format!("# Agents for a2a-hub in {title}\n"),
                format!("\n## Tests in {title}\n"),
                "\n## Manifest\n".to_owned(),
                "\n### `[memory]`\n".to_owned(),
            ] {
                assert!(guide.contains(&heading), "{title}: {heading}");
            }
            let stray: Vec<_> = guide.lines().filter(|line| line.contains(".md)")).collect();
            assert_eq!(stray, Vec::<&str>::new(), "{title}: a project has none of these pages");
            assert_eq!(guide.matches("### In ").count(), 0, "{title}: other languages' tests");
            let anchors = guide.match_indices("](#").map(|(at, _)| &guide[at + 3..]);
            for anchor in anchors.map(|rest| &rest[..rest.find(')').unwrap()]) {
                let slug = |line: &str| {
                    let words = line.trim_start_matches('#').trim().to_lowercase();
                    let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
                    words.chars().filter(kept).collect::<String>().replace(' ', "-")
                };
                let is_there = guide.lines().any(|it| it.starts_with('#') && slug(it) == anchor);
                assert!(is_there, "{title}: no heading for #{anchor}");
            }
        }
    }

    #[test]
    fn links_fit_the_guide() {
        let page = "a [x](limits.md#y) [card](sdk-rust.md#card) [m](manifest.md) [t](../how-to/\
                    test-your-agent.md#in-python) [w](https://a.example) `v[0](\"y\")`";
        assert_eq!(
            relinked(page, Language::Python),
            "a x card (`a2a-hub plugin docs --lang rust`) [m](#manifest) [t](#tests-in-python) \
             [w](https://a.example) `v[0](\"y\")`"
        );
        assert!(relinked(page, Language::Rust).contains("[card](#card)"));
    }
}
