//! Standing permissions: made of a question, used by later requests, and by no others.

use super::*;
use crate::tasks::{PermissionOperations, Questions};
use a2a_hub_core::access_control::Caller;
use a2a_hub_protocol::{
    operation::{
        AlwaysAnswer, ListedRule, NewRule, OpenQuestion, PastQuestion, QuestionAnswer,
        QuestionQuery, QuestionRequest, QuestionResult, RuleReport, RuleRequest,
    },
    permission::{Action, ActionPattern, PermissionRequest, RuleEffect},
};
use a2a_hub_runtime::port::tasks::RuleReply;

/// Directory of the tasks, in no repository.
const SHOP: &str = "/w/shop";

/// Terms of a rule that its maker thinks about.
const TERMS: AlwaysAnswer = AlwaysAnswer { trusts_workspace: true, for_ms: None };

fn request(words: &str) -> PermissionRequest {
    let commands = vec![words.split(' ').map(str::to_owned).collect()];
    let action = Action::Run { commands, directory: SHOP.to_owned() };
    PermissionRequest { vendor: "claude".to_owned(), outside_sandbox: false, action }
}

/// Agent whose program requests permission for each line of its message, one after the other, and
/// that completes with the answers. The line `call b` calls another agent with the rest.
fn requesting() -> Fake {
    Fake::new(|stage: Stage| async move {
        let text = stage.text();
        if let Some(lines) = text.strip_prefix("together\n") {
            let answers = join_all(lines.lines().map(|line| pose(&stage, request(line), line)));
            return completed(&answers.await.join(", "));
        }
        let mut answers = Vec::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(agent) = line.strip_prefix("call ") {
                let rest = lines.by_ref().collect::<Vec<_>>().join("\n");
                let message = Message::text(Role::User, &rest);
                let ended = stage.outcome_of(ChildRequest::new(agent, message)).await;
                answers.push(ended.map_or_else(|why| why.to_string(), |ended| told(&ended)));
                continue;
            }
            let request = request(line);
            let reply = match stage.port.apply_rules(&request, false).await {
                Ok(reply) => reply,
                Err(why) => return Ended::Failed(why),
            };
            answers.push(match reply {
                Some(RuleReply::Allowed(_)) => "by rule".to_owned(),
                Some(RuleReply::Denied(reason)) => reason,
                None => pose(&stage, request, line).await,
            });
        }
        completed(&answers.join(", "))
    })
}

/// Asks the client about a request, and returns the answer.
async fn pose(stage: &Stage, request: PermissionRequest, line: &str) -> String {
    let mut prompt = Message::text(Role::Agent, format!("{line}?"));
    let kind = json!({ "kind": "permission" });
    prompt.metadata = Some(Metadata::from_iter([("question".to_owned(), kind)]));
    let answer = stage.port.pose_request(request, prompt, None).await;
    answer.map_or_else(|why| why.to_string(), |answer| answer.message.joined_text())
}

impl Stand {
    async fn ask_questions(&self, by: &Principal, request: QuestionRequest) -> QuestionAnswer {
        Questions(&self.tasks, None).perform(&Caller::from(by), request).await.unwrap()
    }

