//! `/events`: the same view for all who watch, once a second; nothing while nobody does. `docs/internals/watching.md` says why so.

use super::Source;
use crate::watch::Observer;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Who may watch at once.
pub const VIEWERS_MAX: u32 = 16;
/// From one view to the next.
pub const PERIOD: Duration = Duration::from_secs(1);
/// From the first view, which has no rates, to the second.
const FIRST_PERIOD: Duration = Duration::from_millis(250);

/// Those who watch.
pub(super) struct Viewers {
    source: Arc<dyn Source>,
    now: Mutex<Now>,
    served: AtomicU64,
    refused: AtomicU64,
}

#[derive(Default)]
struct Now {
    count: u32,
    /// The last view, while a task makes them.
    views: Option<watch::Sender<Bytes>>,
}

/// One who watches, until this is dropped.
struct Viewer(Arc<Viewers>);

impl Drop for Viewer {
    fn drop(&mut self) {
        self.0.lock().count -= 1;
    }
}

impl Viewers {
    pub(super) fn new(source: Arc<dyn Source>) -> Arc<Self> {
        Arc::new(Self {
            source,
            now: Mutex::new(Now::default()),
            served: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// How many were served, and how many refused.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.served.load(Relaxed), self.refused.load(Relaxed))
    }

    /// Nothing panics while it is held.
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stream of views for one more viewer. `progress` is called for each.
    pub(super) fn stream(self: &Arc<Self>, progress: impl Fn() + Send + 'static) -> Response {
        let Some(entered) = self.enter() else {
            self.refused.fetch_add(1, Relaxed);
            let why = format!("{VIEWERS_MAX} pages or `midflight top` watch already: close one\n");
            return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
        };
        let Some((viewer, views)) = entered else {
            return (StatusCode::NOT_FOUND, "there is nothing to watch here\n").into_response();
        };
        self.served.fetch_add(1, Relaxed);
        let stream = stream::unfold((views, viewer, progress), async |(mut views, viewer, progress)| {
            views.changed().await.ok()?;
            let view = views.borrow_and_update().clone();
            progress();
            Some((Ok::<_, Infallible>(view), (views, viewer, progress)))
        });
        let kind = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
        (kind, Body::from_stream(stream)).into_response()
    }

    /// A place for one more: `None` if there is none, `Some(None)` if the source shows nothing. The first one has a task make views.
    fn enter(self: &Arc<Self>) -> Option<Option<(Viewer, watch::Receiver<Bytes>)>> {
        let mut now = self.lock();
        if now.count >= VIEWERS_MAX {
            return None;
        }
        let mut receiver = match &now.views {
            Some(views) => views.subscribe(),
            None => {
                let Some(observer) = Arc::clone(&self.source).observer() else { return Some(None) };
                let (sender, receiver) = watch::channel(Bytes::new());
                now.views = Some(sender);
                tokio::spawn(Arc::clone(self).make_views(observer));
                receiver
            }
        };
        now.count += 1;
        // Who comes later gets the last view at once.
        if !receiver.borrow().is_empty() {
            receiver.mark_changed();
        }
        Some(Some((Viewer(Arc::clone(self)), receiver)))
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
        if now.count == 0 {
            now.views = None;
        }
        (now.count > 0).then_some(now.count)
    }

    /// No view can be made: the streams end, and a viewer who comes back begins anew.
    fn end(&self, why: &str) {
        tracing::error!("cannot show what the switch does: {why}");
        self.lock().views = None;
    }
}
