//! Rules of the book in `docs/`: its links resolve, its summary is complete, and the program knows
//! its commands.

use super::sources::{files, read, root};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
};

/// Pages outside of the book that link to it.
const BESIDE: [&str; 7] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "GOVERNANCE.md",
    "examples/README.md",
    "templates/README.md",
];

const SUMMARY: &str = "docs/SUMMARY.md";

/// Page that documents the commands, generated below a marker.
const COMMANDS: &str = "docs/reference/cli.md";

/// Flags that every command takes with a value.
const WITH_VALUE: [&str; 5] = ["--socket", "--config", "--data-dir", "--tenant", "--format"];

#[test]
fn links_resolve_to_files_and_headings() {
    let mut followed = 0;
    for (page, text) in pages() {
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = resolved(&page, file);
            let there = root().join(&target);
            assert!(there.exists(), "{page}: `{link}` leads to {target}, which is not there");
            if !anchor.is_empty() {
                let known = anchors(&read(&target));
                assert!(known.contains(anchor), "{page}: {target} has no heading `#{anchor}`");
            }
            followed += 1;
        }
    }
    assert!(followed > 300, "{followed} links are followed");
}

#[test]
fn summary_lists_each_page_once() {
    let told: Vec<_> = titled_links(&read(SUMMARY))
        .into_iter()
        .map(|(title, file)| (resolved(SUMMARY, &file), title))
        .collect();
    for (page, title) in &told {
        let first = read(page).lines().next().unwrap_or_default().to_owned();
        assert_eq!(&format!("# {title}"), &first, "{SUMMARY}: {page} has another title");
    }
    let told: Vec<_> = told.into_iter().map(|(page, _)| page).collect();
    let once: BTreeSet<_> = told.iter().cloned().collect();
    assert_eq!(once.len(), told.len(), "{SUMMARY}: each page stands there once");
    let there: BTreeSet<_> = files("docs")
        .into_iter()
        .map(|(path, _)| path)
        .filter(|path| path.ends_with(".md") && path != SUMMARY)
        .collect();
    assert_eq!(there, once, "{SUMMARY}: it has every page of docs/");
}

#[test]
fn book_commands_exist_in_program() {
    let known = commands();
    assert!(known.len() > 40, "{} commands are told in {COMMANDS}", known.len());
    let mut read = 0;
    for (page, text) in pages() {
        for line in code(&text).into_iter().chain(quoted(&text)) {
            for typed in typed(&line) {
                if let Err(why) = is_known(&typed, &known) {
                    panic!("{page}: `a2a-hub {typed}`: {why}");
                }
                read += 1;
            }
        }
    }
    assert!(read > 400, "{read} commands are read");
}

#[test]
fn the_files_that_documents_name_are_there() {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    let is_ours = |file: &str| {
        let first = file.split_once('/').map(|(first, _)| first);
        first.is_some_and(|first| {
            !["", "target", "dist"].contains(&first) && root().join(first).is_dir()
        })
    };
    let mut named = 0;
    let beside = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];
    let pages = files("docs").into_iter().chain(beside.map(|path| (path.to_owned(), read(path))));
    for (path, text) in pages {
        let quoted = text.split('`').skip(1).step_by(2);
        // A path of a source file starts with a crate of this workspace, except in examples of a
        // reader's project. Other paths may start with any folder.
        let is_source =
            |it: &str| it.ends_with(".rs") && it.contains('/') && !it.starts_with("src/");
        for file in quoted.filter(|it| it.chars().all(is_plain) && (is_source(it) || is_ours(it))) {
            let (krate, below) = file.split_once('/').unwrap();
            let places = [
                file.to_owned(),
                format!("{krate}/src/{below}"),
                format!("host/{file}"),
                format!("host/{krate}/src/{below}"),
                format!("host/a2a-hub/tests/{file}"),
                format!("host/cli/tests/{file}"),
                format!("xtask/tests/{file}"),
            ];
            let is_there = places.iter().any(|place| root().join(place).exists());
            assert!(
                is_there,
                "{path}: `{file}` is not there; name it from the root, or as `crate/place.rs`"
            );
            named += 1;
        }
    }
    assert!(named > 40, "{named} files are named");
}

