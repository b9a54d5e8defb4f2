//! Progress reports of slow compilations: the first compilation of a Python agent takes a quarter
//! of a minute and should not look like a hang.

use crate::registry::Agents;
use a2a_hub_clock as clock;
use a2a_hub_protocol::operation::CompilingPlugin;
use parking_lot::Mutex;
use std::{pin::pin, time::Duration};
use tokio::time::sleep;

/// Time after which a load is reported; a component from the compile cache is faster.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// An entry in the list of running compilations, removed on drop.
struct RunningCompilation<'a> {
    all: &'a Mutex<Vec<CompilingPlugin>>,
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
        tracing::info!(
            file,
            bytes,
            "compiling a plugin takes a while, once; it joins when that is done"
        );
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let one = CompilingPlugin { file: file.to_owned(), bytes, since: clock::now() };
        let _told = RunningCompilation::of(&self.shared.compiling, one);
        loading.await
    }

    /// Components whose compilation takes longer than a second.
    pub fn compiling(&self) -> Vec<CompilingPlugin> {
        self.shared.compiling.lock().clone()
    }
}

impl<'a> RunningCompilation<'a> {
    fn of(all: &'a Mutex<Vec<CompilingPlugin>>, one: CompilingPlugin) -> Self {
        all.lock().push(one.clone());
        Self { all, one }
    }
}

impl Drop for RunningCompilation<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        // A file that was replaced meanwhile may be listed twice.
        if let Some(place) = all.iter().position(|it| *it == self.one) {
            all.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiling_entry_disappears_on_drop() {
        let all = Mutex::default();
        let one = |file: &str| CompilingPlugin {
            file: file.to_owned(),
            bytes: 1,
            since: "2026-01-31T00:00:00.000Z".to_owned(),
        };
        let (first, second) = (
            RunningCompilation::of(&all, one("a.wasm")),
            RunningCompilation::of(&all, one("a.wasm")),
        );
        let other = RunningCompilation::of(&all, one("b.wasm"));
        drop(first);
        assert_eq!(*all.lock(), [one("a.wasm"), one("b.wasm")]);
        drop((second, other));
        assert!(all.lock().is_empty());
    }
}
