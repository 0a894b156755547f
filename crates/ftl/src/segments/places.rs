//! Where the blocks of an image are.

/// Where a block of an image is on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImagePlace {
    pub(crate) zone: u32,
    pub(crate) offset: u32,
}

/// Where an image is on the drive: runs of blocks in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImagePlaces {
    /// The first block of the image in each run, and where it is.
    runs: Vec<(u32, ImagePlace)>,
    count: u32,
}

impl ImagePlaces {
    /// The next `count` blocks of the image are there.
    pub(crate) fn push(&mut self, count: u32, at: ImagePlace) {
        let follows = self.runs.last().is_some_and(|(first, place)| {
            place.zone == at.zone && place.offset + (self.count - first) == at.offset
        });
        if !follows {
            self.runs.push((self.count, at));
        }
        self.count += count;
    }

    /// Blocks of the image.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    /// Where a block is, and how many from there on, at most `most`, are behind each other;
    /// `None`: the image does not have it.
    pub(crate) fn get(&self, index: u32, most: u32) -> Option<(ImagePlace, u32)> {
        if index >= self.count {
            return None;
        }
        let behind = self.runs.partition_point(|(first, _)| *first <= index);
        let (first, place) = *self.runs.get(behind.checked_sub(1)?)?;
        let end = self.runs.get(behind).map_or(self.count, |(next, _)| *next);
        let place = ImagePlace {
            zone: place.zone,
            offset: place.offset + (index - first),
        };
        Some((place, most.min(end - index)))
    }
}
