//! Tests of the search: a table of questions over cards, and properties.

use std::sync::LazyLock;

use super::*;
use a2a_hub_protocol::card::AgentCard;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Required shares of the questions whose right agent is first, and among the first three, by words
/// alone. A change of the ranking must state its effect on these.
const FIRST: f64 = 0.88;
const AMONG_THREE: f64 = 0.92;

/// Cards of the table, with the ids of their agents.
fn cards() -> Vec<(String, AgentCard)> {
    let read: Value = toml::from_str(include_str!("tests/cards.toml")).unwrap();
    let all = read["agents"].as_array().unwrap().iter();
    all.map(|card| {
        let id = card["id"].as_str().unwrap().to_owned();
        (id, serde_json::from_value(card.clone()).unwrap())
    })
    .collect()
}

/// Agents of the table, parsed once because property tests use them hundreds of times.
fn described() -> Vec<Description> {
    static READ: LazyLock<Vec<Description>> = LazyLock::new(|| {
        cards().iter().map(|(id, card)| Description::new(id, Vec::new(), card)).collect()
    });
    READ.clone()
}

fn ids(index: &Index, found: &Found) -> Vec<String> {
    found.hits.iter().map(|hit| index.agents()[hit.index].id.clone()).collect()
}

fn asks(text: &str) -> AgentQuery {
    AgentQuery { text: Some(text.to_owned()), ..AgentQuery::default() }
}

/// Agents that a query finds among these.
fn found_among(agents: Vec<Description>, query: &AgentQuery) -> Vec<String> {
    let index = Index::new(agents);
    ids(&index, &index.find(query, None).unwrap())
}

fn found(query: &AgentQuery) -> Vec<String> {
    static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(described()));
    ids(&INDEX, &INDEX.find(query, None).unwrap())
}

#[test]
#[expect(clippy::print_stdout, reason = "what is reached is printed for whoever changes it")]
fn free_text_questions_find_right_agent() {
    let index = Index::new(described());
    let questions: Vec<_> = include_str!("tests/questions.tsv")
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    assert!(index.agents().len() >= 25 && questions.len() >= 60);
    let (mut first, mut among_three) = (0, 0);
    for (question, meant) in &questions {
        assert!(index.agents().iter().any(|agent| agent.id == *meant), "{meant}");
        let found = ids(&index, &index.find(&asks(question), None).unwrap());
        let place = found.iter().position(|id| id == meant);
        first += usize::from(place == Some(0));
        among_three += usize::from(place.is_some_and(|place| place < 3));
        if place != Some(0) {
            println!(
                "{question}: {meant} is {place:?} of {:?}",
                found.iter().take(3).collect::<Vec<_>>()
            );
        }
    }
    let share = |count: usize| count as f64 / questions.len() as f64;
    println!(
        "{} questions: first {:.3}, among three {:.3}",
        questions.len(),
        share(first),
        share(among_three)
    );
    assert!(share(first) >= FIRST && share(among_three) >= AMONG_THREE, "{first} {among_three}");
}

