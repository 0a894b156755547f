//! Bundles read back, and anything else is refused.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tar::{Builder, EntryType, Header};

use super::*;

fn bundle() -> Bundle {
    let file = |name: &str, text: &str| (name.to_owned(), text.as_bytes().to_vec());
    Bundle {
        tool: "zonelab 1.2.3".to_owned(),
        results: [
            file("rows.csv", "id,ours\nC1,2\n"),
            file("manifest.json", "{}\n"),
            file("traces/a b.pftrace", "\0\u{1}"),
            file("empty", ""),
            file(&format!("{}.svg", "long".repeat(60)), "<svg/>"),
        ]
        .into(),
    }
}

fn read(bytes: &[u8]) -> Result<Bundle, BundleError> {
    Bundle::read(bytes, Limits::default())
}

#[test]
fn a_bundle_reads_back_and_has_the_same_bytes_every_time() {
    let bytes = bundle().to_bytes().unwrap();
    assert_eq!(read(&bytes).unwrap(), bundle());
    assert_eq!(bytes, bundle().to_bytes().unwrap());
    // No date, and no name of an owner: the header of gzip, and the first of tar.
    assert_eq!(&bytes[4..8], [0; 4]);
    let mut unzipped = Vec::new();
    std::io::copy(
        &mut flate2::bufread::GzDecoder::new(&bytes[..]),
        &mut unzipped,
    )
    .unwrap();
    let header = Header::from_byte_slice(&unzipped[..512]);
    assert_eq!((header.mtime().unwrap(), header.uid().unwrap()), (0, 0));
    assert_eq!(header.username().unwrap().unwrap_or_default(), "");
    assert!(unzipped.starts_with(MANIFEST.as_bytes()));
}

/// An archive of these entries, whatever they are.
fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, kind, bytes) in entries {
        let mut header = Header::new_gnu();
        // Not by the function for paths, which refuses what is tried here.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        if kind.is_symlink() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn manifest(files: &[(&str, &str)]) -> String {
    let entry = |(name, text): &(&str, &str)| Entry {
        name: (*name).to_owned(),
        bytes: text.len() as u64,
        sha256: sha256(text.as_bytes()),
    };
    let manifest = Manifest {
        schema: SCHEMA,
        tool: "t".to_owned(),
        files: files.iter().map(entry).collect(),
    };
    serde_json::to_string(&manifest).unwrap()
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    for name in [
        "../x",
        "/x",
        "a/../../x",
        "a//b",
        "./a",
        "a/",
        ".hidden",
        "a/.b",
        "..",
        "C:\\x",
        "a\\b",
        "a\nb",
    ] {
        let text = manifest(&[(name, "x")]);
        let file = EntryType::Regular;
        let bytes = archive(&[(MANIFEST, file, text.as_bytes()), (name, file, b"x")]);
        let error = read(&bytes).unwrap_err();
        assert!(matches!(error, BundleError::Name { .. }), "{name}: {error}");
        let results = [(name.to_owned(), Vec::new())].into();
        let tool = String::new();
        assert!(Bundle { tool, results }.to_bytes().is_err(), "{name}");
    }
}

#[test]
fn links_directories_and_devices_are_refused() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Directory,
        EntryType::Char,
        EntryType::Fifo,
        EntryType::GNUSparse,
    ] {
        let text = manifest(&[]);
        let bytes = archive(&[
            (MANIFEST, EntryType::Regular, text.as_bytes()),
            ("x", kind, b""),
        ]);
        let error = read(&bytes).unwrap_err();
        assert!(
            matches!(error, BundleError::Kind { .. } | BundleError::Archive(_)),
            "{error}"
        );
    }
}

