use crate::NodeId;

#[derive(Debug)]
struct Partition {
    /// Sorted.
    from: Vec<NodeId>,
    to: Vec<NodeId>,
    both: bool,
}

impl Partition {
    fn separates(&self, from: NodeId, to: NodeId) -> bool {
        let stands = |nodes: &[NodeId], node| nodes.binary_search(&node).is_ok();
        stands(&self.from, from) && stands(&self.to, to)
            || self.both && stands(&self.to, from) && stands(&self.from, to)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Partitions(Vec<Partition>);

impl Partitions {
    pub(crate) fn add(&mut self, mut from: Vec<NodeId>, mut to: Vec<NodeId>, both: bool) {
        from.sort_unstable();
        to.sort_unstable();
        self.0.push(Partition { from, to, both });
    }

    pub(crate) fn heal(&mut self) {
        self.0.clear();
    }

    pub(crate) fn separate(&self, from: NodeId, to: NodeId) -> bool {
        self.0.iter().any(|partition| partition.separates(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_one_way_unless_it_says_both() {
        let [a, b, c] = [NodeId(1), NodeId(2), NodeId(3)];
        let mut partitions = Partitions::default();
        partitions.add(vec![b, a], vec![c], false);
        assert!(partitions.separate(a, c) && partitions.separate(b, c));
        assert!(!partitions.separate(c, a) && !partitions.separate(a, b));
        partitions.add(vec![c], vec![a], false);
        assert!(partitions.separate(c, a) && !partitions.separate(c, b));
        partitions.heal();
        assert!(!partitions.separate(a, c));
        partitions.add(vec![a], vec![b], true);
        assert!(partitions.separate(a, b) && partitions.separate(b, a) && !partitions.separate(a, a));
    }
}
