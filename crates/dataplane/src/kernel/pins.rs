//! State that outlives the process (`--keep`), pinned in the BPF file system under `midflight/PORT`:
//!
//! | file | |
//! |---|---|
//! | `arena`, `handover` | the maps |
//! | `xdp-N`, `tc-N` | links to the interface of index N (a name may have dots, a pin may not) |
//!
//! Links are pinned last, so each has its arena. The serving process locks the directory for as long as it lives.
//!
//! By default the kernel mounts the BPF file system writable for all users. So `midflight` there is only used if it belongs to this user or
//! to root, and only files with our names are removed.

use super::attach::Attached;
use super::error::KernelError;
use super::interface::Interface;
use super::link::{Link, pin_object};
use libbpf_rs::MapHandle;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat, statfs};
use rustix::mount::{MountFlags, mount};
use rustix::process::geteuid;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

const BPFFS: &str = "/sys/fs/bpf";
/// `BPF_FS_MAGIC`
const BPFFS_MAGIC: u64 = 0xcafe_4a11;
const OURS: &str = "/sys/fs/bpf/midflight";
const ARENA: &str = "arena";
const HANDOVER: &str = "handover";
const XDP: &str = "xdp-";
const TC: &str = "tc-";

/// The pins of one switch, locked for this process.
#[derive(Debug)]
pub(super) struct Pins {
    directory: PathBuf,
    port: String,
    /// Whether they stay when this is dropped.
    stay: bool,
    _lock: OwnedFd,
}

