package main

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// jetStream is a stream with work-queue retention, in memory. The stream keeps a task until its worker acknowledges it; the result goes to
// the client as a message of core NATS.
type jetStream struct{}

const (
	streamName   = "TASKS"
	consumerName = "workers"
 // pull is the number of tasks per request of the worker; flow the number that the server acknowledges at once.
	pull = 500
	flow = 500
 // patience is the timeout for the server's answers.
	patience = 10 * time.Second
)

func (jetStream) name() string { return "nats-jetstream" }

func (jetStream) says() string {
	return "JetStream: work-queue stream in memory, fast-ingest publish, Consume by pull, explicit acks"
}

func (jetStream) serverFlags(directory string) []string {
	return []string{"-js", "-sd", directory}
}

func (jetStream) prepare(connection *nats.Conn) error {
	stream, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	config := jetstream.StreamConfig{
		Name:              streamName,
		Subjects:          []string{taskSubject},
		Retention:         jetstream.WorkQueuePolicy,
		Storage:           jetstream.MemoryStorage,
		AllowBatchPublish: true,
	}
	if _, err := stream.CreateStream(ctx, config); err != nil {
		return err
	}
	_, err = stream.CreateConsumer(ctx, streamName, jetstream.ConsumerConfig{
		Durable:       consumerName,
		AckPolicy:     jetstream.AckExplicitPolicy,
		MaxAckPending: -1,
	})
	return err
}

func (jetStream) work(connection *nats.Conn) error {
	stream, err := jetstream.New(connection)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	consumer, err := stream.Consumer(ctx, streamName, consumerName)
	if err != nil {
		return err
	}
	_, err = consumer.Consume(func(task jetstream.Msg) {
		_ = connection.Publish(resultSubject, task.Data())
		_ = task.Ack()
	}, jetstream.PullMaxMessages(pull))
	return err
}

func (jetStream) client(connection *nats.Conn) (client, error) {
	stream, err := jetstream.New(connection)
	return jetStreamClient{stream}, err
}

type jetStreamClient struct {
	stream jetstream.JetStream
}

func (c jetStreamClient) begin() (batch, error) {
	publisher, err := jetstreamext.NewFastPublisher(c.stream, jetstreamext.FastPublishFlowControl{
		Flow:               flow,
		MaxOutstandingAcks: 2,
	})
	return fastBatch{publisher}, err
}

func (c jetStreamClient) submit(task []byte) error {
	_, err := c.stream.PublishAsync(taskSubject, task)
	return err
}

type fastBatch struct {
	publisher jetstreamext.FastPublisher
}

func (b fastBatch) submit(task []byte) error {
	_, err := b.publisher.Add(taskSubject, task)
	return err
}

func (b fastBatch) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := b.publisher.Close(ctx)
	return err
}
