//! Records a session with the hub in a terminal: an asciinema cast, and an SVG of it.
//!
//! `cargo xtask record` builds the hub and runs this program; the README shows the picture.

mod cast;
mod picture;
mod session;
mod terminal;

use anyhow::{Context as _, Result};
use cast::Cast;
use clap::Parser;
use std::{fs, path::PathBuf};

/// Records the session, or draws an existing one again.
#[derive(Debug, Parser)]
struct Args {
    /// Folder of `session.cast` and `session.svg`
    folder: PathBuf,
    /// Draw the picture of the cast in the folder, and record nothing
    #[arg(long)]
    draw: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let file = args.folder.join("session.cast");
    if !args.draw {
        let cast = session::record(&session::clis()?).await?;
        fs::create_dir_all(&args.folder)?;
        fs::write(&file, cast.to_string())?;
    }
    let text = fs::read_to_string(&file).with_context(|| format!("no {}", file.display()))?;
    fs::write(args.folder.join("session.svg"), picture::draw(&Cast::parse(&text)?)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAST: &str = include_str!("../../docs/media/session.cast");
    const PICTURE: &str = include_str!("../../docs/media/session.svg");

    /// Draw it again with `cargo xtask record --draw`.
    #[test]
    fn picture_in_docs_shows_cast() {
        let cast = Cast::parse(CAST).unwrap();
        assert_eq!(picture::draw(&cast).unwrap(), PICTURE);
    }

    #[test]
    fn cast_shows_start_question_and_answer() {
        let shown = picture::text(&Cast::parse(CAST).unwrap()).unwrap();
        let expected = [
            "$ a2a-hub start --workspace ~/src\nthe hub is up",
            "┇ claude-code asks:\n",
            "\n┇ > yes\n",
            "$ a2a-hub tasks\n",
        ];
        for part in expected {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert_eq!(shown.matches("completed").count(), 2, "both tasks are completed: {shown}");
    }
}