#[test]
fn each_hit_lists_its_reasons() {
    let index = Index::new(described());
    let query = AgentQuery {
        tags: vec!["Git".to_owned()],
        version: Some(">=2".to_owned()),
        ..asks("review my patches")
    };
    let found = index.find(&query, None).unwrap();
    assert_eq!(ids(&index, &found), ["pr-reviewer"]);
    insta::assert_snapshot!(json!(found.hits[0].why), @r#"[{"by":"tag","what":"Git"},{"by":"word","in":["name","skills","tags","examples"],"what":"review"},{"by":"word","in":["examples"],"what":"patches"},{"by":"version","what":"2.1.0"}]"#);
}

#[test]
fn name_matches_id_alias_card_or_nearest() {
    let mut agents = described();
    agents[0].aliases = vec!["coder".to_owned()];
    // Its name is another agent's id: the id takes precedence.
    agents[1].name = "weather".to_owned();
    let index = Index::new(agents);
    for (name, id, by, meant) in [
        ("codex", "codex", WhyBy::Id, None),
        ("coder", "codex", WhyBy::Alias, None),
        ("weather", "weather", WhyBy::Id, None),
        ("polyglot", "translator", WhyBy::Name, None),
        ("Git Historian", "git-historian", WhyBy::Name, None),
        ("transaltor", "translator", WhyBy::NearName, Some("translator")),
        ("Polyglott", "translator", WhyBy::NearName, Some("Polyglot")),
    ] {
        let query = AgentQuery { name: Some(name.to_owned()), ..AgentQuery::default() };
        let found = index.find(&query, None).unwrap();
        assert_eq!(ids(&index, &found), [id], "{name}");
        assert_eq!(found.hits[0].why[0].by, by, "{name}");
        assert_eq!(found.did_you_mean.as_deref(), meant, "{name}");
    }
    let nobody = AgentQuery { name: Some("quartermaster".to_owned()), ..AgentQuery::default() };
    assert_eq!(index.find(&nobody, None).unwrap(), Found::default());
}

#[test]
fn all_criteria_must_hold() {
    let words = |all: &[&str]| all.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
    let query = AgentQuery::default;
    let skill = |id: &str| AgentQuery { skill: Some(id.to_owned()), ..query() };
    let all = AgentQuery { limit: 100, ..skill("*") };
    assert_eq!(found(&all).len(), cards().len());
    assert_eq!(found(&skill("translate")), ["translator"]);
    assert_eq!(found(&skill("translator/translate")), ["translator"]);
    assert!(found(&skill("codex/translate")).is_empty());
    assert_eq!(
        found(&AgentQuery { tags: words(&["git"]), ..query() }),
        ["git-historian", "pr-reviewer"]
    );
    assert_eq!(found(&AgentQuery { tags: words(&["git", "BLAME"]), ..query() }), ["git-historian"]);
    // The tag belongs to another skill.
    assert!(
        found(&AgentQuery { tags: words(&["charts"]), ..skill("statistical-analysis") }).is_empty()
    );
    let pictures = AgentQuery { output_modes: words(&["image/webp"]), ..query() };
    assert!(
        !found(&AgentQuery { limit: 100, ..pictures.clone() })
            .contains(&"data-analysis".to_owned())
    );
    assert_eq!(found(&AgentQuery { tags: words(&["design"]), ..pictures }), ["image-studio"]);
    let photo =
        AgentQuery { input_modes: words(&["image/jpeg"]), tags: words(&["accounting"]), ..query() };
    // The other accountant's card lists no accepted media types.
    assert_eq!(found(&photo), ["bookkeeper", "invoice-reader"]);
    assert_eq!(found(&AgentQuery { limit: 2, ..query() }), ["api-designer", "bookkeeper"]);
    // The agent with the tag does not match the words.
    assert!(
        found(&AgentQuery { tags: words(&["weather"]), ..asks("translate a letter") }).is_empty()
    );
}

#[test]
fn version_requirement_selects_agent_version() {
    let of = |id: &str, version: &str| Description {
        id: id.to_owned(),
        name: "Polyglot".to_owned(),
        version: version.to_owned(),
        ..Description::default()
    };
    let index = Index::new(vec![of("old", "1.3.0"), of("new", "2.1.0"), of("odd", "spring")]);
    let asked = |version: &str, allow_older: bool| AgentQuery {
        name: Some("Polyglot".to_owned()),
        version: Some(version.to_owned()),
        allow_older,
        ..AgentQuery::default()
    };
    let find = |version: &str, allow_older: bool| {
        let found = index.find(&asked(version, allow_older), None)?;
        Ok::<_, NotFound>((ids(&index, &found), found.older))
    };
    assert_eq!(find("1", false).unwrap(), (vec!["old".to_owned()], false));
    assert_eq!(find(">=2", false).unwrap(), (vec!["new".to_owned()], false));
    assert_eq!(find(">=1", true).unwrap(), (vec!["new".to_owned(), "old".to_owned()], false));
    assert_eq!(find("3", true).unwrap(), (vec!["new".to_owned(), "old".to_owned()], true));
    let refused = find("3", false).unwrap_err();
    insta::assert_snapshot!(refused.to_string(), @"no agent that fits is of version `3`; there are new 2.1.0, odd spring, old 1.3.0: ask for one of these versions, or take an older one with `allowOlder`");
    let NotFound::OtherVersions(there) = refused else { panic!("{refused}") };
    assert_eq!(there.agents[0], ("new".to_owned(), "2.1.0".to_owned()));
    assert!(there.some_are_older);
    // Newer versions do not count as older ones.
    let refused = find("0.9", true).unwrap_err();
    insta::assert_snapshot!(refused.to_string(), @"no agent that fits is of version `0.9`; there are new 2.1.0, odd spring, old 1.3.0: ask for one of these versions");
    assert!(find("newest", false).unwrap_err().to_string().contains("write it as"));
}

#[test]
fn known_similarity_ranks_by_meaning() {
    let index = Index::new(described());
    let place = |id: &str| index.agents().iter().position(|agent| agent.id == id).unwrap();
    let mut similar = vec![-0.1; index.agents().len()];
    similar[place("recipes")] = 0.9;
    similar[place("weather")] = 0.4;
    let found = index.find(&asks("something warm for a cold evening"), Some(&similar)).unwrap();
    assert_eq!(ids(&index, &found), ["recipes", "weather"]);
    assert_eq!(found.hits[0].why[0], because(WhyBy::Meaning, "0.900"));
}

/// An agent whose card repeats the query's words ranks behind one that has the skill.
#[test]
fn keyword_stuffing_does_not_raise_rank() {
    let all_tags: Vec<_> = cards()
        .iter()
        .flat_map(|(_, card)| card.skills.iter().flat_map(|skill| skill.tags.clone()))
        .collect();
    let skill = |tags: Value, text: &str| json!({"id": "do", "name": "Do", "description": text, "tags": tags});
    let words = "sql database query review translate weather security ";
    for (how, card) in [
        (
            "says it often",
            json!({"name": "Best", "description": words.repeat(2_000), "version": "1", "skills": []}),
        ),
        (
            "has all tags",
            json!({"name": "Best", "description": "Best", "version": "1", "skills": [skill(json!(all_tags), "all")]}),
        ),
        (
            "has a tag often",
            json!({"name": "Best", "description": "Best", "version": "1", "skills": [skill(json!(vec!["sql"; 50]), "all")]}),
        ),
        (
            "is called so",
            json!({"name": "sql ".repeat(300), "description": "sql", "version": "1", "skills": []}),
        ),
    ] {
        let mut agents = described();
        let card: AgentCard = serde_json::from_value(card).unwrap();
        agents.insert(0, Description::new("aaa-stuffed", Vec::new(), &card));
        let first = found_among(agents, &asks("ask the database with an sql query"));
        assert_eq!(first[0], "sql-analyst", "{how}");
    }
}

#[test]
fn hostile_card_is_read_in_part() {
    let huge = "x".repeat(1 << 20);
    let skill = |n: usize| json!({"id": format!("s{n}"), "name": huge[..1_000], "description": "\u{1b}[2J\u{202e}x", "tags": vec!["t"; 500]});
    let skills: Vec<_> = (0..1_000).map(skill).collect();
    let card = json!({"name": huge, "description": format!("{huge} a b\0c"), "version": huge, "skills": skills});
    let card: AgentCard = serde_json::from_value(card).unwrap();
    let hostile = Description::new("hostile", Vec::new(), &card);
    assert!(hostile.skills.len() <= 200 && hostile.text().len() <= 4_000);
    let index = Index::new(vec![hostile]);
    let query = AgentQuery { version: Some("1".to_owned()), ..AgentQuery::default() };
    let refused = index.find(&query, None).unwrap_err().to_string();
    assert!(refused.len() < 1_000 && plain_text::is_plain_line(&refused), "{refused}");
    let near = AgentQuery { name: Some("x".repeat(1_000)), ..asks(&huge) };
    assert_eq!(index.find(&near, None).unwrap(), Found::default());
}

proptest! {
    /// The order of the cards does not change the result, and no query fails.
    #[test]
    fn result_is_independent_of_card_order(text in "[a-z ]{0,60}", odd in ".{0,40}", seed in any::<u64>()) {
        let (mut turned, text) = (described(), format!("{text} {odd} git code meeting"));
        let count = turned.len();
        turned.rotate_left(usize::try_from(seed % count as u64).unwrap());
        prop_assert_eq!(found(&asks(&text)), found_among(turned, &asks(&text)));
    }
}
