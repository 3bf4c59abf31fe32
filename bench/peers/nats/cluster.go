package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// ready is what a worker prints when it takes tasks.
const ready = "ready"

// startWithin is the timeout for the server's start.
const startWithin = 10 * time.Second

// cluster is a server and a worker, as processes.
type cluster struct {
	mutex     sync.Mutex
	processes []*exec.Cmd
	directory string
}

// start returns the server's address once the worker takes tasks.
func (c *cluster) start(server string, queue queue) (string, error) {
	directory, err := os.MkdirTemp("", "nats-peer-")
	if err != nil {
		return "", err
	}
	c.mutex.Lock()
	c.directory = directory
	c.mutex.Unlock()
	flags := []string{"-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", directory}
	if err := c.run(nil, server, append(flags, queue.serverFlags(directory)...)...); err != nil {
		return "", err
	}
	url, err := awaitAddress(directory)
	if err != nil {
		return "", err
	}
	connection, err := nats.Connect(url)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if err := queue.prepare(connection); err != nil {
		return "", err
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	said := make(chan string, 1)
	if err := c.run(said, self, "-worker", queue.name(), "-url", url); err != nil {
		return "", err
	}
	return url, awaitWorker(said)
}

// run starts a process; its first line goes to said.
func (c *cluster) run(said chan<- string, program string, arguments ...string) error {
	command := exec.Command(program, arguments...)
	command.Stderr = os.Stderr
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if err := command.Start(); err != nil {
		return err
	}
	c.processes = append(c.processes, command)
	if said != nil {
		go func() {
			line, _ := bufio.NewReader(stdout).ReadString('\n')
			said <- strings.TrimSpace(line)
		}()
	}
	return nil
}

// stop ends the worker, then the server, and removes their files.
func (c *cluster) stop() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for index := len(c.processes) - 1; index >= 0; index-- {
		process := c.processes[index]
		_ = process.Process.Kill()
		_ = process.Wait()
	}
	c.processes = nil
	if c.directory != "" {
		_ = os.RemoveAll(c.directory)
		c.directory = ""
	}
}

// firstNats is the address for clients in a file of ports.
func firstNats(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var ports struct {
		Nats []string `json:"nats"`
	}
	if err := json.Unmarshal(text, &ports); err != nil {
		return "", err
	}
	if len(ports.Nats) == 0 {
		return "", fmt.Errorf("%s names no address", file)
	}
	return ports.Nats[0], nil
}

// awaitAddress reads the address from the file that the server writes when it listens.
func awaitAddress(directory string) (string, error) {
	for deadline := time.Now().Add(startWithin); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(directory, "*.ports"))
		if err != nil {
			return "", err
		}
		for _, file := range files {
			if url, err := firstNats(file); err == nil {
				return url, nil
			}
		}
	}
	return "", fmt.Errorf("the server did not listen within %v", startWithin)
}

func awaitWorker(said <-chan string) error {
	select {
	case line := <-said:
		if line != ready {
			return fmt.Errorf("the worker said %q instead of %q", line, ready)
		}
		return nil
	case <-time.After(startWithin):
		return fmt.Errorf("the worker was not ready within %v", startWithin)
	}
}
