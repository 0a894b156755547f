//! Packets of a Perfetto trace: tracks, slices, instants, counters.
//!
//! Field numbers are those of Perfetto's `trace_packet.proto`,
//! `track_event.proto`, `track_descriptor.proto`, `debug_annotation.proto` and
//! `interned_data.proto`, which are stable. Texts that come again and again are
//! written once and named by a number from then on.

use std::collections::BTreeMap;

use zonelab_device::Nanos;

use super::proto::Message;

/// Fields of `Trace` and `TracePacket`.
mod packet {
    pub(super) const PACKET: u32 = 1;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED: u32 = 12;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    /// Numbers of texts begin anew.
    pub(super) const CLEARED: u64 = 1;
    /// Numbers of texts are used.
    pub(super) const NEEDS_STATE: u64 = 2;
}

/// Fields of `TrackDescriptor` and what it contains.
mod track {
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const PARENT: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    pub(super) const CHILD_ORDERING: u32 = 11;
    pub(super) const RANK: u32 = 12;
    /// Children in the order of their ranks.
    pub(super) const EXPLICIT: u64 = 3;
    pub(super) const PID: u32 = 1;
    pub(super) const PROCESS_NAME: u32 = 6;
}

/// Fields of `TrackEvent`.
mod event {
    pub(super) const CATEGORY: u32 = 3;
    pub(super) const ANNOTATION: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME_ID: u32 = 10;
    pub(super) const TRACK: u32 = 11;
    pub(super) const NAME: u32 = 23;
    pub(super) const COUNTER_VALUE: u32 = 30;
    pub(super) const FLOW: u32 = 47;
    /// Events with the same number have the same colour.
    pub(super) const CORRELATION: u32 = 52;
    pub(super) const SLICE_BEGIN: u64 = 1;
    pub(super) const SLICE_END: u64 = 2;
    pub(super) const INSTANT: u64 = 3;
    pub(super) const COUNTER: u64 = 4;
}

/// Fields of `DebugAnnotation`.
mod annotation {
    pub(super) const NAME: u32 = 1;
    pub(super) const UINT: u32 = 3;
    pub(super) const TEXT: u32 = 6;
    pub(super) const TEXT_ID: u32 = 17;
}

/// All packets belong to one sequence.
const SEQUENCE: u64 = 1;

/// A track that events can be put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Track(u64);

/// An argument of an event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg<'a> {
    /// A number.
    Uint(u64),
    /// A text that comes once.
    Text(&'a str),
    /// A text that comes again.
    Word(&'a str),
}

/// What an event is called.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name<'a> {
    /// A name that comes once.
    Once(&'a str),
    /// A name that comes again.
    Again(&'a str),
}

/// An event with all that is known of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event<'a> {
    pub(super) track: Track,
    pub(super) name: Name<'a>,
    /// Decides its colour.
    pub(super) category: &'a str,
    /// Events with the same number are linked by arrows.
    pub(super) flow: Option<u64>,
    pub(super) args: &'a [(&'a str, Arg<'a>)],
}

/// Texts of one kind that have numbers.
#[derive(Clone, Debug)]
struct Interned {
    /// Field of `InternedData`.
    field: u32,
    ids: BTreeMap<String, u64>,
}

impl Interned {
    const fn new(field: u32) -> Self {
        let ids = BTreeMap::new();
        Self { field, ids }
    }

    /// The number of `text`. If it is new, `data` says so.
    fn id(&mut self, text: &str, data: &mut Message) -> u64 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        // Zero stands for "none".
        let id = self.ids.len() as u64 + 1;
        self.ids.insert(text.to_owned(), id);
        let mut entry = Message::default();
        entry.uint(1, id).text(2, text);
        data.message(self.field, &entry);
        id
    }
}

/// A trace that is being written.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    out: Message,
    tracks: u64,
    categories: Interned,
    names: Interned,
    arg_names: Interned,
    words: Interned,
}

impl Packets {
    pub(super) fn new() -> Self {
        let mut packets = Self {
            out: Message::default(),
            tracks: 0,
            categories: Interned::new(1),
            names: Interned::new(2),
            arg_names: Interned::new(3),
            words: Interned::new(29),
        };
        let mut first = Message::default();
        first.uint(packet::SEQUENCE_FLAGS, packet::CLEARED);
        packets.push(first);
        packets
    }