impl Pins {
    /// The pins of the switch on this port, if any are kept.
    pub(super) fn existing(port: u16) -> Result<Option<Self>, KernelError> {
        let port = port.to_string();
        if !is_mounted() || !is_trusted(Path::new(OURS))? {
            return Ok(None);
        }
        match lock(&port) {
            Ok(lock) => Ok(Some(Self { directory: directory(&port), port, stay: true, _lock: lock })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(explain(&port, error)),
        }
    }

    /// The pins of the switch on this port, possibly none yet. New ones stay only if [`keep`](Self::keep) completes.
    pub(super) fn take(port: u16) -> Result<Self, KernelError> {
        mount_bpffs()?;
        make(Path::new(OURS))?;
        if is_trusted(Path::new(OURS))? {
            make(&directory(&port.to_string()))?;
        }
        let gone = || KernelError::NoBpffs("the place there was just taken away; try again".into());
        let mut pins = Self::existing(port)?.ok_or_else(gone)?;
        pins.stay = pins.hold_a_queue();
        Ok(pins)
    }

    pub(super) fn hold_a_queue(&self) -> bool {
        self.directory.join(ARENA).exists()
    }

    pub(super) fn arena(&self) -> Result<MapHandle, KernelError> {
        self.map(ARENA)
    }

    pub(super) fn handover(&self) -> Result<MapHandle, KernelError> {
        self.map(HANDOVER)
    }

    fn map(&self, name: &str) -> Result<MapHandle, KernelError> {
        let map = MapHandle::from_pinned_path(self.directory.join(name));
        map.map_err(|error| KernelError::libbpf(&format!("open the kept {name}"), &error))
    }

    pub(super) fn xdp(&self, interface: &Interface) -> Option<Link> {
        self.link(XDP, interface)
    }

    pub(super) fn tc(&self, interface: &Interface) -> Option<Link> {
        self.link(TC, interface)
    }

    fn link(&self, kind: &str, interface: &Interface) -> Option<Link> {
        let link = Link::open(&self.directory.join(format!("{kind}{}", interface.index))).ok()?;
        link.interface().filter(|&index| index == interface.index).map(|_| link)
    }

    pub(super) fn forget_xdp(&self, interface: &Interface) -> Result<(), KernelError> {
        let_go(&self.directory.join(format!("{XDP}{}", interface.index)))
    }

    pub(super) fn pin_xdp(&self, interface: &Interface, link: &Link) -> io::Result<()> {
        link.pin(&self.directory.join(format!("{XDP}{}", interface.index)))
    }

    /// Pins what is not pinned yet, and removes links to interfaces that are no longer served.
    pub(super) fn keep(
        &mut self,
        arena: &impl AsFd,
        handover: &impl AsFd,
        attached: &[Attached],
    ) -> Result<(), KernelError> {
        let pin = |object: &dyn AsFd, name: &str| {
            let path = self.directory.join(name);
            if path.exists() { Ok(()) } else { pin_object(object.as_fd(), &path) }
        };
        let failed = || KernelError::io(format!("pin the switch in {}", self.directory.display()));
        pin(handover, HANDOVER).and_then(|()| pin(arena, ARENA)).map_err(failed())?;
        let mut wanted = vec![ARENA.to_owned(), HANDOVER.to_owned()];
        for Attached { interface, xdp, tc } in attached {
            for (link, kind) in [(tc, TC), (xdp, XDP)] {
                let name = format!("{kind}{}", interface.index);
                let path = self.directory.join(&name);
                // An existing pin may be a link whose interface disappeared.
                let same = Link::open(&path).is_ok_and(|pinned| pinned.interface() == Some(interface.index));
                if !same {
                    let_go(&path)?;
                    link.pin(&path).map_err(failed())?;
                }
                wanted.push(name);
            }
        }
        for path in self.files()?.into_iter().filter(|path| !wanted.iter().any(|name| path.ends_with(name))) {
            let_go(&path)?;
        }
        self.stay = true;
        Ok(())
    }

    /// Detaches all kept programs and deletes the state with its tasks.
    pub(super) fn clear(&mut self) -> Result<(), KernelError> {
        // Links first, so that an attached program always has its arena.
        let mut files = self.files()?;
        files.sort_by_key(|path| path.ends_with(ARENA) || path.ends_with(HANDOVER));
        files.iter().try_for_each(|path| let_go(path))?;
        self.stay = false;
        Ok(())
    }

    pub(super) fn are_attached(&self) -> Result<bool, KernelError> {
        let links = self.files()?.into_iter().filter(|path| is_link(path));
        Ok(links.filter_map(|path| Link::open(&path).ok()).any(|link| link.interface().is_some()))
    }

    fn files(&self) -> Result<Vec<PathBuf>, KernelError> {
        let entries = std::fs::read_dir(&self.directory);
        let paths = entries.and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
        let mut paths = paths.map_err(|error| explain(&self.port, error))?;
        paths.retain(|path| is_link(path) || path.ends_with(ARENA) || path.ends_with(HANDOVER));
        Ok(paths)
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        if !self.stay {
            // If it cannot be removed, the next start finds it and reports it.
            let _ = self.clear();
            let _ = std::fs::remove_dir(&self.directory);
            let _ = std::fs::remove_dir(OURS);
        }
    }
}

/// The port of the kept switch to which a program belongs.
pub(super) fn port_of_program(program: u32) -> Option<String> {
    let ports = std::fs::read_dir(OURS).ok()?;
    ports.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).find(|port| {
        let files = std::fs::read_dir(directory(port)).into_iter().flatten().filter_map(Result::ok);
        let mut links = files.map(|file| file.path()).filter(|path| is_link(path));
        links.any(|path| Link::open(&path).is_ok_and(|link| link.program() == Some(program)))
    })
}

fn is_link(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(XDP) || name.starts_with(TC))
}

fn directory(port: &str) -> PathBuf {
    Path::new(OURS).join(port)
}

/// Makes a directory of pins, if missing.
fn make(directory: &Path) -> Result<(), KernelError> {
    match std::fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(KernelError::NoBpffs(format!("this user may not write to {BPFFS}; start as root")))
        }
        made => made.map_err(KernelError::io(format!("make {}", directory.display()))),
    }
}

