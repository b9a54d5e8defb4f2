//! Queries to other registries: in parallel, with a short timeout, a short-lived cache and a
//! circuit breaker. A queried registry does not query others (one hop).

use crate::finder::listed::{self, Listed};
use a2a_hub_client::{Outbound, fetch};
use a2a_hub_config::{self as config, Registry};
use a2a_hub_core::health::circuit_breaker::{BreakerSettings, CircuitBreaker, Evidence, Outcome};
use a2a_hub_protocol::{
    foreign,
    hub::registry::{HOPS, write_query},
    id::AgentId,
    operation::{AgentQuery, UnaskedRegistry},
};
use bytes::Bytes;
use futures::future::join_all;
use http::{HeaderValue, Request, StatusCode, header::AUTHORIZATION};
use http_body_util::Full;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// Timeout of one registry: a caller waits for it.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Lifetime of a cached answer.
const FRESH: Duration = Duration::from_secs(30);

/// Number of cached answers.
const MAX_CACHED: usize = 64;

/// Client of other registries.
#[derive(Default)]
pub(crate) struct Registries {
    outbound: Mutex<Option<Outbound>>,
    cache: Mutex<VecDeque<CachedAnswer>>,
    breakers: Mutex<BTreeMap<(AgentId, String), CircuitBreaker>>,
}

struct CachedAnswer {
    url: String,
    until: Instant,
    listed: Arc<Vec<Listed>>,
}

/// Reason why a registry returned no agents.
#[derive(Debug, thiserror::Error)]
enum RegistryFailure {
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Late,
    #[error("{0}")]
    Lost(#[from] a2a_hub_client::ClientError),
    #[error("it answered with HTTP status {0}")]
    Status(StatusCode),
    #[error("it answered with no list of agents")]
    Unreadable,
    #[error("its token is not set: the variable `{0}`")]
    Token(String),
    #[error("it cannot be asked: {0}")]
    Request(#[from] http::Error),
}

/// True if the body is an A2A refusal, as opposed to the page of a server that is not a registry.
fn is_refusal(body: &Bytes) -> bool {
    let body = foreign::read(body).ok();
    body.is_some_and(|body| body["error"]["status"] == "NOT_FOUND")
}

impl Registries {
    /// Agents that each registry lists for the query, by its name; and the registries that failed,
    /// with the reason.
    pub(crate) async fn ask(
        &self,
        registries: &BTreeMap<AgentId, Registry>,
        settings: BreakerSettings,
        query: &AgentQuery,
    ) -> (Vec<(AgentId, Arc<Vec<Listed>>)>, Vec<UnaskedRegistry>) {
        let requests = registries.iter().map(|(name, registry)| async move {
            (name.clone(), self.ask_one(name, registry, settings, query).await)
        });
        let (mut listings, mut untold) = (Vec::new(), Vec::new());
        for (registry, answer) in join_all(requests).await {
            match answer {
                Ok(listed) => listings.push((registry, listed)),
                Err(why) => untold.push(UnaskedRegistry { registry, why }),
            }
        }
        (listings, untold)
    }

    async fn ask_one(
        &self,
        name: &AgentId,
        registry: &Registry,
        settings: BreakerSettings,
        query: &AgentQuery,
    ) -> Result<Arc<Vec<Listed>>, String> {
        let url = format!("{}?{}", registry.agents_url(), write_query(query));
        if let Some(known) = self.known(&url) {
            return Ok(known);
        }
        let key = (name.clone(), registry.url.clone());
        let judge = |apply: &mut dyn FnMut(&mut CircuitBreaker)| {
            let mut breakers = self.breakers.lock();
            apply(breakers.entry(key.clone()).or_insert_with(|| CircuitBreaker::new(settings)));
        };
        let now = Instant::now().into_std();
        let mut admitted = Ok(());
        judge(&mut |breaker| admitted = breaker.admit(now));
        if let Err(until) = admitted {
            let remaining = until.saturating_duration_since(now).as_secs() + 1;
            return Err(format!("it failed again and again, and is tried again in {remaining} s"));
        }
        let answer = timeout(TIMEOUT, self.fetch(registry, &url))
            .await
            .unwrap_or(Err(RegistryFailure::Late));
        let outcome = match &answer {
            Ok(_) => Outcome::Success(Evidence::Task),
            Err(_) => Outcome::Failure(Evidence::Task),
        };
        let now = Instant::now().into_std();
        judge(&mut |breaker| breaker.record(outcome, now));
        let listed = Arc::new(answer.map_err(|why| {
            tracing::warn!(registry = %name, %why, "cannot list agents of a registry");
            why.to_string()
        })?);
        self.store(url, &listed);
        Ok(listed)
    }

    async fn fetch(&self, registry: &Registry, url: &str) -> Result<Vec<Listed>, RegistryFailure> {
        let mut request = Request::get(url).header(HOPS, "1");
        if let Some(name) = &registry.token_env {
            let found = config::environment(&BTreeSet::from([name.clone()])).pop();
            let token = found
                .map(|(_, token)| token)
                .ok_or_else(|| RegistryFailure::Token(name.clone()))?;
            let token = HeaderValue::from_str(&format!("Bearer {token}"));
            let mut token = token.map_err(|_| RegistryFailure::Token(name.clone()))?;
            token.set_sensitive(true);
            request = request.header(AUTHORIZATION, token);
        }
        let outbound = self.outbound.lock().get_or_insert_with(Outbound::unguarded).clone();
        let answer = fetch(&outbound, request.body(Full::new(Bytes::new()))?, TIMEOUT).await?;
        match answer.status() {
            // No agent of that version, reported in the form of A2A.
            StatusCode::NOT_FOUND if is_refusal(answer.body()) => Ok(Vec::new()),
            status if status.is_success() => {
                let body = foreign::read(answer.body()).map_err(|_| RegistryFailure::Unreadable)?;
                listed::read(&body).ok_or(RegistryFailure::Unreadable)
            }
            status => Err(RegistryFailure::Status(status)),
        }
    }

    fn known(&self, url: &str) -> Option<Arc<Vec<Listed>>> {
        let now = Instant::now();
        let mut cache = self.cache.lock();
        cache.retain(|entry| now < entry.until);
        cache.iter().find(|entry| entry.url == url).map(|kept| Arc::clone(&kept.listed))
    }

    fn store(&self, url: String, listed: &Arc<Vec<Listed>>) {
        let mut cache = self.cache.lock();
        cache.push_front(CachedAnswer {
            url,
            until: Instant::now() + FRESH,
            listed: Arc::clone(listed),
        });
        cache.truncate(MAX_CACHED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        task::JoinSet,
    };

    /// Registry with scripted answers, whose last one repeats. It records the requests.
    struct Stand {
        registry: Registry,
        asked: Arc<Mutex<Vec<String>>>,
        _serving: JoinSet<()>,
    }

    async fn stand(answers: &'static [Option<(u16, &'static str)>]) -> Stand {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (told, mut serving) = (Arc::clone(&asked), JoinSet::new());
        serving.spawn(async move {
            let mut open = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = [0; 4096];
                let count = stream.read(&mut head).await.unwrap();
                let at = told.lock().len().min(answers.len() - 1);
                told.lock().push(String::from_utf8_lossy(&head[..count]).to_lowercase());
                if let Some((status, body)) = answers[at] {
                    let length = body.len();
                    let said = format!(
                        "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
                    );
                    stream.write_all(said.as_bytes()).await.unwrap();
                }
                open.push(stream);
            }
        });
        Stand { registry: Registry { url, token_env: None }, asked, _serving: serving }
    }

