package main

import "github.com/nats-io/nats.go"

// core is request and reply through a queue group.
type core struct{}

func (core) name() string { return "nats" }

func (core) says() string {
	return "core: queue group, PublishRequest and Respond; nothing is kept or acknowledged"
}

func (core) serverFlags(string) []string { return nil }

func (core) prepare(*nats.Conn) error { return nil }

func (core) work(connection *nats.Conn) error {
	subscription, err := connection.QueueSubscribe(taskSubject, "workers", func(task *nats.Msg) {
		_ = task.Respond(task.Data)
	})
	if err != nil {
		return err
	}
	return subscription.SetPendingLimits(-1, -1)
}

func (core) client(connection *nats.Conn) (client, error) {
	return coreClient{connection}, nil
}

type coreClient struct {
	connection *nats.Conn
}

func (c coreClient) begin() (batch, error) { return c, nil }

func (c coreClient) submit(task []byte) error {
	return c.connection.PublishRequest(taskSubject, resultSubject, task)
}

func (c coreClient) end() error { return c.connection.Flush() }