#[test]
fn what_the_manifest_does_not_say_is_refused() {
    let file = EntryType::Regular;
    let read = |text: &str, files: &[(&str, &[u8])]| {
        let files = files.iter().map(|(name, bytes)| (*name, file, *bytes));
        let all: Vec<_> = std::iter::once((MANIFEST, file, text.as_bytes()))
            .chain(files)
            .collect();
        read(&archive(&all)).unwrap_err().to_string()
    };
    let one = manifest(&[("results/a", "x")]);
    assert!(read(&one, &[]).contains("`results/a` is missing"));
    assert!(read(&one, &[("results/a", b"y")]).contains("its SHA-256 differs"));
    assert!(read(&one, &[("results/a", b"xy")]).contains("its size differs"));
    let more: [(&str, &[u8]); 2] = [("results/a", b"x"), ("results/b", b"")];
    assert!(read(&one, &more).contains("does not list `results/b`"));
    let twice: [(&str, &[u8]); 2] = [("results/a", b"x"), ("results/a", b"x")];
    assert!(read(&one, &twice).contains("`results/a` twice"));
    let later = one.replace("\"schema\":1", "\"schema\":2");
    assert!(read(&later, &[("results/a", b"x")]).contains("schema 2"));
    assert!(read("{", &[]).contains("no bundle"));
}

#[test]
fn what_would_fill_the_memory_is_refused() {
    let limits = Limits {
        bytes: 10_000,
        files: 4,
    };
    let bomb = vec![0; 1 << 20];
    let file = EntryType::Regular;
    let bytes = archive(&[(MANIFEST, file, &bomb)]);
    assert!(bytes.len() < 10_000);
    let error = Bundle::read(&bytes, limits).unwrap_err();
    assert!(matches!(error, BundleError::TooLarge(_)), "{error}");
    let text = manifest(&["a", "b", "c", "d", "e"].map(|name| (name, "")));
    let bytes = archive(&[(MANIFEST, file, text.as_bytes())]);
    let error = Bundle::read(&bytes, limits).unwrap_err();
    assert!(matches!(error, BundleError::TooLarge(_)), "{error}");
    // Zeros after the end of the archive, without end.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(&bomb).unwrap();
    let error = Bundle::read(&gzip.finish().unwrap(), limits).unwrap_err();
    assert!(matches!(error, BundleError::Archive(_)), "{error}");
}

/// An archive of the manifest and the header of another entry, of which nothing follows.
fn header_of(text: &str, name: &str, kind: EntryType, size: u64) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, kind, bytes, size) in [
        (
            MANIFEST,
            EntryType::Regular,
            text.as_bytes(),
            text.len() as u64,
        ),
        (name, kind, b"", size),
    ] {
        let mut header = Header::new_gnu();
        header.set_path(name).unwrap();
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        tar.extend_from_slice(header.as_bytes());
        tar.extend_from_slice(bytes);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&tar).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn nothing_is_read_that_the_manifest_does_not_list_with_its_size() {
    let file = EntryType::Regular;
    let gibibyte = 1 << 30;
    let text = manifest(&[("results/a", "x")]);
    // Each says that it is long. What follows is not there: it would be missed if it were read.
    let error = read(&header_of(&text, "results/a", file, gibibyte)).unwrap_err();
    assert!(error.to_string().contains("its size differs"), "{error}");
    let error = read(&header_of(&text, "results/b", file, gibibyte)).unwrap_err();
    assert!(matches!(error, BundleError::Unlisted { .. }), "{error}");
    let kinds = [
        EntryType::XHeader,
        EntryType::XGlobalHeader,
        EntryType::GNULongLink,
    ];
    for kind in kinds {
        let error = read(&header_of(&text, "results/a", kind, gibibyte)).unwrap_err();
        assert!(matches!(error, BundleError::Kind { .. }), "{error}");
    }
    // More than is taken is not looked for.
    let most = Limits::default().bytes.to_string();
    let large = text.replace("\"bytes\":1", &format!("\"bytes\":{most}"));
    let error = read(&header_of(&large, "results/a", file, 1)).unwrap_err();
    assert!(matches!(error, BundleError::TooLarge(_)), "{error}");
}

