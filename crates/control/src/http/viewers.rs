//! `/events`: the same view for all viewers, once a second; no views without viewers. `docs/internals/watching.md` gives the reasons.

use super::Source;
use super::viewer_table::{Full, ViewerTable};
use crate::watch::Observer;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use midflight_wire::Host;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Number of concurrent viewers. A single source address gets 15 of them (T14).
pub const VIEWERS_MAX: usize = 16;
/// Interval between views.
pub const PERIOD: Duration = Duration::from_secs(1);
/// Interval between the first view, which has no rates, and the second.
const FIRST_PERIOD: Duration = Duration::from_millis(250);

pub(super) struct Viewers {
    source: Arc<dyn Source>,
    now: Mutex<Now>,
    counts: ViewerCounts,
}

#[derive(Debug, Default)]
pub(super) struct ViewerCounts {
    pub(super) served: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Evicted for a viewer from another address.
    pub(super) made_room: AtomicU64,
}

struct Now {
    table: ViewerTable<oneshot::Sender<Infallible>>,
    /// The last view, while a task makes them.
    views: Option<watch::Sender<Bytes>>,
}

/// A viewer, until this is dropped.
struct Viewer {
    viewers: Arc<Viewers>,
    id: u64,
    views: watch::Receiver<Bytes>,
    gone: oneshot::Receiver<Infallible>,
}

impl Viewer {
    /// The next view; `None`: there are no more, or this viewer is evicted.
    async fn next(&mut self) -> Option<Bytes> {
        tokio::select! {
            changed = self.views.changed() => changed.ok()?,
            _ = &mut self.gone => return None,
        }
        Some(self.views.borrow_and_update().clone())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.viewers.lock().table.leave(self.id);
    }
}

enum Refused {
    NoPlace(Full),
    NothingToSee,
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let close = "pages or `midflight top` watch already";
        let no_place = |why| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        match self {
            Self::NoPlace(Full::Share(holds)) => no_place(format!("{holds} {close} from this address: close one\n")),
            Self::NoPlace(Full::All) => no_place(format!("{VIEWERS_MAX} {close}: close one\n")),
            Self::NothingToSee => (StatusCode::NOT_FOUND, "there is nothing to watch here\n").into_response(),
        }
    }
}

impl Viewers {
    pub(super) fn new(source: Arc<dyn Source>) -> Arc<Self> {
        let now = Now { table: ViewerTable::new(VIEWERS_MAX), views: None };
        Arc::new(Self { source, now: Mutex::new(now), counts: ViewerCounts::default() })
    }

    pub(super) fn counts(&self) -> &ViewerCounts {
        &self.counts
    }

    /// Ignores poisoning: no holder panics.
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `progress` is called for each view.
    pub(super) fn stream(self: &Arc<Self>, from: Host, progress: impl Fn() + Send + 'static) -> Response {
        let viewer = match self.enter(from) {
            Ok(viewer) => viewer,
            Err(refused) => {
                if matches!(refused, Refused::NoPlace(_)) {
                    self.counts.refused.fetch_add(1, Relaxed);
                }
                return refused.into_response();
            }
        };
        self.counts.served.fetch_add(1, Relaxed);
        let stream = stream::unfold((viewer, progress), async |(mut viewer, progress)| {
            let view = viewer.next().await?;
            progress();
            Some((Ok::<_, Infallible>(view), (viewer, progress)))
        });
        let kind = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
        (kind, Body::from_stream(stream)).into_response()
    }

    /// Takes a place. The first viewer starts the task that makes views.
    fn enter(self: &Arc<Self>, from: Host) -> Result<Viewer, Refused> {
        let mut now = self.lock();
        let observer = match now.views {
            Some(_) => None,
            None => Some(Arc::clone(&self.source).observer().ok_or(Refused::NothingToSee)?),
        };
        let (kept, gone) = oneshot::channel();
        let admitted = now.table.admit(from, kept).map_err(Refused::NoPlace)?;
        if admitted.gone.is_some() {
            self.counts.made_room.fetch_add(1, Relaxed);
        }
        let mut views = now.views.get_or_insert_with(|| watch::Sender::new(Bytes::new())).subscribe();
        if let Some(observer) = observer {
            tokio::spawn(Arc::clone(self).make_views(observer));
        }
        // A later viewer gets the last view at once.
        if !views.borrow().is_empty() {
            views.mark_changed();
        }
        Ok(Viewer { viewers: Arc::clone(self), id: admitted.id, views, gone })
    }

    /// Makes views while there are viewers.
    async fn make_views(self: Arc<Self>, mut observer: Box<dyn Observer>) {
        let mut period = FIRST_PERIOD;
        while let Some(count) = self.count_or_end() {
            // It waits for the switch's thread.
            let made = tokio::task::spawn_blocking(move || {
                let view = observer.view(count);
                (observer, view)
            });
            let view = match made.await {
                Ok((back, Ok(view))) => {
                    observer = back;
                    view
                }
                Ok((_, Err(error))) => return self.end(&error.to_string()),
                Err(error) => return self.end(&error.to_string()),
            };
            if let Some(views) = &self.lock().views {
                views.send_replace(Bytes::from(format!("data: {view}\n\n")));
            }
            tokio::time::sleep(period).await;
            period = PERIOD;
        }
    }

    /// Number of viewers; without any, the task ends.
    fn count_or_end(&self) -> Option<u32> {
        let mut now = self.lock();
        let count = u32::try_from(now.table.len()).unwrap_or(u32::MAX);
        if count == 0 {
            now.views = None;
        }
        (count > 0).then_some(count)
    }

    /// No view can be made: the streams end, and a returning viewer starts a new sequence.
    fn end(&self, why: &str) {
        tracing::error!("cannot show what the switch does: {why}");
        self.lock().views = None;
    }
}
