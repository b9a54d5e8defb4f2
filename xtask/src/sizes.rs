//! Contents of a program's file: the code of each crate, and the sections, by `nm` and `size` of
//! binutils.

use std::{collections::BTreeMap, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::shell::output;

/// Number of crates that are listed; the others are summed up.
const LISTED: usize = 40;

/// Crates whose generic code is attributed to the crate that instantiates it.
const STANDARD: [&str; 3] = ["core", "alloc", "std"];

/// Prints a table of the program's code by crate, and its sections. The program needs symbols.
pub(crate) fn report(program: &Path) -> Result<()> {
    let symbols = output(Command::new("nm").args(["-S", "-C"]).arg(program))
        .context("nm is part of binutils")?;
    let crates = by_crate(&symbols);
    ensure!(
        !crates.is_empty(),
        "{} has no symbols: build it with `-C strip=none`, or take target/dist/a2a-hub",
        program.display()
    );
    let mut rows: Vec<_> = crates.into_iter().collect();
    rows.sort_by_key(|(_, (bytes, _))| std::cmp::Reverse(*bytes));
    let all: u64 = rows.iter().map(|(_, (bytes, _))| bytes).sum();
    eprintln!("| crate | kB | functions |\n| --- | --: | --: |");
    for (name, (bytes, functions)) in rows.iter().take(LISTED) {
        eprintln!("| {name} | {} | {functions} |", bytes / 1000);
    }
    let rest: u64 = rows.iter().skip(LISTED).map(|(_, (bytes, _))| bytes).sum();
    let functions: u64 = rows.iter().map(|(_, (_, functions))| functions).sum();
    eprintln!("| {} others | {} | |", rows.len().saturating_sub(LISTED), rest / 1000);
    eprintln!("| all | {} | {functions} |\n", all / 1000);

    let sections = output(Command::new("size").args(["-A", "-d"]).arg(program))?;
    eprintln!("| section | kB |\n| --- | --: |");
    for line in sections.lines() {
        let mut cells = line.split_whitespace();
        if let (Some(name), Some(Ok(bytes))) = (cells.next(), cells.next().map(str::parse::<u64>))
            && bytes >= 100_000
        {
            eprintln!("| {name} | {} |", bytes / 1000);
        }
    }
    Ok(())
}

/// Size and number of each crate's functions, from lines of `nm -S -C`: address, size, kind, name.
fn by_crate(symbols: &str) -> BTreeMap<String, (u64, u64)> {
    let mut crates = BTreeMap::<String, (u64, u64)>::new();
    for line in symbols.lines() {
        let mut cells = line.splitn(4, ' ');
        let (_, size, kind, name) = (cells.next(), cells.next(), cells.next(), cells.next());
        let (Some(size), Some("t" | "T" | "w" | "W"), Some(name)) = (size, kind, name) else {
            continue;
        };
        let Ok(size) = u64::from_str_radix(size, 16) else { continue };
        let one = crates.entry(crate_of(name)).or_default();
        *one = (one.0 + size, one.1 + 1);
    }
    crates
}

/// Crate of a function: the first that it names outside the standard library, or else the standard
/// library's; without any, C.
fn crate_of(function: &str) -> String {
    let mut standard = None;
    let separators = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':');
    for path in function.split(separators) {
        let Some((first, _)) = path.split_once("::").filter(|(first, _)| !first.is_empty()) else {
            continue;
        };
        if !STANDARD.contains(&first) {
            return first.to_owned();
        }
        standard = standard.or(Some(first));
    }
    standard.unwrap_or("(C and assembly)").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_belongs_to_instantiating_crate() {
        for (function, of) in [
            ("tokio::runtime::park::Inner::park", "tokio"),
            ("<serde_json::value::Value as core::clone::Clone>::clone", "serde_json"),
            ("core::ptr::drop_in_place<a2a_hub_engine::hub::Hub>", "a2a_hub_engine"),
            ("<&T as core::fmt::Debug>::fmt", "core"),
            ("sqlite3VdbeExec", "(C and assembly)"),
        ] {
            assert_eq!(crate_of(function), of, "{function}");
        }
    }

    #[test]
    fn functions_are_summed_without_data() {
        let symbols = "0010 0000000a t tokio::a\n0020 00000006 T tokio::b\n0030 00000100 r tokio::C\n                 U malloc\n";
        assert_eq!(by_crate(symbols), BTreeMap::from([("tokio".to_owned(), (16, 2))]));
    }
}
