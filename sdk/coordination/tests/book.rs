//! Flow files of the book.

use a2a_hub_coordination::flow::Definition;

const PAGES: [&str; 3] = [
    include_str!("../../../docs/how-to/let-agents-work-in-steps.md"),
    include_str!("../../../docs/how-to/let-agents-decide-together.md"),
    include_str!("../../../docs/reference/flow-files.md"),
];

#[test]
fn examples_of_the_book_are_right() {
    let blocks: Vec<_> = PAGES.iter().flat_map(|page| page.split("```toml\n").skip(1)).collect();
    let texts = blocks.iter().map(|block| block.split("```").next().unwrap_or_default());
    let (fakes, flows): (Vec<_>, Vec<_>) = texts.partition(|text| text.contains("[answers]"));
    assert_eq!((flows.len(), fakes.len()), (13, 4));
    let review = |text: &&&str| text.contains("id = \"review\"") && text.contains("findings");
    let vote = |text: &&&str| text.contains("vote = {");
    let delphi = |text: &&&str| text.contains("delphi = {");
    let board = |text: &&&str| text.contains("[step.blackboard]");
    let tested = [vote, review, delphi, board].map(|one| flows.iter().find(one));
    for (flow, fakes) in tested.into_iter().zip(&fakes) {
        let definition = Definition::parse(flow.copied().unwrap_or_default());
        let simulation = definition.and_then(|definition| definition.simulate(fakes));
        let simulation = simulation.unwrap_or_else(|why| panic!("{why:#?}"));
        assert_eq!(simulation.failures, [""; 0], "{:#?}", simulation.transitions);
    }
    for text in flows {
        let definition = Definition::parse(text).unwrap_or_else(|why| panic!("{why:#?}\n{text}"));
        assert_eq!(definition.warnings, [], "{text}");
    }
}
