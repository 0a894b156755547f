//! Which of its namespaces a device is used through.

use crate::{DeviceInfo, NamespaceId, NamespaceInfo};

/// Why no namespace of a device is used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoNamespace {
    /// Several are there, and none is named.
    #[error("there are {} namespaces, and none is named ({})", there.len(), ids(there))]
    Several {
        /// Those that are there.
        there: Vec<NamespaceId>,
    },
    /// The one that is named is not there.
    #[error("there is no namespace {}; there is {}", nsid.0, ids(there))]
    NoSuch {
        /// The one that is named.
        nsid: NamespaceId,
        /// Those that are there.
        there: Vec<NamespaceId>,
    },
    /// None is there.
    #[error("there is no namespace at all")]
    None,
}

fn ids(there: &[NamespaceId]) -> String {
    let ids: Vec<String> = there.iter().map(|nsid| nsid.0.to_string()).collect();
    ids.join(", ")
}

impl DeviceInfo {
    /// The namespaces that have blocks, in their order.
    pub fn present(&self) -> impl Iterator<Item = (NamespaceId, &NamespaceInfo)> {
        let all = (1..).map(NamespaceId).zip(&self.namespaces);
        all.filter(|(_, namespace)| namespace.size_lbas > 0)
    }

    /// The namespace that is named, or the only one.
    ///
    /// # Errors
    /// It is not there, or none is named and there is not exactly one.
    pub fn choose(&self, named: Option<NamespaceId>) -> Result<NamespaceId, NoNamespace> {
        let there: Vec<NamespaceId> = self.present().map(|(nsid, _)| nsid).collect();
        match (named, there.as_slice()) {
            (_, []) => Err(NoNamespace::None),
            (None, &[only]) => Ok(only),
            (None, _) => Err(NoNamespace::Several { there }),
            (Some(nsid), _) if there.contains(&nsid) => Ok(nsid),
            (Some(nsid), _) => Err(NoNamespace::NoSuch { nsid, there }),
        }
    }

    /// The same device with this namespace only: the others are there as namespaces of no
    /// blocks.
    #[must_use]
    pub fn only(&self, nsid: NamespaceId) -> Self {
        let alone = |(id, namespace): (u32, &NamespaceInfo)| match NamespaceId(id) == nsid {
            true => namespace.clone(),
            false => NamespaceInfo {
                placements: None,
                size_lbas: 0,
                zoned: None,
                copy: None,
                ..namespace.clone()
            },
        };
        Self {
            namespaces: (1..).zip(&self.namespaces).map(alone).collect(),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(sizes: &[u64]) -> DeviceInfo {
        let namespace = |size_lbas: &u64| NamespaceInfo {
            placements: None,
            lba_bytes: 4096,
            size_lbas: *size_lbas,
            zoned: None,
            copy: None,
        };
        DeviceInfo {
            model: String::new(),
            namespaces: sizes.iter().map(namespace).collect(),
            max_transfer_bytes: u32::MAX,
            max_append_bytes: u32::MAX,
            has_volatile_cache: false,
        }
    }

    #[test]
    fn only_one_that_is_named_or_alone_is_chosen() {
        let (first, second, third) = (NamespaceId(1), NamespaceId(2), NamespaceId(3));
        // Linux shows the namespace of a node in its place, with none before it.
        let alone = with(&[0, 8]);
        assert_eq!(alone.choose(None), Ok(second));
        assert_eq!(alone.choose(Some(second)), Ok(second));
        let there = vec![second];
        let none = Err(NoNamespace::NoSuch { nsid: first, there });
        assert_eq!(alone.choose(Some(first)), none);
        let both = with(&[8, 8]);
        let there = vec![first, second];
        let several = NoNamespace::Several {
            there: there.clone(),
        };
        assert_eq!(both.choose(None), Err(several.clone()));
        assert_eq!(
            several.to_string(),
            "there are 2 namespaces, and none is named (1, 2)"
        );
        let none = Err(NoNamespace::NoSuch { nsid: third, there });
        assert_eq!(both.choose(Some(third)), none);
        assert_eq!(with(&[]).choose(None), Err(NoNamespace::None));
    }

    #[test]
    fn alone_means_that_the_others_have_no_blocks() {
        let info = with(&[8, 16, 32]).only(NamespaceId(2));
        let sizes: Vec<u64> = info.namespaces.iter().map(|of| of.size_lbas).collect();
        assert_eq!(sizes, [0, 16, 0]);
        assert_eq!(info.choose(None), Ok(NamespaceId(2)));
    }
}
