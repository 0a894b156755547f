//! The table of fio's options: what each takes, on the command line and in files.

use zonelab_host::fio::options::{self, Treatment};
use zonelab_host::fio::{CommandLine, JobFile, Outside};

use super::support::tiny_info;

fn line(words: &str) -> Result<CommandLine, String> {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    CommandLine::parse(&words, &["device", "seed"]).map_err(|errors| errors.to_string())
}

fn file(text: &str) -> Result<JobFile, String> {
    let outside = Outside {
        variable: &|_| None,
        include: &|_| Err("no files".to_owned()),
    };
    JobFile::parse("j.fio", text, &outside).map_err(|errors| errors.to_string())
}

/// Every option of fio is taken with its default, and what is not used says why, with one reason
/// for its class.
#[test]
fn every_option_is_taken_or_refused_with_its_reason() {
    let mut count = 0;
    for option in options::all() {
        count += 1;
        for name in option.names() {
            let text = |value: &str| format!("[a]\n{name}={value}\n");
            let [off, on] = ["0", "1"].map(|value| file(&text(value)));
            match option.treatment {
                Treatment::Used => {}
                Treatment::NoMeaning(why) => {
                    // A word that it does not take is the only thing to refuse.
                    for (value, read) in [("0", off), ("1", on)] {
                        match read {
                            Ok(read) => {
                                let warnings: Vec<_> =
                                    read.warnings.iter().map(|of| &of.what).collect();
                                let says = |what: &&String| what.ends_with(why);
                                assert!(warnings.iter().all(says), "{name}: {warnings:?}");
                            }
                            Err(problem) => assert!(
                                problem.contains("is none of the values"),
                                "{name}={value}: {problem}"
                            ),
                        }
                    }
                }
                Treatment::Unsupported(why) => {
                    let problem = match (on, off) {
                        (Err(problem), _) | (_, Err(problem)) => problem,
                        _ => panic!("{name} is taken"),
                    };
                    let is_word = problem.contains("is none of the values");
                    assert!(problem.contains(why) || is_word, "{name}: {problem}");
                }
            }
        }
    }
    assert!(count > 300, "{count}");
}

#[test]
fn names_may_be_cut_short_on_the_command_line_where_they_mean_one_option() {
    let job = "--name=a --rw=write --bs=16k --size=1z";
    for words in [
        "--group_report --job_max_open_zone=1 --numjob=2",
        "--hipri --fixedbufs --registerfiles --sqthread_poll --userspace_reap",
        "--time_b --runt=5",
    ] {
        let line = line(&format!("{job} {words}")).unwrap_or_else(|why| panic!("{words}: {why}"));
        let jobs = JobFile::gather(&line, &[], &[]).unwrap_or_else(|why| panic!("{words}: {why}"));
        jobs.plan(&tiny_info(), 1).unwrap();
    }
    let problem = line(&format!("{job} --zone=1")).unwrap_err();
    assert!(
        problem.contains("is the beginning of several options"),
        "{problem}"
    );
    assert!(problem.contains("--zonemode"), "{problem}");
    // What the program itself takes may be meant.
    let problem = line(&format!("{job} --see=1")).unwrap_err();
    assert!(problem.contains("did you mean `--seed`?"), "{problem}");
    // In files, names are whole.
    let problem = file("[a]\ngroup_report\n").unwrap_err();
    assert!(
        problem.contains("did you mean `group_reporting`?"),
        "{problem}"
    );
    let aliases =
        "[a]\nrw=read\nsize=1z\nfileoffset=1z\nratemin=1m\nratecycle=100\ndata_placement=none\n";
    file(aliases).unwrap().plan(&tiny_info(), 1).unwrap();
}

#[test]
fn appends_have_three_names_and_other_modes_are_refused() {
    for spelling in ["zone_append=1", "append=1", "write_mode=zone_append"] {
        let file = file(&format!("[a]\nrw=write\nbs=16k\nsize=1z\n{spelling}\n")).unwrap();
        let plan = file.plan(&tiny_info(), 1).unwrap();
        let style = format!("{:?}", plan.jobs[0].spec.work.style);
        assert_eq!(style, "Append", "{spelling}");
    }
    let problem = file("[a]\nwrite_mode=zeroes\n").unwrap_err();
    assert!(
        problem.contains("zeroes is not supported: jobs write data"),
        "{problem}"
    );
}

/// Who waits for a job that is wrong is not wrong for that, and what all jobs have from one place
/// is said once.
#[test]
fn one_mistake_is_one_message() {
    let waiting =
        "[warm]\nrw=write\nbs=3k\nsize=1z\n[main]\nwait_for=warm\nrw=randread\nbs=4k\nsize=1z\n";
    let problem = file(waiting)
        .unwrap()
        .plan(&tiny_info(), 1)
        .unwrap_err()
        .to_string();
    assert!(problem.contains("j.fio:3: bs: 3072 bytes"), "{problem}");
    assert!(!problem.contains("wait_for"), "{problem}");
    let global = "[global]\nrw=write\nsize=1z\nbs=3k\n[a]\n[b]\n[c]\n";
    let problem = file(global)
        .unwrap()
        .plan(&tiny_info(), 1)
        .unwrap_err()
        .to_string();
    assert_eq!(problem.matches("3072 bytes").count(), 1, "{problem}");
    let nobody = "[main]\nwait_for=warm\nrw=read\nsize=1z\n";
    let problem = file(nobody)
        .unwrap()
        .plan(&tiny_info(), 1)
        .unwrap_err()
        .to_string();
    assert!(
        problem.contains("no job before this one has the name warm"),
        "{problem}"
    );
}
