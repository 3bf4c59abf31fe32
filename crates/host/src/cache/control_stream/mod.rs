//! The stream between a controller and the keeper of an operator: here the handshake, in [`secret`] what seals it.

pub mod secret;

pub use secret::Secret;

use secret::{End, GREETING_BYTES, Opener, PROOF_BYTES, Sealer, Unsealed, greeting};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[derive(Debug, thiserror::Error)]
pub(super) enum NotBegun {
    /// The peer closed the connection, or it broke.
    #[error("it was closed: {0}")]
    Closed(#[from] std::io::Error),
    /// The peer's handshake is not valid under this secret.
    #[error(transparent)]
    Unsealed(#[from] Unsealed),
}

/// Exchanges greetings, then proofs that both ends know the secret. The caller sets the timeout.
pub(super) async fn begin(stream: &mut TcpStream, secret: &Secret, end: End) -> Result<(Sealer, Opener), NotBegun> {
    let (nonce, mut others) = (rand::random(), [0; GREETING_BYTES]);
    stream.write_all(&greeting(nonce)).await?;
    stream.read_exact(&mut others).await?;
    let (mut sealer, mut opener) = secret::begin(secret, end, nonce, &others)?;
    stream.write_all(&sealer.prove()).await?;
    let mut proof = [0; PROOF_BYTES];
    stream.read_exact(&mut proof).await?;
    opener.check_proof(&mut proof)?;
    Ok((sealer, opener))
}
