//! Programs that are killed long before their grace period is over.

use super::*;

/// Longer than any test takes: a test that waits for its end fails.
const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn hurry_shortens_current_and_future_grace() {
    let data = tempfile::tempdir().unwrap();
    let hub = Fixture { supervisor: supervisor(System::Linux, data.path(), LONG), data };
    let (mut asked, mut at_work) = (hub.sh(STUBBORN).await, hub.sh(STUBBORN).await);
    for child in [&mut asked, &mut at_work] {
        read_to(child, "ready\n").await;
    }
    asked.kill();
    assert!(timeout(GRACE, finish(&mut asked)).await.is_err(), "it has its grace");
    hub.supervisor.hurry();
    for child in [&mut asked, &mut at_work] {
        assert_eq!(finish(child).await.2, ProgramExit::Signal(9));
    }
    assert!(hub.alive().is_empty(), "{:#?}", hub.alive());
    let mut late = hub.sh(STUBBORN).await;
    let exit = finish(&mut late).await.2;
    // It may have been killed before it trapped the signal.
    assert!(matches!(exit, ProgramExit::Signal(9 | 15)), "{exit:?}");
}