#[test]
fn rules_of_the_book_read_what_they_should() {
    let text = "# A\n[b](c.md#d), [e\nf](../g.md) and [h](https://i) `[j](k)`\n```\n[l](m)\n```\n";
    assert_eq!(links(text), ["c.md#d", "../g.md"]);
    assert_eq!(resolved("docs/how-to/a.md", "../b.md"), "docs/b.md");
    assert_eq!(resolved("docs/a.md", ""), "docs/a.md");
    let text =
        "## Clients: `[clients]`\n## One, `x.y` — two\n```\n## no\n```\n## One [b](c)\n## One b\n";
    let expected = ["clients-clients", "one-xy--two", "one-b", "one-b-1"];
    assert_eq!(anchors(text), expected.map(str::to_owned).into());
    let text = "a\n```sh\n$ a2a-hub send \\\n  echo x\n```\n   ```console\n   b\n   ```\n```rust\nc\n```\n";
    assert_eq!(code(text), ["$ a2a-hub send   echo x", "b"]);
    assert_eq!(quoted("a `b` and `a2a-hub\nsend x`\n```\n`a2a-hub y`\n```\n"), ["a2a-hub send x"]);
    let line = "$ git diff | a2a-hub --tenant x send echo \"a --b\" --stream | less --raw  # --c";
    assert_eq!(typed(line), ["send echo  --stream"]);
    let known = BTreeMap::from([
        ("send".to_owned(), "--stream `--plain`".to_owned()),
        ("plugin add".to_owned(), String::new()),
        (String::new(), "`--plain`".to_owned()),
    ]);
    for good in ["send echo --stream", "plugin add x --plain", "COMMAND", "--version", "send ID=1"]
    {
        assert_eq!(is_known(good, &known), Ok(()), "{good}");
    }
    for bad in ["sent x", "plugin x", "send --str", "plugin add --stream"] {
        assert!(is_known(bad, &known).is_err(), "{bad}");
    }
}

/// The pages of the book and those beside it, without its summary.
fn pages() -> Vec<(String, String)> {
    let book = files("docs").into_iter().filter(|(path, _)| path.ends_with(".md"));
    book.chain(BESIDE.map(|path| (path.to_owned(), read(path)))).collect()
}

/// Lines of the text inside code blocks, or outside of them, each with its block's language.
fn lines(text: &str, in_blocks: bool) -> impl Iterator<Item = (&str, &str)> {
    let mut language = None;
    text.lines().filter_map(move |line| match line.trim_start().strip_prefix("```") {
        Some(opened) => {
            language = if language.is_some() { None } else { Some(opened.trim()) };
            None
        }
        None if language.is_some() == in_blocks => Some((language.unwrap_or_default(), line)),
        None => None,
    })
}

/// The relative links of a page.
fn links(text: &str) -> Vec<String> {
    let links = titled_links(text).into_iter().map(|(_, link)| link);
    links.filter(|link| !link.contains("://") && !link.starts_with("mailto:")).collect()
}

/// The links of a page, each with its text.
fn titled_links(text: &str) -> Vec<(String, String)> {
    let text = lines(text, false).map(|(_, line)| format!("{line}\n")).collect::<String>();
    let mut found = Vec::new();
    for (at, _) in text.match_indices("](") {
        let (before, after) = (&text[..at], &text[at + 2..]);
        let line = before.rsplit('\n').next().unwrap_or_default();
        let Some(link) = after.split_once(')').map(|(link, _)| link) else { continue };
        // The text of a link may contain code. A link inside code is no link.
        let open = before.rfind('[').map_or(before, |open| &before[open..]);
        let is_code = line.matches('`').count() % 2 == 1 && open.matches('`').count() % 2 == 0;
        let title = link_title(before);
        if !is_code && !link.contains(char::is_whitespace) {
            found.push((title.to_owned(), link.to_owned()));
        }
    }
    found
}

/// Text between the last open bracket of `before` and its end.
fn link_title(before: &str) -> &str {
    let mut depth = 0;
    for (at, c) in before.char_indices().rev() {
        match c {
            ']' => depth += 1,
            '[' if depth == 0 => return &before[at + 1..],
            '[' => depth -= 1,
            _ => {}
        }
    }
    before
}

/// File to which `link` on `page` leads, as a path from the root.
fn resolved(page: &str, link: &str) -> String {
    if link.is_empty() {
        return page.to_owned();
    }
    let mut path = PathBuf::new();
    for part in Path::new(page).with_file_name(link).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{page}: `{link}` leads out"),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(part),
        }
    }
    path.to_str().unwrap().to_owned()
}

