//! Traces of public collections, of tables, and binary ones of blktrace: what is read of them, and
//! replay on blocks.

use zonelab_device::{DeviceInfo, NamespaceInfo, Nanos};
use zonelab_host::fio::trace::{Columns, read_trace};
use zonelab_host::fio::{JobFile, Outside, Plan};
use zonelab_host::workload::replay::{Action, Operation, Trace};

use super::support::tiny_info;

fn read(bytes: &[u8], joins: bool, columns: Option<&str>) -> Result<Trace, String> {
    let columns = columns.map(|text| Columns::stated(text).expect("columns"));
    read_trace("t", bytes, joins, columns.as_ref()).map_err(|problem| problem.to_string())
}

/// What three lines of each collection say: the same.
const SAME: [(u64, Action, u64, u64); 3] = [
    (0, Action::Write, 0, 4_096),
    (100, Action::Write, 8_192, 8_192),
    (400, Action::Read, 0, 4_096),
];

fn same(trace: &Trace) {
    let expected = SAME.map(|(us, action, offset, bytes)| Operation {
        at: Nanos::from_us(us),
        action,
        offset,
        bytes,
    });
    assert_eq!(trace.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn public_collections_are_known_by_their_lines() {
    for (name, text) in [
        (
            "MSR Cambridge",
            "128166372000000000,srv,0,Write,0,4096,12\n128166372000001000,srv,0,Write,8192,8192,13\n\
             128166372000004000,srv,0,Read,0,4096,9\n",
        ),
        (
            "Alibaba",
            "7,W,0,4096,1577808144000000\n7,W,8192,8192,1577808144000100\n\
             7,R,0,4096,1577808144000400\n",
        ),
        (
            "SPC",
            "0,0,4096,W,0.000100\n0,16,8192,w,0.000200\n0,0,4096,R,0.000500\n",
        ),
        ("MQSim", "1000 0 0 8 0\n101000 0 16 16 0\n401000 0 0 8 1\n"),
        (
            "a header",
            "time_us,device,op,offset_bytes,size_sectors,latency\n5,a,write,0,8,1\n\
             105,a,W,8192,16,2\n405,a,read,0,8,3\n",
        ),
    ] {
        same(&read(text.as_bytes(), false, None).unwrap_or_else(|why| panic!("{name}: {why}")));
    }
    // Its times are whole seconds.
    let tencent = "1538323200,0,8,1,1063\n1538323201,16,16,1,1063\n1538323201,0,8,0,1063\n";
    let trace = read(tencent.as_bytes(), false, None).unwrap();
    let of = |op: &Operation| (op.at.0 / 1_000_000_000, op.action, op.offset, op.bytes);
    assert_eq!(
        trace.iter().map(|op| of(&op)).collect::<Vec<_>>(),
        [
            (0, Action::Write, 0, 4_096),
            (1, Action::Write, 8_192, 8_192),
            (1, Action::Read, 0, 4_096)
        ]
    );
    // No form is known of these: their columns are named.
    let bare = "W;\n0 1 0 8 1\n";
    assert!(read(bare.as_bytes(), false, None).is_err());
    let bare = "10,1,x,0,4096\n110,1,x,8192,8192\n410,0,x,0,4096\n";
    let columns = "time_us,op,-,offset_bytes,size_bytes";
    same(&read(bare.as_bytes(), false, Some(columns)).unwrap());
}

#[test]
fn what_is_wrong_with_a_table_is_named_with_its_line() {
    let msr = "128166372000000000,srv,0,Write,0,4096,12\n";
    for (text, says) in [
        (
            "128166372000001000,srv,1,Write,0,4096,1\n",
            "\"srv.1\" is another device than srv.0",
        ),
        (
            "128166372000001000,srv,0,Wipe,0,4096,1\n",
            "\"Wipe\" is no operation",
        ),
        ("128166372000001000,srv,0,Read,0,0,1\n", "nothing: 0 bytes"),
        (
            "128166372000001000,srv,0,Read,-1,4096,1\n",
            "\"-1\" is no offset",
        ),
        ("x,srv,0,Read,0,4096,1\n", "\"x\" is no time"),
        ("1,2\n", "2 columns in \"1,2\""),
    ] {
        let problem = read(format!("{msr}{text}").as_bytes(), false, None).unwrap_err();
        assert!(
            problem.contains("t:2:") && problem.contains(says),
            "{problem}"
        );
    }
    let joined = format!("{msr}128166372000001000,usr,1,Write,0,4096,1\n");
    assert_eq!(read(joined.as_bytes(), true, None).unwrap().len(), 2);
    // Times that go back: the operation comes with the one in front of it.
    let back = format!("{msr}128166371000000000,srv,0,Write,4096,4096,1\n");
    let trace = read(back.as_bytes(), false, None).unwrap();
    assert_eq!(trace.iter().map(|op| op.at.0).collect::<Vec<_>>(), [0, 0]);
    let (what, valid) = Columns::stated("time_us,op,offset_bytes").unwrap_err();
    assert!(what.contains("size_bytes") && valid.contains("offset_sectors"));
    for (bytes, says) in [
        (&[0x1F, 0x8B, 8, 0][..], "compressed by gzip"),
        (&[0x28, 0xB5, 0x2F, 0xFD], "compressed by zstd"),
    ] {
        let problem = read(bytes, false, None).unwrap_err();
        assert!(
            problem.contains(says) && problem.contains("--read_iolog=-"),
            "{problem}"
        );
    }
}

/// An event of blktrace and its data.
fn event(us: u64, sector: u64, bytes: u32, action: u32, device: u32, data: &[u8]) -> Vec<u8> {
    let mut event = Vec::new();
    event.extend(0x6561_7407_u32.to_le_bytes());
    event.extend(1_u32.to_le_bytes());
    event.extend((us * 1_000).to_le_bytes());
    event.extend(sector.to_le_bytes());
    event.extend(bytes.to_le_bytes());
    event.extend(action.to_le_bytes());
    event.extend(4_242_u32.to_le_bytes());
    event.extend(device.to_le_bytes());
    event.extend(0_u32.to_le_bytes());
    event.extend(0_u16.to_le_bytes());
    event.extend((data.len() as u16).to_le_bytes());
    event.extend(data);
    event
}

#[test]
fn binary_traces_of_blktrace_are_read() {
    let (queue, issue, complete, notify) = (1, 7, 8, 1 << 26);
    let (read_, write, discard) = (1 << 16, 2 << 16, 1 << 29);
    let device = 8 << 20;
    let events = [
        event(10, 0, 4_096, write | queue, device, b""),
        // The first D forgets all that was queued.
        event(20, 0, 4_096, write | issue, device, b"a process"),
        event(25, 0, 4_096, write | complete, device, b""),
        event(26, 0, 0, notify, device, b"note"),
        event(120, 16, 8_192, write | issue, device, b""),
        event(420, 0, 4_096, read_ | issue, device, b""),
    ];
    same(&read(&events.concat(), false, None).unwrap());
    let trim = event(1, 8, 4_096, discard | write | issue, device, b"");
    let trace = read(&trim, false, None).unwrap();
    assert_eq!(trace.get(0).unwrap().action, Action::Trim);
    let other = event(500, 0, 4_096, read_ | issue, device + 1, b"");
    let two = [events.concat(), other].concat();
    let problem = read(&two, false, None).unwrap_err();
    assert!(
        problem.contains("event 7") && problem.contains("another device"),
        "{problem}"
    );
    assert_eq!(read(&two, true, None).unwrap().len(), 4);
    let problem = read(&two[..60], false, None).unwrap_err();
    assert!(problem.contains("ends within an event"), "{problem}");
}

fn conventional_info() -> DeviceInfo {
    DeviceInfo {
        namespaces: vec![NamespaceInfo {
            placements: None,
            lba_bytes: 4096,
            size_lbas: 64,
            zoned: None,
            copy: None,
        }],
        ..tiny_info()
    }
}

fn planned(info: &DeviceInfo, options: &str, trace: &str) -> Result<Plan, String> {
    let outside = Outside {
        variable: &|_| None,
        include: &|_| Err("none".to_owned()),
    };
    let text = format!("[r]\nread_iolog=t\n{options}\n");
    let mut file = JobFile::parse("j", &text, &outside).map_err(|errors| errors.to_string())?;
    let trace = trace.to_owned();
    let open = |_: &str| -> Result<Box<dyn std::io::BufRead>, String> {
        Ok(Box::new(std::io::Cursor::new(trace.clone())))
    };
    file.read_traces(&open)
        .map_err(|errors| errors.to_string())?;
    file.plan(info, 1).map_err(|errors| errors.to_string())
}

#[test]
fn traces_fit_blocks_without_zones_or_are_folded_into_them() {
    let info = conventional_info();
    let block = u64::from(info.namespaces[0].lba_bytes);
    let bytes = info.namespaces[0].size_lbas * block;
    let line = |offset: u64| format!("time_us,op,offset_bytes,size_bytes\n0,W,{offset},{block}\n");
    // Over and over, and in any order.
    let overwrites = format!(
        "{}1,W,0,{block}\n2,T,0,{block}\n3,R,0,{block}\n",
        line(2 * block)
    );
    let plan = planned(&info, "", &overwrites).unwrap();
    let work = &plan.jobs[0].spec.work;
    assert!(work.blocks.is_some() && work.flows.iter().all(Option::is_some));
    let problem = planned(&info, "", &line(bytes)).unwrap_err();
    assert!(
        problem.contains("t:2:") && problem.contains("replay_wrap=1"),
        "{problem}"
    );
    let plan = planned(&info, "replay_wrap=1", &line(bytes + 3 * block)).unwrap();
    let replay = plan.jobs[0].spec.work.replay.clone().unwrap();
    let operation = replay.trace.get(0).unwrap();
    assert_eq!(replay.place(&operation), Some((3, 1)));
    // On zones, too, into those of the job.
    let zoned = tiny_info();
    let zone = zoned.namespaces[0].zoned.unwrap().zone_size_lbas;
    let block = u64::from(zoned.namespaces[0].lba_bytes);
    let far = format!(
        "time_us,op,offset_bytes,size_bytes\n0,W,{},{block}\n",
        1_000 * zone * block
    );
    let plan = planned(&zoned, "replay_wrap=1\noffset=1z\nsize=2z", &far).unwrap();
    let replay = plan.jobs[0].spec.work.replay.clone().unwrap();
    let (lba, _) = replay.place(&replay.trace.get(0).unwrap()).unwrap();
    assert!((zone..3 * zone).contains(&lba), "{lba}");
    // Times that go back are said.
    let back = "time_us,op,offset_bytes,size_bytes\n9,R,0,4096\n1,R,0,4096\n";
    let plan = planned(&info, "", back).unwrap();
    let said: Vec<String> = plan.warnings.iter().map(ToString::to_string).collect();
    assert!(
        said.iter()
            .any(|of| of.contains("1 operations of t have times before")),
        "{said:?}"
    );
}