/// A name that goes on and on is read as far as names may go.
#[test]
fn a_long_name_is_no_way_to_fill_the_memory() {
    let text = manifest(&[]);
    let name = vec![b'n'; 1 << 20];
    let kind = EntryType::GNULongName;
    let bytes = archive(&[
        (MANIFEST, EntryType::Regular, text.as_bytes()),
        ("././@LongLink", kind, &name),
        ("x", EntryType::Regular, b""),
    ]);
    match read(&bytes).unwrap_err() {
        BundleError::Name { name } => assert_eq!(name.len(), 1024),
        other => panic!("{other}"),
    }
}

#[test]
fn a_bundle_is_read_in_linear_time() {
    let bundle = |files: u32| {
        let files = (0..files).map(|number| (format!("{number}"), vec![0; 4]));
        let tool = String::new();
        let results = files.collect();
        Bundle { tool, results }.to_bytes().unwrap()
    };
    let of_many = bundle(99_000);
    let of_few = bundle(9_900);
    let clock = zonelab_device::Monotonic::new();
    let took = |bytes: &[u8]| {
        let begun = clock.now();
        assert!(read(bytes).is_ok());
        (clock.now() - begun).0
    };
    let few = (0..3).map(|_| took(&of_few)).max().unwrap();
    let many = (0..2).map(|_| took(&of_many)).min().unwrap();
    assert!(
        many < 30 * few,
        "ten times the files take {many} ns, and not {few}"
    );
}

#[test]
fn a_bundle_that_was_cut_off_or_goes_on_is_damaged() {
    let bytes = bundle().to_bytes().unwrap();
    for length in 0..bytes.len() {
        assert!(
            read(&bytes[..length]).is_err(),
            "{length} of {}",
            bytes.len()
        );
    }
    let more = [&bytes[..], b"x"].concat();
    assert!(read(&more).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(read(&bytes).is_err());
    }

    #[test]
    fn a_changed_byte_is_noticed_or_changes_nothing(at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let mut bytes = bundle().to_bytes().unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(read) = read(&bytes) {
            prop_assert_eq!(read, bundle());
        }
    }
}

fn files(of: &[(&str, &[u8])]) -> BTreeMap<String, Vec<u8>> {
    of.iter()
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
        .collect()
}

#[test]
fn differences_are_named_by_file_and_line() {
    let packed = files(&[
        ("a.csv", b"x\n1\n2\n3\n"),
        ("b", b"\xff\x00"),
        ("gone", b""),
        ("same", b"s"),
    ]);
    let again = files(&[
        ("a.csv", b"x\n1\n5\n3"),
        ("b", b"\xff\x01"),
        ("new", b""),
        ("same", b"s"),
    ]);
    let found: Vec<String> = compare(&packed, &again)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            "a.csv: 2 lines differ\n  line 3\n    packed: 2\n    again:  5\n  line 4\n    packed: 3\n    again:  3",
            "b: differs from byte 1 on",
            "gone: not made again",
            "new: not in the bundle",
        ]
    );
    assert_eq!(compare(&packed, &packed), []);
}

#[test]
fn recipes_read_back() {
    let mut recipe = Recipe::new("zonelab 1", vec!["run".to_owned(), "a b.toml".to_owned()]);
    recipe
        .files
        .insert("a b.toml".to_owned(), Given::Text("x = 1".to_owned()));
    recipe
        .files
        .insert("s".to_owned(), Given::Among("inputs-1.bin".to_owned()));
    recipe
        .builtin
        .insert("zn540".to_owned(), "y = 1".to_owned());
    let text = recipe.to_json();
    assert_eq!(Recipe::from_json(text.as_bytes()).unwrap(), recipe);
    let later = text.replacen("\"schema\": 1", "\"schema\": 9", 1);
    let error = Recipe::from_json(later.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("schema 9"), "{error}");
}