/// The names of the headings of a page, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::new();
    let headings = lines(text, false).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.strip_prefix(' ')).flatten()
    });
    let named = headings.map(|title| {
        let title = titled_links(title)
            .into_iter()
            .fold(title.to_owned(), |text, (of, to)| text.replace(&format!("[{of}]({to})"), &of));
        let kept = title.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let name = kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>();
        let count = seen.entry(name.clone()).and_modify(|count| *count += 1).or_insert(0);
        if *count == 0 { name } else { format!("{name}-{count}") }
    });
    named.collect()
}

/// Lines of a page's code blocks with commands and their output, with continuation lines joined.
fn code(text: &str) -> Vec<String> {
    let typed =
        lines(text, true).filter(|(language, _)| ["sh", "console", "text", ""].contains(language));
    let text = typed.map(|(_, line)| format!("{}\n", line.trim_end())).collect::<String>();
    text.replace("\\\n", "").lines().map(|line| line.trim_start().to_owned()).collect()
}

/// Inline code of a page that begins with the program's name.
fn quoted(text: &str) -> Vec<String> {
    let text = lines(text, false).map(|(_, line)| format!("{line}\n")).collect::<String>();
    let spans = text.split('`').skip(1).step_by(2).map(|span| span.replace('\n', " "));
    spans.filter(|span| span.starts_with("a2a-hub ")).collect()
}

/// Arguments after each `a2a-hub` in a line, without quoted text, comments and pipes.
fn typed(line: &str) -> Vec<String> {
    let unquoted = line.split('"').step_by(2).collect::<String>();
    let mut found = Vec::new();
    for (at, _) in unquoted.match_indices("a2a-hub ") {
        let is_word = unquoted[..at].chars().next_back().is_none_or(|c| " `('$".contains(c));
        let rest = &unquoted[at + "a2a-hub ".len()..];
        let rest = rest.split(['|', '#', '`', ';', '\'', '>', '(', '…']).next().unwrap_or_default();
        let rest = rest.split("&&").next().unwrap_or_default();
        let rest = rest.split("   ").next().unwrap_or_default();
        let mut rest = rest.trim_end_matches('\\').trim();
        while let Some(flag) = WITH_VALUE.iter().find(|flag| rest.starts_with(**flag)) {
            let value = rest[flag.len()..].trim_start();
            rest = value.split_once(' ').map_or("", |(_, rest)| rest.trim_start());
        }
        if is_word && !rest.is_empty() {
            found.push(rest.to_owned());
        }
    }
    found
}

/// Commands of the program, each with its section of the reference. The empty name has the options
/// of every command.
fn commands() -> BTreeMap<String, String> {
    let page = read(COMMANDS);
    let (_, generated) = page
        .split_once("<!-- generated")
        .unwrap_or_else(|| panic!("{COMMANDS}: where is the marker?"));
    let sections = generated.split("\n## ").skip(1);
    let sections = sections.map(|section| section.split_once('\n').unwrap_or((section, "")));
    sections
        .filter_map(|(title, text)| match title {
            "Options of every command" => Some((String::new(), text.to_owned())),
            _ => Some((
                title.strip_prefix("`a2a-hub ")?.strip_suffix('`')?.to_owned(),
                text.to_owned(),
            )),
        })
        .collect()
}

/// Checks that the program has a command with its flags. A word in capitals stands for any command.
fn is_known(typed: &str, known: &BTreeMap<String, String>) -> Result<(), String> {
    let words: Vec<_> = typed.split_whitespace().collect();
    if !words.first().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_lowercase())) {
        return Ok(());
    }
    // The longest name counts: a command may have commands below it.
    let named = |count: usize| words[..count.min(words.len())].join(" ");
    let (name, said) = (1..=3)
        .rev()
        .find_map(|count| known.get_key_value(&named(count)))
        .ok_or("the program has no such command")?;
    let everywhere = known.get("").map_or("", String::as_str);
    for flag in words.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
        let flag = flag.trim_start_matches('[');
        let flag = flag.split(['=', ']', ',', ':', '.']).next().unwrap_or(flag);
        let is_there = |text: &str| {
            text.match_indices(flag).any(|(at, _)| {
                let after = text[at + flag.len()..].chars().next();
                after.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '-')
            })
        };
        if !is_there(said) && !is_there(everywhere) && !["--help", "--version"].contains(&flag) {
            return Err(format!("`{name}` has no `{flag}`"));
        }
    }
    Ok(())
}
