//! A replicated cache in a lab: racks with clients, and one with three memcached and their agents. Each switch is an operator.

use crate::engines::{LabEngine, at, own_port};
use crate::processes::Process;
use anyhow::{Context, Result, ensure};
use midflight_cache::select::Algorithm;
use midflight_control::cache::ControllerSnapshot;
use midflight_host::cache::control_stream::Secret;
use midflight_host::cache::{CacheBuilder, CacheClient};
use midflight_net::{Lab, Options, Place, SWITCH_IPV4};
use midflight_terminal::files;
use std::fmt::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

const HOSTS: usize = 3;
/// Timeout until a new cache serves.
const WELL: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Port for orders minus port for packets.
const ORDERS: u16 = 100;
const SELECTOR: u16 = 200;
/// The file with the secret that controller and operators share.
const SECRET: &str = "controller.secret";

#[derive(Clone, Copy, Debug)]
pub(crate) struct Like {
    /// Engine of all operators. With the kernel engine they select in their core.
    pub(crate) engine: LabEngine,
    pub(crate) selector: Algorithm,
    /// Racks with clients: 1 or 2.
    pub(crate) client_racks: usize,
    /// The switch in the middle may also select.
    pub(crate) core_selects: bool,
    /// Tables `plan` and `times` of the controller's configuration.
    pub(crate) control: &'static str,
}

impl Like {
    pub(crate) fn lab(&self, name: &str) -> Options {
        let name = format!("{name}{}", std::process::id());
        Options::new(name, HOSTS * self.racks()).racks(self.racks()).xdp(self.engine == LabEngine::Kernel)
    }

    fn racks(&self) -> usize {
        self.client_racks + 1
    }

    /// Those of racks first, with the names of their operators.
    fn switches(&self) -> Vec<(String, Place)> {
        let racks = (0..self.racks()).map(|rack| (format!("tor-{rack}"), Place::Rack(rack)));
        racks.chain([("core-0".into(), Place::Switch)]).collect()
    }

    fn selects(&self, place: Place) -> bool {
        match place {
            Place::Switch => self.core_selects,
            // The backends' rack sends no requests.
            Place::Rack(rack) => rack < self.client_racks,
            Place::Host(_) => false,
        }
    }
}

/// Stops on drop, and removes its files.
pub(crate) struct LabCache<'l> {
    lab: &'l Lab,
    like: Like,
    directory: PathBuf,
    /// Indexed as [`Like::switches`].
    operators: Vec<Option<Process>>,
    controller: Option<Process>,
    agents: Vec<Process>,
    backends: Vec<Process>,
}

impl<'l> LabCache<'l> {
    /// Returns when all processes run. Selection starts later: the controller may need to see traffic first.
    pub(crate) fn start(like: Like, lab: &'l Lab) -> Result<Self> {
        let directory = files::temporary("midflight-cache-lab-")?.keep();
        let mut cache = Self {
            lab,
            like,
            directory,
            operators: Vec::new(),
            controller: None,
            agents: Vec::new(),
            backends: Vec::new(),
        };
        std::fs::write(cache.file(), cache.configuration()?)?;
        Secret::new(rand::random()).write(&cache.directory.join(SECRET))?;
        cache.operators.resize_with(like.switches().len(), || None);
        for server in 0..HOSTS {
            let (backend, agent) = cache.begin_server(server)?;
            cache.backends.push(backend);
            cache.agents.push(agent);
        }
        (0..cache.operators.len()).try_for_each(|operator| cache.start_operator(operator))?;
        let mut controller = at(lab, CONTROLLER)?;
        controller.arg("controller").arg("--config").arg(cache.file());
        cache.controller = Some(cache.begin("controller", controller)?);
        Ok(cache)
    }

    fn file(&self) -> PathBuf {
        self.directory.join("controller.toml")
    }

    fn address(&self, place: Place) -> Result<Ipv4Addr> {
        Ok(self.lab.at(place)?.map_or(SWITCH_IPV4, |host| host.ipv4))
    }

