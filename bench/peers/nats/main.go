// Command nats-peer measures no-op tasks on NATS: server, worker and client are three processes on loopback.
//
// `nats` is a queue group of core NATS: a request goes to one member of the group, whose reply is the result. Messages are neither kept nor
// acknowledged: one without a receiver is lost. `nats-jetstream` is a stream with work-queue retention in memory: the server keeps a task
// until its worker has acknowledged it.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	server := flag.String("server", "nats-server", "the NATS `server`")
	quick := flag.Bool("quick", false, "fewer and shorter runs")
	withParent := flag.Bool("with-parent", false, "end when stdin is closed")
	worker := flag.String("worker", "", "be the worker of this `row`, of the server at -url; what the client starts")
	url := flag.String("url", "", "where the worker finds the server")
	flag.Parse()
	if *withParent {
		go endWithStdin()
	}
	var err error
	if *worker != "" {
		err = work(*worker, *url)
	} else {
		err = measureAll(*server, effortOf(*quick))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// queues are the rows of the table.
var queues = []queue{core{}, jetStream{}}

// measureAll measures each row on its own server, and ends the processes that it started, also on a signal.
func measureAll(server string, effort effort) error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	done := make(chan error, 1)
	cluster := &cluster{}
	defer cluster.stop()
	go func() {
		for _, queue := range queues {
			if err := measure(cluster, server, queue, effort); err != nil {
				done <- fmt.Errorf("%s: %w", queue.name(), err)
				return
			}
			cluster.stop()
		}
		done <- nil
	}()
	select {
	case err := <-done:
		return err
	case signal := <-stop:
		return fmt.Errorf("ended by %v", signal)
	}
}

// endWithStdin ends this process when its parent, which holds the other end of stdin, has ended.
func endWithStdin() {
	buffer := make([]byte, 64)
	for {
		if _, err := os.Stdin.Read(buffer); err != nil {
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			return
		}
	}
}
