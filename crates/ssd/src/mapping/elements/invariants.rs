//! What always holds of storage elements.

use super::{Blocks, Elements, NONE};
use crate::mapping::allocator::Availability;

impl Elements {
    /// Panics unless what is known of elements agrees with itself and with the blocks.
    ///
    /// # Panics
    /// As said. It looks at every block.
    pub(crate) fn assert_invariants(&self, blocks: &Blocks) {
        let mut owner = vec![NONE; self.owner.len()];
        for (physical, _) in self.mapped() {
            for place in 0..self.shape.places {
                if let Some(element) = self.at(physical, place) {
                    assert_eq!(owner[element], NONE, "element {element} is of one zone");
                    owner[element] = physical;
                }
            }
        }
        assert_eq!(
            owner, self.owner,
            "elements are of the zones that have them"
        );
        for (element, &owner) in owner.iter().enumerate() {
            let (group, id) = self.name(element);
            let of = &self.allocators[group];
            if id.0 >= of.luns() * of.elements_per_lun() {
                continue;
            }
            let stale = self.blocks(element).filter(|block| blocks.is_stale(*block));
            let stale = stale.count();
            assert_eq!(
                stale, self.stale_left[element] as usize,
                "stale blocks of element {element}"
            );
            assert_eq!(of.is_stale(id), stale > 0, "element {element} is stale");
            let is_available = of.availability(id).is_available();
            assert_eq!(is_available, owner == NONE, "element {element}");
            if of.availability(id) == Availability::Free {
                assert_eq!(stale, 0, "free element {element} has nothing to be erased");
            }
        }
    }
}