    /// The file.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out.into_bytes()
    }

    fn push(&mut self, mut message: Message) {
        message.uint(packet::SEQUENCE, SEQUENCE);
        self.out.message(packet::PACKET, &message);
    }

    fn descriptor(&mut self, fill: impl FnOnce(&mut Message)) -> Track {
        self.tracks += 1;
        let uuid = self.tracks;
        let mut descriptor = Message::default();
        descriptor.uint(track::UUID, uuid);
        fill(&mut descriptor);
        let mut message = Message::default();
        message.message(packet::TRACK_DESCRIPTOR, &descriptor);
        self.push(message);
        Track(uuid)
    }

    /// A group of tracks, which Perfetto shows as a process.
    pub(super) fn group(&mut self, name: &str) -> Track {
        let pid = self.tracks + 1;
        self.descriptor(|descriptor| {
            let mut process = Message::default();
            process
                .uint(track::PID, pid)
                .text(track::PROCESS_NAME, name);
            descriptor
                .message(track::PROCESS, &process)
                .uint(track::CHILD_ORDERING, track::EXPLICIT);
        })
    }

    /// A track of a group. Tracks of one name in a group are shown as one.
    pub(super) fn track(&mut self, group: Track, name: &str, rank: u64) -> Track {
        self.descriptor(|descriptor| {
            descriptor
                .text(track::NAME, name)
                .uint(track::PARENT, group.0)
                .uint(track::RANK, rank);
        })
    }

    /// A track of numbers.
    pub(super) fn counter_track(&mut self, group: Track, name: &str, rank: u64) -> Track {
        self.descriptor(|descriptor| {
            descriptor
                .text(track::NAME, name)
                .uint(track::PARENT, group.0)
                .uint(track::RANK, rank)
                .message(track::COUNTER, &Message::default());
        })
    }

    /// Something that lasts from `start` to `end`; without an end, it goes on
    /// to the end of the trace. Slices of one track come in order.
    pub(super) fn slice(&mut self, start: Nanos, end: Option<Nanos>, event: &Event<'_>) {
        self.named(start, event::SLICE_BEGIN, event);
        if let Some(end) = end {
            let mut message = Message::default();
            message
                .uint(event::TYPE, event::SLICE_END)
                .uint(event::TRACK, event.track.0);
            self.event(end, &message, &Message::default());
        }
    }

    /// Something that happens at once.
    pub(super) fn instant(&mut self, at: Nanos, event: &Event<'_>) {
        self.named(at, event::INSTANT, event);
    }

    /// The value of a counter from `at` on.
    pub(super) fn counter(&mut self, track: Track, at: Nanos, value: u64) {
        let mut message = Message::default();
        message
            .uint(event::TYPE, event::COUNTER)
            .uint(event::TRACK, track.0)
            .uint(event::COUNTER_VALUE, value);
        self.event(at, &message, &Message::default());
    }

    fn named(&mut self, at: Nanos, kind: u64, event: &Event<'_>) {
        let mut data = Message::default();
        let mut message = Message::default();
        message
            .uint(event::TYPE, kind)
            .uint(event::TRACK, event.track.0);
        let category = self.categories.id(event.category, &mut data);
        message
            .uint(event::CATEGORY, category)
            .uint(event::CORRELATION, category);
        match event.name {
            Name::Once(name) => message.text(event::NAME, name),
            Name::Again(name) => message.uint(event::NAME_ID, self.names.id(name, &mut data)),
        };
        if let Some(flow) = event.flow {
            message.fixed64(event::FLOW, flow);
        }
        for (name, arg) in event.args {
            let mut argument = Message::default();
            argument.uint(annotation::NAME, self.arg_names.id(name, &mut data));
            match *arg {
                Arg::Uint(value) => argument.uint(annotation::UINT, value),
                Arg::Text(text) => argument.text(annotation::TEXT, text),
                Arg::Word(word) => {
                    argument.uint(annotation::TEXT_ID, self.words.id(word, &mut data))
                }
            };
            message.message(event::ANNOTATION, &argument);
        }
        self.event(at, &message, &data);
    }

    fn event(&mut self, at: Nanos, event: &Message, interned: &Message) {
        let mut message = Message::default();
        message.uint(packet::TIMESTAMP, at.0);
        message.uint(packet::SEQUENCE_FLAGS, packet::NEEDS_STATE);
        if !interned.is_empty() {
            message.message(packet::INTERNED, interned);
        }
        message.message(packet::TRACK_EVENT, event);
        self.push(message);
    }
}
