// Load sends HTTPS requests from many clients at once and prints, as one line of JSON, how many were answered and how fast.
//
// Each line of standard input is one request: a method, a path, a body or nothing, with tabs between them. The clients take the lines
// in turn, and begin again at the end unless -once says that each line is sent once.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

type request struct{ method, path, body string }

type result struct {
	Answered  int                `json:"answered"`
	Seconds   float64            `json:"seconds"`
	PerSecond float64            `json:"per_second"`
	Statuses  map[string]int     `json:"statuses"`
	Errors    int                `json:"errors"`
	Milli     map[string]float64 `json:"milliseconds"`
}

type outcome struct {
	latencies []time.Duration
	statuses  map[string]int
	errors    int
}

func main() {
	base := flag.String("base", "", "scheme, host and port")
	authority := flag.String("authority", "", "file of the certificate authority")
	clients := flag.Int("clients", 100, "clients at once, each with a connection of its own")
	lasting := flag.Duration("for", 5*time.Second, "how long")
	once := flag.Bool("once", false, "send each line once, however long it takes")
	flag.Parse()

	requests := read()
	token := os.Getenv("LOAD_TOKEN")
	pool := trusted(*authority)
	var next atomic.Int64
	outcomes := make([]outcome, *clients)
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	ready.Add(*clients)
	done.Add(*clients)
	var end time.Time
	for number := range outcomes {
		go func(own *outcome) {
			defer done.Done()
			client := &http.Client{Transport: &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 1, DisableCompression: true,
			}}
			own.statuses = map[string]int{}
			// The handshake is no part of what is measured.
			send(client, *base, token, request{"GET", "/healthz", ""}, &outcome{statuses: map[string]int{}})
			ready.Done()
			<-start
			for {
				index := next.Add(1) - 1
				if *once && index >= int64(len(requests)) || !*once && time.Now().After(end) {
					return
				}
				send(client, *base, token, requests[index%int64(len(requests))], own)
			}
		}(&outcomes[number])
	}
	ready.Wait()
	began := time.Now()
	end = began.Add(*lasting)
	close(start)
	done.Wait()
	told, err := json.Marshal(summed(outcomes, time.Since(began)))
	fail(err)
	fmt.Println(string(told))
}

func read() []request {
	var requests []request
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		parts := append(strings.SplitN(lines.Text(), "\t", 3), "", "")
		requests = append(requests, request{parts[0], parts[1], parts[2]})
	}
	fail(lines.Err())
	if len(requests) == 0 {
		fail(fmt.Errorf("no requests on standard input"))
	}
	return requests
}

func trusted(path string) *x509.CertPool {
	content, err := os.ReadFile(path)
	fail(err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		fail(fmt.Errorf("%s holds no certificate", path))
	}
	return pool
}

func send(client *http.Client, base, token string, what request, own *outcome) {
	var body io.Reader
	if what.body != "" {
		body = strings.NewReader(what.body)
	}
	asked, err := http.NewRequest(what.method, base+what.path, body)
	fail(err)
	asked.Header.Set("Authorization", "Bearer "+token)
	if body != nil {
		asked.Header.Set("Content-Type", "application/json")
	}
	began := time.Now()
	answer, err := client.Do(asked)
	if err != nil {
		own.errors++
		return
	}
	_, err = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	if err != nil {
		own.errors++
		return
	}
	own.latencies = append(own.latencies, time.Since(began))
	own.statuses[fmt.Sprint(answer.StatusCode)]++
}

func summed(outcomes []outcome, took time.Duration) result {
	all := result{Seconds: took.Seconds(), Statuses: map[string]int{}, Milli: map[string]float64{}}
	var latencies []time.Duration
	for _, one := range outcomes {
		latencies = append(latencies, one.latencies...)
		all.Errors += one.errors
		for status, count := range one.statuses {
			all.Statuses[status] += count
		}
	}
	sort.Slice(latencies, func(a, b int) bool { return latencies[a] < latencies[b] })
	all.Answered = len(latencies)
	all.PerSecond = float64(all.Answered) / all.Seconds
	for name, share := range map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1} {
		if len(latencies) > 0 {
			place := min(int(share*float64(len(latencies))), len(latencies)-1)
			all.Milli[name] = float64(latencies[place].Microseconds()) / 1000
		}
	}
	return all
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
