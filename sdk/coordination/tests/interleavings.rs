//! Properties of the flow engine over random flows, ends and orders of events.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use a2a_hub_coordination::flow::{
    ChildEnd, Definition, Finish, FlowAction, FlowEvent, FlowState, Id, Role,
};
use proptest::prelude::*;
use serde_json::json;

/// Random step: bits of earlier steps that it needs, and its other keys.
#[derive(Clone, Debug)]
struct Sketch {
    needs: u8,
    any: bool,
    retries: u32,
    fails: u8,
    undone: bool,
    /// Cap of a `goto` to the first step that it needs.
    back: u32,
    each: bool,
}

fn sketch() -> impl Strategy<Value = Sketch> {
    (any::<u8>(), any::<bool>(), 0..3_u32, 0..8_u8, any::<bool>(), 0..3_u32, any::<bool>())
        .prop_map(|(needs, any, retries, fails, undone, back, each)| Sketch {
            needs,
            any,
            retries,
            fails,
            undone,
            back,
            each,
        })
}

fn needs(step: usize, sketch: &Sketch) -> Vec<usize> {
    (0..step).filter(|need| sketch.needs & (1 << need) != 0).collect()
}

/// Flow file of these steps.
fn file(sketches: &[Sketch]) -> String {
    let mut text = "description = \"random\"\n".to_owned();
    for (step, sketch) in sketches.iter().enumerate() {
        let needs = needs(step, sketch);
        let ids: Vec<_> = needs.iter().map(|need| format!("\"s{need}\"")).collect();
        let _ = writeln!(
            text,
            "[[step]]\nid = \"s{step}\"\nagent = \"a{step}\"\nneeds = [{}]",
            ids.join(", ")
        );
        let seen: Vec<_> =
            needs.iter().map(|need| format!("{{{{ steps.s{need}.text | data }}}}")).collect();
        let _ = writeln!(text, "prompt = \"do {}\"", seen.join(" "));
        if sketch.any && !needs.is_empty() {
            text.push_str("join = \"any\"\n");
        }
        if sketch.retries > 0 {
            let _ = writeln!(text, "retry = {{ times = {}, backoff = \"1s\" }}", sketch.retries);
        }
        if sketch.undone {
            text.push_str("compensate = { agent = \"undo\", prompt = \"undo\" }\n");
        }
        if sketch.each {
            text.push_str("for_each = \"[1, 2, 3]\"\nconcurrency = 2\n");
        }
        if let (Some(first), true) = (needs.first(), sketch.back > 0) {
            let _ = writeln!(
                text,
                "next = [{{ goto = \"s{first}\", max = {}, at_max = \"continue\" }}]",
                sketch.back
            );
        }
    }
    text
}

/// End of a child: the same whenever it comes.
fn end_of(id: Id, sketches: &[Sketch]) -> ChildEnd {
    let chance = id.step * 7 + id.item * 5 + id.attempt as usize * 3 + id.round as usize;
    let fails = id.role == Role::Work && sketches[id.step].fails == 1 && !chance.is_multiple_of(3);
    let (completed, text) = (!fails, format!("end of {id}"));
    ChildEnd { completed, text, reason: "agent_failed".to_owned(), ..ChildEnd::default() }
}

/// A run with random order of events, and what was checked on its way.
struct Walk {
    journal: Vec<FlowEvent>,
    actions: Vec<Vec<FlowAction>>,
    finish: Option<Finish>,
}

fn begin(sketches: &[Sketch]) -> FlowState {
    let definition = Definition::parse(&file(sketches))
        .unwrap_or_else(|why| panic!("{why:?}\n{}", file(sketches)));
    FlowState::new(definition, json!({}), "task")
}

