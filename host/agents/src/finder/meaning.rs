//! Semantic similarity of texts by the vectors of an embeddings server, cached by the texts'
//! digests. After a failure the server is skipped for a while, and only words are compared.

use a2a_hub_client::{Outbound, fetch};
use a2a_hub_config::{Embeddings, SecretStore};
use a2a_hub_process::run_blocking;
use a2a_hub_protocol::foreign;
use bytes::Bytes;
use http::{
    HeaderValue, Request,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::Full;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_json::json;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::time::{Instant, timeout};

/// Timeout of one search: a caller waits for it.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Time for which a failed server is skipped.
const REST: Duration = Duration::from_secs(30);

/// Texts in one request.
const BATCH: usize = 64;

/// Cached vectors: of a thousand cards and as many queries.
const MAX_CACHED: usize = 2_048;

/// Longest vector: larger models have some 4,000 numbers.
const MAX_LENGTH: usize = 8_192;

/// Compares texts by meaning.
#[derive(Default)]
pub(crate) struct Meaning {
    outbound: Mutex<Option<Outbound>>,
    cache: Mutex<Vectors>,
    /// Time of the next attempt, and the failure that caused the pause.
    rests: Mutex<Option<(Instant, String)>>,
}

type Digest = [u8; 32];

/// Vectors of one model by the digests of their texts; the oldest is evicted first.
#[derive(Default)]
struct Vectors {
    of: Embeddings,
    all: HashMap<Digest, Arc<[f32]>>,
    order: VecDeque<Digest>,
}

/// A text with its digest.
pub(crate) struct EmbeddedText {
    digest: Digest,
    text: String,
}

impl EmbeddedText {
    /// The text with its digest.
    pub(crate) fn new(text: String) -> Self {
        let mut known_by = Digest::default();
        known_by.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        Self { digest: known_by, text }
    }
}

/// Reason why texts are not compared by meaning.
#[derive(Debug, thiserror::Error)]
enum NoVectors {
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Late,
    #[error("{0}")]
    Lost(#[from] a2a_hub_client::ClientError),
    #[error("it answered with HTTP status {0}")]
    Status(http::StatusCode),
    #[error("it answered with no list of vectors, one a text and all of one length")]
    Unreadable,
    #[error("the secret `{name}` cannot be used: {why}")]
    Key { name: String, why: String },
    #[error("it cannot be asked: {0}")]
    Request(#[from] http::Error),
}

/// Response of the server, as far as it is read.
#[derive(Deserialize)]
struct Answered {
    data: Vec<Embedded>,
}

#[derive(Deserialize)]
struct Embedded {
    index: usize,
    embedding: Vec<f32>,
}

impl Meaning {
    /// Similarity of each text to the question, from -1 to 1; or the reason why it is unknown.
    pub(crate) async fn similar(
        &self,
        server: &Embeddings,
        secrets: &SecretStore,
        texts: &[EmbeddedText],
        question: &str,
    ) -> Result<Vec<f64>, String> {
        let rests = self.rests.lock().clone();
        if let Some((until, why)) = rests.filter(|(until, _)| Instant::now() < *until) {
            let remaining = (until - Instant::now()).as_secs() + 1;
            return Err(format!("{why}; it is tried again in {remaining} s"));
        }
        let question = EmbeddedText::new(question.to_owned());
        let vectors = timeout(TIMEOUT, self.vectors(server, secrets, texts, &question)).await;
        match vectors.unwrap_or(Err(NoVectors::Late)) {
            Ok(similar) => {
                *self.rests.lock() = None;
                Ok(similar)
            }
            Err(why) => {
                tracing::warn!(%why, "embeddings server failed, finding agents by words");
                *self.rests.lock() = Some((Instant::now() + REST, why.to_string()));
                Err(why.to_string())
            }
        }
    }

    async fn vectors(
        &self,
        server: &Embeddings,
        secrets: &SecretStore,
        texts: &[EmbeddedText],
        question: &EmbeddedText,
    ) -> Result<Vec<f64>, NoVectors> {
        let all = || std::iter::once(question).chain(texts);
        let mut known: HashMap<Digest, Arc<[f32]>> = {
            let mut cache = self.cache.lock();
            if cache.of != *server {
                *cache = Vectors { of: server.clone(), ..Vectors::default() };
            }
            all()
                .filter_map(|text| Some((text.digest, Arc::clone(cache.all.get(&text.digest)?))))
                .collect()
        };
        let missing: Vec<_> = all().filter(|text| !known.contains_key(&text.digest)).collect();
        for batch in missing.chunks(BATCH) {
            let fetched = self.ask(server, secrets, batch).await?;
            let mut cache = self.cache.lock();
            for (text, vector) in batch.iter().zip(fetched) {
                // Stored at once, because a later batch may time out.
                cache.insert(server, text.digest, &vector);
                known.insert(text.digest, vector);
            }
        }
        let question_vector = known.get(&question.digest).ok_or(NoVectors::Unreadable)?;
        let similar = texts.iter().map(|text| cosine(question_vector, known.get(&text.digest)?));
        similar.collect::<Option<_>>().ok_or(NoVectors::Unreadable)
    }

    /// Fetches the vectors of these texts, in order.
    async fn ask(
        &self,
        server: &Embeddings,
        secrets: &SecretStore,
        texts: &[&EmbeddedText],
    ) -> Result<Vec<Arc<[f32]>>, NoVectors> {
        // The caller checked that a server is configured.
        let (url, model) = server.server().unwrap_or_default();
        let input: Vec<_> = texts.iter().map(|text| &text.text).collect();
        let body = json!({ "model": model, "input": input }).to_string();
        let mut request = Request::post(url).header(CONTENT_TYPE, "application/json");
        if let Some(name) = &server.key {
            request = request.header(AUTHORIZATION, key(secrets, name).await?);
        }
        let outbound = self.outbound.lock().get_or_insert_with(Outbound::unguarded).clone();
        let answer = fetch(&outbound, request.body(Full::new(Bytes::from(body)))?, TIMEOUT).await?;
        if !answer.status().is_success() {
            return Err(NoVectors::Status(answer.status()));
        }
        let answered: Answered =
            foreign::read_as(answer.body()).map_err(|_| NoVectors::Unreadable)?;
        let mut vectors = vec![None; texts.len()];
        for Embedded { index, embedding } in answered.data {
            let fits = (1..=MAX_LENGTH).contains(&embedding.len())
                && embedding.iter().all(|number| number.is_finite());
            let slot = vectors.get_mut(index).filter(|_| fits).ok_or(NoVectors::Unreadable)?;
            *slot = Some(Arc::from(embedding));
        }
        vectors.into_iter().collect::<Option<_>>().ok_or(NoVectors::Unreadable)
    }
}

/// Authorization header with the key.
async fn key(secrets: &SecretStore, name: &str) -> Result<HeaderValue, NoVectors> {
    let refused = |why: String| NoVectors::Key { name: name.to_owned(), why };
    let (secrets, of) = (secrets.clone(), name.to_owned());
    let read = run_blocking(move || secrets.all([of.as_str()])).await;
    let mut read = read
        .map_err(|why| refused(why.to_string()))?
        .map_err(|(_, why)| refused(why.to_string()))?;
    let key = read.remove(name).unwrap_or_default();
    let mut value =
        HeaderValue::from_str(&format!("Bearer {key}")).map_err(|why| refused(why.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

impl Vectors {
    fn insert(&mut self, of: &Embeddings, known_by: Digest, vector: &Arc<[f32]>) {
        // The operator may have configured another model meanwhile.
        if self.of != *of || self.all.insert(known_by, Arc::clone(vector)).is_some() {
            return;
        }
        self.order.push_back(known_by);
        if self.order.len() > MAX_CACHED
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }
}

/// Cosine of the angle between two vectors; none if their lengths differ.
fn cosine(one: &[f32], other: &[f32]) -> Option<f64> {
    if one.len() != other.len() {
        return None;
    }
    let product = |one: &[f32], other: &[f32]| -> f64 {
        one.iter().zip(other).map(|(one, other)| f64::from(*one) * f64::from(*other)).sum()
    };
    let lengths = (product(one, one) * product(other, other)).sqrt();
    Some(if lengths > 0.0 { product(one, other) / lengths } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::{fs, os::unix::fs::PermissionsExt as _};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream},
        task::JoinSet,
    };

    /// Server whose vectors count the letters `a` and `b` of each text. It records the requests.
    struct Server {
        url: String,
        asked: Arc<Mutex<Vec<(String, Value)>>>,
        _serving: JoinSet<()>,
    }

    impl Server {
        async fn start(answer: fn(&Value) -> Option<(u16, Value)>) -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/v1", listener.local_addr().unwrap());
            let asked = Arc::<Mutex<Vec<_>>>::default();
            let (told, mut serving) = (Arc::clone(&asked), JoinSet::new());
            serving.spawn(async move {
                loop {
                    let (mut stream, _) = listener.accept().await.unwrap();
                    let (head, body) = read(&mut stream).await;
                    told.lock().push((head, body.clone()));
                    let Some((status, said)) = answer(&body) else {
                        std::future::pending::<()>().await;
                        continue;
                    };
                    let said = said.to_string();
                    let said = format!(
                        "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{said}",
                        said.len()
                    );
                    stream.write_all(said.as_bytes()).await.unwrap();
                }
            });
            Self { url, asked, _serving: serving }
        }

        fn settings(&self) -> Embeddings {
            let (url, model) = (Some(self.url.clone()), Some("m".to_owned()));
            Embeddings { url, model, key: None }
        }

        fn texts_asked(&self) -> usize {
            let asked = self.asked.lock();
            asked.iter().map(|(_, body)| body["input"].as_array().unwrap().len()).sum()
        }
    }

    async fn read(stream: &mut TcpStream) -> (String, Value) {
        let mut all = Vec::new();
        loop {
            let mut some = [0; 4096];
            let count = stream.read(&mut some).await.unwrap();
            all.extend_from_slice(&some[..count]);
            let text = String::from_utf8_lossy(&all).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && let Ok(body) = serde_json::from_str(body)
            {
                return (head.to_lowercase(), body);
            }
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "other servers do not answer")]
    fn counts(body: &Value) -> Option<(u16, Value)> {
        let count = |text: &Value, letter: char| text.as_str().unwrap().matches(letter).count();
        let texts = body["input"].as_array().unwrap().iter().enumerate();
        // In reverse order: each vector has an index.
        let data: Vec<_> = texts
            .map(|(n, text)| json!({ "index": n, "embedding": [count(text, 'a'), count(text, 'b')] }))
            .rev()
            .collect();
        Some((200, json!({ "data": data })))
    }

    fn texts(all: &[&str]) -> Vec<EmbeddedText> {
        all.iter().map(|text| EmbeddedText::new((*text).to_owned())).collect()
    }

    fn nowhere() -> SecretStore {
        SecretStore::new(std::path::Path::new("/nonexistent"))
    }

    #[tokio::test]
    async fn vectors_are_cached_per_model() {
        let (server, meaning) = (Server::start(counts).await, Meaning::default());
        let (all, settings, secrets) = (texts(&["a", "b", "ab", ""]), server.settings(), nowhere());
        let similar = meaning.similar(&settings, &secrets, &all, "aa").await.unwrap();
        let rounded: Vec<_> = similar.iter().map(|it| (it * 100.0).round()).collect();
        assert_eq!(rounded, [100.0, 0.0, 71.0, 0.0]);
        assert_eq!(server.texts_asked(), 5);
        meaning.similar(&settings, &secrets, &all, "aa").await.unwrap();
        assert_eq!(server.texts_asked(), 5, "all are known");
        meaning.similar(&settings, &secrets, &all, "bb").await.unwrap();
        assert_eq!(server.texts_asked(), 6, "the question is another");
        let other = Embeddings { model: Some("n".to_owned()), ..settings };
        meaning.similar(&other, &secrets, &all, "aa").await.unwrap();
        assert_eq!(server.texts_asked(), 11, "another model has other vectors");
        assert_eq!(server.asked.lock()[0].1["model"], "m");
    }

    #[tokio::test]
    async fn vector_cache_and_batches_are_bounded() {
        let (server, meaning) = (Server::start(counts).await, Meaning::default());
        let many: Vec<_> = (0..150).map(|n| EmbeddedText::new(format!("a{n}"))).collect();
        meaning.similar(&server.settings(), &nowhere(), &many, "a").await.unwrap();
        assert_eq!(server.asked.lock().len(), 3);
        let mut kept = Vectors::default();
        for n in 0..MAX_CACHED + 10 {
            kept.insert(
                &Embeddings::default(),
                EmbeddedText::new(n.to_string()).digest,
                &Arc::from([1.0]),
            );
        }
        assert_eq!((kept.all.len(), kept.order.len()), (MAX_CACHED, MAX_CACHED));
    }

    #[tokio::test]
    async fn key_is_sent_but_not_disclosed() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("secrets")).unwrap();
        let file = data.path().join("secrets/A_KEY");
        fs::write(&file, "sk-12345678").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let server = Server::start(|_| Some((401, json!({ "error": "no" })))).await;
        let settings = Embeddings { key: Some("A_KEY".to_owned()), ..server.settings() };
        let secrets = SecretStore::new(data.path());
        let meaning = Meaning::default();
        let refused = meaning.similar(&settings, &secrets, &texts(&["a"]), "a").await.unwrap_err();
        assert_eq!(refused, "it answered with HTTP status 401 Unauthorized");
        assert!(server.asked.lock()[0].0.contains("authorization: bearer sk-12345678"));
        let missing = Embeddings { key: Some("NO_KEY".to_owned()), ..settings };
        let meaning = Meaning::default();
        let refused = meaning.similar(&missing, &secrets, &texts(&["a"]), "a").await.unwrap_err();
        assert!(
            refused.starts_with("the secret `NO_KEY` cannot be used: it has no value"),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn invalid_vectors_pause_the_server() {
        for nonsense in [
            (|_| Some((200, json!({})))) as fn(&Value) -> Option<(u16, Value)>,
            |_| Some((200, json!({ "data": [] }))),
            |_| Some((200, json!({ "data": [{ "index": 7, "embedding": [1] }] }))),
            |_| {
                Some((
                    200,
                    json!({ "data": [{ "index": 0, "embedding": [] }, { "index": 1, "embedding": [1] }] }),
                ))
            },
            |_| {
                Some((
                    200,
                    json!({ "data": [{ "index": 0, "embedding": [1, 2] }, { "index": 1, "embedding": [1] }] }),
                ))
            },
            |_| {
                Some((
                    200,
                    json!({ "data": [{ "index": 0, "embedding": [1e300] }, { "index": 1, "embedding": [1] }] }),
                ))
            },
        ] {
            let (server, meaning) = (Server::start(nonsense).await, Meaning::default());
            let (all, settings, secrets) = (texts(&["b"]), server.settings(), nowhere());
            let ask = || meaning.similar(&settings, &secrets, &all, "a");
            let why = ask().await.unwrap_err();
            assert!(why.contains("no list of vectors"), "{why}");
            let again = ask().await.unwrap_err();
            assert!(again.contains("tried again in"), "{again}");
            assert_eq!(server.asked.lock().len(), 1, "it is not asked twice");
        }
    }

    #[tokio::test]
    async fn hanging_server_hits_timeout() {
        let (server, meaning) = (Server::start(|_| None).await, Meaning::default());
        let begun = Instant::now();
        let late = meaning.similar(&server.settings(), &nowhere(), &texts(&["a"]), "b").await;
        assert_eq!(late.unwrap_err(), "no answer within 5 s");
        assert!(begun.elapsed() < TIMEOUT * 3);
        let gone = Embeddings { url: Some("http://127.0.0.1:1".to_owned()), ..server.settings() };
        let meaning = Meaning::default();
        assert!(meaning.similar(&gone, &nowhere(), &texts(&["a"]), "b").await.is_err());
    }
}