    async fn only_question(&self) -> OpenQuestion {
        let query = QuestionQuery { kind: None, agent: None, limit: 100, offset: 0 };
        loop {
            let request = QuestionRequest::List(query.clone());
            let QuestionAnswer::List(open) =
                self.ask_questions(&Principal::Operator, request).await
            else {
                panic!("it is another answer")
            };
            if let Some(question) = open.questions.into_iter().next() {
                return question;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn answer_by(
        &self,
        by: &Principal,
        id: &QuestionId,
        always: Option<AlwaysAnswer>,
    ) -> QuestionResult {
        let (ids, answer) = (vec![id.clone()], "allow".to_owned());
        let request = QuestionRequest::Answer { ids, answer, always };
        let QuestionAnswer::Answered(mut results) = self.ask_questions(by, request).await else {
            panic!("it is another answer")
        };
        results.remove(0)
    }

    /// Allows the only question, always.
    async fn allow_always(&self) -> Vec<String> {
        let question = self.only_question().await;
        let result = self.answer_by(&Principal::Operator, &question.id, Some(TERMS)).await;
        assert!(result.answered, "{result:?}");
        result.rules
    }

    /// Allows the only question, once; it must be open.
    async fn allow_once(&self, text: &str) {
        let question = self.only_question().await;
        assert_eq!(question.text.lines().last(), Some(text));
        let result = self.answer_by(&Principal::Operator, &question.id, None).await;
        assert!(result.answered && result.rules.is_empty(), "{result:?}");
    }

    async fn change_rules(&self, request: RuleRequest) -> RuleReport {
        let by = Caller::from(Principal::Operator);
        PermissionOperations(&self.tasks).perform(&by, request).await.unwrap()
    }

    async fn rules(&self) -> Vec<ListedRule> {
        let RuleReport::List(list) = self.change_rules(RuleRequest::List).await else {
            panic!("it is another report")
        };
        list.rules
    }

    async fn history(&self) -> Vec<PastQuestion> {
        let request = QuestionRequest::History { limit: 100, before: None };
        let QuestionAnswer::History(past) = self.ask_questions(&Principal::Operator, request).await
        else {
            panic!("it is another answer")
        };
        past.questions
    }

    /// Begins a task of the operator in the directory.
    async fn work(&self, agents: &AgentIds, agent: &str, lines: &str) -> TaskId {
        self.work_for(agents, agent, lines, Principal::Operator).await
    }

    async fn work_for(&self, agents: &AgentIds, agent: &str, lines: &str, by: Principal) -> TaskId {
        let mut message = Message::text(Role::User, lines);
        let place = ("workingDirectory".to_owned(), SHOP.into());
        message.metadata = Some(Metadata::from_iter([place]));
        self.submit_by(agents.named(agent), message, by).await
    }
}

/// One yes answers the next requests of the task and of later tasks, without a question.
#[tokio::test(start_paused = true)]
async fn always_answers_later_requests() {
    for stand in Stand::each() {
        let agents = agents_of(&stand, &config(), &requesting());
        let lines = "cargo test --lib\n".repeat(10);
        let first = stand.work(&agents, "a", &lines).await;
        let rules = stand.allow_always().await;
        let done = stand.until(&first, TaskState::Completed).await;
        assert_eq!(said(&done), format!("allow{}", ", by rule".repeat(9)));
        let story = stand.story(&first).await;
        let used = format!("working “allowed by the standing permission {}: run cargo", rules[0]);
        assert_eq!(story.matches(&used).count(), 9, "{story}");
        assert_eq!(story.matches("input-required").count(), 1, "{story}");

        let next = stand.work(&agents, "a", "cargo test --lib").await;
        assert_eq!(said(&stand.until(&next, TaskState::Completed).await), "by rule");
        let listed = stand.rules().await;
        assert_eq!((listed.len(), listed[0].uses), (1, 10));
        let rule = &listed[0].rule;
        assert_eq!(
            (rule.repository.as_deref(), rule.principal.as_deref()),
            (Some(SHOP), Some("operator"))
        );
        assert!(
            listed[0].warning.is_some()
                && rule.from_question.is_some()
                && rule.expires_at.is_some()
        );
        let past = stand.history().await;
        let by_rule = past.iter().filter(|it| it.rule.as_ref() == Some(&rules[0])).count();
        assert_eq!((past.len(), by_rule), (11, 10));
        assert!(past[0].outcome == "allowed-by-rule" && past[0].text.contains("cargo test --lib"));

        // The next process knows it as well.
        let next_hub = stand.next_hub();
        next_hub.tasks.phase.up();
        let agents = agents_of(&next_hub, &config(), &requesting());
        let task = next_hub.work(&agents, "a", "cargo test --lib").await;
        assert_eq!(said(&next_hub.until(&task, TaskState::Completed).await), "by rule");

        // Taken back, it answers nothing.
        let ids = rules.clone();
        let RuleReport::Removed(removed) = next_hub.change_rules(RuleRequest::Remove { ids }).await
        else {
            panic!("it is another report")
        };
        assert_eq!(removed.removed, rules);
        let task = next_hub.work(&agents, "a", "cargo test --lib").await;
        next_hub.allow_once("cargo test --lib?").await;
        assert_eq!(said(&next_hub.until(&task, TaskState::Completed).await), "allow");
    }
}

/// Requests that were open before the rule was made are answered by it as well, and no others.
#[tokio::test(start_paused = true)]
async fn always_answers_open_requests_like_it() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &requesting());
    let lines = "together\ncargo test\ncargo test\ncargo fmt\ncargo test";
    let task = stand.work(&agents, "a", lines).await;
    let other = stand.work(&agents, "b", "cargo test").await;
    stand.until(&other, TaskState::InputRequired).await;
    stand.until(&task, TaskState::InputRequired).await;
    let question = stand.only_question().await;
    assert_eq!((question.agent_id.as_str(), question.text.as_str()), ("a", "cargo test?"));
    let result = stand.answer_by(&Principal::Operator, &question.id, Some(TERMS)).await;
    assert_eq!((result.answered, result.also_allowed.len()), (true, 2), "{result:?}");
    stand.until(&other, TaskState::InputRequired).await;
    loop {
        let question = stand.only_question().await;
        let result = stand.answer_by(&Principal::Operator, &question.id, None).await;
        assert!(result.answered);
        if question.text == "cargo fmt?" {
            break;
        }
    }
    let done = stand.until(&task, TaskState::Completed).await;
    assert_eq!(said(&done), "allow, allow, allow, allow");
}

/// A rule answers for its agent, its words, its principal and its way only.
#[tokio::test(start_paused = true)]
async fn rule_answers_no_similar_request() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &requesting());
    let first = stand.work(&agents, "a", "cargo test --lib").await;
    stand.allow_always().await;
    stand.until(&first, TaskState::Completed).await;
    for (agent, lines, by) in [
        ("b", "cargo test --lib", Principal::Operator),
        ("a", "cargo test", Principal::Operator),
        ("a", "cargo test --lib", Principal::OperatorToken),
        ("a", "cargo test --lib", Principal::Automation { name: "hook".to_owned() }),
        ("b", "call a\ncargo test --lib", Principal::Operator),
    ] {
        let line = lines.lines().last().unwrap();
        let task = stand.work_for(&agents, agent, lines, by.clone()).await;
        stand.allow_once(&format!("{line}?")).await;
        let done = stand.until(&task, TaskState::Completed).await;
        assert_eq!(said(&done), "allow", "{agent} {lines} {by}");
    }
    // Through another agent it needs a rule that names this one.
    let through = stand.work(&agents, "b", "call a\ncargo test --lib").await;
    stand.allow_always().await;
    stand.until(&through, TaskState::Completed).await;
    let through = stand.work(&agents, "b", "call a\ncargo test --lib").await;
    assert_eq!(said(&stand.until(&through, TaskState::Completed).await), "by rule");
    let rules = stand.rules().await;
    assert_eq!(rules[0].rule.through, [AgentId::parse("b").unwrap()]);
}