    const SETTINGS: BreakerSettings = BreakerSettings {
        failures: 2,
        pause: Duration::from_secs(60),
        max_pause: Duration::from_secs(60),
    };

    async fn ask(
        asking: &Registries,
        registry: &Registry,
        text: &str,
    ) -> Result<Vec<String>, String> {
        let team = AgentId::parse("team").unwrap();
        let query = AgentQuery { text: Some(text.to_owned()), ..AgentQuery::default() };
        let all = BTreeMap::from([(team, registry.clone())]);
        let (told, untold) = asking.ask(&all, SETTINGS, &query).await;
        match untold.into_iter().next() {
            Some(untold) => Err(untold.why),
            None => Ok(told[0].1.iter().map(|one| one.url.clone()).collect()),
        }
    }

    const ONE: &str =
        r#"{"agents": [{"name": "A", "description": "d", "version": "1", "url": "http://a/"}]}"#;

    #[tokio::test]
    async fn answer_is_cached_and_hops_limited() {
        let (stand, asking) = (stand(&[Some((200, ONE))]).await, Registries::default());
        for _ in 0..3 {
            assert_eq!(ask(&asking, &stand.registry, "one two").await.unwrap(), ["http://a/"]);
        }
        ask(&asking, &stand.registry, "another").await.unwrap();
        let asked = stand.asked.lock();
        assert_eq!(asked.len(), 2);
        assert!(asked[0].starts_with("get /agents?q=one+two&limit=10 "), "{}", asked[0]);
        assert!(asked[0].contains("a2a-hub-hops: 1"), "{}", asked[0]);
    }

    #[tokio::test]
    async fn failing_registry_is_paused_with_reason() {
        const REFUSAL: &str = r#"{"error": {"status": "NOT_FOUND"}}"#;
        let none = stand(&[Some((404, REFUSAL))]).await;
        let asking = Registries::default();
        assert!(ask(&asking, &none.registry, "a").await.unwrap().is_empty());
        type Answers = &'static [Option<(u16, &'static str)>];
        let cases: [(Answers, &str); 4] = [
            (&[Some((404, "<html>"))], "HTTP status 404"),
            (&[Some((200, "[]"))], "no list of agents"),
            (&[Some((500, ONE))], "HTTP status 500"),
            (&[None], "no answer within 3 s"),
        ];
        for (answers, why) in cases {
            let (stand, asking) = (stand(answers).await, Registries::default());
            for _ in 0..2 {
                let told = ask(&asking, &stand.registry, "a").await.unwrap_err();
                assert!(told.contains(why), "{told}");
            }
            let told = ask(&asking, &stand.registry, "a").await.unwrap_err();
            assert!(told.contains("again and again"), "{told}");
            assert_eq!(stand.asked.lock().len(), 2);
        }
    }
}