    /// An operator's address for packets. Each has its own port, because the kernel engine names its pinned state after it.
    fn operator_address(&self, operator: usize) -> Result<SocketAddr> {
        let (_, place) = self.like.switches()[operator];
        Ok((self.address(place)?, own_port() + operator as u16).into())
    }

    pub(crate) fn servers(&self) -> Result<Vec<SocketAddr>> {
        (0..HOSTS).map(|server| Ok((self.address(self.server_place(server))?, AGENT_PORT).into())).collect()
    }

    fn server_place(&self, server: usize) -> Place {
        Place::Host(HOSTS * self.like.client_racks + server)
    }

    fn configuration(&self) -> Result<String> {
        let racks: Vec<_> = (0..self.like.racks())
            .map(|rack| {
                let hosts: Vec<_> = (HOSTS * rack..HOSTS * (rack + 1)).map(|host| format!("\"host-{host}\"")).collect();
                format!("{{ id = \"rack-{rack}\", tor = \"tor-{rack}\", hosts = [{}] }}", hosts.join(", "))
            })
            .collect();
        let mut text = format!(
            "controllers = [\"{}:7790\"]\nsecret = \"{SECRET}\"\n[topology]\ncore = [\"core-0\"]\nracks = [{}]\n",
            self.address(CONTROLLER)?,
            racks.join(", ")
        );
        for (operator, (name, place)) in self.like.switches().into_iter().enumerate() {
            let address = self.operator_address(operator)?;
            let beside = |port| SocketAddr::new(address.ip(), address.port() + port);
            write!(
                text,
                "[[operator]]\nswitch = \"{name}\"\naddress = \"{address}\"\ncontrol = \"{}\"\n",
                beside(ORDERS)
            )?;
            if self.like.selects(place) {
                writeln!(text, "selector = \"{}\"", beside(SELECTOR))?;
            }
        }
        for rack in 0..self.like.client_racks {
            let host = HOSTS * rack;
            write!(text, "[[host]]\nhost = \"host-{host}\"\nip = \"{}\"\n", self.address(Place::Host(host))?)?;
        }
        for (server, address) in self.servers()?.iter().enumerate() {
            let host = HOSTS * self.like.client_racks + server;
            write!(text, "[[server]]\nat = \"host-{host}\"\naddress = \"{address}\"\n")?;
        }
        write!(text, "[keyspace]\nreplicas = {HOSTS}\n{}", self.like.control)?;
        Ok(text)
    }

    /// Starts the command, and waits until its process runs. Its stderr goes to a file.
    fn begin(&self, name: &str, mut command: Command) -> Result<Process> {
        let (process, _) = self.begin_with_line(name, &mut command)?;
        Ok(process)
    }

    fn begin_with_line(&self, name: &str, command: &mut Command) -> Result<(Process, String)> {
        let mut process = self.spawn(name, command)?;
        let said = || std::fs::read_to_string(self.log(name)).unwrap_or_default();
        let line = process.line().with_context(|| said().lines().last().unwrap_or_default().to_owned())?;
        Ok((process, line))
    }

    fn spawn(&self, name: &str, command: &mut Command) -> Result<Process> {
        let path = self.log(name);
        let log = std::fs::File::options().create(true).append(true).open(&path).context("cannot make a log")?;
        Process::start(command.stderr(log))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.log"))
    }

    fn begin_server(&self, server: usize) -> Result<(Process, Process)> {
        let place = self.server_place(server);
        let socket = self.directory.join(format!("backend-{server}"));
        let mut memcached = self.lab.command(place, "memcached");
        // As root, memcached requires a user. It prints nothing when it is ready; its agent waits for it.
        memcached.args(["-u", "root", "-m", "64", "-t", "1", "-a", "0600", "-s"]).arg(&socket);
        let name = format!("backend-{server}");
        let backend =
            self.spawn(&name, &mut memcached).context("is memcached installed (apt-get install memcached)?")?;
        let rack_operator = self.operator_address(self.like.client_racks)?;
        let mut agent = at(self.lab, place)?;
        agent.args(["agent", "--backend", &format!("memcached://{}", socket.display()), "--http", "off"]);
        agent.args(["--listen", &self.servers()?[server].to_string(), "--operator", &rack_operator.to_string()]);
        Ok((backend, self.begin(&format!("agent-{server}"), agent)?))
    }

