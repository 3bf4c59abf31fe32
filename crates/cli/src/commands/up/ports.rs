//! A switch whose port may be the kernel's choice, and what listens on the ports that follow from it.

use crate::commands::switch::{Prepared, Running, SwitchProgram};
use anyhow::Result;
use midflight_control::Config;

const TRIES: u32 = 16;

/// Prepares the switch, and calls `listen` with its port. If the kernel chose it and another process has one of those that follow, the
/// kernel chooses again.
pub(super) fn prepare<P: SwitchProgram, T>(
    config: &Config<P::Table>,
    listen: impl Fn(u16) -> Result<T>,
) -> Result<(Prepared<P>, T)> {
    let mut tries = if config.switch.listen.port() == 0 { TRIES } else { 1 };
    loop {
        tries -= 1;
        let prepared = Running::<P>::prepare(config)?;
        match listen(prepared.port()) {
            Err(_) if tries > 0 => {}
            listening => return Ok((prepared, listening?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::ensure;
    use midflight_control::{StoreTable, SwitchTable};
    use midflight_dataplane::store::StoreProgram;
    use std::cell::Cell;
    use std::net::{Ipv4Addr, SocketAddr};

    /// How often it listened, if the first `taken` ports are another process's.
    fn tries(port: u16, taken: u32) -> (bool, u32) {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let switch = SwitchTable { listen, http: None, ..SwitchTable::default() };
        let asked = Cell::new(0);
        let listen = |_| {
            asked.set(asked.get() + 1);
            ensure!(asked.get() > taken, "taken");
            Ok(())
        };
        let prepared = prepare::<StoreProgram, ()>(&Config { switch, program: StoreTable::default() }, listen);
        (prepared.is_ok(), asked.get())
    }

    #[test]
    fn the_kernel_chooses_again_if_a_port_that_follows_is_taken() {
        assert_eq!(tries(0, 3), (true, 4));
        assert_eq!(tries(0, u32::MAX), (false, TRIES));
        let free = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        assert_eq!(tries(free, 1), (false, 1), "the user's choice");
    }
}
