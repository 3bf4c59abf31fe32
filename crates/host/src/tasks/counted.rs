//! Counted resources of an executor, such as GPUs or memory.

use midflight_tasks::executor::Bundles;
use std::sync::Arc;

/// A counted resource of an executor, such as GPUs or memory, with a number of bundles. A task that requires it has one bundle to itself
/// until it ends.
///
/// ```
/// use midflight_host::CountedResource;
///
/// let gpus = CountedResource::new(0, "gpu", ["0", "1"]).variable("CUDA_VISIBLE_DEVICES");
/// let memory = CountedResource::new(1, "mem", ["17179869184"; 4]);
/// assert_eq!((gpus.bundles(), memory.bundles()), (2, 4));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedResource {
    bit: u8,
    name: String,
    /// Environment variables for commands.
    variables: Vec<String>,
    bundles: Vec<String>,
}

impl CountedResource {
    /// The resource of this bit, 0 to 7. Each bundle is the text for its task: ids or an amount. Commands find it in `MIDFLIGHT_NAME`, in
    /// capital letters.
    pub fn new<T: Into<String>>(bit: u8, name: &str, bundles: impl IntoIterator<Item = T>) -> Self {
        let variable = format!("MIDFLIGHT_{}", name.to_ascii_uppercase().replace('-', "_"));
        let bundles = bundles.into_iter().map(Into::into).collect();
        Self { bit, name: name.to_owned(), variables: vec![variable], bundles }
    }

    /// Adds an environment variable for commands.
    #[must_use]
    pub fn variable(mut self, name: &str) -> Self {
        self.variables.push(name.to_owned());
        self
    }

    /// Its bit.
    #[must_use]
    pub fn bit(&self) -> u8 {
        self.bit
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of bundles.
    #[must_use]
    pub fn bundles(&self) -> usize {
        self.bundles.len()
    }
}

pub(crate) type CountedResources = Arc<[CountedResource]>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Holding {
    /// `None` if the task has no bundle, as most have.
    resources: Option<CountedResources>,
    bundles: Bundles,
}

impl Holding {
    pub(crate) fn new(resources: &CountedResources, bundles: Bundles) -> Self {
        Self { resources: (bundles.mask() != 0).then(|| Arc::clone(resources)), bundles }
    }

    /// Each resource with the text of the task's bundle.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&CountedResource, &str)> {
        self.resources.iter().flat_map(|resources| resources.iter()).filter_map(|resource| {
            let number = self.bundles.of(resource.bit)?;
            Some((resource, resource.bundles.get(usize::from(number))?.as_str()))
        })
    }

    pub(crate) fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().flat_map(|(resource, told)| resource.variables.iter().map(move |name| (name.as_str(), told)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t18_a_task_is_told_its_own_bundles() {
        let gpus = CountedResource::new(0, "gpu", ["4", "6"]).variable("CUDA_VISIBLE_DEVICES");
        let licences = CountedResource::new(3, "my-licence", ["a", "b", "c"]);
        let resources: CountedResources = vec![gpus, licences].into();
        let told = |bundles: &[(u8, u16)]| {
            let holding = Holding::new(&resources, bundles.iter().copied().collect());
            holding.environment().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told(&[]), "");
        assert_eq!(told(&[(0, 1)]), "MIDFLIGHT_GPU=6 CUDA_VISIBLE_DEVICES=6");
        assert_eq!(told(&[(3, 2), (0, 0)]), "MIDFLIGHT_GPU=4 CUDA_VISIBLE_DEVICES=4 MIDFLIGHT_MY_LICENCE=c");
    }
}
