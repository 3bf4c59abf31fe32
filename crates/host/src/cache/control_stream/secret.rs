//! The secret that controllers and keepers share, and the streams that it seals: `docs/internals/cache-controller.md`.
//!
//! Each end begins with a greeting, which has half of the stream's nonce. Then each message is a frame: its length, and the message under
//! XChaCha20-Poly1305. A frame's nonce consists of the stream's nonce, the sending end, and a count, so a frame is accepted once, in its
//! place, from the other end of this stream. Each end's first frame has no message: it proves that its sender knows the secret.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use midflight_wire::cache::control::{self, CONTROL_MAX, ControlHead, ControlMessage, ControlReject};
use std::io::{self, Read, Write};
use std::path::Path;

/// Bytes of a greeting.
pub const GREETING_BYTES: usize = 16;
const MAGIC: [u8; 7] = *b"mf-ctrl";
const VERSION: u8 = 2;
const LENGTH_BYTES: usize = 4;
const TAG_BYTES: usize = 16;
/// Bytes of a proof, which is a frame without a message.
pub const PROOF_BYTES: usize = LENGTH_BYTES + TAG_BYTES;
const SEALED_MAX: usize = size_of::<ControlHead>() + CONTROL_MAX as usize + TAG_BYTES;
const FILE_MAX: u64 = 1024;

/// The secret that controllers and keepers share.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A secret of these random bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads the secret from a file.
    ///
    /// # Errors
    /// One line: the file cannot be read, others can read it, or its content is no secret.
    pub fn read(path: &Path) -> Result<Self, String> {
        let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
        let file = midflight_files::open_secret(path);
        let file = file.map_err(|error| failed(&format!("{error}; `midflight controller --init` makes one")))?;
        let mut text = String::new();
        let read = midflight_files::BoundedReader::new(file, FILE_MAX).read_to_string(&mut text);
        read.map_err(|error| failed(&error))?;
        Self::parse(text.trim())
            .ok_or_else(|| failed(&"not 64 hexadecimal digits, as `midflight controller --init` writes them"))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        if text.len() != 2 * bytes.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
        }
        Some(Self(bytes))
    }

    /// Writes the secret to a new file, which appears with its whole content or not at all.
    ///
    /// # Errors
    /// The kernel's; an existing file is one.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}.new", std::process::id()));
        let draft = Path::new(&draft);
        let mut file = midflight_files::create(draft)?;
        let written = writeln!(file, "{text}").and_then(|()| file.sync_all());
        // A rename would replace an existing file; a link does not.
        let linked = written.and_then(|()| std::fs::hard_link(draft, path));
        let removed = std::fs::remove_file(draft);
        linked.and(removed)
    }
}

/// Keeps the secret out of logs.
impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// An end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The controller's end.
    Controller,
    /// The keeper's end.
    Keeper,
}

/// Why received bytes are rejected. The stream must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsealed {
    /// No greeting, or one of another version.
    #[error("no greeting of this version")]
    NoGreeting,
    /// Not sealed with this secret, for this stream and this place in it.
    #[error("not sealed with this secret")]
    NotProved,
    /// Too long, or no message.
    #[error("{0}")]
    Malformed(ControlReject),
}

/// The greeting, which an end sends first.
#[must_use]
pub fn greeting(nonce: u64) -> [u8; GREETING_BYTES] {
    let mut greeting = [0; GREETING_BYTES];
    greeting[..7].copy_from_slice(&MAGIC);
    greeting[7] = VERSION;
    greeting[8..].copy_from_slice(&nonce.to_be_bytes());
    greeting
}

/// Begins a stream on which this end has sent `greeting(nonce)`.
///
/// # Errors
/// [`Unsealed::NoGreeting`].
pub fn begin(
    secret: &Secret,
    end: End,
    nonce: u64,
    others: &[u8; GREETING_BYTES],
) -> Result<(Sealer, Opener), Unsealed> {
    let [m0, m1, m2, m3, m4, m5, m6, version, other @ ..] = *others;
    if [m0, m1, m2, m3, m4, m5, m6] != MAGIC || version != VERSION {
        return Err(Unsealed::NoGreeting);
    }
    let (own, other) = (nonce.to_be_bytes(), other);
    let (controllers, keepers, sender) = match end {
        End::Controller => (own, other, [0, 1]),
        End::Keeper => (other, own, [1, 0]),
    };
    let frames = |sender: u8| {
        let mut nonce = [0; 24];
        nonce[..8].copy_from_slice(&controllers);
        nonce[8..16].copy_from_slice(&keepers);
        nonce[16] = sender;
        Frames { cipher: XChaCha20Poly1305::new(&Key::from(secret.0)), nonce, count: 0 }
    };
    Ok((Sealer(frames(sender[0])), Opener(frames(sender[1]))))
}

struct Frames {
    cipher: XChaCha20Poly1305,
    nonce: [u8; 24],
    count: u32,
}