/// A rule that denies precedes one that allows, and the agent reads its text.
#[tokio::test(start_paused = true)]
async fn denying_rule_reaches_agent_as_text() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &requesting());
    let task = stand.work(&agents, "a", "npm install").await;
    stand.allow_always().await;
    stand.until(&task, TaskState::Completed).await;
    let deny = NewRule {
        effect: RuleEffect::Deny,
        pattern: ActionPattern::Run {
            words: vec!["npm".to_owned(), "**".to_owned()],
            directory: "**".to_owned(),
        },
        text: Some("use pnpm".to_owned()),
        agent: None,
        through: Vec::new(),
        vendor: None,
        outside_sandbox: false,
        directory: None,
        principal: None,
        trusts_workspace: false,
        for_ms: 0,
    };
    stand.change_rules(RuleRequest::Add(Box::new(deny.clone()))).await;
    let task = stand.work(&agents, "b", "npm test").await;
    assert_eq!(said(&stand.until(&task, TaskState::Completed).await), "use pnpm");
    let task = stand.work(&agents, "a", "npm install").await;
    assert_eq!(said(&stand.until(&task, TaskState::Completed).await), "use pnpm");
    assert_eq!(stand.history().await[0].outcome, "denied-by-rule");

    // A rule that allows everybody everything is refused.
    let allow = NewRule { effect: RuleEffect::Allow, text: None, ..deny };
    let by = Caller::from(Principal::Operator);
    let request = RuleRequest::Add(Box::new(allow));
    let refused = PermissionOperations(&stand.tasks).perform(&by, request).await;
    let refused = A2aError::from(refused.unwrap_err()).to_string();
    assert!(refused.contains("needs agent"), "{refused}");
    assert_eq!(stand.rules().await.len(), 2);
}

