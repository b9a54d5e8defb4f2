//! A poll of a trigger's source that may take for ever: its directory may be on a file system
//! that does not answer.

use crate::known_trigger::{KnownTrigger, Sight};
use a2a_hub_process::run_blocking;
use std::{pin::Pin, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

/// Time that the other triggers wait for a poll. A longer one goes on beside them.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A poll that was begun, on a thread for blocking work.
pub struct SourcePoll {
    /// Beginning.
    pub began: Instant,
    of: Arc<KnownTrigger>,
    is_late: bool,
    sight: Pin<Box<dyn Future<Output = Result<Sight, String>> + Send>>,
}

impl SourcePoll {
    /// Begins a poll of the source of a trigger, or goes on with `before` if that is a poll of the
    /// same source. So at most one thread hangs for each trigger of a configuration.
    pub fn begin(of: &Arc<KnownTrigger>, before: Option<Self>) -> Self {
        if let Some(before) = before.filter(|it| Arc::ptr_eq(&it.of, of)) {
            return before;
        }
        let known = Arc::clone(of);
        let handle = run_blocking(move || known.poll());
        let sight = async { handle.await.map_err(|why| why.to_string()).flatten() };
        Self { began: Instant::now(), of: Arc::clone(of), is_late: false, sight: Box::pin(sight) }
    }

    /// Result of the poll, or the poll itself if its source does not answer in time.
    ///
    /// # Errors
    ///
    /// The poll is not over. Only its first call waits for it.
    pub async fn sight(mut self) -> Result<Result<Sight, String>, Self> {
        let limit = if self.is_late { Duration::ZERO } else { TIMEOUT };
        match timeout(limit, &mut self.sight).await {
            Ok(sight) => Ok(sight),
            Err(_) => Err(Self { is_late: true, ..self }),
        }
    }

    /// Describes a poll that is late, for the operator.
    pub fn why_late(name: &str, of: &KnownTrigger) -> String {
        format!(
            "`{}` does not answer; is its file system mounted, and its server there?",
            of.watches(name)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use a2a_hub_config::{Config, SecretStore};
    use std::{future::pending, path::Path};

    fn known() -> Arc<KnownTrigger> {
        let text = "[trigger.tests]\non = 'commit'\ndirectory = '/nonexistent'\nagent = 'echo'\n\
                    message = 'x'\npermissions = 'read-only'\nbudget = { tasks = 1 }";
        let config: Config = toml::from_str(text).unwrap();
        let config = config.trigger["tests"].clone();
        let rules = config.rules("tests").unwrap();
        Arc::new(KnownTrigger::new(config, rules, SecretStore::new(Path::new("/nonexistent"))))
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_source_delays_others_once() {
        let (known, began) = (known(), Instant::now());
        let hanging = SourcePoll {
            began,
            of: Arc::clone(&known),
            is_late: false,
            sight: Box::pin(pending()),
        };
        let Err(late) = hanging.sight().await else { panic!("it does not answer") };
        assert_eq!(began.elapsed(), TIMEOUT);
        let Err(late) = SourcePoll::begin(&known, Some(late)).sight().await else {
            panic!("nor now")
        };
        assert_eq!(began.elapsed(), TIMEOUT, "nothing waits for it twice");
        assert_eq!(
            SourcePoll::why_late("tests", &known),
            "`/nonexistent` does not answer; is its file system mounted, and its server there?"
        );
        let answers = SourcePoll { sight: Box::pin(async { Ok(Sight::Reported) }), ..late };
        assert!(matches!(SourcePoll::begin(&known, Some(answers)).sight().await, Ok(Ok(_))));
    }

    #[tokio::test]
    async fn changed_trigger_is_looked_at_anew() {
        let old = SourcePoll {
            began: Instant::now(),
            of: known(),
            is_late: true,
            sight: Box::pin(pending()),
        };
        let looked = SourcePoll::begin(&known(), Some(old)).sight().await;
        let Ok(Err(why)) = looked else { panic!("there is no repository") };
        assert!(why.contains("/nonexistent"), "{why}");
    }
}