impl Frames {
    /// The nonce of the next frame; `None`: there have been too many.
    fn next(&mut self) -> Option<XNonce> {
        self.nonce[20..].copy_from_slice(&self.count.to_be_bytes());
        self.count = self.count.checked_add(1)?;
        Some(XNonce::from(self.nonce))
    }
}

/// Seals the frames that this end sends.
pub struct Sealer(Frames);

impl Sealer {
    /// The first frame that this end sends.
    #[must_use]
    pub fn prove(&mut self) -> Vec<u8> {
        let mut proof = Vec::with_capacity(PROOF_BYTES);
        let is_sealed = self.seal(&[], &mut proof);
        debug_assert!(is_sealed && proof.len() == PROOF_BYTES);
        proof
    }

    /// Appends the frame of a message; `false`: the stream has reached its bound, and a new one must begin.
    #[must_use]
    pub fn seal(&mut self, message: &[u8], to: &mut Vec<u8>) -> bool {
        let Some(nonce) = self.0.next() else { return false };
        let length = (message.len() + TAG_BYTES) as u32;
        to.extend_from_slice(&length.to_be_bytes());
        let start = to.len();
        to.extend_from_slice(message);
        let Ok(tag) = self.0.cipher.encrypt_inout_detached(&nonce, &[], to[start..].as_mut().into()) else {
            return false;
        };
        to.extend_from_slice(&tag);
        true
    }
}

/// Opens the frames that the other end has sent.
pub struct Opener(Frames);

impl Opener {
    /// Checks the first frame of the other end.
    ///
    /// # Errors
    /// [`Unsealed::NotProved`]: the stream must be closed.
    pub fn check_proof(&mut self, proof: &mut [u8; PROOF_BYTES]) -> Result<(), Unsealed> {
        match self.unseal(proof) {
            Ok(Some(&mut [])) => Ok(()),
            _ => Err(Unsealed::NotProved),
        }
    }

    /// The first message in the received bytes, and the length of its frame; `None`: it is not complete.
    ///
    /// # Errors
    /// [`Unsealed`]: the stream must be closed.
    pub fn open(&mut self, come: &mut [u8]) -> Result<Option<(ControlMessage, usize)>, Unsealed> {
        let Some(message) = self.unseal(come)? else { return Ok(None) };
        match control::parse(message).map_err(Unsealed::Malformed)? {
            Some((parsed, whole)) if whole == message.len() => Ok(Some((parsed, PROOF_BYTES + whole))),
            _ => Err(Unsealed::Malformed(ControlReject::BadLength)),
        }
    }

