use midflight_rmt::Watch;
use midflight_terminal::progress::Progress;
use midflight_terminal::units;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Shorter searches show no progress.
const AFTER: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(100);

pub(super) fn shown<T>(name: &str, watch: &Watch, search: impl FnOnce() -> T) -> T {
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(|| report(name, watch, end));
        let result = search();
        drop(ended);
        result
    })
}

/// Reports until the other end of the channel is dropped.
fn report(name: &str, watch: &Watch, end: Receiver<()>) {
    if end.recv_timeout(AFTER) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let progress = Progress::spinner(Duration::ZERO);
    while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
        progress.tell(|| format!("{name}: {} states", units::thousands(watch.states())));
    }
    progress.finish();
}