fn walk(sketches: &[Sketch], order: &[usize]) -> Walk {
    let mut state = begin(sketches);
    let mut walk = Walk { journal: Vec::new(), actions: Vec::new(), finish: None };
    let mut open = BTreeMap::<Id, bool>::new();
    let mut done = BTreeSet::new();
    let mut event = FlowEvent::Begun;
    for turn in 0..5_000 {
        walk.journal.push(event.clone());
        let actions = state.step(event);
        for action in &actions {
            assert!(walk.finish.is_none(), "nothing comes after the end");
            match action {
                FlowAction::Call { id, .. } => {
                    assert!(open.insert(*id, true).is_none(), "{id} is called once");
                    check_needs(*id, sketches, &done);
                }
                FlowAction::Wait { id, .. } => assert!(open.insert(*id, false).is_none()),
                FlowAction::Cancel(id) => assert!(open.remove(id).is_some(), "{id} was open"),
                FlowAction::Finish(finish) => walk.finish = Some(finish.clone()),
                FlowAction::Say(_) | FlowAction::Send { .. } => {}
                FlowAction::Ask { .. } => panic!("no step asks"),
            }
        }
        walk.actions.push(actions);
        assert_eq!(open.len(), state.open());
        if walk.finish.is_some() {
            assert!(open.is_empty(), "every child is joined or cancelled: {open:?}");
            return walk;
        }
        let which = order[turn % order.len()] % open.len();
        let (id, is_call) = open.iter().nth(which).map(|(id, is)| (*id, *is)).unwrap();
        open.remove(&id);
        event = if is_call {
            let end = end_of(id, sketches);
            if end.completed && id.role == Role::Work {
                done.insert(id.step);
            }
            FlowEvent::Ended(id, end)
        } else {
            FlowEvent::Rang(id)
        };
    }
    panic!("it never ends: {}", file(sketches));
}

/// No step before its needs, and no cap is passed.
fn check_needs(id: Id, sketches: &[Sketch], done: &BTreeSet<usize>) {
    let sketch = &sketches[id.step];
    let needs = needs(id.step, sketch);
    let there = needs.iter().filter(|need| done.contains(need)).count();
    let least = if sketch.any { needs.len().min(1) } else { needs.len() };
    assert!(there >= least, "{id} needs {needs:?}, and {done:?} are done");
    let caps: u32 = sketches.iter().map(|sketch| sketch.back).sum();
    assert!(id.round <= caps + 1, "{id} is beyond the caps");
}

proptest! {
    #[test]
    fn any_order_ends_with_nothing_open(
        sketches in prop::collection::vec(sketch(), 1..7),
        order in prop::collection::vec(0..64_usize, 1..40),
    ) {
        let walk = walk(&sketches, &order);
        prop_assert!(walk.finish.is_some());
    }

    #[test]
    fn replayed_prefix_continues_alike(
        sketches in prop::collection::vec(sketch(), 1..7),
        order in prop::collection::vec(0..64_usize, 1..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let first = walk(&sketches, &order);
        let mut again = begin(&sketches);
        let cut = cut.index(first.journal.len());
        for (event, actions) in first.journal.iter().zip(&first.actions).take(cut) {
            prop_assert_eq!(&again.step(event.clone()), actions);
        }
        // A late end of a child that was cancelled changes nothing.
        for action in first.actions.iter().take(cut).flatten() {
            if let FlowAction::Cancel(id) = action {
                prop_assert_eq!(again.step(FlowEvent::Ended(*id, end_of(*id, &sketches))), vec![]);
            }
        }
        for (event, actions) in first.journal.iter().zip(&first.actions).skip(cut) {
            prop_assert_eq!(&again.step(event.clone()), actions);
        }
    }

    #[test]
    fn outcome_does_not_depend_on_order(
        mut sketches in prop::collection::vec(sketch(), 1..7),
        orders in prop::collection::vec(prop::collection::vec(0..64_usize, 1..40), 2),
    ) {
        for sketch in &mut sketches {
            (sketch.any, sketch.back) = (false, 0);
        }
        let ends = orders.iter().map(|order| walk(&sketches, order).finish.unwrap());
        let ends: Vec<_> = ends.collect();
        prop_assert_eq!(ends[0].completed, ends[1].completed);
        if ends[0].completed {
            prop_assert_eq!(&ends[0], &ends[1]);
        }
    }
}
