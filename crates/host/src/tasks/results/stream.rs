//! Outcomes as a stream.

use super::{Completions, JobHandle, TaskOutcome};
use crate::driver::lock;
use futures_core::Stream;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Outcomes in order of completion, each with the task's place in its job; see [`JobHandle::stream`]. A [`Stream`] for combinators;
/// [`Self::next`] needs none.
///
/// ```no_run
/// # async fn example(job: midflight_host::JobHandle) {
/// let mut outcomes = job.stream();
/// while let Some((place, outcome)) = outcomes.next().await {
///     println!("task {place}: {outcome:?}");
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct CompletionStream {
    completions: Completions,
}

impl CompletionStream {
    pub(super) fn new(completions: Completions) -> Self {
        Self { completions }
    }

    /// The next outcome; `None` after the last.
    pub async fn next(&mut self) -> Option<(usize, TaskOutcome)> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Outcomes still to come.
    #[must_use]
    pub fn left(&self) -> usize {
        self.completions.left
    }

    /// The job.
    #[must_use]
    pub fn job(&self) -> &JobHandle {
        &self.completions.job
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<(usize, TaskOutcome)>> {
        let Completions { job, left } = &mut self.completions;
        if *left == 0 {
            return Poll::Ready(None);
        }
        let mut inner = lock(&job.state.inner);
        if let Some(next) = inner.take_next() {
            *left -= 1;
            return Poll::Ready(Some(next));
        }
        inner.next = Some(context.waker().clone());
        drop(inner);
        job.client.watch();
        Poll::Pending
    }
}

impl Stream for CompletionStream {
    type Item = (usize, TaskOutcome);

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left(), Some(self.left()))
    }
}
