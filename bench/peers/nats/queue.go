package main

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// The client sends tasks to taskSubject, workers send results to resultSubject.
const (
	taskSubject   = "tasks"
	resultSubject = "results"
)

// window is the number of tasks of a batch in flight: more gained nothing, and core NATS drops messages for a slow reader.
const window = 8_192

// queue is one of NATS's ways to hand tasks to workers.
type queue interface {
 // name of the row.
	name() string
 // says how tasks are sent and taken.
	says() string
 // serverFlags are the server's flags in addition to its address.
	serverFlags(directory string) []string
 // prepare creates on the server what the row needs.
	prepare(connection *nats.Conn) error
 // work runs tasks for the lifetime of the connection.
	work(connection *nats.Conn) error
 // client submits tasks.
	client(connection *nats.Conn) (client, error)
}

// client submits the tasks of one row.
type client interface {
 // begin starts a batch.
	begin() (batch, error)
 // submit sends a single task at once.
	submit(task []byte) error
}

// batch takes tasks one after the other.
type batch interface {
	submit(task []byte) error
 // end sends the tasks that are buffered.
	end() error
}

// work is the worker's process: one connection, on which no-op tasks are answered in order.
func work(row, url string) error {
	for _, queue := range queues {
		if queue.name() != row {
			continue
		}
		connection, err := nats.Connect(url)
		if err != nil {
			return err
		}
		if err := queue.work(connection); err != nil {
			return err
		}
		if err := connection.FlushTimeout(10 * time.Second); err != nil {
			return err
		}
		fmt.Println(ready)
		select {}
	}
	return fmt.Errorf("no row is called %q", row)
}
