//! Loads the BPF object.

use super::arena::{self, Arena};
use super::error::KernelError;
use libbpf_rs::{Object, ObjectBuilder, PrintLevel};
use std::sync::Mutex;

/// `dataplane/xdp/tasks.bpf.c`, compiled by the build script.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tasks.bpf.o"));

/// libbpf prints by one function for all threads, and maps arenas at addresses that it is told: one load at a time.
static LOADING: Mutex<()> = Mutex::new(());
/// What libbpf warned of during the present load.
static SAID: Mutex<String> = Mutex::new(String::new());

fn listen(level: PrintLevel, text: String) {
    if matches!(level, PrintLevel::Warn)
        && let Ok(mut said) = SAID.lock()
    {
        said.push_str(&text);
    }
}

/// A loaded object, and its arena with all pages in place but nothing in them.
pub(super) fn load(arena_bytes: u64) -> Result<(Object, Arena), KernelError> {
    let _one = LOADING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
    libbpf_rs::set_print(Some((PrintLevel::Warn, listen)));
    let refused = |error: libbpf_rs::Error| explain(&error);
    let mut open = ObjectBuilder::default().open_memory(OBJECT).map_err(refused)?;
    let address = arena::free_address()?;
    let pages = u32::try_from(arena_bytes / 4096).unwrap_or(u32::MAX);
    for mut map in open.maps_mut() {
        if map.name() == "arena" {
            map.set_max_entries(pages).map_err(refused)?;
            map.set_map_extra(address).map_err(refused)?;
        }
    }
    let object = open.load().map_err(refused)?;
    let arena = Arena::at(address, arena_bytes).ok_or(KernelError::TooOld("it gave no address".into()))?;
    let cpus = libbpf_rs::num_possible_cpus().map_err(refused)? as u64;
    arena.populate(cpus)?;
    Ok((object, arena))
}

/// The one line that says what is missing.
fn explain(error: &libbpf_rs::Error) -> KernelError {
    let said = SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied if !said.contains("BEGIN PROG LOAD LOG") => KernelError::Privileges,
        _ if said.contains("'arena'") => KernelError::TooOld(first_line(&said, error)),
        libbpf_rs::ErrorKind::OutOfMemory => {
            KernelError::Memory { bytes: 0, source: std::io::Error::from(std::io::ErrorKind::OutOfMemory) }
        }
        _ => KernelError::Refused(if said.is_empty() { error.to_string() } else { said }),
    }
}

fn first_line(said: &str, error: &libbpf_rs::Error) -> String {
    said.lines().next().map_or_else(|| error.to_string(), |line| line.trim_start_matches("libbpf: ").to_owned())
}