/// A rule that cannot be made allows nothing, and neither does one whose question is closed.
#[tokio::test(start_paused = true)]
async fn refused_always_answers_nothing() {
    let stand = Stand::new();
    let agents = agents_of(&stand, &config(), &requesting());
    let by = Principal::Client("default".to_owned());
    let task = stand.work(&agents, "a", "cargo test\nsh x.sh").await;
    let question = stand.only_question().await;
    let untrusting = AlwaysAnswer { trusts_workspace: false, ..TERMS };
    for (by, terms, why) in [
        (&Principal::Operator, untrusting, "--trust-workspace"),
        (&by, TERMS, "needs the operator"),
        (&by, AlwaysAnswer { for_ms: Some(0), ..untrusting }, "needs the operator"),
    ] {
        let result = stand.answer_by(by, &question.id, Some(terms)).await;
        assert!(!result.answered && result.error.as_ref().unwrap().contains(why), "{result:?}");
    }
    assert_eq!(stand.only_question().await.id, question.id, "it is still open");
    stand.allow_once("cargo test?").await;
    let result = stand.answer_by(&Principal::Operator, &question.id, Some(TERMS)).await;
    assert!(!result.answered, "{result:?}");
    let launcher = stand.only_question().await;
    let result = stand.answer_by(&Principal::Operator, &launcher.id, Some(TERMS)).await;
    assert!(!result.answered, "a shell runs anything: {result:?}");
    stand.allow_once("sh x.sh?").await;
    assert_eq!(said(&stand.until(&task, TaskState::Completed).await), "allow, allow");
    assert_eq!(stand.rules().await, []);
}

/// Repeated answers suggest a rule, which answers as they did; a denial suggests nothing.
#[tokio::test(start_paused = true)]
async fn repeated_answers_suggest_rule() {
    for stand in Stand::each() {
        let agents = agents_of(&stand, &config(), &requesting());
        let task = stand.work(&agents, "a", "mkdir out\nmkdir out\nrm out\nmkdir out").await;
        for text in ["mkdir out?", "mkdir out?", "rm out?", "mkdir out?"] {
            stand.allow_once(text).await;
        }
        stand.until(&task, TaskState::Completed).await;
        let RuleReport::Suggested(suggested) = stand.change_rules(RuleRequest::Suggest).await
        else {
            panic!("it is another report")
        };
        assert_eq!((suggested.requests, suggested.answered), (4, 3), "{suggested:?}");
        let [rule] = &suggested.rules[..] else { panic!("{suggested:?}") };
        assert_eq!((rule.answers, rule.trusts_workspace), (3, false));
        assert_eq!(rule.repository.as_deref(), Some(SHOP));
    }
}
