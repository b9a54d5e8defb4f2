//! Tests of the selection of agents for groups and skills.

use super::*;
use a2a_hub_protocol::{id::TaskId, operation::HealthStatus};
use proptest::{prelude::*, sample::subsequence};
use std::{collections::BTreeMap, time::Duration};

fn id(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

fn agent(name: &str) -> Candidate {
    Candidate {
        agent: id(name),
        is_granted: true,
        skills: vec!["review".to_owned()],
        version: "1.0.0".to_owned(),
        unfit: None,
        health: HealthStatus::Healthy,
        is_open: false,
        is_over_quota: false,
        load: 0,
        latency: None,
        last_turn: 0,
        holds_context: false,
    }
}

fn group() -> Wanted {
    Wanted { named: Some(id("reviewer")), ..Wanted::default() }
}

fn skill(skill: &str, version: Option<&str>, allow_older: bool) -> Wanted {
    let version = version.map(|text| Requirement::parse(text).unwrap());
    Wanted { named: None, skill: Some(skill.to_owned()), version, allow_older }
}

/// Order in which the agents are tried.
fn order(candidates: &[Candidate], wanted: &Wanted, balance: Balance) -> Vec<String> {
    let choice = choose(candidates, wanted, balance, None).unwrap();
    choice.order.iter().map(|it| it.agent.to_string()).collect()
}

#[test]
fn each_strategy_orders_agents_differently() {
    let ms = |ms| Some(Duration::from_millis(ms));
    let all = [
        Candidate { load: 2, latency: ms(100), last_turn: 1, ..agent("quick-and-busy") },
        Candidate { load: 0, latency: ms(800), last_turn: 2, ..agent("slow") },
        Candidate { load: 1, latency: ms(200), last_turn: 3, ..agent("fair") },
    ];
    let by = |balance| order(&all, &group(), balance);
    assert_eq!(by(Balance::RoundRobin), ["quick-and-busy", "slow", "fair"]);
    assert_eq!(by(Balance::LeastLoaded), ["slow", "fair", "quick-and-busy"]);
    assert_eq!(by(Balance::Latency), ["quick-and-busy", "fair", "slow"]);
    assert_eq!(by(Balance::Affinity), by(Balance::RoundRobin), "there is no conversation yet");
    let fresh = [all.as_slice(), &[agent("new")]].concat();
    assert_eq!(order(&fresh, &group(), Balance::Latency)[0], "new", "nothing is known of it");
    let hangs = [all.as_slice(), &[Candidate { load: 1, ..agent("new") }]].concat();
    assert_ne!(
        order(&hangs, &group(), Balance::Latency)[0],
        "new",
        "it has a task that says nothing"
    );
}

#[test]
fn unhealthy_agents_come_last_open_never() {
    let all = [
        Candidate { health: HealthStatus::Unhealthy, ..agent("a") },
        Candidate { health: HealthStatus::Degraded, ..agent("b") },
        Candidate { health: HealthStatus::Unknown, last_turn: 9, ..agent("c") },
        Candidate { is_open: true, ..agent("d") },
        Candidate { unfit: Some("it takes no image/png".to_owned()), ..agent("e") },
        Candidate { is_granted: false, ..agent("f") },
        Candidate { skills: Vec::new(), ..agent("g") },
        Candidate { is_over_quota: true, ..agent("h") },
    ];
    let wanted = Wanted { skill: Some("review".to_owned()), ..group() };
    let choice = choose(&all, &wanted, Balance::RoundRobin, None).unwrap();
    let refused = PassedOver {
        task: Some(TaskId::new("t")),
        ..PassedOver::new(&id("c"), NotChosen::Rejected, "no".to_owned())
    };
    let told = choice.explain(1, &wanted, &[refused]).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&told).unwrap(), @r#"
    {
      "named": "reviewer",
      "skill": "review",
      "agent": "b",
      "agentVersion": "1.0.0",
      "balance": "round-robin",
      "passedOver": [
        {
          "agent": "c",
          "reason": "rejected",
          "why": "no",
          "task": "t"
        },
        {
          "agent": "h",
          "reason": "health",
          "why": "its quota was used up a short time ago, or nobody was logged in"
        },
        {
          "agent": "a",
          "reason": "health",
          "why": "it is unhealthy"
        },
        {
          "agent": "d",
          "reason": "breaker",
          "why": "it failed repeatedly, and is left alone for a while"
        },
        {
          "agent": "e",
          "reason": "unfit",
          "why": "it takes no image/png"
        },
        {
          "agent": "g",
          "reason": "skill",
          "why": "it has no skill `review`"
        }
      ]
    }
    "#);
    assert_eq!(choice.explain(4, &wanted, &[]), None);
}

