//! Typed arguments and results in postcard format. Client and executor must use the same types: the bytes do not name them.

use crate::error::Error;
use crate::tasks::client::Client;
use crate::tasks::executor::ExecutorBuilder;
use crate::tasks::functions::TaskContext;
use crate::tasks::job::{JobBuilder, TaskSpec};
use crate::tasks::results::{TaskHandle, TaskOutcome, TaskResult};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::type_name;
use std::fmt::Display;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    postcard::to_allocvec(value)
        .map_err(|error| Error::Codec(format!("a {} cannot be written: {error}", type_name::<T>())))
}

/// Decodes exactly `bytes`.
fn decode<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Result<T, Error> {
    let wrong = |why: String| {
        let (length, expected) = (bytes.len(), type_name::<T>());
        Error::Codec(format!(
            "{what} of {length} bytes is no {expected} ({why}): use the same types in client and executor"
        ))
    };
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(wrong(format!("{} bytes too many", rest.len()))),
        Err(error) => Err(wrong(error.to_string())),
    }
}

impl ExecutorBuilder {
    /// Like [`Self::register`], with a typed argument and result. An argument of another type is a failure.
    ///
    /// ```
    /// # use midflight_host::{Executor, TaskContext};
    /// let builder = Executor::builder()
    ///     .register_typed("area", |_task: &TaskContext, (width, height): (u32, u32)| Ok::<u64, String>(u64::from(width) * u64::from(height)));
    /// ```
    #[must_use]
    pub fn register_typed<A, R, F, E>(self, name: &str, function: F) -> Self
    where
        A: DeserializeOwned,
        R: Serialize,
        F: Fn(&TaskContext, A) -> Result<R, E> + Send + Sync + 'static,
        E: Display,
    {
        self.register(name, move |context, bytes| {
            let argument = decode("an argument", bytes).map_err(|error| error.to_string())?;
            let result = function(context, argument).map_err(|error| error.to_string())?;
            encode(&result).map_err(|error| error.to_string())
        })
    }

    /// Like [`Self::register_async`], with a typed argument and result.
    #[cfg(feature = "async")]
    #[must_use]
    pub fn register_typed_async<A, R, F, O, E>(self, name: &str, function: F) -> Self
    where
        A: DeserializeOwned + Send,
        R: Serialize + Send,
        F: Fn(TaskContext, A) -> O + Send + Sync + 'static,
        O: Future<Output = Result<R, E>> + Send + 'static,
        E: Display,
    {
        self.register_async(name, move |context, bytes| {
            let argument = decode("an argument", &bytes).map_err(|error| error.to_string());
            let run = argument.map(|argument| function(context, argument));
            async move {
                let result = run?.await.map_err(|error| error.to_string())?;
                encode(&result).map_err(|error| error.to_string())
            }
        })
    }
}

impl TaskSpec {
    /// A call of `function` with a typed argument and the defaults.
    ///
    /// # Errors
    ///
    /// If the argument's `Serialize` fails.
    pub fn typed<A: Serialize>(function: &str, argument: &A) -> Result<Self, Error> {
        Ok(Self::new(function, encode(argument)?))
    }
}

impl JobBuilder {
    /// Adds a call with this typed argument.
    ///
    /// # Errors
    ///
    /// If its `Serialize` fails.
    pub fn typed_task<A: Serialize>(self, argument: &A) -> Result<Self, Error> {
        Ok(self.task(encode(argument)?))
    }
}

impl TaskResult {
    /// The value of a typed function.
    ///
    /// # Errors
    ///
    /// If the bytes are no `R`, or are in a file.
    pub fn typed<R: DeserializeOwned>(&self) -> Result<R, Error> {
        match &self.file {
            Some(_) => Err(Error::Codec("a result in a file is not decoded: raise ClientBuilder::value_max".into())),
            None => decode("a result", &self.value),
        }
    }
}

impl Client {
    /// Submits one call of a typed function, with the defaults of [`TaskSpec::new`].
    ///
    /// # Errors
    ///
    /// As [`Self::submit`], and if the argument's `Serialize` fails.
    pub fn submit_typed<A: Serialize, R: DeserializeOwned>(
        &self,
        function: &str,
        argument: &A,
    ) -> Result<TypedHandle<R>, Error> {
        let task = self.submit(TaskSpec::typed(function, argument)?)?.into_tasks().remove(0);
        Ok(TypedHandle { task, result: PhantomData })
    }
}

/// A submitted call of a typed function: wait for it, or `.await` it.
#[derive(Debug)]
pub struct TypedHandle<R> {
    task: TaskHandle,
    result: PhantomData<fn() -> R>,
}

impl<R: DeserializeOwned> TypedHandle<R> {
    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// If the task ended without a value or with one of another type.
    pub fn wait(self) -> Result<R, Error> {
        typed(self.task.wait())
    }

    /// The handle without its type.
    #[must_use]
    pub fn into_task(self) -> TaskHandle {
        self.task
    }
}

impl<R: DeserializeOwned> Future for TypedHandle<R> {
    type Output = Result<R, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.task).poll(context).map(typed)
    }
}

fn typed<R: DeserializeOwned>(outcome: TaskOutcome) -> Result<R, Error> {
    outcome?.typed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_else() {
        let bytes = encode(&(7u32, "seven")).unwrap();
        assert_eq!(decode::<(u32, String)>("a result", &bytes), Ok((7, "seven".to_owned())));
        let wrong = |bytes: &[u8]| decode::<(u32, String)>("an argument", bytes).unwrap_err().to_string();
        assert!(wrong(&bytes[..3]).starts_with("an argument of 3 bytes is no (u32, alloc::string::String) ("));
        assert!(wrong(&[&bytes[..], b"x"].concat()).contains("1 bytes too many"));
    }
}
