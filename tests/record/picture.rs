//! Picture of a recording: an SVG of everything that the terminal showed, line by line.
//!
//! Each line appears at its time. Viewers without animations, and people who turned them off, see
//! the whole session at once.

use crate::cast::Cast;
use anyhow::Result;
use avt::{Cell, Color, Pen, Terminal};
use std::fmt::Write as _;

/// Size of a character, and space around the text, in pixels.
const CHAR: (f64, usize) = (8.4, 20);
const MARGIN: usize = 16;

/// Height of the bar with the title.
const BAR: usize = 34;

/// Foreground colours by their number in ANSI: normal, then bright.
const COLOURS: [&str; 16] = [
    "#6e7681", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#c9d1d9",
    "#8b949e", "#ffa198", "#aff5b4", "#f2cc60", "#a5d6ff", "#e2c5ff", "#b3f0ff", "#ffffff",
];

/// A line of the terminal, and the time of its last change.
struct Row {
    cells: Vec<Cell>,
    at_ms: u64,
}

/// Draws the picture of `cast`.
pub(crate) fn draw(cast: &Cast) -> Result<String> {
    let rows = rows(cast)?;
    let columns = u32::try_from(cast.header.width)?;
    let width = f64::from(columns).mul_add(CHAR.0, 2.0 * MARGIN as f64).round();
    let height = BAR + rows.len() * CHAR.1 + MARGIN;
    let title = escaped(&cast.header.title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" xml:space=\"preserve\" role=\"img\">\n\
         <title>{title}</title>\n\
         <style>\n\
         text {{ font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, \"DejaVu Sans Mono\", monospace; fill: #e6edf3; white-space: pre; }}\n\
         .title {{ fill: #8b949e; text-anchor: middle; }}\n\
         .b {{ font-weight: bold; }} .d {{ opacity: 0.65; }} .i {{ font-style: italic; }} .u {{ text-decoration: underline; }}\n"
    );
    for (number, colour) in COLOURS.iter().enumerate() {
        writeln!(svg, ".c{number} {{ fill: {colour}; }}")?;
    }
    svg.push_str(
        "@keyframes show { from { visibility: hidden; } to { visibility: visible; } }\n\
         @media (prefers-reduced-motion: no-preference) { .row { animation: show 1ms both; } }\n\
         </style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#0d1117\"/>\n",
    );
    for (number, colour) in ["#ff5f57", "#febc2e", "#28c840"].iter().enumerate() {
        let x = MARGIN + 6 + number * 20;
        writeln!(svg, "<circle cx=\"{x}\" cy=\"17\" r=\"6\" fill=\"{colour}\"/>")?;
    }
    writeln!(svg, "<text class=\"title\" x=\"50%\" y=\"22\">{title}</text>")?;
    for (number, row) in rows.iter().enumerate() {
        let y = BAR + number * CHAR.1 + 14;
        let delay = format!("{}.{:03}s", row.at_ms / 1000, row.at_ms % 1000);
        let runs = runs(&row.cells)?;
        if !runs.is_empty() {
            writeln!(
                svg,
                "<text class=\"row\" y=\"{y}\" style=\"animation-delay: {delay}\">{runs}</text>"
            )?;
        }
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// Text of everything that the terminal showed.
#[cfg(test)]
pub(crate) fn text(cast: &Cast) -> Result<String> {
    let lines = rows(cast)?.into_iter().map(|row| {
        let line: String =
            row.cells.iter().filter(|cell| cell.width() > 0).map(Cell::char).collect();
        line.trim_end().to_owned() + "\n"
    });
    Ok(lines.collect())
}

/// Lines that the terminal showed, without empty ones at the end.
fn rows(cast: &Cast) -> Result<Vec<Row>> {
    let mut terminal = Terminal::with_scrollback(cast.header.width, cast.header.height, None)?;
    let mut rows = Vec::<Row>::new();
    for (output, at_ms) in cast.outputs.iter().zip(cast.times()) {
        terminal.feed(output.text.as_str());
        for (number, line) in terminal.screen().all_lines().enumerate() {
            match rows.get_mut(number) {
                Some(row) if row.cells == line.cells() => {}
                Some(row) => *row = Row { cells: line.cells().to_vec(), at_ms },
                None => rows.push(Row { cells: line.cells().to_vec(), at_ms }),
            }
        }
    }
    while rows.pop_if(|row| row.cells.iter().all(|cell| cell.char() == ' ')).is_some() {}
    Ok(rows)
}

/// Pieces of a line that look alike, each at its column; nothing for an empty line.
fn runs(cells: &[Cell]) -> Result<String> {
    let mut svg = String::new();
    let mut column = 0_u32;
    for run in cells.chunk_by(|one, other| one.pen() == other.pen()) {
        let start = column;
        column += run.iter().map(|cell| u32::from(cell.width())).sum::<u32>();
        let text: String = run.iter().filter(|cell| cell.width() > 0).map(Cell::char).collect();
        let text = text.trim_end();
        if text.is_empty() {
            continue;
        }
        let x = f64::from(start).mul_add(CHAR.0, MARGIN as f64);
        let class = class(run[0].pen());
        write!(svg, "<tspan x=\"{x:.1}\"{class}>{}</tspan>", escaped(text))?;
    }
    Ok(svg)
}

/// Attribute with the classes of a pen. Colours other than the 16 of ANSI are left out.
fn class(pen: &Pen) -> String {
    let flags = [
        (pen.is_bold(), "b"),
        (pen.is_faint(), "d"),
        (pen.is_italic(), "i"),
        (pen.is_underline(), "u"),
    ];
    let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name.to_owned());
    let colour = match pen.foreground() {
        Some(Color::Indexed(number)) if usize::from(number) < COLOURS.len() => {
            Some(format!("c{number}"))
        }
        Some(Color::Indexed(_) | Color::RGB(_)) | None => None,
    };
    let classes: Vec<_> = flags.chain(colour).collect();
    match classes.is_empty() {
        true => String::new(),
        false => format!(" class=\"{}\"", classes.join(" ")),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cast::Output;

    fn cast(outputs: &[(u64, &str)]) -> Cast {
        let mut cast = Cast::new("a <title>", (20, 3));
        let output = |&(at_ms, text): &(u64, &str)| Output { at_ms, text: text.to_owned() };
        cast.outputs = outputs.iter().map(output).collect();
        cast
    }

    #[test]
    fn picture_has_lines_that_left_the_screen() {
        let cast =
            cast(&[(100, "one\r\n\u{1b}[1;31mtwo\u{1b}[0m & <\r\n"), (700, "3\r\n4\r\n5\r\n")]);
        assert_eq!(text(&cast).unwrap(), "one\ntwo & <\n3\n4\n5\n");
        let svg = draw(&cast).unwrap();
        assert!(svg.contains("<title>a &lt;title&gt;</title>"), "{svg}");
        let row = "style=\"animation-delay: 0.100s\"><tspan x=\"16.0\" class=\"b c1\">two</tspan><tspan x=\"41.2\"> &amp; &lt;</tspan></text>";
        assert!(svg.contains(row), "{svg}");
        assert!(svg.contains("animation-delay: 0.700s\"><tspan x=\"16.0\">5<"), "{svg}");
    }

    #[test]
    fn withdrawn_text_is_not_drawn() {
        let cast = cast(&[(0, "wait"), (10, "\r\u{1b}[2Kdone\r\n")]);
        assert_eq!(text(&cast).unwrap(), "done\n");
        assert!(draw(&cast).unwrap().contains("animation-delay: 0.010s"));
    }
}
