//! Result directories on a real file system.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory of its own for a test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "zonelab-output-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn results(&self) -> PathBuf {
        self.0.join("results/C10a")
    }

    /// All files below the results with their contents.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        let mut pending = vec![self.results()];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    pending.push(path);
                } else {
                    let name = path
                        .strip_prefix(self.results())
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .to_owned();
                    files.push((name, fs::read(path).unwrap()));
                }
            }
        }
        files.sort();
        files
    }

    fn names(&self) -> Vec<String> {
        self.files().into_iter().map(|(name, _)| name).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn manifest(configuration: &str, seed: u64) -> Manifest {
    Manifest::new("zonelab 0.1.0", configuration.as_bytes(), seed)
}

fn run(scratch: &Scratch, configuration: &str, existing: Existing) -> Result<(), OutputError> {
    let mut dir = ResultDir::create(&scratch.results(), manifest(configuration, 1), existing)?;
    dir.write("rows.json", b"{}\n")?;
    dir.write(&format!("figures/{configuration}.svg"), b"<svg/>\n")?;
    let put = dir.finish()?;
    assert_eq!(put.said(), scratch.results().display().to_string());
    Ok(())
}

/// Whole results stay until others are written, and a part goes beside them.
#[test]
fn whole_results_are_replaced_by_whole_ones_only() {
    let scratch = Scratch::new();
    run(&scratch, "a", Existing::Keep).unwrap();
    let whole = scratch.files();
    let at = scratch.results();
    // Work that ends before it has a result.
    let mut held = ResultDir::hold(&at, manifest("a", 1), Existing::Keep).unwrap();
    held.keep("rows.json", b"{ }\n").unwrap();
    drop(held);
    scratch_is_but(&scratch, &whole, "rows.json");
    run(&scratch, "a", Existing::Keep).unwrap();
    assert_eq!(scratch.files(), whole);
    // Parts, of this and of another configuration.
    for (configuration, existing) in [("a", Existing::Keep), ("b", Existing::Replace)] {
        let part = ResultDir::create_part(&at, manifest(configuration, 1), existing);
        let mut part = part.unwrap();
        part.write("points.csv", b"1\n").unwrap();
        let put = part.leave();
        assert_eq!(put.path(), at.with_file_name("C10a-partial"));
        assert_eq!(scratch.files(), whole, "{configuration}");
    }
    // What was kept to go on from is among the results that follow.
    let mut held = ResultDir::hold(&at, manifest("a", 1), Existing::Keep).unwrap();
    held.keep("rows.json", b"{ }\n").unwrap();
    held.write("new.csv", b"1\n").unwrap();
    let _ = held.finish().unwrap();
    assert_eq!(scratch.names(), ["manifest.json", "new.csv", "rows.json"]);
    let text = fs::read_to_string(at.join(MANIFEST)).unwrap();
    assert!(text.contains("\"rows.json\"") && text.contains("\"complete\": true"));
}

/// The files are those of before, but for the content of one.
fn scratch_is_but(scratch: &Scratch, before: &[(String, Vec<u8>)], but: &str) {
    let now = scratch.files();
    assert_eq!(now.len(), before.len());
    for (one, other) in now.iter().zip(before) {
        assert!(one == other || one.0 == but, "{}", one.0);
    }
}

#[test]
fn one_program_at_a_time_has_a_directory() {
    let scratch = Scratch::new();
    let at = scratch.results();
    let hold = || ResultDir::hold(&at, manifest("a", 1), Existing::Keep);
    let first = hold().unwrap();
    let error = hold().unwrap_err();
    assert!(matches!(error, OutputError::Busy { .. }), "{error}");
    drop(first);
    hold().unwrap();
}

/// The link leads to whole results of one file, as long as that is there.
#[test]
fn the_link_leads_to_whole_results_of_one_file() {
    let scratch = Scratch::new();
    let parent = scratch.0.join("results");
    let place = |name: &str, source: &Path| Place {
        path: parent.join(name),
        latest: Some(parent.join("latest")),
        source: Some(source.display().to_string()),
    };
    let write = |name: &str, source: &Path, is_whole: bool| {
        let configuration = manifest(name, 1);
        let place = place(name, source);
        let dir = ResultDir::create(place, configuration, Existing::Keep).unwrap();
        match is_whole {
            true => dir.finish().unwrap(),
            false => dir.leave(),
        }
    };
    let target = || fs::read_link(parent.join("latest")).unwrap();
    let (ours, theirs) = (scratch.0.join("ours.toml"), scratch.0.join("theirs.toml"));
    fs::write(&ours, "").unwrap();
    fs::write(&theirs, "").unwrap();
    let put = write("a", &ours, true);
    assert!(
        put.said().ends_with("latest leads to it)"),
        "{}",
        put.said()
    );
    let put = write("b", &ours, false);
    assert!(put.said().ends_with("latest does not lead to it)"));
    assert_eq!((target(), put.warning()), (PathBuf::from("a"), None));
    let put = write("c", &theirs, true);
    assert!(put.warning().unwrap().contains("ours.toml"));
    assert_eq!(target(), Path::new("a"));
    let _ = write("d", &ours, true);
    assert_eq!(target(), Path::new("d"));
    fs::remove_file(&ours).unwrap();
    let _ = write("e", &theirs, true);
    assert_eq!(target(), Path::new("e"));
    let same = Place::from(Path::new("x"));
    assert_eq!(same.clone().of("./a.toml"), same.of("a.toml"));
}

#[test]
fn the_digest_is_fnv_1a() {
    // Test vectors of the authors of FNV.
    assert_eq!(digest(b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(digest(b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(digest(b"foobar"), 0x8594_4171_f739_67e8);
}

#[test]
fn a_run_leaves_its_files_and_nothing_else() {
    let scratch = Scratch::new();
    run(&scratch, "a", Existing::Keep).unwrap();
    assert_eq!(
        scratch.names(),
        ["figures/a.svg", "manifest.json", "rows.json"]
    );
    let text = String::from_utf8(fs::read(scratch.results().join(MANIFEST)).unwrap()).unwrap();
    insta::assert_snapshot!(text, @r#"
    {
      "schema": 1,
      "tool": "zonelab 0.1.0",
      "configuration": "af63dc4c8601ec8c",
      "seed": 1,
      "complete": true,
      "files": [
        "rows.json",
        "figures/a.svg"
      ]
    }
    "#);
}

#[test]
fn the_same_configuration_is_replaced_by_the_same_bytes() {
    let scratch = Scratch::new();
    run(&scratch, "a", Existing::Keep).unwrap();
    let first = scratch.files();
    run(&scratch, "a", Existing::Keep).unwrap();
    assert_eq!(scratch.files(), first);
}

#[test]
fn another_configuration_or_seed_is_refused() {
    let scratch = Scratch::new();
    run(&scratch, "a", Existing::Keep).unwrap();
    let before = scratch.files();
    let message = run(&scratch, "b", Existing::Keep).unwrap_err().to_string();
    assert!(
        message.contains("results/C10a") && message.contains("--out DIR"),
        "{message}"
    );
    assert!(message.contains("--force"), "{message}");
    let seed = ResultDir::create(&scratch.results(), manifest("a", 2), Existing::Keep);
    assert!(matches!(
        seed,
        Err(OutputError::OtherConfiguration {
            theirs_seed: 1,
            ours_seed: 2,
            ..
        })
    ));
    assert_eq!(scratch.files(), before, "a refusal changes nothing");
}

#[test]
fn force_removes_the_other_results_but_not_the_users_files() {
    let scratch = Scratch::new();
    run(&scratch, "a", Existing::Keep).unwrap();
    fs::write(scratch.results().join("notes.txt"), "mine").unwrap();
    run(&scratch, "b", Existing::Replace).unwrap();
    assert_eq!(
        scratch.names(),
        ["figures/b.svg", "manifest.json", "notes.txt", "rows.json"]
    );
}

#[test]
fn a_directory_of_something_else_is_refused() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.results()).unwrap();
    fs::write(scratch.results().join("thesis.tex"), "\\").unwrap();
    assert!(matches!(
        run(&scratch, "a", Existing::Keep),
        Err(OutputError::NotResults { .. })
    ));
    fs::write(scratch.results().join(MANIFEST), "not JSON").unwrap();
    assert!(matches!(
        run(&scratch, "a", Existing::Keep),
        Err(OutputError::NotResults { .. })
    ));
    run(&scratch, "a", Existing::Replace).unwrap();
    assert!(scratch.names().contains(&"thesis.tex".to_owned()));
}

#[test]
fn an_interrupted_run_is_marked_and_cleaned_up_by_the_next() {
    let scratch = Scratch::new();
    let mut dir = ResultDir::create(&scratch.results(), manifest("a", 1), Existing::Keep).unwrap();
    dir.write("points.csv", b"1\n").unwrap();
    drop(dir);
    // As if the power had gone while the file was rewritten.
    fs::write(scratch.results().join(".points.csv.partial"), "ha").unwrap();
    let text = fs::read_to_string(scratch.results().join(MANIFEST)).unwrap();
    assert!(text.contains("\"complete\": false") && text.contains("points.csv"));
    run(&scratch, "a", Existing::Keep).unwrap();
    assert_eq!(
        scratch.names(),
        ["figures/a.svg", "manifest.json", "rows.json"]
    );
}

#[test]
fn a_run_cut_off_before_its_manifest_blocks_nothing() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.results()).unwrap();
    fs::write(scratch.results().join(".manifest.json.partial"), "{").unwrap();
    run(&scratch, "a", Existing::Keep).unwrap();
    assert_eq!(
        scratch.names(),
        ["figures/a.svg", "manifest.json", "rows.json"]
    );
}

#[test]
fn names_stay_in_the_directory() {
    let scratch = Scratch::new();
    let mut dir = ResultDir::create(&scratch.results(), manifest("a", 1), Existing::Keep).unwrap();
    let bad = [
        "",
        ".",
        "..",
        "../x",
        "a/../../x",
        "/etc/x",
        "a//b",
        "a/",
        "./a",
        ".hidden",
        "a/.b",
        MANIFEST,
        "a\0b",
        "a\\b",
    ];
    for name in bad {
        assert!(
            matches!(dir.write(name, b""), Err(OutputError::Name { .. })),
            "{name:?}"
        );
    }
    dir.write("a/b-c_d.1.svg", b"").unwrap();
}

#[test]
fn a_manifest_cannot_make_us_remove_files_elsewhere() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.results()).unwrap();
    let victim = scratch.0.join("victim");
    fs::write(&victim, "precious").unwrap();
    let mut evil = manifest("a", 1);
    evil.files = vec![
        "../../victim".to_owned(),
        victim.to_str().unwrap().to_owned(),
    ];
    fs::write(
        scratch.results().join(MANIFEST),
        serde_json::to_vec(&evil).unwrap(),
    )
    .unwrap();
    run(&scratch, "a", Existing::Replace).unwrap();
    assert!(victim.exists());
}

#[test]
fn a_failed_write_leaves_no_partial_file() {
    let scratch = Scratch::new();
    let mut dir = ResultDir::create(&scratch.results(), manifest("a", 1), Existing::Keep).unwrap();
    fs::create_dir_all(scratch.results().join("rows.json/full")).unwrap();
    let error = dir.write("rows.json", b"{}").unwrap_err();
    assert!(
        matches!(
            error,
            OutputError::Io {
                action: "write",
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(scratch.names(), ["manifest.json"]);
}

#[test]
fn a_file_in_the_way_is_an_error_with_its_path() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("results"), "").unwrap();
    let message = run(&scratch, "a", Existing::Keep).unwrap_err().to_string();
    assert!(
        message.contains("cannot create") && message.contains("C10a"),
        "{message}"
    );
}
