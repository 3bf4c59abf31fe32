package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// resultWithin is the timeout for a result, which then counts as lost.
const resultWithin = 20 * time.Second

// effort is the length of the measurement; the same as in measure.py.
type effort struct {
	runs, samples                       int
	run, calibrate, sample, sampleLimit time.Duration
}

func effortOf(quick bool) effort {
	if quick {
		return effort{runs: 1, run: 1500 * time.Millisecond, calibrate: 300 * time.Millisecond,
			sample: time.Second, sampleLimit: 3 * time.Second, samples: 100}
	}
	return effort{runs: 3, run: 6 * time.Second, calibrate: time.Second,
		sample: 5 * time.Second, sampleLimit: 15 * time.Second, samples: 1_000}
}

// row is a row of the table.
type row struct {
	Name      string  `json:"name"`
	Version   string  `json:"version"`
	Interface string  `json:"interface"`
	TasksPerS float64 `json:"tasks_per_s"`
	RttP50Us  float64 `json:"rtt_p50_us"`
	RttP99Us  float64 `json:"rtt_p99_us"`
}

// measure starts a cluster for the row and prints its results.
func measure(cluster *cluster, server string, queue queue, effort effort) error {
	url, err := cluster.start(server, queue)
	if err != nil {
		return err
	}
	meter, err := newMeter(url, queue)
	if err != nil {
		return err
	}
	defer meter.connection.Close()
	row := row{Name: queue.name(), Version: meter.connection.ConnectedServerVersion()}
	row.Interface = fmt.Sprintf("%s; Go client, 1 worker process, %d tasks in flight", queue.says(), window)
	if row.TasksPerS, err = meter.throughput(effort); err != nil {
		return err
	}
	if row.RttP50Us, row.RttP99Us, err = meter.latency(effort); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(row)
}

// meter is the client: it submits tasks and counts their results.
type meter struct {
	queue      queue
	connection *nats.Conn
	client     client
 // room holds a token for each task in flight.
	room chan struct{}
 // arrived has one entry for each result of the current batch; only the subscription writes it.
	arrived []bool
 // left is the number of missing results; the last one is reported through done.
	left int
	done chan error
}

func newMeter(url string, queue queue) (*meter, error) {
	connection, err := nats.Connect(url)
	if err != nil {
		return nil, err
	}
	meter := &meter{queue: queue, connection: connection, room: make(chan struct{}, window), done: make(chan error, 1)}
	subscription, err := connection.Subscribe(resultSubject, meter.result)
	if err != nil {
		return nil, err
	}
	if err := subscription.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	if meter.client, err = queue.client(connection); err != nil {
		return nil, err
	}
	return meter, connection.Flush()
}

// result records a task's result. The tasks of a batch have distinct numbers, and no others are in flight.
func (m *meter) result(message *nats.Msg) {
	select {
	case <-m.room:
	default:
		m.done <- errors.New("a result came for no task")
		return
	}
	number, err := numberOf(message.Data)
	if err != nil || number >= uint64(len(m.arrived)) || m.arrived[number] {
		m.done <- fmt.Errorf("a task gave a second result, or a wrong one: %q", message.Data)
		return
	}
	m.arrived[number] = true
	if m.left--; m.left == 0 {
		m.done <- nil
	}
}

// expect makes room for the results of n tasks; none is in flight.
func (m *meter) expect(n int) {
	m.arrived, m.left = make([]bool, n), n
}

func (m *meter) await() error {
	select {
	case err := <-m.done:
		return err
	case <-time.After(resultWithin):
		return errors.New("results were lost")
	}
}

// batch submits n tasks as fast as the interface takes them and returns when all results are in.
func (m *meter) batch(n int) (time.Duration, error) {
	m.expect(n)
	started := time.Now()
	batch, err := m.client.begin()
	if err != nil {
		return 0, err
	}
	stalled := time.NewTimer(resultWithin)
	defer stalled.Stop()
	for number := range n {
		select {
		case m.room <- struct{}{}:
		default:
			stalled.Reset(resultWithin)
			select {
			case m.room <- struct{}{}:
			case err := <-m.done:
				return 0, err
			case <-stalled.C:
				return 0, errors.New("results were lost")
			}
		}
		if err := batch.submit(task(number)); err != nil {
			return 0, err
		}
	}
	if err := batch.end(); err != nil {
		return 0, err
	}
	err = m.await()
	return time.Since(started), err
}

// A task and its result are the task's number.
const taskBytes = 8

func task(number int) []byte {
	return binary.LittleEndian.AppendUint64(make([]byte, 0, taskBytes), uint64(number))
}

func numberOf(result []byte) (uint64, error) {
	if len(result) != taskBytes {
		return 0, fmt.Errorf("%d bytes", len(result))
	}
	return binary.LittleEndian.Uint64(result), nil
}

// throughput is the median of the runs, in tasks a second.
func (m *meter) throughput(effort effort) (float64, error) {
	n := 10_000
	elapsed, err := m.batch(n)
	for err == nil && elapsed < effort.calibrate {
		n *= 2
		elapsed, err = m.batch(n)
	}
	rate, rates := float64(n)/elapsed.Seconds(), []float64{}
	for run := 1; err == nil && run <= effort.runs; run++ {
		n = int(rate * effort.run.Seconds())
		elapsed, err = m.batch(n)
		rate = float64(n) / elapsed.Seconds()
		rates = append(rates, rate)
		m.say("run %d of %d: %d tasks, %.0f tasks/s", run, effort.runs, n, rate)
	}
	if err != nil {
		return 0, err
	}
	slices.Sort(rates)
	return rates[len(rates)/2], nil
}

// latency is median and 99th percentile of single tasks, in microseconds.
func (m *meter) latency(effort effort) (float64, float64, error) {
	samples := []float64{}
	const warmUp = 200
	for range warmUp {
		if _, err := m.one(); err != nil {
			return 0, 0, err
		}
	}
	for started := time.Now(); time.Since(started) < effort.sampleLimit; {
		if time.Since(started) >= effort.sample && len(samples) >= effort.samples {
			break
		}
		elapsed, err := m.one()
		if err != nil {
			return 0, 0, err
		}
		samples = append(samples, float64(elapsed.Nanoseconds())/1e3)
	}
	slices.Sort(samples)
	p50, p99 := quantile(samples, 0.5), quantile(samples, 0.99)
	m.say("%d single tasks: p50 %.1f us, p99 %.1f us", len(samples), p50, p99)
	return p50, p99, nil
}

func (m *meter) one() (time.Duration, error) {
	m.expect(1)
	m.room <- struct{}{}
	started := time.Now()
	if err := m.client.submit(task(0)); err != nil {
		return 0, err
	}
	err := m.await()
	return time.Since(started), err
}

func quantile(ordered []float64, quantile float64) float64 {
	return ordered[max(0, int(math.Ceil(quantile*float64(len(ordered))))-1)]
}

// say reports progress; the user sees lines with this prefix.
func (m *meter) say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, "peers: %s: %s\n", m.queue.name(), fmt.Sprintf(format, values...))
}
