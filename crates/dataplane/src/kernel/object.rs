//! Loads the BPF object.

use super::arena::Arena;
use super::error::{KernelError, kernel_is_too_old};
use libbpf_rs::{MapCore, MapHandle, Object, ObjectBuilder, PrintLevel};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;

/// libbpf has one print function for all threads, so only one load runs at a time.
static LOADING: Mutex<()> = Mutex::new(());
/// libbpf's warnings during the current load.
static SAID: Mutex<String> = Mutex::new(String::new());

fn listen(level: PrintLevel, text: String) {
    if matches!(level, PrintLevel::Warn)
        && let Ok(mut said) = SAID.lock()
    {
        said.push_str(&text);
    }
}

/// The programs, verified by the kernel and bound to an arena. They live as long as this, or as their links.
#[derive(Debug)]
pub(super) struct Programs {
    /// `mf_call`
    pub call: OwnedFd,
    /// `mf_xdp`
    pub xdp: OwnedFd,
    /// `mf_tc`
    pub tc: OwnedFd,
    /// The ring buffer of datagrams for this process to send.
    pub handover: MapHandle,
}

impl Programs {
    /// Loads the compiled `*.bpf.c`. `handover`: the ring of the programs to replace, if any.
    pub(super) fn load(object: &[u8], arena: &Arena, handover: Option<&MapHandle>) -> Result<Self, KernelError> {
        let object = load(object, arena, handover, |_| true)?;
        let handover = object.maps().find(|map| map.name() == "handover").ok_or_else(|| missing("handover"))?;
        Ok(Self {
            call: program(&object, "mf_call")?,
            xdp: program(&object, "mf_xdp")?,
            tc: program(&object, "mf_tc")?,
            handover: MapHandle::try_from(&handover).map_err(|error| explain(&error))?,
        })
    }
}

pub(super) fn load_one(object: &[u8], name: &str, arena: &Arena, handover: &MapHandle) -> Result<OwnedFd, KernelError> {
    program(&load(object, arena, Some(handover), |program| program == name)?, name)
}

fn load(
    object: &[u8],
    arena: &Arena,
    handover: Option<&MapHandle>,
    is_wanted: impl Fn(&OsStr) -> bool,
) -> Result<Object, KernelError> {
    let _one = LOADING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
    libbpf_rs::set_print(Some((PrintLevel::Warn, listen)));
    let refused = |error: libbpf_rs::Error| explain(&error);
    let mut open = ObjectBuilder::default().open_memory(object).map_err(refused)?;
    for mut map in open.maps_mut() {
        match (map.name().to_str(), handover) {
            (Some("arena"), _) => map.reuse_fd(arena.as_fd()).map_err(refused)?,
            (Some("handover"), Some(ring)) => map.reuse_fd(ring.as_fd()).map_err(refused)?,
            #[cfg(feature = "mutants")]
            (Some(".rodata.mutant"), _) => {
                let number = midflight_endpoint::mutants::number();
                map.set_initial_value(&number.to_ne_bytes()).map_err(refused)?;
            }
            _ => {}
        }
    }
    for mut program in open.progs_mut() {
        let is_wanted = is_wanted(program.name());
        program.set_autoload(is_wanted);
    }
    open.load().map_err(refused)
}

fn program(object: &Object, name: &str) -> Result<OwnedFd, KernelError> {
    let program = object.progs().find(|program| program.name() == name).ok_or_else(|| missing(name))?;
    program.as_fd().try_clone_to_owned().map_err(KernelError::io("keep a program"))
}

fn missing(name: &str) -> KernelError {
    KernelError::Refused(format!("there is no {name} in the object"))
}

/// Runs a program on a frame, and returns its return value.
pub(super) fn run(program: BorrowedFd<'_>, frame: &[u8]) -> io::Result<u32> {
    let mut options = libbpf_sys::bpf_test_run_opts {
        sz: size_of::<libbpf_sys::bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: u32::try_from(frame.len()).unwrap_or(u32::MAX),
        repeat: 1,
        ..Default::default()
    };
    // SAFETY: the kernel reads the frame, and all outlive the call.
    let result = unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) };
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(options.retval) }
}

/// The one line that says what is missing.
fn explain(error: &libbpf_rs::Error) -> KernelError {
    let said = SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied if !said.contains(LOG_BEGINS) => KernelError::Privileges,
        _ if kernel_is_too_old() => KernelError::too_old(&complaint(&said, error)),
        libbpf_rs::ErrorKind::OutOfMemory => {
            KernelError::io("load the engine's programs")(io::Error::from(io::ErrorKind::OutOfMemory))
        }
        _ => KernelError::Refused(complaint(&said, error)),
    }
}

const LOG_BEGINS: &str = "BEGIN PROG LOAD LOG";
const LOG_ENDS: &str = "END PROG LOAD LOG";

/// The important line of a long log: where the verifier gave up, else libbpf's first line.
fn complaint(said: &str, error: impl std::fmt::Display) -> String {
    let log = said.split_once(LOG_BEGINS).map_or("", |(_, log)| log);
    let log = log.lines().skip(1).take_while(|line| !line.starts_with("processed ") && !line.contains(LOG_ENDS));
    let first = said.lines().next().map(|line| line.trim_start_matches("libbpf: "));
    log.last().or(first).map_or_else(|| error.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_log_the_last_word_of_the_verifier_is_said() {
        let log = "libbpf: prog 'mf_xdp': BPF program load failed: -EACCES\n\
                   libbpf: prog 'mf_xdp': -- BEGIN PROG LOAD LOG --\n0: R1=ctx()\nR7 invalid mem access 'scalar'\n\
                   processed 12 insns (limit 1000000)\n-- END PROG LOAD LOG --\nlibbpf: failed to load object\n";
        assert_eq!(complaint(log, "error"), "R7 invalid mem access 'scalar'");
        assert_eq!(complaint("libbpf: map 'arena': failed\nmore\n", "error"), "map 'arena': failed");
        assert_eq!(complaint("", "error"), "error");
    }
}
