//! `/events`: the same view for all who watch, once a second; nothing while nobody does. `docs/internals/watching.md` says why so.

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

/// How many may watch at once. A source address that is alone gets 15 of them (T14).
pub const VIEWERS_MAX: usize = 16;
/// From one view to the next.
pub const PERIOD: Duration = Duration::from_secs(1);
/// From the first view, which has no rates, to the second.
const FIRST_PERIOD: Duration = Duration::from_millis(250);

/// Those who watch.
pub(super) struct Viewers {
    source: Arc<dyn Source>,
    now: Mutex<Now>,
    counts: ViewerCounts,
}

/// What became of those who asked.
#[derive(Debug, Default)]
pub(super) struct ViewerCounts {
    pub(super) served: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Ended, as another address wanted to watch.
    pub(super) made_room: AtomicU64,
}

struct Now {
    table: ViewerTable<oneshot::Sender<Infallible>>,
    /// The last view, while a task makes them.
    views: Option<watch::Sender<Bytes>>,
}

/// One who watches, until this is dropped.
struct Viewer {
    viewers: Arc<Viewers>,
    id: u64,
    views: watch::Receiver<Bytes>,
    /// Ready when it has to make room.
    gone: oneshot::Receiver<Infallible>,
}

impl Viewer {
    /// The next view; `None`: there is none any more, or this one has to make room.
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

/// Why somebody may not watch.
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

    /// Nothing panics while it is held.
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream of views for one more viewer, from this address. `progress` is called for each.
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

    /// A place for one more. The first one has a task make views.
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
        // Who comes later gets the last view at once.
        if !views.borrow().is_empty() {
            views.mark_changed();
        }
        Ok(Viewer { viewers: Arc::clone(self), id: admitted.id, views, gone })
    }

    /// Makes views for as long as there are viewers.
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

    /// How many watch; with the last one gone, nobody makes views any more.
    fn count_or_end(&self) -> Option<u32> {
        let mut now = self.lock();
        let count = u32::try_from(now.table.len()).unwrap_or(u32::MAX);
        if count == 0 {
            now.views = None;
        }
        (count > 0).then_some(count)
    }

    /// No view can be made: the streams end, and a viewer who comes back begins anew.
    fn end(&self, why: &str) {
        tracing::error!("cannot show what the switch does: {why}");
        self.lock().views = None;
    }
}