    /// `None`: the frame is not complete.
    fn unseal<'a>(&mut self, come: &'a mut [u8]) -> Result<Option<&'a mut [u8]>, Unsealed> {
        let Some((length, rest)) = come.split_first_chunk_mut::<LENGTH_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if !(TAG_BYTES..=SEALED_MAX).contains(&length) {
            return Err(Unsealed::Malformed(ControlReject::TooLong));
        }
        let Some(sealed) = rest.get_mut(..length) else { return Ok(None) };
        let Some((message, tag)) = sealed.split_last_chunk_mut::<TAG_BYTES>() else { return Ok(None) };
        let nonce = self.0.next().ok_or(Unsealed::NotProved)?;
        let tag = (*tag).into();
        let opened = self.0.cipher.decrypt_inout_detached(&nonce, &[], (&mut *message).into(), &tag);
        opened.map_err(|_| Unsealed::NotProved)?;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use midflight_wire::cache::control::Ask;

    fn secret(byte: u8) -> Secret {
        Secret::new([byte; 32])
    }

    fn ask(number: u64) -> (ControlMessage, Vec<u8>) {
        let message = ControlMessage::Ask(Ask { number, term: None, inventory: None });
        let mut bytes = Vec::new();
        control::write(&message, &mut bytes);
        (message, bytes)
    }

    fn stream(secrets: [&Secret; 2], nonces: [u64; 2]) -> [(Sealer, Opener); 2] {
        let controller = begin(secrets[0], End::Controller, nonces[0], &greeting(nonces[1])).unwrap();
        [controller, begin(secrets[1], End::Keeper, nonces[1], &greeting(nonces[0])).unwrap()]
    }

    fn sealed(sealer: &mut Sealer, number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(sealer.seal(&ask(number).1, &mut bytes));
        bytes
    }

    #[test]
    fn n8_messages_are_opened_in_order_however_their_bytes_are_split() {
        let [(mut seals, mut opens_back), (mut seals_back, mut opens)] = stream([&secret(1), &secret(1)], [2, 3]);
        let mut all = [sealed(&mut seals, 1), sealed(&mut seals, 2)].concat();
        for length in 0..all.len() / 2 {
            assert_eq!(opens.open(&mut all[..length]), Ok(None), "{length} bytes");
        }
        let (first, length) = opens.open(&mut all).unwrap().unwrap();
        let (second, rest) = opens.open(&mut all[length..]).unwrap().unwrap();
        assert_eq!((first, second, length + rest), (ask(1).0, ask(2).0, all.len()));
        let mut back = sealed(&mut seals_back, 3);
        assert_eq!(opens_back.open(&mut back).unwrap().unwrap().0, ask(3).0);
    }

    #[test]
    fn n8_frames_of_others_and_copies_are_not_taken() {
        let ends = || stream([&secret(1), &secret(1)], [2, 3]);
        let [(mut seals, mut opens_back), (_, mut opens)] = ends();
        let (first, second) = (sealed(&mut seals, 1), sealed(&mut seals, 2));
        assert_eq!(opens_back.open(&mut first.clone()), Err(Unsealed::NotProved), "one's own, sent back");
        assert!(opens.open(&mut first.clone()).unwrap().is_some());
        assert_eq!(opens.open(&mut first.clone()), Err(Unsealed::NotProved), "again");
        assert_eq!(ends()[1].1.open(&mut second.clone()), Err(Unsealed::NotProved), "the first is missing");
        for (secrets, nonces) in [([1, 9], [2, 3]), ([1, 1], [2, 4])] {
            let mut others = stream([&secret(secrets[0]), &secret(secrets[1])], nonces);
            assert_eq!(others[1].1.open(&mut first.clone()), Err(Unsealed::NotProved), "{secrets:?} {nonces:?}");
        }
        for byte in LENGTH_BYTES..first.len() {
            let mut changed = first.clone();
            changed[byte] ^= 1;
            assert_eq!(ends()[1].1.open(&mut changed), Err(Unsealed::NotProved), "byte {byte}");
        }
        let mut plain = ask(1).1;
        assert!(ends()[1].1.open(&mut plain).is_err());
    }

    #[test]
    fn n8_a_proof_is_of_this_secret_and_stream_and_end() {
        let ends = |secrets: [u8; 2], nonces| stream([&secret(secrets[0]), &secret(secrets[1])], nonces);
        let [(mut seals, mut opens_back), (_, mut opens)] = ends([1, 1], [2, 3]);
        let proof: [u8; PROOF_BYTES] = seals.prove().try_into().unwrap();
        assert_eq!(opens_back.check_proof(&mut proof.clone()), Err(Unsealed::NotProved), "one's own, sent back");
        assert_eq!(opens.check_proof(&mut proof.clone()), Ok(()));
        assert_eq!(opens.check_proof(&mut proof.clone()), Err(Unsealed::NotProved), "again");
        for (secrets, nonces) in [([1, 9], [2, 3]), ([1, 1], [2, 4])] {
            let mut others = ends(secrets, nonces);
            assert_eq!(others[1].1.check_proof(&mut proof.clone()), Err(Unsealed::NotProved), "{secrets:?} {nonces:?}");
        }
        for byte in 0..PROOF_BYTES {
            let mut changed = proof;
            changed[byte] ^= 1;
            let refused = ends([1, 1], [2, 3])[1].1.check_proof(&mut changed);
            assert_eq!(refused, Err(Unsealed::NotProved), "byte {byte}");
        }
        let mut later = seals.prove();
        assert!(opens.open(&mut later).is_err(), "where a message should be");
    }

    #[test]
    fn n8_a_stream_begins_with_a_greeting_and_lengths_are_bounded() {
        let mut other = greeting(3);
        other[7] = 1;
        assert_eq!(begin(&secret(1), End::Keeper, 2, &other).err(), Some(Unsealed::NoGreeting));
        let [_, (_, mut opens)] = stream([&secret(1), &secret(1)], [2, 3]);
        for length in [0, 15, SEALED_MAX as u32 + 1, u32::MAX] {
            let refused = opens.open(&mut length.to_be_bytes().to_vec());
            assert_eq!(refused, Err(Unsealed::Malformed(ControlReject::TooLong)), "{length}");
        }
    }

    #[test]
    fn a_secret_is_kept_in_a_file_of_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let directory = std::env::temp_dir().join(format!("mf-secret-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        midflight_files::create_directory(&directory).unwrap();
        let path = directory.join("secret");
        assert!(Secret::read(&path).unwrap_err().contains("--init"));
        secret(0xab).write(&path).unwrap();
        assert_eq!(Secret::read(&path), Ok(secret(0xab)));
        assert!(secret(1).write(&path).is_err(), "one that is there is kept");
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "the draft is gone");
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        set(0o600);
        if std::os::unix::fs::chown(&path, Some(65_534), None).is_ok() {
            assert!(Secret::read(&path).unwrap_err().contains("belongs to user 65534"));
            std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        } else {
            eprintln!("skipped: a secret of another user needs root");
        }
        set(0o644);
        assert!(Secret::read(&path).unwrap_err().contains("chmod 600"));
        set(0o440);
        assert_eq!(Secret::read(&path), Ok(secret(0xab)), "as systemd's credentials are");
        for text in ["", "ab", &"g".repeat(64), &"é".repeat(32), &"0".repeat(63), &"0".repeat(2000)] {
            midflight_files::write(&path, text).unwrap();
            set(0o600);
            assert!(Secret::read(&path).is_err(), "{text:?}");
        }
        assert!(Secret::read(Path::new("/dev/zero")).is_err());
        assert_eq!(format!("{:?}", secret(1)), "Secret");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
