//! A reader of Perfetto traces that shares nothing with the writer: as much of
//! the protocol buffers encoding, and of the trace format, as the tests need.

use std::collections::BTreeMap;

/// A field of a message.
#[derive(Clone, Debug)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// Fields of a message, in order.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Value)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (head, tail) = bytes.split_at(8);
                bytes = tail;
                Value::Number(u64::from_le_bytes(head.try_into().expect("eight bytes")))
            }
            2 => {
                let length = usize::try_from(varint(&mut bytes)).expect("it fits");
                let (head, tail) = bytes.split_at(length);
                bytes = tail;
                Value::Bytes(head.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&first, rest) = bytes.split_first().expect("a number ends");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first < 0x80 {
            return value;
        }
    }
    panic!("a number has at most ten bytes")
}

fn numbers(fields: &[(u64, Value)], field: u64) -> impl Iterator<Item = u64> {
    fields.iter().filter_map(move |(f, value)| match value {
        Value::Number(n) if *f == field => Some(*n),
        _ => None,
    })
}

fn number(fields: &[(u64, Value)], field: u64) -> Option<u64> {
    numbers(fields, field).next()
}

fn messages(fields: &[(u64, Value)], field: u64) -> impl Iterator<Item = &[u8]> {
    fields.iter().filter_map(move |(f, value)| match value {
        Value::Bytes(bytes) if *f == field => Some(bytes.as_slice()),
        _ => None,
    })
}

fn text(fields: &[(u64, Value)], field: u64) -> Option<String> {
    let bytes = messages(fields, field).next()?;
    Some(String::from_utf8(bytes.to_vec()).expect("texts are UTF-8"))
}

/// Something that lasts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slice {
    /// Group and name of its track.
    pub(crate) track: (String, String),
    pub(crate) name: String,
    pub(crate) category: String,
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) flow: Option<u64>,
    /// Arguments as text.
    pub(crate) args: BTreeMap<String, String>,
}

impl Slice {
    /// A numeric argument, 0 if there is none.
    pub(crate) fn arg(&self, name: &str) -> u64 {
        self.args.get(name).map_or(0, |n| n.parse().expect(name))
    }
}

/// A trace that has been read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) slices: Vec<Slice>,
    /// Time, name and arguments.
    pub(crate) instants: Vec<Slice>,
    /// By name of the counter: time and value.
    pub(crate) counters: BTreeMap<String, Vec<(u64, u64)>>,
}

#[derive(Default)]
struct Reader {
    /// Names of tracks, and their parents.
    tracks: BTreeMap<u64, (String, u64)>,
    /// By field of `InternedData`, texts by number.
    interned: BTreeMap<(u64, u64), String>,
    /// Open slices of each track.
    open: BTreeMap<u64, Vec<usize>>,
    last: BTreeMap<u64, u64>,
    trace: Trace,
}

/// Reads a trace, and checks that slices of each track are nested and in order.
pub(crate) fn read(bytes: &[u8]) -> Trace {
    let mut reader = Reader::default();
    for packet in messages(&fields(bytes), 1) {
        reader.packet(&fields(packet));
    }
    let open = reader.open.values().map(Vec::len).sum::<usize>();
    assert_eq!(open, 0, "every slice that began has ended");
    reader.trace
}

impl Reader {
    fn packet(&mut self, packet: &[(u64, Value)]) {
        assert_eq!(number(packet, 10), Some(1), "one sequence");
        if let Some(bytes) = messages(packet, 60).next() {
            self.descriptor(&fields(bytes));
        }
        for data in messages(packet, 12) {
            for (kind, value) in fields(data) {
                let Value::Bytes(entry) = value else {
                    panic!("entries are messages")
                };
                let entry = fields(&entry);
                let id = number(&entry, 1).expect("a number");
                let text = text(&entry, 2).expect("a text");
                self.interned.insert((kind, id), text);
            }
        }
        if let Some(bytes) = messages(packet, 11).next() {
            let at = number(packet, 8).expect("events have a time");
            self.event(at, &fields(bytes));
        }
    }

    fn descriptor(&mut self, track: &[(u64, Value)]) {
        let uuid = number(track, 1).expect("tracks have a number");
        let process = messages(track, 3).next().map(fields);
        let name = process
            .and_then(|process| text(&process, 6))
            .or_else(|| text(track, 2))
            .expect("tracks have a name");
        let parent = number(track, 5).unwrap_or(0);
        assert!(self.tracks.insert(uuid, (name, parent)).is_none());
    }

    fn word(&self, kind: u64, id: u64) -> String {
        self.interned[&(kind, id)].clone()
    }

    fn event(&mut self, at: u64, event: &[(u64, Value)]) {
        let track = number(event, 11).expect("events have a track");
        let last = self.last.insert(track, at).unwrap_or(0);
        assert!(last <= at, "events of a track are in order");
        let (name, parent) = self.tracks[&track].clone();
        match number(event, 9) {
            Some(1) => {
                let open = self.open.entry(track).or_default();
                assert!(open.is_empty(), "slices of {name} do not overlap");
                open.push(self.trace.slices.len());
                let slice = self.slice(at, track, event);
                self.trace.slices.push(slice);
            }
            Some(2) => {
                let open = self.open.get_mut(&track).and_then(Vec::pop);
                let slice = &mut self.trace.slices[open.expect("a slice is open")];
                slice.end = at;
            }
            Some(3) => {
                let slice = self.slice(at, track, event);
                self.trace.instants.push(slice);
            }
            Some(4) => {
                assert_ne!(parent, 0);
                let value = number(event, 30).expect("a value");
                self.trace
                    .counters
                    .entry(name)
                    .or_default()
                    .push((at, value));
            }
            other => panic!("event of type {other:?}"),
        }
    }

    fn slice(&self, at: u64, track: u64, event: &[(u64, Value)]) -> Slice {
        let (name, parent) = &self.tracks[&track];
        let mut args = BTreeMap::new();
        for argument in messages(event, 4) {
            let argument = fields(argument);
            let name = self.word(3, number(&argument, 1).expect("a name"));
            let value = number(&argument, 3)
                .map(|n| n.to_string())
                .or_else(|| text(&argument, 6))
                .or_else(|| number(&argument, 17).map(|id| self.word(29, id)));
            args.insert(name, value.expect("a value"));
        }
        let category = number(event, 3).expect("a category");
        assert_eq!(number(event, 52), Some(category), "it decides the colour");
        Slice {
            track: (self.tracks[parent].0.clone(), name.clone()),
            name: number(event, 10)
                .map(|id| self.word(2, id))
                .or_else(|| text(event, 23))
                .expect("a name"),
            category: self.word(1, category),
            start: at,
            end: at,
            flow: number(event, 47),
            args,
        }
    }
}
