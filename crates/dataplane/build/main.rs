//! Compiles the programs of the soft engine.

mod soft;

use std::path::Path;

/// The programs, each with the files that define the layout and meaning of its state.
const PROGRAMS: [(&str, &[&str]); 3] = [
    (
        "tasks",
        &[
            "include/midflight/tasks.h",
            "include/midflight/tasks_verdict.h",
            "include/midflight/tasks_wire.h",
            "src/tasks/arguments.h",
            "src/tasks/index.h",
            "src/tasks/parking.h",
            "src/tasks/pools.h",
            "src/tasks/queue.h",
            "src/tasks/state.h",
            "src/tasks_setup.c",
        ],
    ),
    (
        "store",
        &[
            "include/midflight/store.h",
            "include/midflight/store_verdict.h",
            "include/midflight/store_wire.h",
            "src/store/state.h",
            "src/store_setup.c",
        ],
    ),
    (
        "cache",
        &[
            "include/midflight/cache.h",
            "include/midflight/cache_verdict.h",
            "include/midflight/cache_wire.h",
            "src/cache/select_number.h",
            "src/cache/select_state.h",
            "src/cache/state.h",
            "src/cache_setup.c",
        ],
    ),
];

fn main() {
    let root = Path::new("../../dataplane");
    println!("cargo:rerun-if-changed={}", root.display());
    let has_kernel = std::env::var_os("CARGO_FEATURE_KERNEL").is_some();
    let mut sources = Vec::new();
    for (program, _) in PROGRAMS {
        sources.extend(["", "_setup", "_check", "_survey"].map(|part| root.join(format!("src/{program}{part}.c"))));
    }
    sources.extend(has_kernel.then(|| root.join("xdp/arena_check.c")));
    let has_mutants = std::env::var_os("CARGO_FEATURE_MUTANTS").is_some();
    sources.extend(has_mutants.then(|| root.join("src/shared/mutant.c")));
    soft::library(root, "midflight_dataplane", &sources);
    for (program, files) in PROGRAMS.iter().filter(|_| has_kernel) {
        soft::kernel_object(root, &root.join(format!("xdp/{program}.bpf.c")), program, files);
        let benchmark = format!("{program}_bench");
        soft::kernel_object(root, &root.join(format!("xdp/{benchmark}.bpf.c")), &benchmark, &[]);
    }
}
