//! Files installed with the command: manual pages, completions, systemd units, Kubernetes manifests.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod common;

use common::{Directory, MIDFLIGHT, Running, run, skip};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// `None` if it is not installed.
fn output(program: &str, args: &[&str]) -> Option<Output> {
    match Command::new(program).args(args).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            skip(format!("{program} is not installed"));
            None
        }
        output => Some(output.unwrap()),
    }
}

/// Asserts that a program, if installed, succeeds with empty stderr.
#[track_caller]
fn assert_silent(program: &str, args: &[&str]) {
    if let Some(output) = output(program, args) {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{program} {args:?}: {said}");
    }
}

/// Asserts that `midflight` has this subcommand and these flags.
#[track_caller]
fn assert_flags_exist(words: &[String]) {
    let help = run(&[&words[0], "--help"]).stdout;
    let known: Vec<&str> = help.split([' ', ',', '\n']).collect();
    let flags = words.iter().filter(|word| word.starts_with("--")).map(|flag| flag.split('=').next().unwrap());
    for flag in flags {
        assert!(known.contains(&flag), "midflight {} has no {flag}", words[0]);
    }
}

#[test]
fn every_subcommand_has_a_manual_page_that_man_renders() {
    let directory = Directory::new("man");
    let said = run(&["man", &directory.path("man1")]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let pages = std::fs::read_dir(directory.path("man1")).unwrap();
    let pages: Vec<_> = pages.map(|page| page.unwrap().path().display().to_string()).collect();
    assert!(said.stdout.starts_with(&format!("{} pages in ", pages.len())) && pages.len() > 40, "{said:?}");
    for name in ["midflight.1", "midflight-map.1", "midflight-store-get.1", "midflight-store-put.1"] {
        assert!(pages.iter().any(|page| page.ends_with(&format!("/{name}"))), "no {name}");
    }
    let page = std::fs::read_to_string(directory.path("man1/midflight-submit.1")).unwrap();
    assert!(page.contains("\n.SH EXAMPLES\n") && page.contains("\n.SH \"EXIT CODES\"\n"), "{page}");
    let checked = ["midflight.1", "midflight-submit.1"].map(|name| directory.path(&format!("man1/{name}")));
    for page in checked {
        assert_silent("man", &["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", &page]);
    }
}

#[test]
fn completions_are_scripts_that_their_shells_take() {
    let directory = Directory::new("completions");
    let script = |shell: &str| directory.write(shell, &run(&["completions", shell]).stdout);
    let bash = script("bash");
    let complete = "source \"$0\"; COMP_WORDS=(midflight exe); COMP_CWORD=1; _midflight midflight exe midflight; echo ${COMPREPLY[@]}";
    let offered = output("bash", &["-c", complete, &bash]).unwrap();
    assert_eq!(String::from_utf8_lossy(&offered.stdout), "executor\n", "{offered:?}");
    assert_silent("zsh", &["-n", &script("zsh")]);
    assert_silent("fish", &["--no-execute", &script("fish")]);
}

fn units() -> BTreeMap<String, String> {
    let files = std::fs::read_dir(root().join("deploy/systemd")).unwrap().map(|file| file.unwrap().path());
    let units = files.filter(|file| file.extension().is_some_and(|ending| ending == "service"));
    let named = |file: PathBuf| {
        (file.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&file).unwrap())
    };
    units.map(named).collect()
}

#[test]
fn units_call_the_command_as_it_is_and_systemd_takes_them() {
    let directory = Directory::new("units");
    let units = units();
    assert_eq!(units.len(), 5);
    for (name, unit) in &units {
        let call = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/midflight ")).unwrap();
        assert_flags_exist(&call.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(unit.contains("\nUser=midflight") && unit.contains("\nNoNewPrivileges=yes\n"), "{name} has privileges");
        let page = call.split(' ').next().unwrap();
        assert!(unit.contains(&format!("Documentation=man:midflight-{page}(1)")), "{name}");
        for file in
            unit.lines().filter_map(|line| line.split_once("=-/etc/default/").or(line.split_once("=/etc/default/")))
        {
            assert!(root().join("deploy/systemd/default").join(file.1).exists(), "{name}: no {}", file.1);
        }
        let here = directory.write(name, &unit.replace("/usr/bin/midflight", MIDFLIGHT));
        assert_silent("systemd-analyze", &["verify", "--man=no", &here]);
    }
}

#[test]
fn manifests_call_the_command_as_it_is() {
    let manifest = std::fs::read_to_string(root().join("deploy/kubernetes/midflight.yaml")).unwrap();
    let lists = manifest.lines().filter_map(|line| line.trim().strip_prefix("args: "));
    let calls: Vec<Vec<String>> = lists.map(|list| serde_json::from_str(list).unwrap()).collect();
    let of_midflight: Vec<_> = calls.iter().filter(|call| call.len() > 1).collect();
    assert_eq!(of_midflight.len(), 2, "{calls:?}");
    of_midflight.into_iter().for_each(|call| assert_flags_exist(call));
    // The configuration of switch and executors.
    let block = manifest.split_once("midflight.toml: |\n").unwrap().1.split("---").next().unwrap();
    let directory = Directory::new("manifests");
    let file = directory.write("midflight.toml", &block.replace("\n    ", "\n"));
    let switch = Running::switch("127.0.0.1:0", &["--config", &file]);
    assert!(switch.first_line.starts_with("switch on "), "{}", switch.first_line);
}