#[test]
fn each_strategy_explains_passed_over_agents() {
    let ms = |ms| Some(Duration::from_millis(ms));
    let all = [
        Candidate { load: 1, latency: ms(100), holds_context: true, ..agent("a") },
        Candidate { load: 2, latency: ms(300), ..agent("b") },
        Candidate { load: 3, latency: None, ..agent("c") },
    ];
    let context = ContextId::new("x");
    let said = [Balance::RoundRobin, Balance::LeastLoaded, Balance::Latency, Balance::Affinity];
    let said = said.map(|balance| {
        let choice = choose(&all, &group(), balance, Some(&context)).unwrap();
        let told = choice.explain(0, &group(), &[]).unwrap();
        let mut whys: Vec<_> =
            told.passed_over.iter().map(|it| format!("{}: {}", it.agent, it.why)).collect();
        whys.sort();
        format!("{balance}: {}; {}", told.agent, whys.join("; "))
    });
    insta::assert_snapshot!(said.join("\n"), @"
    round-robin: a; b: its turn comes later; c: its turn comes later
    least-loaded: a; b: 2 of its tasks run or wait, against 1; c: 3 of its tasks run or wait, against 1
    latency: a; b: its first word takes about 300 ms, and it has 2 tasks; c: it has 3 tasks and said nothing yet
    affinity: a; b: the conversation is with the other; c: the conversation is with the other
    ");
}

#[test]
fn older_version_needs_permission() {
    let of = |name, version: &str| Candidate { version: version.to_owned(), ..agent(name) };
    let old = [of("a", "1.3.0"), of("b", "v1.4"), of("c", "winter"), of("d", "3.0.0")];
    let said = |candidates: &[Candidate], version, allow| match choose(
        candidates,
        &skill("review", Some(version), allow),
        Balance::RoundRobin,
        None,
    ) {
        Ok(choice) => {
            let order: Vec<_> = choice.order.iter().map(|it| it.agent.as_str()).collect();
            format!("{}{}", order.join(" "), if choice.is_older { " (older)" } else { "" })
        }
        Err(why) => why.to_string(),
    };
    let with_new = [old.as_slice(), &[of("e", "2.1.0")]].concat();
    insta::assert_snapshot!([
        said(&with_new, "2", false),
        said(&with_new, "2", true),
        said(&old, "2", false),
        said(&old, "2", true),
        said(&old, "4", true),
        said(&old[2..], "2", true),
    ].join("\n"), @"
    e
    e
    find an agent with the skill `review` in version `2`: there are older versions only: `b` has v1.4, `a` has 1.3.0; name a version that there is, or say `allowOlder`
    b a (older)
    d b a (older)
    find an agent with the skill `review` in version `2`: `c`: its version is `winter`, and `2` is asked for; `d`: its version is `3.0.0`, and `2` is asked for
    ");
}

#[test]
fn missing_candidate_is_explained() {
    let hidden = Candidate { is_granted: false, skills: vec!["secret".to_owned()], ..agent("a") };
    let of = |candidates: &[Candidate], wanted: &Wanted| {
        choose(candidates, wanted, Balance::RoundRobin, None).unwrap_err().to_string()
    };
    let none = choose(
        &[hidden.clone(), agent("b")],
        &skill("secret", None, false),
        Balance::RoundRobin,
        None,
    );
    let Err(NoCandidate::NoSkill { there, .. }) = none else { panic!("{none:?}") };
    assert_eq!(there, ["review"]);
    assert_eq!(of(&[hidden], &group()), "no agent of `reviewer` is available");
    let open = [Candidate { is_open: true, ..agent("a") }];
    assert_eq!(
        of(&open, &group()),
        "find an agent of `reviewer`: `a`: it failed repeatedly, and is left alone for a while"
    );
}

#[test]
fn context_stays_with_agent_until_it_leaves() {
    let names = ["a", "b", "c", "d", "e"];
    let all: Vec<_> = names.iter().map(|name| agent(name)).collect();
    let first = |candidates: &[Candidate], context: &str| {
        let context = ContextId::new(context);
        let choice = choose(candidates, &group(), Balance::Affinity, Some(&context)).unwrap();
        choice.order[0].agent.clone()
    };
    let contexts: Vec<_> = (0..1_000).map(|n| format!("context-{n}")).collect();
    let without_c: Vec<_> = all.iter().filter(|it| it.agent != id("c")).cloned().collect();
    let mut counts = BTreeMap::<AgentId, usize>::new();
    for context in &contexts {
        let before = first(&all, context);
        if before != id("c") {
            assert_eq!(first(&without_c, context), before, "it had no reason to move");
        }
        *counts.entry(before).or_default() += 1;
    }
    assert!(counts.len() == 5 && counts.values().all(|n| (140..=260).contains(n)), "{counts:?}");
    let mut held = all;
    held[4].holds_context = true;
    assert!(contexts.iter().all(|context| first(&held, context) == id("e")));
}

fn any_candidate(name: String) -> impl Strategy<Value = Candidate> {
    let health = prop_oneof![
        Just(HealthStatus::Healthy),
        Just(HealthStatus::Degraded),
        Just(HealthStatus::Unhealthy),
        Just(HealthStatus::Unknown),
    ];
    let flags =
        (any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.9), any::<bool>());
    let skills = subsequence(vec!["review".to_owned(), "write".to_owned()], 0..=2);
    let version = prop_oneof![Just("1.2.0"), Just("2.0.0"), Just("2.1.0"), Just("winter")];
    (health, flags, skills, version, 0..3_usize, prop::option::of(0..3_000_u64), 0..4_u64).prop_map(
        move |(
            health,
            (is_open, is_over_quota, holds_context, is_granted, is_unfit),
            skills,
            version,
            load,
            latency,
            last_turn,
        )| Candidate {
            agent: id(&name),
            is_granted,
            skills,
            version: version.to_owned(),
            unfit: (is_unfit && is_open).then(|| "unfit".to_owned()),
            health,
            is_open,
            is_over_quota,
            load,
            latency: latency.map(Duration::from_millis),
            last_turn,
            holds_context,
        },
    )
}

fn any_candidates() -> impl Strategy<Value = Vec<Candidate>> {
    let each = ["a", "b", "c", "d", "e"].map(|name| any_candidate(name.to_owned()));
    each.prop_flat_map(|all| subsequence(all.to_vec(), 0..=5))
}

fn any_balance() -> impl Strategy<Value = Balance> {
    prop_oneof![
        Just(Balance::RoundRobin),
        Just(Balance::LeastLoaded),
        Just(Balance::Latency),
        Just(Balance::Affinity),
    ]
}

fn any_wanted() -> impl Strategy<Value = Wanted> {
    let version = prop::option::of(prop_oneof![Just("2"), Just("2.1"), Just("*")]);
    (any::<bool>(), prop::option::of("review|write"), version, any::<bool>()).prop_map(
        |(is_group, skill, version, allow_older)| Wanted {
            named: (is_group || skill.is_none()).then(|| id("reviewer")),
            skill,
            version: version.map(|text| Requirement::parse(text).unwrap()),
            allow_older,
        },
    )
}

proptest! {
    /// No candidate is tried whose breaker is open, that the caller may not use, or that cannot
    /// handle the message. Each possible candidate is either tried or listed with a reason.
    #[test]
    fn every_candidate_is_tried_or_explained(
        all in any_candidates(), wanted in any_wanted(), balance in any_balance(), context in prop::option::of("[a-c]"),
    ) {
        let context = context.map(ContextId::new);
        if let Ok(choice) = choose(&all, &wanted, balance, context.as_ref()) {
            prop_assert!(!choice.order.is_empty());
            for it in &choice.order {
                prop_assert!(it.is_granted && !it.is_open && it.unfit.is_none());
                prop_assert!(wanted.skill.as_ref().is_none_or(|skill| it.skills.contains(skill)));
                let met = wanted.version.as_ref().is_none_or(|required| {
                    version_of(it).is_some_and(|its| required.is_met_by(&its))
                });
                let will_do = if choice.is_older { wanted.allow_older && !met } else { met };
                prop_assert!(will_do);
            }
            let told = choice.explain(0, &wanted, &[]).unwrap();
            let mut named: Vec<_> = told.passed_over.iter().map(|it| it.agent.clone()).collect();
            named.push(told.agent);
            named.sort();
            let asked = all.iter().filter(|it| it.is_granted);
            let asked = asked.filter(|it| wanted.named.is_some() || wanted.skill.as_ref().is_some_and(|skill| it.skills.contains(skill)));
            prop_assert_eq!(named, asked.map(|it| it.agent.clone()).collect::<Vec<_>>());
        }
    }

    /// The order in which agents are listed does not change the selection.
    #[test]
    fn selection_is_stable_under_reordering(
        (all, mixed) in any_candidates().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle())),
        wanted in any_wanted(), balance in any_balance(), context in prop::option::of("[a-c]"),
    ) {
        let context = context.map(ContextId::new);
        let of = |candidates: &[Candidate]| choose(candidates, &wanted, balance, context.as_ref());
        prop_assert_eq!(of(&all), of(&mixed));
    }

    /// Between two turns of an agent, all others that were available had a turn. So agents that are
    /// always available differ by at most one turn.
    #[test]
    fn round_robin_is_fair_within_one_turn(rounds in prop::collection::vec(subsequence(vec!["a", "b", "c", "d"], 0..=3), 1..60)) {
        let (mut turns, wanted) = (Turns::default(), group());
        let round = wanted.route();
        let names = ["a", "b", "c", "d"];
        // For each agent since its last turn: the others that were available each time and were not
        // selected.
        let mut passed: BTreeMap<&str, Option<Vec<&str>>> = names.map(|name| (name, None)).into();
        let mut steady = BTreeMap::<&str, usize>::new();
        let always: Vec<_> = names.into_iter().filter(|name| rounds.iter().all(|away| !away.contains(name))).collect();
        for away in &rounds {
            let there: Vec<_> = names.into_iter().filter(|name| !away.contains(name)).collect();
            let all: Vec<_> = names.map(|name| Candidate {
                is_open: away.contains(&name), last_turn: turns.last(&round, &id(name)), ..agent(name)
            }).into();
            let choice = choose(&all, &wanted, Balance::RoundRobin, None).unwrap();
            let chosen = names.into_iter().find(|name| *name == choice.order[0].agent.as_str()).unwrap();
            turns.takes(&round, &choice.order[0].agent);
            for (name, waits) in &mut passed {
                if let Some(waits) = waits {
                    waits.retain(|other| there.contains(other) && *other != chosen);
                    if *name == chosen {
                        prop_assert!(waits.is_empty(), "{waits:?} waited all the time, and {chosen} had two turns");
                    }
                }
                if *name == chosen {
                    *waits = Some(names.into_iter().filter(|other| *other != chosen).collect());
                }
            }
            *steady.entry(chosen).or_default() += 1;
        }
        if rounds.iter().all(Vec::is_empty) {
            let counts: Vec<_> = always.iter().map(|name| steady.get(name).copied().unwrap_or_default()).collect();
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
        }
    }
}