/// Whether a directory exists; an error if users other than this one and root could have written to it.
fn is_trusted(directory: &Path) -> Result<bool, KernelError> {
    let found = match std::fs::symlink_metadata(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(KernelError::Privileges),
        found => found.map_err(KernelError::io(format!("look at {}", directory.display())))?,
    };
    let ours = [0, geteuid().as_raw()].contains(&found.uid()) && found.mode() & 0o022 == 0;
    if found.is_dir() && ours {
        return Ok(true);
    }
    Err(KernelError::Untrusted { directory: directory.display().to_string(), owner: found.uid() })
}

fn lock(port: &str) -> io::Result<OwnedFd> {
    let directory = directory(port);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(CWD, &directory, flags, Mode::empty())?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    // Only the holder of its lock removes a directory, so the one that the name leads to now is this one, or it is gone.
    let (ours, named) = (rustix::fs::fstat(&file)?, std::fs::metadata(&directory)?);
    if ours.st_ino == named.ino() { Ok(file) } else { Err(ErrorKind::NotFound.into()) }
}

/// Removes a pin. A link is detached when this returns; the kernel alone would do that a little later.
fn let_go(path: &Path) -> Result<(), KernelError> {
    if is_link(path)
        && let Ok(link) = Link::open(path)
    {
        link.detach();
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(KernelError::io(format!("remove {}", path.display()))(error))
        }
        _ => Ok(()),
    }
}

fn explain(port: &str, error: io::Error) -> KernelError {
    match error.kind() {
        ErrorKind::WouldBlock => KernelError::InUse(port.to_owned()),
        ErrorKind::PermissionDenied => KernelError::Privileges,
        _ => KernelError::io(format!("look into {}", directory(port).display()))(error),
    }
}

fn is_mounted() -> bool {
    // The type's width differs between machines; the magic fits all of them.
    statfs(BPFFS).is_ok_and(|found| found.f_type as u32 as u64 == BPFFS_MAGIC)
}

/// Systems mount it at boot; containers and old ones may not.
fn mount_bpffs() -> Result<(), KernelError> {
    if is_mounted() {
        return Ok(());
    }
    // Under `ip netns exec` only this process would see the mount, which would end with it.
    let of = |process: &str| std::fs::metadata(format!("/proc/{process}/ns/mnt")).map(|ns| ns.ino());
    if of("self").ok() != of("1").ok() {
        let why = "this process does not see it: `ip netns exec` hides it, `nsenter --net=/run/netns/NAME` does not; a \
                   container must be given the machine's /sys/fs/bpf";
        return Err(KernelError::NoBpffs(why.into()));
    }
    mount("bpf", BPFFS, "bpf", MountFlags::empty(), Some(c"mode=0700")).map_err(|error| {
        let why = format!("mounting it failed: {error}; `mount -t bpf -o mode=0700 bpf {BPFFS}` as root mounts it");
        KernelError::NoBpffs(why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn what_others_could_have_written_to_is_not_trusted() {
        let scratch = std::env::temp_dir().join(format!("mf-trust-{}", std::process::id()));
        std::fs::DirBuilder::new().mode(0o700).create(&scratch).unwrap();
        let (own, link) = (scratch.join("own"), scratch.join("link"));
        assert!(!is_trusted(&own).unwrap());
        make(&own).unwrap();
        make(&own).unwrap();
        assert!(is_trusted(&own).unwrap());
        symlink(&own, &link).unwrap();
        assert!(matches!(is_trusted(&link), Err(KernelError::Untrusted { .. })));
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(is_trusted(&own), Err(KernelError::Untrusted { .. })));
        if geteuid().is_root() {
            std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o700)).unwrap();
            chown(&own, Some(1), None).unwrap();
            assert!(matches!(is_trusted(&own), Err(KernelError::Untrusted { owner: 1, .. })));
        }
        std::fs::remove_dir_all(&scratch).unwrap();
    }
}
