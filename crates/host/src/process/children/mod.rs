//! Child processes: they die with this process, do not receive its Ctrl-C, and their captured output is bounded.
//!
//! | file | subject |
//! |---|---|
//! | `outputs` | a child's output: handed to a listener, its last bytes kept |

mod outputs;

pub use outputs::{Listener, Outputs};

use rustix::process::{Pid, Signal, kill_process_group, set_parent_process_death_signal};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// Makes the kernel kill the child when this process ends. The kernel watches the thread that spawns it, so spawn from the main thread or
/// from one that outlives the child.
pub fn end_with_this_process(command: &mut Command) {
    // SAFETY: between fork and exec there is one system call, which does not allocate.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

/// As [`end_with_this_process`], and the child leads its own process group, so that Ctrl-C reaches only this process.
pub fn be_ours_alone(command: &mut Command) {
    command.process_group(0);
    end_with_this_process(command);
}

/// Kills the process group of a running child and waits for the child.
///
/// # Errors
/// If the child cannot be waited for.
pub fn kill_with_its_own(child: &mut Child) -> std::io::Result<()> {
    // After the wait, the kernel may give its process id to another process.
    if child.try_wait()?.is_none() {
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL); // the group may have ended by now
    }
    child.wait().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    fn runs(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The state follows the name, which may contain any character.
        stat.rsplit_once(')').is_some_and(|(_, state)| !state.trim_start().starts_with('Z'))
    }

    #[test]
    fn what_a_child_has_started_is_killed_with_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & echo $!; wait"]).stdout(Stdio::piped());
        be_ours_alone(&mut command);
        let mut child = command.spawn().unwrap();
        let mut grandchild = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut grandchild).unwrap();
        assert!(runs(grandchild.trim()));
        kill_with_its_own(&mut child).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while runs(grandchild.trim()) {
            assert!(Instant::now() < deadline, "it lives");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_child_ends_with_the_thread_that_has_started_it() {
        let start = || {
            let mut command = Command::new("sleep");
            be_ours_alone(command.arg("600"));
            command.spawn().unwrap()
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }
}
