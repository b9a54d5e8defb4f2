//! Progress reports of slow compilations: the first compilation of a Python agent takes a quarter
//! of a minute and should not look like a hang.

use crate::registry::Agents;
use a2a_hub_clock as clock;
use a2a_hub_protocol::{id::AgentId, operation::CompilingPlugin};
use parking_lot::Mutex;
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::time::sleep;

/// Time after which a load is reported; a component from the compile cache is faster.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// An entry in a list of loads or compilations under way, removed on drop.
pub(in crate::registry) struct UnderWay {
    all: Arc<Mutex<Vec<CompilingPlugin>>>,
    one: CompilingPlugin,
}

impl Agents {
    /// Awaits `loading` of a component of `bytes` bytes, and lists it as compiling if it takes
    /// long.
    pub(in crate::registry) async fn telling_of<T>(
        &self,
        file: &str,
        bytes: usize,
        loading: impl Future<Output = T>,
    ) -> T {
        let mut loading = pin!(loading);
        tokio::select! {
            loaded = &mut loading => return loaded,
            () = sleep(WORTH_TELLING) => {}
        }
        tracing::info!(file, bytes, "compiling a plugin, once; it joins when it is ready");
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let _entry = UnderWay::new(&self.shared.compiling, file, bytes);
        loading.await
    }

    /// Components whose compilation takes longer than a second.
    pub fn compiling(&self) -> Vec<CompilingPlugin> {
        self.shared.compiling.lock().clone()
    }

    /// Lists a file of `bytes` bytes as being loaded, until the entry is dropped.
    pub(in crate::registry) fn load_begins(&self, file: &str, bytes: u64) -> UnderWay {
        UnderWay::new(&self.shared.loading, file, bytes)
    }

    /// The load of a plug-in's file, if one is under way.
    pub fn load_of(&self, id: &AgentId) -> Option<CompilingPlugin> {
        let loading = self.shared.loading.lock();
        loading.iter().find(|it| it.file.strip_suffix(".wasm") == Some(id.as_str())).cloned()
    }
}

impl UnderWay {
    fn new(all: &Arc<Mutex<Vec<CompilingPlugin>>>, file: &str, bytes: u64) -> Self {
        let one = CompilingPlugin { file: file.to_owned(), bytes, since: clock::now() };
        all.lock().push(one.clone());
        Self { all: Arc::clone(all), one }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        // A file that was replaced meanwhile may be listed twice.
        if let Some(index) = all.iter().position(|it| *it == self.one) {
            all.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiling_entry_disappears_on_drop() {
        let all = Arc::default();
        let [first, second, other] =
            ["a.wasm", "a.wasm", "b.wasm"].map(|file| UnderWay::new(&all, file, 1));
        drop(first);
        let left: Vec<_> = all.lock().iter().map(|it| it.file.clone()).collect();
        assert_eq!(left, ["a.wasm", "b.wasm"]);
        drop((second, other));
        assert!(all.lock().is_empty());
    }
}
