//! `--set`: values from the command line.

use zonelab_config::{Document, Errors, Item, Override};

const TEXT: &str = "name = \"x\"\n[media]\nread = \"60us\"\n[[job]]\nid = 1\n[[job]]\nid = 2\n";

fn parse(sets: &[&str]) -> Result<Document, Errors> {
    let overrides: Vec<_> = sets
        .iter()
        .map(|set| Override::parse(set).expect("an override"))
        .collect();
    Document::parse("x.toml", TEXT, &overrides)
}

fn refusal(set: &str) -> String {
    parse(&[set]).expect_err(set).to_string()
}

#[test]
fn replaces_adds_and_removes() {
    let document = parse(&[
        "media.read=700us",
        "media.suspend.program=true",
        "count=48",
        "job.1.id=7",
        "sizes=[\"4KiB\", \"8KiB\"]",
        "quoted=\"a = b\"",
        "name=",
    ])
    .unwrap();
    let root = document.root();
    assert_eq!(
        root.table("media").duration_ns("read").required(),
        Ok(700_000)
    );
    assert_eq!(
        root.table("media")
            .table("suspend")
            .bool("program")
            .required(),
        Ok(true)
    );
    assert_eq!(root.u32("count").required(), Ok(48));
    assert_eq!(
        root.list("sizes", Item::size_bytes).required(),
        Ok(vec![4_096, 8_192])
    );
    assert_eq!(root.string("quoted").required().unwrap(), "a = b");
    assert_eq!(root.string("name").optional(), Ok(None));
    let jobs = root.tables("job").unwrap();
    let ids: Vec<_> = jobs
        .iter()
        .map(|job| job.u32("id").required().unwrap())
        .collect();
    assert_eq!(ids, [1, 7]);
    assert_eq!(document.finish(Ok(())), Ok(()));
}

#[test]
fn the_last_one_holds() {
    let document = parse(&["media.read=1us", "media.read=2us"]).unwrap();
    assert_eq!(
        document
            .root()
            .table("media")
            .duration_ns("read")
            .required(),
        Ok(2_000)
    );
}

#[test]
fn a_wrong_value_names_the_override() {
    let document = parse(&["media.read=700", "media.wrte=1us", "media.z={ a = 1 }"]).unwrap();
    let media = document.root().table("media");
    let _ = (
        media.duration_ns("read").optional(),
        media.u32("write").optional(),
    );
    let _ = media.table("z").u32("b").optional();
    let _ = (
        document.root().string("name").optional(),
        document.root().tables("job"),
    );
    let errors = document.finish(Ok(())).unwrap_err().to_string();
    assert_eq!(
        errors,
        "x.toml:5: job.0.id: unknown key `id`\n\
         x.toml:7: job.1.id: unknown key `id`\n\
         x.toml: --set media.read=700: 700 has no unit; write for example \"700us\" or \"700s\"\n\
         x.toml: --set media.wrte=1us: unknown key `wrte`; did you mean `write`?\n\
         x.toml: --set media.z={ a = 1 }: media.z.a: unknown key `a`; known here: b"
    );
}

#[test]
fn what_does_not_fit_the_document() {
    for (set, message) in [
        (
            "media.read.x=1",
            "`media.read` is the string \"60us\"; only tables and arrays have keys below them",
        ),
        (
            "job.2.id=1",
            "`job` is an array of 2 and has no element `2`; elements are 0 to 1",
        ),
        (
            "job.x.id=1",
            "`job` is an array of 2 and has no element `x`; elements are 0 to 1",
        ),
        (
            "media.raed=",
            "there is no key `raed` to remove; did you mean `read`?",
        ),
        (
            "medai.read=",
            "there is no key `medai` to remove; did you mean `media`?",
        ),
        (
            "job.0=",
            "an element of the array `job` cannot be removed; \
             set the whole array: `--set job=[...]`",
        ),
        (
            "x=[1, 2",
            "the value is not TOML: unclosed array, expected `]`; \
             write for example `--set media.read=60us`",
        ),
    ] {
        assert_eq!(refusal(set), format!("x.toml: --set {set}: {message}"));
    }
}

#[test]
fn what_is_not_an_override() {
    let valid = "write for example `--set media.read=60us`";
    for (set, what) in [
        ("media.read", "there is no `=`"),
        ("", "there is no `=`"),
        ("=1", "what stands before `=` is not keys joined by dots"),
        (
            "a..b=1",
            "what stands before `=` is not keys joined by dots",
        ),
        ("a b=1", "what stands before `=` is not keys joined by dots"),
        (
            "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=1",
            "there are too many keys in the path",
        ),
    ] {
        let message = Override::parse(set).unwrap_err().to_string();
        assert_eq!(message, format!("--set {set}: {what}; {valid}"));
    }
}

#[test]
fn reads_from_the_command_line() {
    let change: Override = " media.read =  60us ".parse().unwrap();
    assert_eq!(change.key(), "media.read");
    assert!("nonsense".parse::<Override>().is_err());
}

/// An override that another file states has that file, its line and its key in messages.
#[test]
fn a_wrong_value_of_another_file_names_its_line() {
    let text = "[e]\ndrive = [\n  \"media.read=1us\",\n  \"media.raed=2us\",\n]\n";
    let experiment = Document::parse("e.toml", text, &[]).unwrap();
    let table = experiment.root().table("e");
    let settings = table.list("drive", Item::setting).or(Vec::new());
    let settings = settings.unwrap();
    let drive = Document::parse("d.toml", "media.read = \"5us\"", &settings).unwrap();
    let table = drive.root().table("media");
    let read = table.duration_ns("read").required();
    let errors = drive.finish(read).unwrap_err();
    let expected = "e.toml:4: e.drive.1: media.raed=2us: unknown key `raed`; did you mean `read`?";
    assert_eq!(errors.to_string(), expected);
}
