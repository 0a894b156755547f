//! Who writes to a log: the host, through each of its reclaim unit handles, and garbage
//! collection. Each fills a zone of its own.

use crate::config::{Isolation, ReclaimUnitHandles};

/// One who writes, by number: the handles come first, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream(u8);

impl Stream {
    /// What the host writes without a choice.
    pub(crate) const DEFAULT: Self = Self(0);

    #[inline]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn number(self) -> u8 {
        self.0
    }
}

/// The streams of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Streams {
    handles: u8,
    isolation: Isolation,
    /// A zone may be left before it is full.
    can_leave: bool,
}

impl Streams {
    /// Those of a namespace: of one without handles of its own, one of the host and one of
    /// the collection, so that what was collected, and therefore changes seldom, does not
    /// mix with what the host writes.
    ///
    /// On a drive with flexible data placement, handles can leave their zones, those of
    /// such a namespace too.
    pub(crate) fn new(handles: Option<ReclaimUnitHandles>, can_leave: bool) -> Self {
        let ReclaimUnitHandles { count, isolation } = handles.unwrap_or(ReclaimUnitHandles::ONE);
        Self {
            // Fits: a profile with more is refused.
            handles: count.clamp(1, ReclaimUnitHandles::MAX) as u8,
            isolation,
            can_leave,
        }
    }

    /// Reclaim unit handles, at least one.
    #[inline]
    pub(crate) const fn handles(self) -> u8 {
        self.handles
    }

    pub(crate) const fn isolation(self) -> Isolation {
        self.isolation
    }

    /// Whether a zone may be left before it is full.
    pub(crate) const fn can_leave(self) -> bool {
        self.can_leave
    }

    /// All streams.
    pub(crate) fn count(self) -> usize {
        usize::from(self.handles) + self.collections()
    }

    /// Streams of the collection.
    fn collections(self) -> usize {
        match self.isolation {
            Isolation::Initially => 1,
            Isolation::Persistently => usize::from(self.handles),
        }
    }

    /// The stream of a handle, if there is such a handle.
    #[inline]
    pub(crate) fn of_handle(self, handle: u16) -> Option<Stream> {
        // Fits: there are fewer.
        (handle < u16::from(self.handles)).then_some(Stream(handle as u8))
    }

    /// The stream of that number, if there is one.
    pub(crate) fn numbered(self, number: u8) -> Option<Stream> {
        (usize::from(number) < self.count()).then_some(Stream(number))
    }

    /// Whether the host writes it.
    #[inline]
    pub(crate) const fn is_of_host(self, stream: Stream) -> bool {
        stream.0 < self.handles
    }

    /// Where collection moves what a stream wrote.
    pub(crate) fn collection_of(self, stream: Stream) -> Stream {
        match self.isolation {
            Isolation::Initially => Stream(self.handles),
            Isolation::Persistently if self.is_of_host(stream) => {
                // Fits: there are at most 128 handles.
                Stream(self.handles + stream.0)
            }
            Isolation::Persistently => stream,
        }
    }

    /// The handle through which the host wrote what a stream has; `None`: any of them.
    pub(crate) fn handle_of(self, stream: Stream) -> Option<u8> {
        match (self.is_of_host(stream), self.isolation) {
            (true, _) => Some(stream.0),
            (false, Isolation::Persistently) => Some(stream.0 - self.handles),
            (false, Isolation::Initially) if self.handles == 1 => Some(0),
            (false, Isolation::Initially) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(count: u32, isolation: Isolation) -> Streams {
        Streams::new(Some(ReclaimUnitHandles { count, isolation }), true)
    }

    #[test]
    fn what_was_collected_is_apart_from_what_was_written() {
        let one = Streams::new(None, false);
        assert_eq!((one.handles(), one.count(), one.can_leave()), (1, 2, false));
        assert_eq!(one.collection_of(Stream::DEFAULT), Stream(1));
        assert_eq!(one.collection_of(Stream(1)), Stream(1));

        let initially = streams(3, Isolation::Initially);
        assert_eq!(initially.count(), 4);
        for number in 0..4 {
            assert_eq!(initially.collection_of(Stream(number)), Stream(3));
        }
        assert_eq!(initially.handle_of(Stream(2)), Some(2));
        assert_eq!(initially.handle_of(Stream(3)), None);

        let persistently = streams(ReclaimUnitHandles::MAX, Isolation::Persistently);
        assert_eq!(persistently.count(), 256);
        assert_eq!(persistently.collection_of(Stream(127)), Stream(255));
        assert_eq!(persistently.collection_of(Stream(255)), Stream(255));
        assert_eq!(persistently.handle_of(Stream(255)), Some(127));
        assert_eq!(persistently.of_handle(127), Some(Stream(127)));
        assert_eq!(persistently.of_handle(128), None);
    }
}
