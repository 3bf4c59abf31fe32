//! GNU parallel's options that `map` lacks, with alternatives. docs/map.md has the same table.

const LEFT_OUT: [(&str, &str); 14] = [
    (
        "--pipe --pipepart --pipe-part --spreadstdin --block --block-size --cat --fifo --tee --round-robin --recstart --recend \
         --regexp --shard --bin --group-by",
        "the stdin of commands is empty: `split` writes files that commands can name",
    ),
    (
        "-n --max-args -N --max-replace-args -L -l --max-lines -X -m -s --max-chars --xargs",
        "a command has one line, or one value of each source: `xargs -n N echo` before map makes lines of several",
    ),
    (
        "--line-buffer --linebuffer --lb --ungroup -u --latest-line --ll --group",
        "output comes with the end of its command: --unordered prints it then, without the order of the input",
    ),
    ("--bar --progress --eta", "that is the default on a terminal; -q turns it off"),
    ("--max-procs -P", "write --jobs N"),
    (
        "--sshlogin -S --sshloginfile --slf --onall --nonall",
        "executors run on the hosts: --switch HOST:PORT names their switch",
    ),
    (
        "--transferfile --transfer --tf --return --cleanup --trc --basefile --bf",
        "use a shared file system, or `scp` in the command",
    ),
    (
        "--nice --memfree --memsuspend --load --noswap",
        "--priority and --resources say which commands come first, and where they fit",
    ),
    (
        "--tagstring --header --plus --rpl --parens --csv --trim -I -i --replace --process-slot-var",
        "a template is a shell's command: {%} is the slot, --colsep splits lines, `sed` and `awk` are there for the rest",
    ),
    ("--link --xapply", "write :::+ or ::::+ in the place of the second ::: or ::::"),
    ("--no-run-if-empty -r", "that is the default: empty lines run nothing"),
    ("--quote", "arguments are always quoted, the template never"),
    ("--retry-failed", "write --resume-failed"),
    (
        "--delay --shuf --limit --semaphore --semaphore-name --tmux --tmuxpane --sql --sql-master --sql-worker --sql-and-worker \
         --sqlmaster --sqlworker --sqlandworker",
        "other programs do that: `shuf`, `flock`, a database's client",
    ),
];

pub(crate) fn instead_of(option: &str) -> Option<&'static str> {
    let has = |options: &str| options.split_whitespace().any(|other| other == option);
    LEFT_OUT.iter().find(|(options, _)| has(options)).map(|(_, instead)| *instead)
}
