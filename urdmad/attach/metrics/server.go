package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"urdma/inspect"
)

// Limits of the HTTP server, because any host may reach the address.
const (
	maxScrapes   = 4 // at a time
	requestTime  = 5 * time.Second
	responseTime = 10 * time.Second
	maxHeader    = 16 << 10 // bytes
	closeTime    = 500 * time.Millisecond
)

// Server serves /metrics.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// Listen listens on host:port; Serve answers.
func Listen(address string, gather func(context.Context) (*inspect.Snapshot, error)) (*Server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics_address: %w", err)
	}
	return &Server{l, &http.Server{Handler: Handler(gather), ReadTimeout: requestTime, WriteTimeout: responseTime,
		MaxHeaderBytes: maxHeader}}, nil
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers scrapes until Close.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics_address: %w", err)
	}
	return nil
}

// Close stops the server. Scrapes in progress get a short time to end: a slow reader must not
// delay urdmad's end.
func (s *Server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	return errors.Join(err, closeListener(s.listener))
}

// closeListener closes a listener that Serve may never have used.
func closeListener(l net.Listener) error {
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Handler is the HTTP handler without a socket.
func Handler(gather func(context.Context) (*inspect.Snapshot, error)) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(NewCollector(gather), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// fails if the reader is gone
		_, _ = w.Write([]byte("<!doctype html><title>urdmad</title><a href=\"/metrics\">metrics</a>\n"))
	})
	return mux
}
