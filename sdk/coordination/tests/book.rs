//! Flow files of the book.

use a2a_hub_coordination::flow::Definition;

const PAGES: [&str; 2] = [
    include_str!("../../../docs/how-to/let-agents-work-in-steps.md"),
    include_str!("../../../docs/reference/flow-files.md"),
];

#[test]
fn examples_of_the_book_are_right() {
    let blocks: Vec<_> = PAGES.iter().flat_map(|page| page.split("```toml\n").skip(1)).collect();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let text = block.split("```").next().unwrap_or_default();
        let definition = Definition::parse(text).unwrap_or_else(|why| panic!("{why:#?}\n{text}"));
        assert_eq!(definition.warnings, [], "{text}");
    }
}