    /// Starts the operator of a switch, by the number of its rack; the one in the middle has the last number.
    pub(crate) fn start_operator(&mut self, operator: usize) -> Result<()> {
        let (name, place) = self.like.switches().swap_remove(operator);
        let mut describe = at(self.lab, CONTROLLER)?;
        describe.args(["controller", "operator", &name, "--selector", self.like.selector.name(), "--config"]);
        describe.arg(self.file());
        if self.like.engine == LabEngine::Kernel {
            describe.arg("--in-core");
        }
        let described = describe.output().context("cannot describe an operator")?;
        ensure!(described.status.success(), "{}", String::from_utf8_lossy(&described.stderr));
        let file = self.directory.join(format!("{name}.toml"));
        std::fs::write(&file, described.stdout)?;
        let mut command = self.like.engine.switch_at(self.lab, place)?;
        command.arg("--config").arg(file).args(["--http", "off"]);
        self.operators[operator] = Some(self.begin(&name, command)?);
        Ok(())
    }

    pub(crate) fn core(&self) -> usize {
        self.like.racks()
    }

    /// With SIGKILL.
    pub(crate) fn kill_operator(&mut self, operator: usize) {
        self.operators[operator] = None;
    }

    /// Clients on the first host of a rack. They use the operator of their rack, unless `describe` makes them select themselves.
    pub(crate) fn clients(
        &self,
        rack: usize,
        count: u32,
        describe: impl Fn(CacheBuilder, SocketAddr) -> CacheBuilder + Send + Sync,
    ) -> Result<Vec<CacheClient>> {
        let (servers, operator) = (self.servers()?, self.operator_address(rack)?);
        let connect = || {
            let one = || describe(CacheClient::builder().servers(servers.clone()), operator).connect_lazy();
            (0..count).map(|_| one().context("cannot start a client of the cache")).collect()
        };
        self.within(rack, connect)?
    }

    /// Calls `act` in the namespace of a rack's clients.
    pub(crate) fn within<T: Send>(&self, rack: usize, act: impl FnOnce() -> T + Send) -> Result<T> {
        Ok(self.lab.within(Place::Host(HOSTS * rack), act)?)
    }

    /// The memcached processes, in the order of their agents.
    pub(crate) fn backends(&self) -> &[Process] {
        &self.backends
    }

    /// Waits until an RSNode selects for the clients of each rack.
    pub(crate) fn wait_until_selected(&self) -> Result<()> {
        let all = |seen: &ControllerSnapshot| (0..self.like.client_racks).all(|rack| label_of(seen, rack).is_some());
        self.wait_until("somebody selects for all clients", all)
    }

    pub(crate) fn seen(&self) -> Result<ControllerSnapshot> {
        let mut command = at(self.lab, CONTROLLER)?;
        let http = format!("{}:7790", self.address(CONTROLLER)?);
        let output = command.args(["controller", "status", "--json", "--http", &http]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).context("the controller's status is not JSON")
    }

    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&ControllerSnapshot) -> bool) -> Result<()> {
        let deadline = Instant::now() + WELL;
        loop {
            let seen = self.seen();
            if seen.as_ref().is_ok_and(&is_so) {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "after {WELL:?} it is not so that {what}: {seen:?}");
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// The RSNode id in the labels of a rack's requests; `None` without an RSNode.
pub(crate) fn label_of(seen: &ControllerSnapshot, rack: usize) -> Option<u16> {
    let name = format!("rack-{rack}");
    seen.groups.iter().find(|group| group.group == name)?.label
}

/// The second host of the first rack.
const CONTROLLER: Place = Place::Host(1);
const AGENT_PORT: u16 = 7800;

impl Drop for LabCache<'_> {
    fn drop(&mut self) {
        self.controller = None;
        self.operators.clear();
        self.agents.clear();
        self.backends.clear();
        // Leftovers stay in the temporary directory.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
